"""A rehearsal's reading of the internal topics, and its judgement of repeated and missing values.

The topics have a connector's committed source offsets, and its transactions. Transactions are read from the
coordinators' own log, in which each use of a transactional id begins with a record.

Values of records show duplicates that no mode allows, by the phases of a run, and sequences that continue. A record
that was delivered while all workers were enabled was committed with its source offset: it may never come again,
whatever the mode is then. One that was delivered at least once may come again until that phase is over.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise

import msgspec
from msgspec import Struct, field

from eosctl.app import App
from eosctl.audit.codes import DUPLICATE, GAP
from eosctl.audit.log.fields import number_in, parse_field_path
from eosctl.core.ids import task_of
from eosctl.core.offsets.records import in_snapshot
from eosctl.core.records import Place, Record
from eosctl.core.transaction_log import TOPIC, decode_key, decode_value
from eosctl.core.transactions import TransactionState
from eosctl.offsets.history.events import State, Version, members_of
from eosctl.offsets.history.log import LogQuery, read_logs
from eosctl.rehearse.rows import FoundPart


class SourceOffsets(Struct, frozen=True):
    """The state of a connector's offsets in the log of its offsets topic; source partitions are written as JSON.

    `commits` is how many committed offsets each source partition has, of those that have an offset now. `went_back`
    are commits that lie before the previous one in a source that eosctl knows, as sentences. `repeated` is how often
    an offset was committed that had been committed before, `returned` how often another one had replaced it: where that
    is a position, the source was read again. `snapshots` are source partitions of which a snapshot is under way, as
    Debezium's offsets say.
    """

    commits: Mapping[str, int] = {}
    went_back: tuple[str, ...] = ()
    repeated: int = 0
    returned: int = 0
    snapshots: tuple[str, ...] = ()


def read_source_offsets(app: App, connector: str) -> SourceOffsets:
    """Read the log of the offsets topic in use; raise what `offsets log` raises."""
    return source_offsets(read_logs(app, LogQuery(connector)).logs[0].versions)


def source_offsets(versions: Iterable[Version]) -> SourceOffsets:
    """Summarise these versions, which are grouped by source partition, in the order of the log."""
    commits: dict[str, int] = {}
    went_back, snapshots, repeated, returned = list[str](), list[str](), 0, 0
    committed = (each for each in versions if each.state is State.COMMITTED)
    for _identity, of_one in groupby(committed, key=lambda each: each.key.identity):
        its = list(of_one)
        newest, name = its[-1], json.dumps(its[-1].key.partition)
        went_back += [_back(name, each) for each in its if each.behind is not None]
        again, after_another = _came_again(its)
        repeated, returned = repeated + again, returned + after_another
        if newest.is_tombstone:
            continue
        commits[name] = len(its)
        if in_snapshot(members_of(newest.record.value) or {}):
            snapshots.append(name)
    return SourceOffsets(commits, tuple(went_back), repeated, returned, tuple(snapshots))


def _back(name: str, version: Version) -> str:
    assert version.behind is not None  # noqa: S101 - only such versions are given
    return (
        f"source partition {name}: the offset committed at {version.record.partition}@{version.record.offset} lies "
        f"before that of {version.behind.partition}@{version.behind.offset}"
    )


def _came_again(versions: Iterable[Version]) -> tuple[int, int]:
    """Count repeated offsets, and those of them that another one had replaced; a deletion resets the history."""
    seen: defaultdict[tuple[bytes, int], dict[bytes | None, None]] = defaultdict(dict)
    repeated = returned = 0
    for each in versions:
        former, value = seen[each.key.raw, each.record.partition], each.record.value
        if each.is_tombstone:
            former.clear()
            continue
        if value in former:
            repeated += 1
            returned += next(reversed(former)) != value
            del former[value]
        former[value] = None
    return repeated, returned


class TransactionCounts(Struct, frozen=True):
    """The numbers, by task, of initializations of its transactional id, and of transactions to abort."""

    initialized: Counter[int] = field(default_factory=Counter)
    aborted: Counter[int] = field(default_factory=Counter)


def read_transaction_counts(app: App, group: str, connector: str) -> TransactionCounts:
    """Read `__transaction_state`; without that topic, no transactional id was used yet."""
    counts = TransactionCounts()

    def look(records: Sequence[Record]) -> Sequence[Record]:
        for record in records:
            work = task_of(decode_key(record.key or b""), group)
            if work is None or work[0] != connector or record.value is None:
                continue
            state = decode_value(record.value).state
            if state is TransactionState.EMPTY:  # written by InitProducerId alone
                counts.initialized[work[1]] += 1
            elif state is TransactionState.PREPARE_ABORT:
                counts.aborted[work[1]] += 1
        return ()

    with app.topics() as store:
        if TOPIC in store.describe([TOPIC], configs=False):
            store.read(TOPIC, isolation="read_uncommitted", keep=look)
    return counts


A_RUN = 3
_MOST_SEQUENCES = 100
_OFFSETS_EACH = 3  # a transaction of one record has a marker, too
_OF_VALUES = {str(DUPLICATE), str(GAP)}


class Phase(Struct, frozen=True):
    """A time in which all workers were enabled, or not all; it began at the ends of the logs at that time."""

    is_enabled: bool
    since_ms: int = 0
    begin: Mapping[Place, int] = {}


class Duplicates(Struct, frozen=True):
    """The number of repeated records, by partition and by the phase of their first delivery."""

    of_enabled: Counter[str] = field(default_factory=Counter)
    of_others: Counter[str] = field(default_factory=Counter)


def duplicates(phases: Sequence[Phase], found: Sequence[Iterable[FoundPart]]) -> Duplicates:
    """Count duplicates; `found` are an audit's findings from the begin of each phase to the end of the log."""
    counts = [*map(_values_came_again, found), Counter[str]()]
    result = Duplicates()
    for phase, (here, later) in zip(phases, pairwise(counts), strict=True):
        (result.of_enabled if phase.is_enabled else result.of_others).update(here - later)
    return result


def _values_came_again(found: Iterable[FoundPart]) -> Counter[str]:
    counts = Counter[str]()
    for each in found:
        if each.code == DUPLICATE:
            counts[each.subject] += _count(each)
    return counts


def _count(found: FoundPart) -> int:
    return int(found.evidence.get("count", 1)) if isinstance(found.evidence, Mapping) else 1


def read_sequences(app: App, topics: Iterable[str], field_name: str) -> dict[str, int]:
    """Count the committed records of each sequence of `--sequence`; return none if there are many.

    Many sequences are not continuous shards, but short-lived ones. Raises what reading raises.
    """
    path, counts = parse_field_path(field_name), Counter[str]()

    def look(records: Sequence[Record]) -> Sequence[Record]:
        for record in records:
            numbered = number_in(path.value_in(record))
            if numbered is not None:
                counts[f"sequence {numbered[0]}* of topic {record.topic}"] += 1
        return ()

    with app.topics() as store:
        for topic in topics:
            store.read(topic, keep=look)
    return dict(counts) if len(counts) <= _MOST_SEQUENCES else {}


def comes_in_a_run(found: Iterable[FoundPart]) -> bool:
    """Decide whether records were repeated in sequence, as when a source is read again, rather than here and there."""
    for each in found:
        if each.code == DUPLICATE and isinstance(each.evidence, Mapping) and (count := _count(each)) >= A_RUN:
            offsets = int(each.evidence["last_offset"]) - int(each.evidence["first_offset"]) + 1
            if offsets <= count * _OFFSETS_EACH:
                return True
    return False


def missing_numbers(found: Iterable[FoundPart]) -> int:
    """Count the numbers missing in the gaps."""
    return sum(_count(each) for each in found if each.code == GAP)


def held_against(whole: Iterable[FoundPart], wrong: Counter[str]) -> Iterator[FoundPart]:
    """Return the findings about values of the whole run: each gap, and as many duplicates as are wrong."""
    left = Counter(wrong)
    for each in whole:
        if each.code == GAP:
            yield each
        elif each.code == DUPLICATE and (count := min(left.pop(each.subject, 0), _count(each))):
            yield each if count == _count(each) else _fewer(each, count)


def _fewer(found: FoundPart, count: int) -> FoundPart:
    evidence = {**found.evidence, "count": count} if isinstance(found.evidence, Mapping) else {"count": count}
    message = f"{count:,} of these are of records that may not come again: {found.message}"
    return msgspec.structs.replace(found, message=message, evidence=evidence)


def not_of_values(found: Iterable[FoundPart]) -> Iterator[FoundPart]:
    """Return the findings about transactions."""
    return (each for each in found if each.code not in _OF_VALUES)
