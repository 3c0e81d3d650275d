"""A connector in the internal topics: its committed source offsets, and its transactions.

Transactions are read from the coordinators' own log, in which each use of a transactional id begins with a record.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from msgspec import Struct, field

from eosctl.app import App
from eosctl.core.ids import task_of
from eosctl.core.records import Record
from eosctl.core.transaction_log import TOPIC, decode_key, decode_value
from eosctl.core.transactions import TransactionState
from eosctl.offsets.history.events import State, Version, members_of
from eosctl.offsets.history.log import LogQuery, read_logs

_UNTRUE = (None, False, "false")


class SourceOffsets(Struct, frozen=True):
    """The state of a connector's offsets in the log of its offsets topic; source partitions are written as JSON.

    `commits` is how many committed offsets each source partition has, of those that have an offset now. `went_back`
    are commits that lie before the one of before in a source that eosctl knows, as sentences. `repeated` is how often
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
        if _in_snapshot(members_of(newest.record.value) or {}):
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


def _in_snapshot(offset: Mapping[str, object]) -> bool:
    """Decide whether a task that starts with this offset takes the snapshot again; Debezium marks its last record."""
    is_over = offset.get("snapshot_completed") is True or offset.get("last_snapshot_record") is True
    return offset.get("snapshot") not in _UNTRUE and not is_over


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
