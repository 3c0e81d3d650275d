"""Long open transactions, of any client, on topics to which the group's connectors write. Reads only.

Starts from what coordinators list as open for long, which are few on any cluster: no topic is looked at before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks.standstill import LEAST_LONG_MS, HeldTopic, held_topics_finding, is_open_long
from eosctl.connectors import codes as connector_codes
from eosctl.connectors.topics import FoundTopics, find_topics
from eosctl.core.clients.own_brokers import CLUSTER_PROPERTY
from eosctl.core.findings import Finding
from eosctl.core.ids import FLINK_SINK, TransactionalId, application_of, owner_of
from eosctl.core.records import Bounds, KnownBounds
from eosctl.core.transactions import TransactionDescription
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.foreign import arguments
from eosctl.group.observation.rules import Observation
from eosctl.observation.transactions import running_ids
from eosctl.report import Problem
from eosctl.txn.hanging import unjudged
from eosctl.txn.list import list_open_longer_than
from eosctl.txn.report import id_problem, missing_ids_problems

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
    writers = _writers({name: (*each.written, *each.likely) for name, each in topics.of.items()}, holders)
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
    names = [name for name in topics.untold if not (topics.of[name].written or topics.of[name].likely)]
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
