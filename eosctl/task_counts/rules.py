"""Task-count records: the ids that a leader would fence now, and the connectors whose ids are alive.

Judges values that were read elsewhere; reads and writes nothing. The findings about records are in `findings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from eosctl.core.configs.fold import ConfigState, ConnectorState, IgnoredRecord
from eosctl.core.ids import leader_transactional_id, owner_of
from eosctl.core.transactions import TransactionListing
from eosctl.core.workers.connector_entry import plugin_type
from eosctl.task_counts.findings import AliveTask, Case

MAX_LISTED_IDS = 10_000  # a wrongly written record may imply two thousand million ids


class FencingDecision(Struct, frozen=True):
    """The leader's action before this connector's tasks start: fence ids 0 to `fence_count` - 1, then write a record.

    `writes` is the count it would record, None if it leaves the record alone; `reason` explains both.
    """

    fence_count: int
    writes: int | None
    reason: str


def fencing_decision(connector: ConnectorState) -> FencingDecision:
    """Return the leader's decision if asked now (`DistributedHerder.doFenceZombieSourceTasks`, Kafka 3.3 to 4.3)."""
    recorded, now = connector.task_count_record, connector.task_count or 0
    if connector.config is None:
        return FencingDecision(0, None, "the connector does not exist: the record is kept for when it is created again")
    if not connector.pending_fencing:
        return FencingDecision(0, None, "no task commit since the record: no id is fenced")
    if recorded is None:
        return FencingDecision(0, now, "there is no record: no id is fenced, the count is recorded")
    if recorded == 1 and now == 1:
        return FencingDecision(0, now, "one task before and now: the new task fences the old one itself")
    return FencingDecision(
        max(recorded, 0), now, f"task configs are newer than the record: fences the {recorded} recorded"
    )


def decision_after_commit(connector: ConnectorState) -> FencingDecision:
    """Return the decision after the next task commit: a resumed, re-created or reconfigured connector writes one."""
    recorded = connector.task_count_record
    if recorded is None:
        return FencingDecision(0, None, "there is no record: no id is fenced")
    if recorded == 1:
        return FencingDecision(1, None, "fences the 1 recorded; one task that follows one does so itself")
    return FencingDecision(max(recorded, 0), None, f"fences the {max(recorded, 0)} recorded")


def alive_tasks(
    listings: Iterable[TransactionListing], group_id: str, connectors: Iterable[str]
) -> dict[str, list[AliveTask]]:
    """Return the known ids of each of the group's connectors, in task order."""
    known, prefix = frozenset(connectors), f"{group_id}-"
    alive: dict[str, list[AliveTask]] = {}
    for listing in listings:
        if not known or not listing.transactional_id.startswith(prefix):
            continue
        owner = owner_of(listing.transactional_id, group_id, known)
        if owner.connector is not None and owner.task is not None:
            task = AliveTask(owner.task, listing.transactional_id, listing.state)
            alive.setdefault(owner.connector, []).append(task)
    for tasks in alive.values():
        tasks.sort(key=lambda task: task.task)
    return alive


def other_groups(listings: Iterable[TransactionListing], group_id: str, own_ids: frozenset[str]) -> frozenset[str]:
    """Find other Connect groups on the same Kafka cluster by their leader ids."""
    prefix = leader_transactional_id("")
    ids = (listing.transactional_id for listing in listings)
    groups = {each.removeprefix(prefix) for each in ids if each.startswith(prefix) and each not in own_ids}
    return frozenset(groups - {group_id})


def cases(
    state: ConfigState,
    group_id: str,
    *,
    listings: Sequence[TransactionListing] | None = None,
    types: Mapping[str, str] | None = None,
    elsewhere: Mapping[str, Sequence[TransactionListing] | None] | None = None,
) -> list[Case]:
    """Return one case per connector in the topic, by name; `types` are those that Connect reports.

    `elsewhere` are the listings of the Kafka clusters that connectors have of their own, None where one is unknown.
    """
    ignored = _ignored_task_counts(state)
    names = sorted({*state.connectors, *ignored})
    alive = None if listings is None else alive_tasks(listings, group_id, names)
    own_ids = frozenset(task.transactional_id for tasks in (alive or {}).values() for task in tasks)
    groups = other_groups(listings or (), group_id, own_ids)
    result = []
    for name in names:
        connector = state.connectors.get(name) or ConnectorState(name)
        kind = plugin_type(connector.config, (types or {}).get(name))
        tasks = None if alive is None else tuple(alive.get(name, ()))
        if elsewhere and name in elsewhere:
            there = elsewhere[name]
            tasks = None if there is None else tuple(alive_tasks(there, group_id, names).get(name, ()))
        passed_over = tuple(ignored.get(name, ()))
        result.append(Case(connector, group_id, kind, tasks, passed_over, groups))
    return result


def _ignored_task_counts(state: ConfigState) -> dict[str, list[IgnoredRecord]]:
    """Return ignored records meant as task-count records, or that break a worker's reader, per connector."""
    by_connector: dict[str, list[IgnoredRecord]] = {}
    for record in state.ignored:
        meant = record.code == "kip_text_key" or (record.key or "").startswith("tasks-fencing-")
        if (meant or record.breaks_reader) and record.connector is not None:
            by_connector.setdefault(record.connector, []).append(record)
    return by_connector
