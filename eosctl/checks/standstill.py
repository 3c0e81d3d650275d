"""Standstill: topics that can't be written or read, transactions that do not end, connectors at rest. Reads only.

Long open transactions, of any client, count on topics to which the group's connectors write. The search starts from
what coordinators list as open for long, which are few on any cluster: no topic is examined before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks import codes
from eosctl.connectors import codes as connector_codes
from eosctl.connectors.topics import FoundTopics, find_topics
from eosctl.core.clients.own_brokers import CLUSTER_PROPERTY
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.ids import FLINK_SINK, TransactionalId, application_of, owner_of, task_transactional_id
from eosctl.core.java.properties import is_reference, whole_number
from eosctl.core.records import Bounds, KnownBounds, Placement, TopicDescription
from eosctl.core.transaction_log import TOPIC as TRANSACTION_LOG
from eosctl.core.transactions import TransactionDescription, TransactionState
from eosctl.core.wording import counted
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.foreign import arguments
from eosctl.group.observation.rules import Observation, ObservedConnector
from eosctl.observation.connectors.commit_age import under_cause
from eosctl.observation.connectors.settings import boundary_setting, commit_interval
from eosctl.observation.transactions import running_ids
from eosctl.report import Problem
from eosctl.txn.hanging import unjudged
from eosctl.txn.list import list_open_longer_than
from eosctl.txn.report import id_problem, missing_ids_problems
from eosctl.txn.unended import LATE_MS, unended_finding
from eosctl.txn.unended_look import look_for_unended

_MOST_NAMED = 3
_ADD_REPLICAS = "Add replicas (kafka-reassign-partitions.sh), or lower min.insync.replicas."


def standstill_findings(topics: Sequence[TopicDescription]) -> Iterable[Finding]:
    """Yield brokers that replicas name and the cluster lacks, then the partitions of each topic that stand still."""
    yield from _brokers_down(topics)
    for topic in topics:
        yield from _below_min_isr(topic)
        if topic.name != TRANSACTION_LOG:  # the partitions of that one are asked themselves
            yield from _without_leader(topic)


def _brokers_down(topics: Sequence[TopicDescription]) -> Iterable[Finding]:
    names: dict[int, list[str]] = {}
    for topic in topics:
        for broker in sorted({broker for each in topic.placements for broker in each.offline}):
            names.setdefault(broker, []).append(topic.name)
    for broker, on_it in sorted(names.items()):
        yield Finding(
            codes.BROKER_DOWN, ERROR, f"broker {broker}",
            f"broker {broker} is down: the cluster does not have it, and replicas of {', '.join(on_it)} are on it",
            "See in the end of its log why it ended, which `eosctl explain` reads: a full disk, say, ends it again at "
            "its next start. If it is gone for good, move its replicas (kafka-reassign-partitions.sh).",
            {"broker": broker, "topics": on_it},
        )  # fmt: skip


def _below_min_isr(topic: TopicDescription) -> Iterable[Finding]:
    setting = topic.config.get("min.insync.replicas", "")
    least = whole_number(setting) or 0
    never = least > topic.replication_factor
    if never and topic.name == TRANSACTION_LOG:
        return  # which is a finding of its own
    below = [each for each in topic.placements if each.leader is not None and len(each.in_sync) < least]
    if below:
        yield Finding(
            codes.BELOW_MIN_ISR, ERROR, topic.name,
            f"{counted(len(below), 'partition')} of {topic.name} with fewer replicas in sync than "
            f"min.insync.replicas={least}: no transaction and no offset can be written to them",
            _ADD_REPLICAS if never else _bring_back(below),
            {
                "topic": topic.name,
                "min.insync.replicas": least,
                "partitions": [each.partition for each in below],
                "in_sync": min(len(each.in_sync) for each in below),
            },
        )  # fmt: skip


def _without_leader(topic: TopicDescription) -> Iterable[Finding]:
    headless = [each for each in topic.placements if each.leader is None]
    if headless:
        yield Finding(
            codes.PARTITION_WITHOUT_LEADER, ERROR, topic.name,
            f"{counted(len(headless), 'partition')} of {topic.name} without a leader: nothing can be read from or "
            "written to them",
            _bring_back(headless), {"topic": topic.name, "partitions": [each.partition for each in headless]},
        )  # fmt: skip


def _bring_back(placements: Iterable[Placement]) -> str:
    """Name the brokers to see to, where some are known to be down; else the replicas that lag."""
    known = list(placements)
    gone = sorted({broker for each in known for broker in each.offline})
    if gone:
        names, one = ", ".join(map(str, gone)), len(gone) == 1
        return (
            f"Bring {'broker' if one else 'brokers'} {names} back; see first in the end of {'its' if one else 'their'} "
            f"{'log' if one else 'logs'} why {'it' if one else 'each'} ended: a full disk, say, ends it again."
        )
    late = sorted({broker for each in known for broker in set(each.replicas) - set(each.in_sync)})
    if not late:
        return "See why the brokers that have its replicas do not lead it: down, or their log directory failed."
    return f"See the logs of {'broker' if len(late) == 1 else 'brokers'} {', '.join(map(str, late))}: not in sync."


def at_rest(observation: Observation, fixes: Mapping[str, str]) -> Iterable[Finding]:
    """Yield stopped and paused connectors, none of whose tasks reads. That is no fault.

    `fixes` has those that must not start here, and what to do with each: one runs elsewhere, or lacks its offsets.
    """
    for state in ("PAUSED", "STOPPED"):
        every = [each.name for each in observation.connectors or () if each.states.get("connector") == state]
        for name in every:
            if name in fixes:
                message = f"{state}: {name}; no task of it runs here"
                yield Finding(codes.AT_REST, INFO, name, message, fixes[name], {"state": state, "connectors": [name]})
        names = [name for name in every if name not in fixes]
        if names:
            more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
            yield Finding(
                codes.AT_REST, INFO, names[0] if len(names) == 1 else f"{len(names)} connectors",
                f"{state}: {', '.join(names[:_MOST_NAMED])}{more}; no task of {'them' if names[1:] else 'it'} runs",
                f"Nothing, if that is meant; `eosctl connectors resume {arguments(names[0])}` starts it again.",
                {"state": state, "connectors": names},
            )  # fmt: skip


def long_transactions(observation: Observation) -> Iterable[Finding]:
    """Yield transactions of RUNNING tasks that have used up half of their timeout, at whose end brokers abort them.

    A task that commits by the clock has its transaction open for that long, which is no standstill. Where that interval
    is not known, which is a finding of its own, nothing is reported.
    """
    for connector in observation.sources():
        usual_ms = _interval_ms(connector, observation)
        for task in () if usual_ms is None else sorted(connector.tasks()):
            transactional_id = task_transactional_id(observation.group_id or "", connector.name, task)
            ongoing = observation.ongoing.get(transactional_id)
            if ongoing is None or ongoing.open_ms <= max(ongoing.timeout_ms / 2, usual_ms or 0):
                continue
            is_unended = ongoing.state != TransactionState.ONGOING or ongoing.open_ms > ongoing.timeout_ms + LATE_MS
            if is_unended and connector.name not in observation.own_clusters:
                continue  # `find_unended` looks for those that coordinators do not end, on the group's cluster alone
            subject = f"{connector.name}/{task}"
            due = f"at {ongoing.timeout_ms // 1000:,} s, and the task can't write then, FAILED or not"
            means = "its coordinator has not ended it" if is_unended else f"brokers abort it {due}"
            yield Finding(
                codes.TRANSACTION_OPEN_LONG, ERROR, subject,
                f"{subject} has a transaction open for {ongoing.open_ms // 1000:,} s ({ongoing.state}); {means}",
                f"See `eosctl txn describe {arguments(transactional_id)}` and the log of "
                f"{connector.worker_of(f'task {task}') or 'its worker'}. If brokers can't be written, fix that "
                "first; where its source is slow, let it commit more often (transaction.boundary), or raise its "
                "transaction.timeout.ms.",
                {
                    "transactional_id": transactional_id,
                    "state": ongoing.state,
                    "open_ms": ongoing.open_ms,
                    "transaction_timeout_ms": ongoing.timeout_ms,
                },
            )  # fmt: skip


LEAST_LONG_MS, MOST_USUAL_MS = 30_000, 120_000
"""Half of a transaction's timeout is long, but never less than the one, which is half of the default, nor more than the
other."""


def find_unended(app: App) -> tuple[list[Finding], list[Problem]]:
    """Find transactions, of any client, that their coordinators do not end: a finding each, and what is not known."""
    try:
        look = look_for_unended(replace(app, deadline=app.deadline.half()))
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return [], [Problem.of(exc)]
    now_ms = app.clock.now_ms()
    return [unended_finding(each, now_ms=now_ms) for each in look.found], look.problems(app)


def under_unended(unended: Sequence[Finding], held: Sequence[Finding]) -> list[Finding]:
    """Return all findings, with the topics that a transaction holds up under its not being ended."""
    of = {each.subject: [one for one in held if one.subject == each.subject] for each in unended}
    told = [under_cause(each, of[each.subject]) if of[each.subject] else each for each in unended]
    return [*told, *(each for each in held if each.subject not in of)]


class HeldTopic(Struct, frozen=True):
    """A topic of these connectors, and its partitions whose last stable offset stays behind their end.

    Not `certain`: configs name it, or a prefix that fits, and no worker reports that they have written to it.
    """

    topic: str
    connectors: Sequence[str]
    bounds: Sequence[Bounds]
    certain: bool


def is_open_long(transaction: TransactionDescription, now_ms: int, *, is_flinks: bool = False) -> bool:
    """Check whether it has been open for half of its timeout, as in `long_transactions`, or for two minutes.

    One of Flink's lasts from checkpoint to checkpoint, so that only half of its timeout counts, however long.
    """
    half_ms = max(transaction.transaction_timeout_ms / 2, LEAST_LONG_MS)
    limit_ms = half_ms if is_flinks else min(half_ms, MOST_USUAL_MS)
    return transaction.started_ms is not None and now_ms - transaction.started_ms > limit_ms


def held_topics_finding(
    holder: TransactionDescription, held: Sequence[HeldTopic], *, now_ms: int, is_flinks: bool = False
) -> Finding:
    """Make the finding of a long open transaction, of any client, that holds up readers of the connectors' topics.

    A warning while it is not certain that they write there.
    """
    certain = any(each.certain for each in held)
    name, age_s = holder.transactional_id, (now_ms - (holder.started_ms or now_ms)) // 1000
    places = [f"{each.topic}-{bound.partition} at {bound.lso:,}" for each in held for bound in each.bounds]
    more = f" and of {len(places) - _MOST_NAMED:,} more" if len(places) > _MOST_NAMED else ""
    writers = sorted({connector for each in held for connector in each.connectors})
    others = f" and {len(writers) - _MOST_NAMED} more" if len(writers) > _MOST_NAMED else ""
    write = "may write" if not certain else "writes" if len(writers) == 1 else "write"
    return Finding(
        codes.DATA_TOPIC_HELD, ERROR if certain else WARNING, name,
        f"{name} (producer {holder.producer_id}) has had a transaction open for {age_s:,} s ({holder.state.value}): it "
        f"keeps the last stable offset of {', '.join(places[:_MOST_NAMED])}{more}, where "
        f"{', '.join(writers[:_MOST_NAMED])}{others} {write}; consumers with read_committed wait there",
        f"See `eosctl txn describe {arguments(name)}`. {_end_of(holder, is_flinks=is_flinks)}",
        {
            "transactional_id": name,
            "producer_id": holder.producer_id,
            "producer_epoch": holder.producer_epoch,
            "state": holder.state.value,
            "started_ms": holder.started_ms,
            "age_ms": age_s * 1000,
            "transaction_timeout_ms": holder.transaction_timeout_ms,
            "connectors": writers,
            "partitions": [_held_place(each.topic, bound) for each in held for bound in each.bounds],
        },
    )  # fmt: skip


def _end_of(holder: TransactionDescription, *, is_flinks: bool) -> str:
    if holder.state is not TransactionState.ONGOING:
        return "Its end is decided, and brokers have not written it to every partition: see which of them are down."
    by_itself = f"Its coordinator aborts it {holder.transaction_timeout_ms / 1000:g} s after its start"
    if is_flinks:
        return f"Its id looks like one of Flink's: let its job end it, for it may hold prepared records. {by_itself}."
    return f"{by_itself}; `eosctl fence {arguments(holder.transactional_id)}` aborts it now, and its application fails."


def _held_place(topic: str, bound: Bounds) -> Mapping[str, object]:
    return {"topic": topic, "partition": bound.partition, "lso": bound.lso, "end": bound.end}


def _interval_ms(connector: ObservedConnector, observation: Observation) -> int | None:
    """Return how long a transaction is to be open: 0 unless the connector commits by the clock; None: not known."""
    boundary = boundary_setting(connector)
    if boundary != "interval":
        return None if is_reference(boundary) else 0
    return commit_interval(connector, observation).number


_PATIENCE_S = 10.0
"""Other checks wait for partitions without a leader; this is enough for each request here."""


def find_held_topics(app: App, seen: Observation) -> tuple[list[Finding], list[Problem]]:
    """Find long open transactions on topics of the group's connectors: a finding for each, and what is not known.

    Transactions of the group's RUNNING tasks are judged by `long_transactions`, offsets topics by `offsets lint`.
    """
    sources = {each.name: each.config for each in seen.sources() if CLUSTER_PROPERTY not in each.config}
    if not sources:
        return [], []
    now_ms = app.clock.now_ms()
    holders, problems = _holders(app, seen, now_ms=now_ms)
    if not holders:
        return [], problems
    topics = find_topics(_patient(app), sources)
    problems += _unjudged_connectors(topics, holders)
    certain = _writers({name: each.written for name, each in topics.of.items()}, holders)
    perhaps = {name: (*each.written, *each.likely, *each.own_writes) for name, each in topics.of.items()}
    writers = _writers(perhaps, holders)
    for internal in seen.topics or ():
        writers.pop(internal, None)
    bounds, unasked = _held_bounds(_patient(app), writers)
    found = []
    for holder in holders:
        held = [
            HeldTopic(topic, certain.get(topic, who), stuck, certain=topic in certain)
            for topic, who in writers.items()
            if (stuck := [each for each in bounds[topic] if (topic, each.partition) in holder.partitions])
        ]
        if held:
            is_flinks = _is_flinks(holder.transactional_id, seen)
            found.append(held_topics_finding(holder, held, now_ms=now_ms, is_flinks=is_flinks))
    return found, problems + unasked


def _patient(app: App) -> App:
    """Return the app with a shorter deadline, so that later steps keep some of the time."""
    return replace(app, deadline=app.deadline.half(at_most_s=_PATIENCE_S))


def _holders(app: App, seen: Observation, *, now_ms: int) -> tuple[list[TransactionDescription], list[Problem]]:
    """Return the transactions that have been open for long, except those of RUNNING tasks."""
    running = frozenset(running_ids(seen))
    with _patient(app).transactions() as admin:
        listings = list_open_longer_than(app, admin, LEAST_LONG_MS)
        ids = [each.transactional_id for each in listings.found if each.transactional_id not in running]
        described = admin.describe_transactions(ids) if ids else {}
    unknown = [id_problem(app, each, fault, "describe") for each, fault in unjudged(described).items()]
    known = [each for each in described.values() if isinstance(each, TransactionDescription)]
    holders = [each for each in known if is_open_long(each, now_ms, is_flinks=_is_flinks(each.transactional_id, seen))]
    return holders, [*missing_ids_problems(listings), *unknown]


def _is_flinks(transactional_id: TransactionalId, seen: Observation) -> bool:
    """Check whether `fence` takes it for one of Flink's; tasks of the group's connectors may have such ids, too."""
    owner = owner_of(transactional_id, seen.group_id, [each.name for each in seen.sources()])
    return owner.kind != "task" and application_of(transactional_id) == FLINK_SINK


def _unjudged_connectors(topics: FoundTopics, holders: Sequence[TransactionDescription]) -> list[Problem]:
    """Return a problem for connectors without any known topic, whose topics these transactions may hold."""
    names = [name for name in topics.unreported if not (topics.of[name].written or topics.of[name].likely)]
    if not names:
        return []
    first = holders[0].transactional_id
    return [
        Problem(
            connector_codes.OUTPUT_TOPICS_UNKNOWN,
            f"whether the transaction of {first} holds up {', '.join(names)} is not known: no worker reports the "
            "topics that they write to, and their configs name none",
            hint=f"See its topics: `eosctl txn describe {arguments(first)}`.",
            unseen=True,
        )
    ]


def _writers(
    topics: Mapping[str, Sequence[str]], holders: Sequence[TransactionDescription]
) -> dict[str, tuple[str, ...]]:
    """Map the topics of these transactions to the connectors that write to them; `TOPIC*` is a prefix."""
    open_ones = sorted({topic for holder in holders for topic, _partition in holder.partitions})
    found = {}
    for topic in open_ones:
        who = [name for name, names in topics.items() if any(_is_named(topic, each) for each in names)]
        if who:
            found[topic] = tuple(sorted(who))
    return found


def _is_named(topic: str, name: str) -> bool:
    return topic.startswith(name[:-1]) if name.endswith("*") else topic == name


def _held_bounds(app: App, names: Collection[str]) -> tuple[dict[str, list[Bounds]], list[Problem]]:
    """Return partitions with the last stable offset behind the end; another check reports those without a leader."""
    known: dict[str, KnownBounds] = {}
    problems = []
    with app.topics() as store:
        try:
            known.update(store.known_bounds_of(names) if names else {})
        except InterruptedByUserError:
            raise
        except EosctlError:  # of one of them: the others are asked for by themselves
            for name in names:
                try:
                    known.update(store.known_bounds_of([name]))
                except InterruptedByUserError:
                    raise
                except EosctlError as exc:
                    problems.append(Problem.of(exc))
    none = KnownBounds((), {})
    return {name: [each for each in known.get(name, none).known if each.lso < each.end] for name in names}, problems
