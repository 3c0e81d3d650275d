"""Two Connect groups whose exactly-once tasks write one connector's offsets: each delivers every record. Reads only.

The cause is a group that was renamed while a worker kept the old name, or workers that use another group's topics. A
group that one may not DESCRIBE is not seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from eosctl.app import App
from eosctl.checks import codes
from eosctl.core.configs.records import OFFSETS_TOPIC
from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.core.ids import ProducerId, TransactionalId, task_transactional_id
from eosctl.core.transactions import PROTOCOL_TYPE, ActiveProducer, KafkaFault
from eosctl.errors import BrokerError, EosctlError, InterruptedByUserError, UnsupportedError
from eosctl.foreign import shell_word
from eosctl.group.gather import worker_id_of
from eosctl.group.members import STABLE, ConnectGroup, connect_group
from eosctl.group.observation.rules import Observation
from eosctl.group.protocol import Work
from eosctl.ports import TransactionAdmin

RECENT_MS = 600_000


class _Rival(Struct, frozen=True):
    """A task of another group with the name of one of ours, whose id a coordinator knows."""

    group_id: str
    work: Work
    transactional_id: TransactionalId
    producer_id: ProducerId


def find_shared_offsets(app: App, observation: Observation) -> list[Finding]:
    """Return a finding for each connector and other group whose task has written the connector's offsets lately.

    A group is described only where a coordinator knows a task of it that has the name of one that runs here, and the
    producer of that id has written to the connector's offsets topic. What keeps it from being looked at is a finding.
    """
    try:
        return _shared_offsets(app, observation)
    except InterruptedByUserError:
        raise
    except UnsupportedError:
        return []  # brokers before 3.0, whose transactions nobody can list, as another check says
    except EosctlError as exc:
        message = f"whether another group writes the offsets of these connectors is not known: {exc.message}"
        return [Finding(exc.code, WARNING, "connectors", message, exc.hint or "See the message.", certain=False)]


def _shared_offsets(app: App, observation: Observation) -> list[Finding]:
    topics = {
        each.name: each.config.get(OFFSETS_TOPIC) or observation.offset_topic
        for each in observation.sources()
        if each.running() and each.name not in observation.own_clusters
    }
    running = {each.name: each.running() for each in observation.sources() if each.name in topics}
    if app.target.client is None or observation.group_id is None or not running:
        return []
    with app.transactions() as admin:
        listed = admin.list_groups()
        groups = [name for name, kind in listed.items() if kind == PROTOCOL_TYPE and name != observation.group_id]
        rivals = _known_rivals(admin, observation.group_id, groups, running)
        writes = _writes(admin, {topics[each.work[0]] for each in rivals}) if rivals else {}
        now_ms = app.clock.now_ms()
        found: dict[tuple[str, str], list[tuple[_Rival, int]]] = {}
        for each in rivals:
            at_ms = writes.get((topics[each.work[0]], each.producer_id))
            if at_ms is not None and abs(now_ms - at_ms) <= RECENT_MS:
                found.setdefault((each.group_id, each.work[0]), []).append((each, at_ms))
        others = {name: connect_group(admin.describe_group(name)) for name in sorted({name for name, _c in found})}
    told = (
        _finding(observation.group_id, others[name], connector, topics[connector], its, now_ms)
        for (name, connector), its in sorted(found.items())
    )
    return [each for each in told if each is not None]


def _known_rivals(
    admin: TransactionAdmin, group_id: str, groups: Sequence[str], running: Mapping[str, Sequence[int]]
) -> list[_Rival]:
    tasks = [(name, task) for name, numbers in running.items() for task in numbers]
    ours = {task_transactional_id(group_id, *work) for work in tasks}
    ids = {task_transactional_id(group, *work): (group, work) for group in groups for work in tasks}
    if not ids:
        return []
    listings = admin.list_transactions()
    if listings.unseen is not None:
        raise BrokerError(f"which transactional ids there are is not known: {listings.unseen}")
    return [
        _Rival(*ids[each.transactional_id], each.transactional_id, each.producer_id)
        for each in listings.complete()
        if each.transactional_id in ids and each.transactional_id not in ours
    ]


def _writes(admin: TransactionAdmin, topics: set[str]) -> dict[tuple[str, ProducerId], int]:
    """Return when each producer last wrote to each of the topics; raises BrokerError where that is not known."""
    places = [(topic, number) for topic, count in admin.topic_partitions(topics).items() for number in range(count)]
    newest: dict[tuple[str, ProducerId], int] = {}
    for (topic, partition), producers in admin.describe_producers(places).items():
        if isinstance(producers, KafkaFault):
            raise BrokerError(f"the producers of {topic}-{partition} are not known: {producers.name}")
        each: ActiveProducer
        for each in producers:
            key = (topic, each.producer_id)
            newest[key] = max(newest.get(key, each.last_timestamp_ms), each.last_timestamp_ms)
    return newest


def _finding(
    group_id: str, other: ConnectGroup, connector: str, topic: str, rivals: Sequence[tuple[_Rival, int]], now_ms: int
) -> Finding | None:
    """Return the finding; None where the other group does not have the task any more, as after a move."""
    works = {each.work for each, _at_ms in rivals}
    holders = [worker_id_of(each) for each in other.members if works & set(each.owned or ())]
    is_certain = other.state == STABLE and all(each.owned is not None for each in other.members)
    if is_certain and not holders:
        return None
    ids = [each.transactional_id for each, _at_ms in rivals]
    age_s = max(0, now_ms - max(at_ms for _each, at_ms in rivals)) // 1000
    doubt = "" if is_certain else ", if it still runs them, which is not known while it rebalances"
    at = ", ".join(holders) or "its workers"
    return Finding(
        codes.TWO_GROUPS, ERROR if is_certain else WARNING, connector,
        f"the groups {group_id} and {other.group_id} both write the offsets of {connector} in {topic}: {ids[0]} wrote "
        f"there {age_s:,} s ago, from {at}; each delivers every record, in its own transactions{doubt}",
        f"Stop the workers of the group that is not meant (`eosctl workers list -g {shell_word(other.group_id)}`), or "
        "give it a config.storage.topic and an offset.storage.topic of its own.",
        {"group_id": other.group_id, "transactional_ids": ids, "topic": topic, "workers": holders},
        certain=is_certain,
    )  # fmt: skip
