"""What snapshots show of a connector's offsets in one topic, and what they prove of a moment. Pure.

The log of a compacted topic has all that came after any record that it still has: the cleaner removes older records of
a key before, or together with, newer ones. A snapshot shows that its newest record of a key was the newest up to the
snapshot's LSO. Between a version that only a snapshot has and the next known one, others may have been compacted away.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.offsets.records import OffsetKey
from eosctl.core.records import Bounds, Record
from eosctl.offsets.history.events import State, Version

ChainPlace = tuple[bytes, int]
"""The bytes of a key, and a partition: the records of one are in order."""

LATE_MS = 60_000
"""Clocks differ, and a record may arrive so long after its time."""


class SnapshotView(Struct, frozen=True):
    """The newest records of a connector in one topic, as a snapshot has them; `topic_id` is None for the present topic.

    The `keys` are by their bytes. The time is not `certain` where it does not fit those of later records or snapshots:
    the clock of one of the machines was wrong.
    """

    file: str
    taken_ms: int
    topic_id: str | None
    bounds: Mapping[int, Bounds]
    newest: Mapping[ChainPlace, Record]
    keys: Mapping[bytes, OffsetKey]
    certain: bool = True

    def versions(self) -> list[Version]:
        """Return its records as versions."""
        return [
            Version(self.keys[raw], record, State.COMMITTED, file=self.file, topic_id=self.topic_id)
            for (raw, _partition), record in self.newest.items()
        ]

    def shows(self, place: ChainPlace, record: Record) -> bool:
        """Decide whether the record is the newest of its key and partition here."""
        newest = self.newest.get(place)
        return self.topic_id is None and newest is not None and newest.offset == record.offset

    def is_after(self, moment_ms: int, partition: int) -> bool:
        """Decide whether it was surely taken after a moment, and no open transaction hid records of the partition."""
        bound = self.bounds.get(partition)
        return (
            self.topic_id is None
            and self.certain
            and self.taken_ms >= moment_ms + LATE_MS
            and bound is not None
            and bound.lso >= bound.end
        )


def by_certainty(views: Sequence[SnapshotView], found: Iterable[Version]) -> list[SnapshotView]:
    """Mark the views whose time is not certain.

    Records that came later have an earlier time, among those `found` or in another snapshot; or a snapshot that was
    taken earlier, by its time, has more of a partition.
    """
    newest_ms = dict[int, list[tuple[int, int]]]()
    present = [view for view in views if view.topic_id is None]
    every = [version.record for version in found if version.topic_id is None]
    for record in (*every, *(record for view in present for record in view.newest.values())):
        newest_ms.setdefault(record.partition, []).append((record.offset, record.timestamp_ms))
    earliest_after = {partition: _earliest_after(records) for partition, records in newest_ms.items()}
    ends, marked = dict[int, int](), list[SnapshotView]()
    for view in sorted(present, key=lambda view: view.taken_ms):
        came_later = any(
            earliest_after[number](bound.end) < view.taken_ms - LATE_MS
            for number, bound in view.bounds.items()
            if number in earliest_after
        )
        had_more = any(ends.get(number, 0) > bound.lso for number, bound in view.bounds.items())
        marked.append(replace(view, certain=not came_later and not had_more))
        ends |= {number: max(ends.get(number, 0), bound.lso) for number, bound in view.bounds.items()}
    return [*(view for view in views if view.topic_id is not None), *marked]


def _earliest_after(records: Iterable[tuple[int, int]]) -> Callable[[int], float]:
    """Return a function from an offset to the earliest time of a record from there on; infinity without one."""
    offsets, times, earliest = list[int](), list[float](), math.inf
    for offset, time_ms in sorted(records, reverse=True):
        earliest = min(earliest, time_ms) if time_ms >= 0 else earliest
        offsets.append(-offset)
        times.append(earliest)

    def at(offset: int) -> float:
        number = bisect_right(offsets, -offset)
        return times[number - 1] if number else math.inf

    return at


def with_views(found: Sequence[Version], views: Iterable[SnapshotView]) -> list[Version]:
    """Add the versions that only snapshots have, each once, by topic, partition and offset."""
    known = {_identity(version) for version in found}
    added = []
    for view in views:
        for version in view.versions():
            if _identity(version) not in known:
                known.add(_identity(version))
                added.append(version)
    return [*found, *added]


def _identity(version: Version) -> tuple[str | None, int, int]:
    return version.topic_id, version.record.partition, version.record.offset


def missed_since(found: Iterable[Version], views: Sequence[SnapshotView], moment_ms: int) -> SnapshotView | None:
    """Return the last snapshot after which a version that took effect at a moment may be missing; None if none may.

    `found` has the versions of one source partition in the present topic, oldest first.
    """
    chains: dict[ChainPlace, list[Version]] = {}
    for version in found:
        if version.state is State.COMMITTED:
            chains.setdefault((version.key.raw, version.record.partition), []).append(version)
    for place, chain in chains.items():
        former = [number for number, version in enumerate(chain) if version.record.timestamp_ms <= moment_ms]
        if not former or chain[former[-1]].file is None:
            continue
        record, after = chain[former[-1]].record, chain[former[-1] + 1 : former[-1] + 2]
        showing = [view for view in views if view.shows(place, record)]
        held = any(view.is_after(moment_ms, record.partition) for view in showing)
        follows = {version.record.offset for version in after}
        if not held and follows.isdisjoint(view.bounds[record.partition].lso for view in showing):
            return max(showing, key=lambda view: view.taken_ms)
    return None
