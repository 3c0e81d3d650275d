"""Events that repeat, and connectors with two sets of tasks: doctor's checks of topics' recent records. Reads only.

Repeated events are tasks that fail after each restart, and configs that are written without an end. Nothing is
remembered from one look to the next: the status topic and the config topic have every record of the last minutes, as
compaction leaves the active segment alone.

Two Connect groups whose exactly-once tasks write one connector's offsets each deliver every record. The
cause is a group that was renamed while a worker kept the old name, or workers that use another group's topics. A group
without the DESCRIBE right for it is not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from eosctl.app import App
from eosctl.checks import codes
from eosctl.checks.visit import StatusLog
from eosctl.connectors.look import FAILED, failure_text, known_failure, remedy
from eosctl.core.configs.records import OFFSETS_TOPIC, RecordKind
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.ids import ProducerId, TransactionalId, connector_path, task_transactional_id
from eosctl.core.transactions import PROTOCOL_TYPE, ActiveProducer, KafkaFault
from eosctl.errors import BrokerError, EosctlError, InterruptedByUserError, UnsupportedError
from eosctl.failures import codes as failure_codes
from eosctl.foreign import arguments, shell_word
from eosctl.group.gather import worker_id_of
from eosctl.group.members import STABLE, ConnectGroup, connect_group
from eosctl.group.observation.rules import Observation
from eosctl.group.protocol import CONNECTOR_ITSELF, Work
from eosctl.group.topics import WrittenStatus
from eosctl.observation.connectors.commit_age import under_cause
from eosctl.ports import TransactionAdmin
from eosctl.txn.log import count_initialisations

WINDOW_MS = 600_000
LEAST_FAILURES, LEAST_CONFIGS, LEAST_STRANGERS, LEAST_TAKEN = 3, 10, 2, 3
"""So many within the window no rolling restart, scaling or change of a config makes."""
_CALM_MS = 60_000
_FENCED = frozenset({failure_codes.TASK_FENCED, failure_codes.TASK_FENCED_OR_EXPIRED})


class FailingPart(Struct, frozen=True):
    """A connector or task that failed repeatedly: the times, the cause of each, and how often it began to run.

    `goes_on` is false where it has run for longer than it did before; `is_failed`: it has not been started since.
    """

    connector: str
    task: int
    failed_ms: tuple[int, ...]
    traces: tuple[str, ...]
    starts: int
    goes_on: bool
    is_failed: bool = False

    @property
    def subject(self) -> str:
        """Return what findings call it."""
        return self.connector if self.task == CONNECTOR_ITSELF else f"{self.connector}/{self.task}"

    @property
    def is_fenced(self) -> bool:
        """Check whether each of its failures is one that another producer under its transactional id causes."""
        known = [known_failure(trace) for trace in self.traces]
        return all(each is not None and each.failure.code in _FENCED for each in known)

    def transactional_id(self, group_id: str) -> TransactionalId:
        """Return the id of the task."""
        return task_transactional_id(group_id, self.connector, self.task)


class IdUse(Struct, frozen=True):
    """The number of times each id was initialised in the window; `unread` is the reason where that is unknown."""

    initialised: Mapping[TransactionalId, int]
    unread: str = ""


def find_repeats(app: App, observation: Observation, log: StatusLog) -> list[Finding]:
    """Return findings about repeated events, or that the status topic does not show them.

    The coordinators' log is read only for a task that failed because of another producer.
    """
    now_ms = app.clock.now_ms()
    every = failing_parts(log, now_ms, least=1)
    parts = [each for each in every if len(each.failed_ms) >= LEAST_FAILURES]
    taken = [each for each in every if each not in parts and each.is_failed and each.task != CONNECTOR_ITSELF]
    here = [each for each in (*parts, *taken) if each.is_fenced and each.connector not in observation.own_clusters]
    fenced = [each.transactional_id(observation.group_id or "") for each in here]
    unread = [_statuses_unread(log)] if log.unread and log.is_there and observation.connectors else []
    uses = _uses_of(app, fenced, now_ms)
    return [
        *unread,
        *repeat_findings(observation, parts, uses, now_ms),
        *_taken_findings(observation, [each for each in taken if each in here], uses, now_ms),
    ]


def under_repeats(repeats: Sequence[Finding], failures: Sequence[Finding]) -> list[Finding]:
    """Return all findings, with present failures folded under their repetition."""
    again = {each.subject for each in repeats if each.code in (codes.FAILS_AGAIN, codes.ID_USED_IN_TURN)}
    below = [each for each in failures if each.subject in again and each.evidence.get("state") == FAILED]
    told = [
        under_cause(each, [one for one in below if one.subject == each.subject]) if each.subject in again else each
        for each in repeats
    ]
    return [*told, *(each for each in failures if each not in below)]


def _statuses_unread(log: StatusLog) -> Finding:
    return Finding(
        codes.STATUSES_UNREAD, WARNING, "status topic",
        f"what failed and was restarted lately is not known: {log.unread}", codes.STATUSES_UNREAD.next, certain=False,
    )  # fmt: skip


def _uses_of(app: App, ids: Sequence[TransactionalId], now_ms: int) -> IdUse:
    try:
        return IdUse(count_initialisations(app, ids, since_ms=now_ms - WINDOW_MS) if ids else {})
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return IdUse({}, exc.message)


def failing_parts(log: StatusLog, now_ms: int, *, least: int = LEAST_FAILURES) -> list[FailingPart]:
    """Return the parts that failed, were started and failed `least` times or more within the window."""
    found = (_failing_part(name, task, told, now_ms, least) for (name, task), told in sorted(log.history.items()))
    return [each for each in found if each is not None]


def _failing_part(
    name: str, task: int, statuses: Sequence[WrittenStatus], now_ms: int, least: int
) -> FailingPart | None:
    recent = [at for at, each in enumerate(statuses) if each.at_ms >= now_ms - WINDOW_MS]
    failed = [
        statuses[at] for at in recent if statuses[at].state == FAILED and (at == 0 or statuses[at - 1].state != FAILED)
    ]
    if len(failed) < least:
        return None
    times = [each.at_ms for each in failed]
    longest_ms = max((later - before for before, later in pairwise(times)), default=0)
    is_failed = statuses[-1].state == FAILED
    goes_on = is_failed or now_ms - times[-1] <= max(_CALM_MS, 2 * longest_ms)
    runs = sum(statuses[at].state == "RUNNING" for at in recent)
    starts = max(runs, len(failed)) + 1  # one may have begun before the window
    return FailingPart(name, task, tuple(times), tuple(each.trace for each in failed), starts, goes_on, is_failed)


def repeat_findings(
    observation: Observation, parts: Iterable[FailingPart], uses: IdUse, now_ms: int
) -> Iterable[Finding]:
    """Yield a finding for each part that fails after each restart, and each config that is written all the time.

    One that ended a while ago is for information.
    """
    known = {each.name for each in observation.connectors or ()}
    for part in parts:
        if part.connector in known:
            yield _fails_again(part, observation, uses, now_ms)
    for name in sorted(known):
        yield from _written_again(name, observation, now_ms)


def _written_again(name: str, observation: Observation, now_ms: int) -> Iterable[Finding]:
    """Yield a finding for a config that is written all the time, or for tasks that are without such a change."""
    configs, states, commits = (
        [each for each in observation.config_records_ms.get((kind, name), ()) if each >= now_ms - WINDOW_MS]
        for kind in (RecordKind.CONNECTOR, RecordKind.TARGET_STATE, RecordKind.COMMIT)
    )
    if len(configs) >= LEAST_CONFIGS:
        yield Finding(
            codes.CONFIG_WRITTEN_AGAIN, WARNING if _goes_on(configs, now_ms) else INFO, name,
            f"the config of {name} was written {len(configs):,} times in the last 10 minutes, the last time "
            f"{_ago(configs[-1], now_ms)}: each time its tasks may stop and start",
            f"Find who sends PUT {connector_path(name)}/config (a script, an operator), and have it send a config only "
            "where it differs.",
            {"writes": len(configs), "last_ms": configs[-1]},
        )  # fmt: skip
    elif len(commits) - len(configs) - len(states) >= LEAST_CONFIGS:
        yield Finding(
            codes.TASKS_WRITTEN_AGAIN, WARNING if _goes_on(commits, now_ms) else INFO, name,
            f"the tasks of {name} were configured {len(commits):,} times in the last 10 minutes, the last time "
            f"{_ago(commits[-1], now_ms)}, and its config or state was written {len(configs) + len(states):,} times: "
            "each time the group rebalances, and the tasks stop and start",
            codes.TASKS_WRITTEN_AGAIN.next,
            {"commits": len(commits), "writes": len(configs) + len(states), "last_ms": commits[-1]},
        )  # fmt: skip


def _goes_on(times: Sequence[int], now_ms: int) -> bool:
    longest_ms = max(later - before for before, later in pairwise(times))
    return now_ms - times[-1] <= max(_CALM_MS, 2 * longest_ms)


def _fails_again(part: FailingPart, observation: Observation, uses: IdUse, now_ms: int) -> Finding:
    transactional_id = part.transactional_id(observation.group_id or "")
    strangers = _strangers(part, observation, uses, now_ms)
    times = f"{len(part.failed_ms)} times in the last 10 minutes, the last time {_ago(part.failed_ms[-1], now_ms)}"
    if strangers is not None and strangers >= max(LEAST_STRANGERS, len(part.failed_ms) // 2):
        why = (
            f"another producer took {transactional_id}, which was initialised {strangers:,} times more than the task "
            "was started"
        )
        fix = _find_other(part, transactional_id)
    else:
        why = f"somebody restarts it, and it fails again: {failure_text(part.traces[-1])}"
        fix = _fix(part)
        if part.is_fenced and strangers is None:
            unread = uses.unread or "it is of another Kafka cluster"
            why += f"; whether another producer takes {transactional_id} is not known: {unread}"
    return Finding(
        codes.FAILS_AGAIN, ERROR if part.goes_on else INFO, part.subject,
        f"{part.subject} failed and was restarted {times}: {why}", fix,
        {
            "failures": len(part.failed_ms),
            "last_ms": part.failed_ms[-1],
            "transactional_id": transactional_id if part.is_fenced else None,
            "other_initialisations": strangers,
        },
    )  # fmt: skip


def _taken_findings(
    observation: Observation, parts: Iterable[FailingPart], uses: IdUse, now_ms: int
) -> Iterable[Finding]:
    """Yield a finding for each FAILED task whose id was initialised more often than its starts explain."""
    known = {each.name for each in observation.connectors or ()}
    for part in parts:
        strangers = _strangers(part, observation, uses, now_ms) or 0
        if part.connector in known and strangers >= LEAST_TAKEN:
            transactional_id = part.transactional_id(observation.group_id or "")
            yield Finding(
                codes.ID_USED_IN_TURN, ERROR, part.subject,
                f"{part.subject} was fenced {_ago(part.failed_ms[-1], now_ms)}, and its {transactional_id} was "
                f"initialised {strangers:,} times more in the last 10 minutes than its starts and fencing rounds "
                "explain: another producer uses it in turn, unless somebody fenced it by hand",
                _find_other(part, transactional_id),
                {"transactional_id": transactional_id, "other_initialisations": strangers, "starts": part.starts},
            )  # fmt: skip


def _find_other(part: FailingPart, transactional_id: TransactionalId) -> str:
    return (
        f"Find who else uses {shell_word(transactional_id)} (`eosctl txn log --all-records "
        f"{arguments(transactional_id)}` shows when, `eosctl history` whether it was eosctl), and give it another "
        f"transactional.id; then `eosctl connectors restart --failed {arguments(part.connector)}`."
    )


def _strangers(part: FailingPart, observation: Observation, uses: IdUse, now_ms: int) -> int | None:
    """Return how often its id was initialised by other than Connect: neither a start of the task nor a fencing round.

    None where that was not looked at, or could not be.
    """
    initialised = uses.initialised.get(part.transactional_id(observation.group_id or ""))
    if initialised is None:
        return None
    rounds = observation.config_records_ms.get((RecordKind.TASK_COUNT, part.connector), ())
    return max(0, initialised - part.starts - sum(each >= now_ms - WINDOW_MS for each in rounds))


def _fix(part: FailingPart) -> str:
    known = known_failure(part.traces[-1])
    shown = f"`eosctl connectors trace -o json {arguments(part.connector)}` has the whole trace."
    mend = shown if known is None else remedy(known).replace("{c}", shell_word(part.connector))
    return f"Mend its cause first, a restart does not: {mend.replace('{name}', arguments(part.connector))}"


def _ago(at_ms: int, now_ms: int) -> str:
    return f"{max(0, now_ms - at_ms) // 1000:,} s ago"


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
