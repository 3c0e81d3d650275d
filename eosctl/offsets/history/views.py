"""What snapshots show of a connector's offsets in one topic, and what they prove of a moment. Pure.

The log of a compacted topic has all that came after any record that it still has: the cleaner removes older records of
a key before, or together with, newer ones. A snapshot shows that its newest record of a key was the newest up to the
snapshot's LSO. Between a version that only a snapshot has and the next known one, others may have been compacted away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from eosctl.core.offsets.records import OffsetKey
from eosctl.core.records import Bounds, Record
from eosctl.offsets.history.events import State, Version

ChainPlace = tuple[bytes, int]
"""The bytes of a key, and a partition: the records of one are in order."""

LATE_MS = 60_000
"""Clocks differ, and a record may arrive so long after its time."""


class SnapshotView(Struct, frozen=True):
    """The newest records of a connector in one topic, as a snapshot has them; `topic_id` is None for the present topic.

    The `keys` are by their bytes.
    """

    file: str
    taken_ms: int
    topic_id: str | None
    bounds: Mapping[int, Bounds]
    newest: Mapping[ChainPlace, Record]
    keys: Mapping[bytes, OffsetKey]

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
            and self.taken_ms >= moment_ms + LATE_MS
            and bound is not None
            and bound.lso >= bound.end
        )


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
