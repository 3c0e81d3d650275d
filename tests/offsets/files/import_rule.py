"""What importing a file does to a store, from the contract of `offsets import`, place by place in plain Python.

A place is a key on a partition. For each place that the file has something for: which of its records counts; what that
says; what is there now; and so what is sent, which is never anything but what the file says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.records import decode_key, is_nothing
from eosctl.core.offsets.views import KeyAction, PlannedWrite
from eosctl.core.records import UNKNOWN, Record

Place = tuple[bytes, int]
Line = tuple[int, Record]
"""A record of the file, and the number of its line."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The writes by place, and the lines of records that are not written, each with the line that is."""

    writes: list[PlannedWrite]
    superseded: list[tuple[int, int]]


def expected_import(
    file: Sequence[Record], log: Sequence[Record], *, partitions: int, keep_partitions: bool, rewrite: bool
) -> Expected:
    """What topic `t`, which has the records of `log`, must be given to hold what the file says."""
    lines: dict[Place, list[Line]] = {}
    for number, record in enumerate(file, start=1):
        assert record.key is not None
        known = keep_partitions and record.partition != UNKNOWN
        partition = record.partition if known else partition_for(record.key, partitions)
        lines.setdefault((record.key, partition), []).append((number, record))
    counts = {place: _newest(of_place) for place, of_place in lines.items()}
    lost = [(n, counts[place][0]) for place, some in lines.items() for n, _record in some if n != counts[place][0]]
    there = _there(log)
    newest = {key: _youngest(key, there, partitions) for key, _partition in there}
    changes = {place for place in counts if _changes(place, counts[place][1], there, newest, keep=keep_partitions)}
    deleted = {key for key, partition in changes if counts[key, partition][1].value is None}
    writes = []
    for (key, partition), (_line, record) in sorted(counts.items()):
        before, replaces = newest.get(key), there.get((key, partition))
        action, reason, after, conflict = KeyAction.KEEP, "equal", before and before.value, False
        if (key, partition) in changes or rewrite or (record.value is not None and key in deleted):
            action, after = KeyAction.DELETE if record.value is None else KeyAction.WRITE, record.value
            reason = _why(record, replaces if keep_partitions else before)
            reason = reason if (key, partition) in changes else "rewritten"
            conflict = before is not None and not is_nothing(before.value) and before.value != record.value
        where = decode_key(key), "t", partition
        writes.append(PlannedWrite(action, reason, *where, before, after, replaces, conflict, record.headers))
    return Expected(writes, sorted(lost))


def _changes(
    place: Place, record: Record, there: Mapping[Place, Record], newest: Mapping[bytes, Record], *, keep: bool
) -> bool:
    """Whether the place does not hold what the file says; or, where the file's partitions do not count, the key."""
    if place not in there or there[place].value != record.value:
        return True
    return not keep and newest[place[0]].value != record.value


def _newest(lines: list[Line]) -> Line:
    """Of one partition of the file's topic the last offset counts; of several the one that was written last."""
    logs: dict[tuple[str, int], Line] = {}
    for number, record in lines:
        log = record.topic, record.partition
        if log not in logs or logs[log][1].offset <= record.offset:
            logs[log] = number, record
    return max(logs.values(), key=lambda line: (line[1].timestamp_ms, line[0]))


def _there(log: Sequence[Record]) -> dict[Place, Record]:
    """What lies in each place now."""
    found: dict[Place, Record] = {}
    for record in sorted(log, key=lambda each: each.offset):
        assert record.key is not None
        found[record.key, record.partition] = record
    return found


def _youngest(key: bytes, there: Mapping[Place, Record], partitions: int) -> Record:
    """Of a key that is on several partitions: by time, and of two as old the one where Connect looks."""
    home = partition_for(key, partitions)
    places = [record for (each, _partition), record in there.items() if each == key]
    return max(places, key=lambda each: (each.timestamp_ms, each.partition == home, each.offset, each.partition))


def _why(record: Record, compared: Record | None) -> str:
    if record.value is None:
        return "deleted_in_file"
    if compared is None:
        return "missing"
    return "over_newer" if UNKNOWN < record.timestamp_ms < compared.timestamp_ms else "differs"
