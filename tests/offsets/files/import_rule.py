"""What importing a file does to a store, key by key in plain Python: what the columns of the engine are held to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eosctl.core.offsets.decision import KeyAction
from eosctl.core.offsets.records import IgnoredKey, OffsetKey
from eosctl.core.offsets.views import PlannedWrite, Store, live
from eosctl.core.record_file import UNKNOWN
from eosctl.core.records import Record


@dataclass(frozen=True, slots=True)
class Incoming:
    """One offset of a file; `place` says where in it (`offsets.ndjson, line 7`), `line` in which order."""

    place: str
    line: int
    record: Record
    key: OffsetKey | IgnoredKey


@dataclass(frozen=True, slots=True)
class Superseded:
    """An offset of the file that is not written, because a newer one of the file falls on the same key."""

    incoming: Incoming
    by: Incoming


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """One write per key and partition, and what fell under the table."""

    writes: tuple[PlannedWrite, ...]
    superseded: tuple[Superseded, ...]


def plan_import(
    incoming: Sequence[Incoming], store: Store, *, keep_partitions: bool = False, rewrite: bool = False
) -> ImportPlan:
    """What `store` must be given to hold what the file says: one write per key, or per key and recorded partition.

    `rewrite` writes what is there already once more: an aborted record after it is then no longer the newest. So does a
    deletion of the key on another partition, which would be younger than the value.
    Raises InputFileError for a recorded partition that the topic has not, RefusedError where a key can't be chosen.
    """
    wanted: dict[tuple[bytes, int], Incoming] = {}
    superseded: list[Superseded] = []
    for each in _in_order(incoming):
        place = (each.key.raw, _target_partition(each, store, keep=keep_partitions))
        if place in wanted:
            superseded.append(Superseded(wanted[place], each))
        wanted[place] = each
    final = [Superseded(each.incoming, _last(wanted, each.by, store, keep=keep_partitions)) for each in superseded]
    writes = [_planned(each, partition, store, keep=keep_partitions) for (_raw, partition), each in wanted.items()]
    deleted = {
        write.key.raw for write in writes if write.action is KeyAction.DELETE
    }  # elsewhere, where the value stays
    writes = [
        _again(write)
        if write.action is KeyAction.KEEP and (rewrite or (write.after is not None and write.key.raw in deleted))
        else write
        for write in writes
    ]
    return ImportPlan(
        tuple(sorted(writes, key=lambda write: (write.key.raw, write.partition))),
        tuple(sorted(final, key=lambda each: each.incoming.line)),
    )


def _again(write: PlannedWrite) -> PlannedWrite:
    return write._replace(action=KeyAction.DELETE if write.after is None else KeyAction.WRITE, reason="rewritten")


def _last(wanted: Mapping[tuple[bytes, int], Incoming], by: Incoming, store: Store, *, keep: bool) -> Incoming:
    return wanted[by.key.raw, _target_partition(by, store, keep=keep)]


def _in_order(incoming: Iterable[Incoming]) -> list[Incoming]:
    """The newest of a key last: within one partition the offset decides, across partitions the time, then the line."""
    logs: dict[tuple[bytes, str, int], list[Incoming]] = {}
    for each in incoming:
        logs.setdefault((each.key.raw, each.record.topic, each.record.partition), []).append(each)
    ordered = [sorted(log, key=lambda each: (each.record.offset, each.line)) for log in logs.values()]
    ordered.sort(key=lambda log: (log[-1].record.timestamp_ms, log[-1].line))
    return [each for log in ordered for each in log]


def _target_partition(incoming: Incoming, store: Store, *, keep: bool) -> int:
    partition = incoming.record.partition
    if not keep or partition == UNKNOWN:
        return store.home(incoming.key.raw)
    return partition


def _planned(incoming: Incoming, partition: int, store: Store, *, keep: bool) -> PlannedWrite:
    newest, replaces = store.records.get(incoming.key.raw), store.at(incoming.key.raw, partition)
    action, reason = _decide(incoming, replaces if keep else newest, replaces)
    value = incoming.record.value
    there = live(newest)
    return PlannedWrite(
        action,
        reason,
        incoming.key,
        store.topic,
        partition,
        before=newest,
        after=newest.value if action is KeyAction.KEEP and newest else value,
        replaces=replaces,
        conflict=action is not KeyAction.KEEP and there is not None and there.value != value,
        headers=incoming.record.headers,
    )


def _decide(incoming: Incoming, newest: Record | None, replaces: Record | None) -> tuple[KeyAction, str]:
    """What to do, given what a reader finds now (`newest`) and what lies on the partition that is written to."""
    value, timestamp_ms = incoming.record.value, incoming.record.timestamp_ms
    if newest is not None and replaces is not None and newest.value == value == replaces.value:
        return KeyAction.KEEP, "equal"
    if value is None:
        return KeyAction.DELETE, "deleted_in_file"
    if newest is None:
        return KeyAction.WRITE, "missing"
    return KeyAction.WRITE, "over_newer" if newest.timestamp_ms > timestamp_ms > UNKNOWN else "differs"
