"""The samples of each metric of the table, from an overview; of many, the top ones and `other`. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from eosctl.collect.facts import (
    MOST_ABORTING,
    ConnectorFacts,
    DoctorFacts,
    GroupFacts,
    HangingFacts,
    KafkaFacts,
    LsoFacts,
    OffsetFacts,
    OwnedTransaction,
    TransactionFacts,
    unseen_parts,
)
from eosctl.collect.looks import KAFKA
from eosctl.collect.overview import Collected, Overview
from eosctl.core.records import LogDir
from eosctl.core.transactions import ROUND_S
from eosctl.fence.connect import FORWARD_S

OTHER = "other"
Sample = tuple[Sequence[str], float]
Samples = Iterable[Sample]
T = TypeVar("T")


def top_and_other(found: Iterable[Sample], top: int, fold: Callable[[Iterable[float]], float] = max) -> list[Sample]:
    """Keep the `top` greatest values, and one sample for the rest with all labels `other`; `fold` gives its value."""
    ordered = sorted(found, key=lambda each: -each[1])
    kept, rest = ordered[:top], ordered[top:]
    if rest:
        kept.append(([OTHER] * len(rest[0][0]), fold(value for _labels, value in rest)))
    return kept


def _each(overview: Overview, read: Callable[[Collected], float | None]) -> Samples:
    values = ((each.source, read(each)) for each in overview.collected.values())
    return [((source,), value) for source, value in values if value is not None]


def up(overview: Overview, _top: int) -> Samples:
    """Yield whether the cluster answers; nothing before it was asked."""
    kafka = overview.collected.get(KAFKA)
    if kafka is not None and (kafka.looks or kafka.overdue(overview.taken_ms)):
        yield (), float(kafka.error_at(overview.taken_ms) is None)


def cluster(overview: Overview, _top: int) -> Samples:
    """Yield the cluster always: an exporter whose cluster is down must stay in a dashboard's choice of groups."""
    kafka = overview.newest(KafkaFacts)
    yield (kafka.cluster_id if kafka else "", overview.group_id), 1.0


def silent_brokers(overview: Overview, _top: int) -> Samples:
    kafka = overview.facts(KafkaFacts)
    if kafka is not None:
        yield (), float(len(kafka.silent))


def _log_dirs(overview: Overview, top: int) -> Iterable[tuple[Sequence[str], LogDir]]:
    """Yield the log directories: failed ones, then those with the least room, at most `top`."""
    kafka = overview.facts(KafkaFacts)
    found = [
        ((str(broker), each.path), each) for broker, its in (kafka.log_dirs if kafka else {}).items() for each in its
    ]
    found.sort(key=lambda one: (not one[1].is_offline, _share_left(one[1])))
    return found[:top]


def _share_left(log_dir: LogDir) -> float:
    """Return the share of its volume that is left; 1 where that is not known."""
    usable, total = log_dir.usable_bytes, log_dir.total_bytes
    return 1.0 if usable is None or total is None else usable / total


def disk_room(overview: Overview, top: int) -> Samples:
    dirs = _log_dirs(overview, top)
    return [(labels, float(each.usable_bytes)) for labels, each in dirs if each.usable_bytes is not None]


def disk_size(overview: Overview, top: int) -> Samples:
    dirs = _log_dirs(overview, top)
    return [(labels, float(each.total_bytes)) for labels, each in dirs if each.total_bytes is not None]


def failed_log_dirs(overview: Overview, top: int) -> Samples:
    return [(labels, float(each.is_offline)) for labels, each in _log_dirs(overview, top)]


def success(overview: Overview, _top: int) -> Samples:
    now_ms = overview.taken_ms
    return _each(
        overview, lambda each: float(each.error_at(now_ms) is None) if each.looks or each.overdue(now_ms) else None
    )


def errors(overview: Overview, _top: int) -> Samples:
    told = ((each.source, each.error_at(overview.taken_ms)) for each in overview.collected.values())
    return [((source, code), 1.0) for source, code in told if code is not None]


def unseen(overview: Overview, _top: int) -> Samples:
    """Return the number of unknown parts per source; none where the facts are too old to be shown."""
    now_ms = overview.taken_ms
    return _each(overview, lambda each: None if each.is_stale(now_ms) else unseen_parts(each.facts))


def ages(overview: Overview, _top: int) -> Samples:
    return _each(overview, lambda each: each.age_s(overview.taken_ms))


def durations(overview: Overview, _top: int) -> Samples:
    return _each(overview, lambda each: each.duration_s)


def intervals(overview: Overview, _top: int) -> Samples:
    return _each(overview, lambda each: each.interval_s)


def looks(overview: Overview, _top: int) -> Samples:
    return _each(overview, lambda each: float(each.looks))


def failures(overview: Overview, _top: int) -> Samples:
    for each in overview.collected.values():
        for code, count in sorted(each.failures.items()):
            yield (each.source, code), float(count)


def _of_transactions(overview: Overview, top: int, value: Callable[[OwnedTransaction], float]) -> Samples:
    """Yield the transactions nearest to their timeout, one per prefix of ids; the oldest of the rest stands for them.

    By age alone, applications with long transactions would hide a task that is about to be fenced.
    """
    facts, now_ms = overview.facts(TransactionFacts), overview.taken_ms
    found = sorted(
        facts.open if facts is not None else (), key=lambda each: -each.open_s(now_ms) / max(each.timeout_ms, 1)
    )
    nearest: dict[Sequence[str], OwnedTransaction] = {}
    for each in found:
        nearest.setdefault(_transaction_labels(each), each)
    ordered = list(nearest.items())
    yield from ((labels, value(each)) for labels, each in ordered[:top])
    if ordered[top:]:
        rest = (each for _labels, each in ordered[top:])
        yield (OTHER, OTHER, OTHER, OTHER), value(min(rest, key=lambda each: each.started_ms))


def _transaction_labels(each: OwnedTransaction) -> tuple[str, str, str, str]:
    """Label the group's transactions by id, others by prefix: those may have a new id, and series, each time."""
    if each.prefix is not None:
        return each.owner.kind, "", "", f"{each.prefix}*"
    task = "" if each.owner.task is None else str(each.owner.task)
    return each.owner.kind, each.owner.connector or "", task, each.transactional_id


def open_seconds(overview: Overview, top: int) -> Samples:
    return _of_transactions(overview, top, lambda each: each.open_s(overview.taken_ms))


def timeouts(overview: Overview, top: int) -> Samples:
    return _of_transactions(overview, top, lambda each: each.timeout_ms / 1000)


def ending_seconds(overview: Overview, top: int) -> Samples:
    facts = overview.facts(TransactionFacts)
    found: dict[tuple[str, ...], float] = {}
    for each in facts.open if facts is not None else ():
        if each.ending_since_ms is not None:
            labels, seconds = _transaction_labels(each), max(0, overview.taken_ms - each.ending_since_ms) / 1000
            found[labels] = max(found.get(labels, 0.0), seconds)
    return top_and_other(found.items(), top)


_OWNERS = ("task", "leader", "eosctl", "other", "ambiguous")


def open_counts(overview: Overview, _top: int) -> Samples:
    facts = overview.facts(TransactionFacts)
    if facts is not None:
        counts = Counter(each.owner.kind for each in facts.open)
        yield from (((owner,), float(counts[owner])) for owner in _OWNERS)  # type: ignore[index]


def hanging_seconds(overview: Overview, top: int) -> Samples:
    facts = overview.facts(HangingFacts)
    found = facts.hanging if facts is not None else ()
    ages_s = (
        ((each.topic, str(each.partition), str(each.producer_id)), max(0, overview.taken_ms - each.since_ms) / 1000)
        for each in found
    )
    return top_and_other(ages_s, top)


def hanging_count(overview: Overview, _top: int) -> Samples:
    facts = overview.facts(HangingFacts)
    if facts is not None:
        yield (), float(len(facts.hanging))


def aborted(overview: Overview, _top: int) -> Samples:
    """Yield counts however old the facts are, and 0 for a connector without an abort. A counter that disappears and
    returns, or begins with its first abort, hides that abort or looks like many at once.
    """
    facts = overview.newest(TransactionFacts)
    if facts is None:
        return
    named = {name: count for name, count in facts.aborted.items() if name}
    group = overview.newest(GroupFacts)
    named |= {each.name: 0 for each in (group.connectors or () if group else ()) if each.name not in named}
    yield from (((name,), float(count)) for name, count in list(named.items())[:MOST_ABORTING])
    yield (OTHER,), float(facts.aborted.get("", 0))


def lso_distance(overview: Overview, top: int) -> Samples:
    facts = overview.facts(LsoFacts)
    found = (((each.topic, each.kind), float(each.behind)) for each in (facts.topics if facts else ()))
    return top_and_other(found, top, sum)


def lso_stuck(overview: Overview, top: int) -> Samples:
    facts = overview.facts(LsoFacts)
    found = (
        ((each.topic, each.kind), (overview.taken_ms - (each.stuck_since_ms or overview.taken_ms)) / 1000)
        for each in (facts.topics if facts else ())
    )
    return top_and_other(found, top)


def workers(overview: Overview, _top: int) -> Samples:
    group = overview.facts(GroupFacts)
    for mode, count in Counter(each.mode for each in (group.workers if group else ()) if each.is_member).items():
        yield (mode,), float(count)


def worker_up(overview: Overview, _top: int) -> Samples:
    group = overview.facts(GroupFacts)
    return [((each.name,), float(each.up)) for each in (group.workers if group else ())]


def worker_info(overview: Overview, _top: int) -> Samples:
    group = overview.facts(GroupFacts)
    return [
        ((each.name, each.mode, each.version or "", each.health, "true" if each.leader else "false"), 1.0)
        for each in (group.workers if group else ())
    ]


def _connectors(overview: Overview) -> Sequence[ConnectorFacts]:
    group = overview.facts(GroupFacts)
    return () if group is None else group.connectors or ()


def _where_known(overview: Overview, count: Callable[[ConnectorFacts], int]) -> Samples:
    group = overview.facts(GroupFacts)
    if group is not None and group.connectors is not None:
        yield (), float(sum(map(count, group.connectors)))


def tasks(overview: Overview, _top: int) -> Samples:
    counts = Counter(state for each in _connectors(overview) for state in each.tasks.values())
    return [((state,), float(count)) for state, count in counts.items()]


def running(overview: Overview, top: int) -> Samples:
    """Count running tasks of the same connectors as `offset_age`, so that an alert can compare the two."""
    first, counts = _stalest(overview, top), _running(overview)
    yield from (((name,), float(counts[name])) for name in first if name in counts)
    if counts.keys() - first:
        yield (OTHER,), float(sum(count for name, count in counts.items() if name not in first))


def _running(overview: Overview) -> dict[str, int]:
    return {each.name: each.running() for each in _connectors(overview)}


def without_transaction(overview: Overview, _top: int) -> Samples:
    return _where_known(overview, lambda each: len(each.without_transaction))


def without_transaction_seconds(overview: Overview, top: int) -> Samples:
    found = (
        ((each.name, str(task)), max(0, overview.taken_ms - since_ms) / 1000)
        for each in _connectors(overview)
        for task, since_ms in each.without_transaction.items()
    )
    return top_and_other(found, top)


def commit_age(overview: Overview, top: int) -> Samples:
    found = (
        ((each.name, str(task)), quiet_ms / 1000)
        for each in _connectors(overview)
        for task, quiet_ms in each.quiet_ms.items()
    )
    return top_and_other(found, top)


def fencing_due(overview: Overview, _top: int) -> Samples:
    return _where_known(overview, lambda each: each.fencing_due)


def fencing_pending(overview: Overview, top: int) -> Samples:
    found = (((each.name,), 1.0) for each in _connectors(overview) if each.fencing_due)
    return top_and_other(found, top, sum)


def fencing_seconds(overview: Overview, top: int) -> Samples:
    found = (((each.name,), each.fencing_s) for each in _connectors(overview) if each.fencing_s is not None)
    return top_and_other(found, top)


def fencing_limits(_overview: Overview, _top: int) -> Samples:
    return [(("forward",), FORWARD_S), (("round",), ROUND_S)]


def offset_age(overview: Overview, top: int) -> Samples:
    """Yield the oldest ages of running connectors, then of others; `other` has the oldest running one, if any."""
    first, ages, counts = _stalest(overview, top), _offset_ages(overview), _running(overview)
    yield from (((name,), ages[name]) for name in first if name in ages)
    rest = [name for name in ages if name not in first]
    if rest:
        yield (OTHER,), max(ages[name] for name in [each for each in rest if counts.get(each)] or rest)


def _offset_ages(overview: Overview) -> dict[str, float]:
    """Return the ages for existing connectors, where these are known: a deleted one's offsets stay in the topic."""
    facts, group = overview.facts(OffsetFacts), overview.facts(GroupFacts)
    existing = None if group is None or group.connectors is None else {each.name for each in group.connectors}
    return {
        name: max(0, overview.taken_ms - newest_ms) / 1000
        for name, newest_ms in (facts.newest_ms if facts else {}).items()
        if existing is None or name in existing
    }


def _stalest(overview: Overview, top: int) -> dict[str, None]:
    """Select the connectors with series of their own: running ones with the oldest offsets come first, so that none
    that has been stopped for weeks displaces one that stands still.
    """
    ages, counts = _offset_ages(overview), _running(overview)
    ordered = sorted(
        {*ages, *counts}, key=lambda name: (not counts.get(name) or name not in ages, -ages.get(name, -1.0), name)
    )
    return dict.fromkeys(ordered[:top])


def offset_records(overview: Overview, _top: int) -> Samples:
    facts = overview.newest(OffsetFacts)
    if facts is not None:
        yield (), float(facts.records)


def offset_restarts(overview: Overview, _top: int) -> Samples:
    facts = overview.newest(OffsetFacts)
    if facts is not None:
        yield (), float(facts.restarts)


def findings(overview: Overview, _top: int) -> Samples:
    """Count the findings per code and severity; the number of codes is limited, as they are declared."""
    facts = overview.facts(DoctorFacts)
    counts = Counter((str(each.code), each.severity) for each in (facts.findings if facts else ()))
    return [(labels, float(count)) for labels, count in sorted(counts.items())]


def not_checked(overview: Overview, _top: int) -> Samples:
    facts = overview.facts(DoctorFacts)
    return [((check, code), 1.0) for check, code in (facts.not_checked if facts else {}).items()]
