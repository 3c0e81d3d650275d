"""MirrorMaker 2: what its source offsets say was copied, beside what the target and the source topics have. Pure.

Each of its transactions has records in a target partition and the offset of the last of them in the source partition.
So of a row of transactions the target must have as many records as the source committed between two of these offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from eosctl.audit import codes
from eosctl.audit.log.segments import Part
from eosctl.audit.log.tallies import PlaceTally
from eosctl.codes import Code
from eosctl.core.batches import NO_PRODUCER, Batch, Place
from eosctl.core.frozen import frozen
from eosctl.core.ids import ProducerId


@frozen
class MirrorOffset:
    """An offset that MirrorMaker committed: it copied up to `offset` of a source partition."""

    cluster: str
    topic: str
    partition: int
    offset: int


def mirror_offset(partition: Mapping[str, object] | None, offset: Mapping[str, object] | None) -> MirrorOffset | None:
    """An offsets record of MirrorSourceTask's; None for anything else."""
    cluster, topic, number = ((partition or {}).get(name) for name in ("cluster", "topic", "partition"))
    copied = (offset or {}).get("offset")
    if isinstance(cluster, str) and isinstance(topic, str) and isinstance(number, int) and isinstance(copied, int):
        return MirrorOffset(cluster, topic, number, copied)
    return None


@dataclass(slots=True)
class Copied:
    """What one target partition got: `records` of the source partition's offsets from `first` to `last`.

    `went_back` is an offset that was followed by a lower one.
    """

    source: Place
    first: int
    last: int
    records: int = 0
    at_ms: int = -1
    first_offset: int = -1
    last_offset: int = -1
    producer_id: ProducerId = NO_PRODUCER
    epoch: int = -1
    went_back: int | None = None


@dataclass(slots=True)
class Mirror:
    """Joins the parts of a MirrorMaker's transactions with its offsets; `target_of` names the topic of a source topic.

    `whole` are the target partitions that are read from their very beginning, `uncompared` those that can't be, and who
    wrote there. `has_lost_offsets`: some may be missing, so that they can't be counted off.
    """

    separator: str = "."
    topics: frozenset[str] = frozenset()
    whole: set[Place] = field(default_factory=set)
    copied: dict[Place, Copied] = field(default_factory=dict)
    has_lost_offsets: bool = False
    uncompared: dict[Place, ProducerId] = field(default_factory=dict)
    _before: dict[Place, int] = field(default_factory=dict)
    _offsets: dict[tuple[ProducerId, int, Place], list[MirrorOffset]] = field(default_factory=dict)
    _taken: dict[tuple[ProducerId, int, Place], int] = field(default_factory=dict)

    def note(self, producer_id: ProducerId, epoch: int, offset: MirrorOffset) -> None:
        """An offset of a transaction, in the order of the log."""
        place = (self._target(offset), offset.partition)
        there = self._offsets.setdefault((producer_id, epoch, place), [])
        there.append(offset)

    def committed(self, part: Part) -> None:
        """A committed part of a target partition, in the order of its log."""
        place = (part.topic, part.partition)
        key = (part.producer_id, part.epoch, place)
        number = self._taken.get(key, 0)
        self._taken[key] = number + 1
        offsets = self._offsets.get(key, [])
        known = self.copied.get(place)
        if not part.has_own_epoch and (self.has_lost_offsets or place not in self.whole):
            self.uncompared[place] = part.producer_id
            return
        if number >= len(offsets):  # lost, or never there: the next offset covers these records too
            self._before[place] = self._before.get(place, 0) + part.records
            return
        records = part.records + self._before.pop(place, 0)
        # of one transaction with several offsets of a partition the last one counts
        offset = offsets[-1] if part.has_own_epoch else offsets[number]
        if known is None:
            source = (offset.topic, offset.partition)
            begin = 0 if place in self.whole else offset.offset + 1
            known = self.copied[place] = Copied(source, begin, offset.offset, 0, part.first_ms, part.first_offset)
            known.producer_id, known.epoch = part.producer_id, part.epoch
            known.records = records if place in self.whole else 0
        else:
            if offset.offset < known.last and known.went_back is None:
                known.went_back = known.last
            known.records, known.last = known.records + records, offset.offset
        known.last_offset = part.last_offset

    def leave_out(self, place: Place) -> None:
        """Of a target partition some records are gone: how many were copied can't be said any more."""
        known = self.copied.pop(place, None)
        if known is not None:
            self.uncompared[place] = known.producer_id

    def _target(self, offset: MirrorOffset) -> str:
        named = f"{offset.cluster}{self.separator}{offset.topic}"
        return named if named in self.topics else offset.topic


@dataclass(slots=True)
class SourceCount:
    """Counts the committed records of a source partition whose offsets are from `first` to `last`."""

    first: int
    last: int
    records: int = 0
    _pending: dict[ProducerId, int] = field(default_factory=dict)

    def data(self, batch: Batch) -> None:
        """A batch: of one that compaction left whole, as many as its offsets say."""
        low, high = max(self.first, batch.base_offset), min(self.last, batch.last_offset)
        if low > high:
            return
        count = min(high - low + 1, batch.records)
        if batch.is_transactional:
            self._pending[batch.producer_id] = self._pending.get(batch.producer_id, 0) + count
        else:
            self.records += count

    def ended(self, part: Part) -> None:
        """A transaction that counts, or does not."""
        count = self._pending.pop(part.producer_id, 0)
        if part.is_committed:
            self.records += count

    def bare_marker(self, marker: Batch, *, may_be_cut: bool) -> None:
        """Take a marker of a transaction without a batch here, which counts nothing."""

    def lost(self, part: Part) -> None:
        """Take a transaction whose end is lost."""
        self._pending.pop(part.producer_id, None)

    def went_back(self, batch: Batch, newer_epoch: int) -> None:
        """Not ours to judge: it is another's log."""


def mirror_findings(
    copied: Mapping[Place, Copied], counted: Mapping[Place, int], ends: Mapping[Place, int]
) -> Iterator[tuple[PlaceTally, str]]:
    """What is wrong with a target partition; `counted` and `ends` are of the source partitions that could be read."""
    for place, each in sorted(copied.items()):
        if each.source not in ends:
            continue
        name = f"{each.source[0]}-{each.source[1]}"
        if each.last >= ends[each.source]:
            yield (
                _tally(codes.SOURCE_TOPIC_RECREATED, place, each, 1),
                (f"offset {each.last} of {name} was copied, and the source ends at {ends[each.source]}"),
            )
            continue
        if each.went_back is not None:
            yield (
                _tally(codes.SOURCE_TOPIC_RECREATED, place, each, 1),
                (
                    f"offset {each.went_back} of {name} was copied, and then a lower one: the source topic was made "
                    "again, or the offsets were reset"
                ),
            )
            continue
        if each.source not in counted:
            continue
        there = counted[each.source]
        where = f"at offsets {each.first} to {each.last} of {name}"
        words = f"{each.records:,} records of {there:,} that the source has {where}"
        if each.records < there:
            yield _tally(codes.MIRROR_GAP, place, each, there - each.records), words
        elif each.records > there:
            yield _tally(codes.MIRROR_DUPLICATE, place, each, each.records - there), words


def _tally(code: Code, place: Place, each: Copied, count: int) -> PlaceTally:
    topic, partition = place
    return PlaceTally(
        code, topic, partition, each.producer_id, each.epoch, each.first_offset, each.last_offset, each.at_ms, count,
        each.records,
    )  # fmt: skip
