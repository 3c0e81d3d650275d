"""The meaning of the offsets of well-known source connectors, and the limits of what their sources can still deliver.

A source is recognized by the members of its source partitions and offsets, not by the connector's class: forks and
wrappers have classes of their own, and a deleted connector has none. An unknown offset stays opaque JSON.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from msgspec import Struct

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
