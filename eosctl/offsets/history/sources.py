"""The meaning of the offsets of well-known source connectors, and the limits of what their sources can still deliver.

A source is recognized by the members of its source partitions and offsets, not by the connector's class: forks and
wrappers have classes of their own, and a deleted connector has none. An unknown offset stays opaque JSON.

Offsets are ordered by the GTIDs of MySQL and MariaDB, as Debezium stores them; ordering is pure. MySQL's are sets of
transactions, `UUID:1-5:7` (since 8.4 also `UUID:TAG:1-5`): the server sends all others. MariaDB's are positions,
`DOMAIN-SERVER-SEQUENCE`, one for each replication domain: the server sends all that follows. In a domain the sequence
grows, also from one server to the next. A smaller one of another server is of another history, or of a server that had
not received all; the numbers do not show which.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum, auto, unique

from msgspec import Struct

Interval = tuple[int, int]

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_INTERVAL = re.compile(r"([1-9][0-9]{0,18})(?:-([1-9][0-9]{0,18}))?")
_POSITION = re.compile(r"([0-9]{1,10})-([0-9]{1,10})-([0-9]{1,20})")


@unique
class Order(Enum):
    """The order of the second of two offsets; MIXED skips some transactions and has others read again."""

    SAME = auto()
    AHEAD = auto()
    BEHIND = auto()
    MIXED = auto()
    UNKNOWN = auto()


def compare_gtids(before: str, after: str) -> Order:
    """Return the order of `after` relative to `before`; UNKNOWN if they are not GTIDs of one kind."""
    if before == after:
        return Order.SAME
    sets = _transactions(before), _transactions(after)
    if sets[0] is not None and sets[1] is not None:
        return _order(ahead=not _within(sets[1], sets[0]), behind=not _within(sets[0], sets[1]))
    positions = _positions(before), _positions(after)
    if positions[0] is not None and positions[1] is not None:
        return _order_of_domains(positions[0], positions[1])
    return Order.UNKNOWN


def _order(*, ahead: bool, behind: bool) -> Order:
    if ahead and behind:
        return Order.MIXED
    if ahead or behind:
        return Order.AHEAD if ahead else Order.BEHIND
    return Order.SAME


def _transactions(text: str) -> Mapping[str, Sequence[Interval]] | None:
    """Parse a GTID set: map `UUID` or `UUID:TAG` to its transactions' intervals, merged and in order; else None."""
    found: dict[str, list[Interval]] = {}
    for entry in "".join(text.split()).lower().split(","):
        uuid, *parts = entry.split(":")
        if not _UUID.fullmatch(uuid) or not parts or not _INTERVAL.fullmatch(parts[-1]):
            return None
        source = uuid
        for part in parts:
            interval = _INTERVAL.fullmatch(part)
            if interval is None and not _TAG.fullmatch(part):
                return None
            if interval is None:
                source = f"{uuid}:{part}"
            else:
                found.setdefault(source, []).append((int(interval[1]), int(interval[2] or interval[1])))
    if any(first > last for intervals in found.values() for first, last in intervals):
        return None
    return {source: list(_merged(sorted(intervals))) for source, intervals in found.items()}


def _merged(intervals: Sequence[Interval]) -> Iterator[Interval]:
    first, last = intervals[0]
    for begin, end in intervals[1:]:
        if begin > last + 1:
            yield first, last
            first = begin
        last = max(last, end)
    yield first, last


def _within(some: Mapping[str, Sequence[Interval]], all_: Mapping[str, Sequence[Interval]]) -> bool:
    """Decide whether every transaction of `some` is in `all_`; both are merged and in order."""
    for source, intervals in some.items():
        others = iter(all_.get(source, ()))
        around = next(others, None)
        for first, last in intervals:
            while around is not None and around[1] < last:
                around = next(others, None)
            if around is None or around[0] > first:
                return False
    return True


def _positions(text: str) -> Mapping[int, tuple[int, int]] | None:
    """Map each domain to its server and sequence; return None for no position, or two of a domain."""
    found: dict[int, tuple[int, int]] = {}
    for entry in "".join(text.split()).split(","):
        position = _POSITION.fullmatch(entry)
        if position is None or int(position[1]) in found:
            return None
        found[int(position[1])] = int(position[2]), int(position[3])
    return found


def _order_of_domains(before: Mapping[int, tuple[int, int]], after: Mapping[int, tuple[int, int]]) -> Order:
    """Combine the orders of all domains.

    A new domain is skipped up to its position; one that is gone is read from its beginning.
    """
    orders = {_order_in_domain(before.get(domain), after.get(domain)) for domain in before.keys() | after.keys()}
    if Order.UNKNOWN in orders:
        return Order.MIXED if Order.AHEAD in orders else Order.UNKNOWN
    return _order(ahead=Order.AHEAD in orders, behind=Order.BEHIND in orders)


def _order_in_domain(before: tuple[int, int] | None, after: tuple[int, int] | None) -> Order:
    if before is None or after is None:
        return Order.AHEAD if before is None else Order.BEHIND
    if before == after:
        return Order.SAME
    if after[1] > before[1]:
        return Order.AHEAD
    return Order.BEHIND if before[0] == after[0] else Order.UNKNOWN


_SIGNAL = "To have rows again, insert execute-snapshot into the connector's signal table (signal.data.collection)."


class KnownSource(Struct, frozen=True):
    """`partitions` and `offsets` are alternatives: a source partition (an offset) has all members of one of them.

    `positions` are the members that determine where it goes on: in each group the first one that differs decides.
    `keeps` describes what the source can still deliver, `instead` how to read again what it can't. `grows` are members
    of which the first that differs never gets smaller while a connector reads on; empty if that is unknown. If an
    offset has the member `gtids`, that decides, then `within_gtids`, and neither `positions` nor `grows`: a server's
    successor counts its files anew.
    """

    name: str
    partitions: tuple[frozenset[str], ...]
    offsets: tuple[frozenset[str], ...]
    positions: tuple[tuple[str, ...], ...]
    keeps: str
    instead: str | None = None
    grows: tuple[str, ...] = ()
    gtids: str | None = None
    within_gtids: tuple[str, ...] = ()


_SERVER = (frozenset({"server"}),)
KNOWN_SOURCES = (
    KnownSource(
        # PostgresOffsetContext; PostgreSQL: pg_replication_slots; Debezium: snapshot.mode, offset.mismatch.strategy
        "Debezium PostgreSQL",
        _SERVER,
        (frozenset({"lsn"}),),
        (("lsn",), ("lsn_proc",), ("lsn_commit",)),
        "PostgreSQL sends nothing that was committed before the replication slot's confirmed_flush_lsn (see "
        "pg_replication_slots), wherever the offset points: the connector then goes on from there, fails, or takes a "
        "snapshot, by its version, snapshot.mode and offset.mismatch.strategy. Where there is lsn_proc, it counts, "
        "and lsn does not",
        _SIGNAL,
        grows=("lsn_commit",),  # the changes of one transaction lie among those of others that commit before it
    ),
    KnownSource(
        # BinlogOffsetContext; MySQL: binlog_expire_logs_seconds, 30 days by default
        "Debezium MySQL or MariaDB",
        _SERVER,
        (frozenset({"file", "pos"}),),
        (("file", "pos", "event", "row"),),
        "the server delivers what its binary logs still hold (SHOW BINARY LOGS): when the file was purged, the "
        "connector fails or takes a snapshot, by its snapshot.mode. Where the server uses GTIDs, gtids counts, and "
        "file and pos do not",
        _SIGNAL,
        grows=("file", "pos", "event", "row"),
        gtids="gtids",
        within_gtids=("event", "row"),
    ),
    KnownSource(
        # SqlServerOffsetContext; SQL Server: sys.sp_cdc_change_job, 4320 minutes by default
        "Debezium SQL Server",
        _SERVER,
        (frozenset({"commit_lsn", "event_serial_no"}),),
        (("commit_lsn", "change_lsn", "event_serial_no"),),
        "the change tables hold what the cleanup job has left, three days by default: nothing from before "
        "sys.fn_cdc_get_min_lsn can be read",
        _SIGNAL,
        grows=("commit_lsn",),
    ),
    KnownSource(
        # OracleOffsetContext
        "Debezium Oracle",
        _SERVER,
        (frozenset({"scn"}),),
        (("scn",), ("commit_scn",)),
        "online or archived redo logs must still hold the scn (V$ARCHIVED_LOG); without, the connector fails or takes "
        "a snapshot, by its snapshot.mode. What was committed up to commit_scn is skipped: put both back",
        _SIGNAL,
        grows=("commit_scn",),
    ),
    KnownSource(
        # TimestampIncrementingOffset
        "JDBC",
        (frozenset({"table"}), frozenset({"query"})),
        (frozenset({"incrementing"}), frozenset({"timestamp"})),
        (("timestamp", "timestamp_nanos"), ("incrementing",)),
        "it asks the table for what lies behind this id or time: a row is read as it is now, and a deleted row is not "
        "read again",
        grows=("timestamp", "timestamp_nanos", "incrementing"),
    ),
    KnownSource(
        # FileStreamSourceTask
        "FileStream",
        (frozenset({"filename"}),),
        (frozenset({"position"}),),
        (("position",),),
        "it skips this many bytes of the file as it is now: in the middle of a line the rest of it becomes a record, "
        "and beyond the end nothing is read until the file is that long",
        grows=("position",),
    ),
    KnownSource(
        # MirrorSourceTask
        "MirrorMaker 2",
        (frozenset({"cluster", "partition", "topic"}),),
        (frozenset({"offset"}),),
        (("offset",),),
        "it goes on behind this record of the source topic: what retention or compaction has removed is not read "
        "again, and what is read again is in the target topic twice",
        grows=("offset",),
    ),
)


def known_source(partition: Mapping[str, object] | None, offset: Mapping[str, object]) -> KnownSource | None:
    """Return the known source whose offsets look like this one; None without any."""
    for source in KNOWN_SOURCES:
        if _has(partition or {}, source.partitions) and _has(offset, source.offsets):
            return source
    return None


def may_be_known(partition: Mapping[str, object] | None) -> bool:
    """Decide whether a source partition looks like one of a known source."""
    return any(_has(partition or {}, source.partitions) for source in KNOWN_SOURCES)


def _has(members: Mapping[str, object], alternatives: Collection[frozenset[str]]) -> bool:
    return any(names <= members.keys() for names in alternatives)


LSN_MEMBERS = ("lsn", "lsn_proc", "lsn_commit")
"""Members of Debezium's PostgresOffsetContext; without the first, the others may be something else."""
_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


def lsn_text(lsn: int) -> str:
    """Format a PostgreSQL log sequence number as PostgreSQL prints it: `0/1B63000` for 28717056."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_number(text: object) -> int | None:
    """Return the number that Debezium stores for `0/1B63000`; None for another text."""
    match = _LSN.fullmatch(text) if isinstance(text, str) else None
    return int(match[1], 16) << 32 | int(match[2], 16) if match else None


def lsn_texts(offset: object) -> dict[str, str] | None:
    """Return the log sequence numbers among an offset's members, as PostgreSQL prints them; None without any."""
    if not isinstance(offset, dict) or LSN_MEMBERS[0] not in offset:
        return None
    return {
        name: lsn_text(value)
        for name in LSN_MEMBERS
        if name in offset and type(value := offset[name]) is int and value >= 0
    } or None
