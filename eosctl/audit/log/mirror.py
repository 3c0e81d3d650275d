"""MirrorMaker 2: its source offsets compared with the records of the target and source topics. Pure.

Each of its transactions has records in a target partition and the offset of the last of them in the source partition.
So the target must have as many records of it as the source committed between this offset and the one before it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from eosctl.audit import codes
from eosctl.audit.log.segments import Part
from eosctl.audit.log.tallies import PlaceTally
from eosctl.codes import Code
from eosctl.core.ids import ProducerId
from eosctl.core.records import Batch, Place
from eosctl.core.wording import counted

_TOGETHER_MS = 20
"""So near each other are the markers of one transaction."""


class MirrorOffset(Struct, frozen=True):
    """An offset of MirrorMaker's, stored in topic `stored_in`: it copied up to `offset` of a source partition."""

    cluster: str
    topic: str
    partition: int
    offset: int
    stored_in: str


def mirror_offset(
    partition: Mapping[str, object] | None, offset: Mapping[str, object] | None, stored_in: str
) -> MirrorOffset | None:
    """Return the offset in an offsets record of MirrorSourceTask's; None for anything else."""
    cluster, topic, number = ((partition or {}).get(name) for name in ("cluster", "topic", "partition"))
    copied = (offset or {}).get("offset")
    if isinstance(cluster, str) and isinstance(topic, str) and isinstance(number, int) and isinstance(copied, int):
        return MirrorOffset(cluster, topic, number, copied, stored_in)
    return None


class _Stored(Struct, frozen=True):
    """An offset as its producer stored it, in a transaction that ended at `ended_ms` by the broker's clock."""

    producer_id: ProducerId
    epoch: int
    offset: int
    ended_ms: int


class CopiedPart(Struct, frozen=True):
    """A committed part in a target partition, without its marker: there may be very many."""

    producer_id: ProducerId
    epoch: int
    has_own_epoch: bool
    is_cut: bool
    records: int
    first_offset: int
    last_offset: int
    first_ms: int
    ended_ms: int


class Copied(Struct, frozen=True):
    """A transaction's part in a target partition: `records` of the source partition's offsets `first` to `last`.

    `is_cut`: it may have more records, or begin at a later offset: then fewer are no fault.
    """

    place: Place
    source: Place
    first: int
    last: int
    records: int
    is_cut: bool
    part: CopiedPart


class Copies(Struct, frozen=True):
    """The records copied to target partitions; `went_back` has those copied before a lower source offset was.

    `unsure` has the reasons why some can't be compared.
    """

    parts: tuple[Copied, ...] = ()
    went_back: tuple[Copied, ...] = ()
    unsure: tuple[str, ...] = ()


@dataclass(slots=True)
class Mirror:
    """Joins the parts of a MirrorMaker's transactions with its offsets.

    `whole` are the target partitions that are read from their very beginning, `uncompared` those that can't be, and who
    wrote there. `has_lost_offsets`: some may be missing, so that they can't be counted off.
    """

    separator: str = "."
    topics: frozenset[str] = frozenset()
    whole: set[Place] = field(default_factory=set)
    has_lost_offsets: bool = False
    uncompared: dict[Place, ProducerId] = field(default_factory=dict)
    _sources: dict[Place, str] = field(default_factory=dict)
    _stored: defaultdict[Place, dict[str, list[_Stored]]] = field(default_factory=lambda: defaultdict(dict))
    _parts: dict[Place, list[CopiedPart]] = field(default_factory=dict)

    def note(self, producer_id: ProducerId, epoch: int, offset: MirrorOffset, ended_ms: int = -1) -> None:
        """Take an offset, in the order of the log that it is in."""
        place = (self._target(offset), offset.partition)
        self._sources[place] = offset.topic
        stored = self._stored[place].setdefault(offset.stored_in, [])
        stored.append(_Stored(producer_id, epoch, offset.offset, ended_ms))

    def committed(self, part: Part) -> None:
        """Take a committed part of a target partition, in the order of its log."""
        place = (part.topic, part.partition)
        if not part.has_own_epoch and (self.has_lost_offsets or place not in self.whole):
            self.uncompared[place] = part.producer_id
        self._parts.setdefault(place, []).append(
            CopiedPart(
                part.producer_id, part.epoch, part.has_own_epoch, part.is_cut, part.records, part.first_offset,
                part.last_offset, part.first_ms, part.ended_ms,
            )
        )  # fmt: skip

    def leave_out(self, place: Place) -> None:
        """Compare nothing in a target partition of which some records are gone."""
        for part in self._parts.get(place, []):
            self.uncompared[place] = part.producer_id

    def copies(self, own: Collection[ProducerId]) -> Copies:
        """Return what the connector's own producers copied."""
        found = Copies()
        for place, every in sorted(self._parts.items()):
            parts = [part for part in every if part.producer_id in own]
            if not parts or place in self.uncompared:
                continue
            if place not in self._stored:
                why = f"copies in {place[0]}-{place[1]} were not compared: no source offset that was read belongs to it"
                found = replace(found, unsure=(*found.unsure, why))
                continue
            join = _Join(place, (self._sources[place], place[1]), self._stored[place], place in self.whole, own)
            one = join.copies(parts)
            found = Copies((*found.parts, *one.parts), (*found.went_back, *one.went_back), (*found.unsure, *one.unsure))
        return found

    def _target(self, offset: MirrorOffset) -> str:
        named = f"{offset.cluster}{self.separator}{offset.topic}"
        return named if named in self.topics else offset.topic


@dataclass(slots=True)
class _Join:
    """The parts in one target partition, each with the offsets that its transaction stored."""

    place: Place
    source: Place
    stored: Mapping[str, Sequence[_Stored]]
    is_whole: bool
    own: Collection[ProducerId]
    _at: defaultdict[tuple[ProducerId, int], list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))
    _joined: dict[tuple[str, int], CopiedPart] = field(default_factory=dict)
    _taken: Counter[tuple[ProducerId, int]] = field(default_factory=Counter)

    def copies(self, parts: Sequence[CopiedPart]) -> Copies:
        """Return the copies of these parts, in the order of the target's log."""
        for topic, stored in self.stored.items():
            for number, each in enumerate(stored):
                self._at[each.producer_id, each.epoch].append((topic, number))
        found, unsure = list[Copied](), list[str]()
        more, unknown, before = 0, 0, -1
        for part in parts:
            is_cut = part.is_cut or (not self.is_whole and part is parts[0])
            if not (slots := self._slots(part)):
                more += part.records  # the next offset covers these records too
                continue
            for slot in slots:
                self._joined[slot] = part
            (topic, first), (last_topic, last) = slots[0], slots[-1]
            start = self.stored[topic][first - 1].offset if first else before
            before = self.stored[last_topic][last].offset
            records, more = part.records + more, 0
            if start < 0 and not self.is_whole:
                unknown += 1
            elif start <= before:
                found.append(Copied(self.place, self.source, start + 1, before, records, is_cut or start < 0, part))
        name = f"{self.place[0]}-{self.place[1]}"
        if unknown:
            unsure.append(f"{unknown:,} of the copies in {name} were not compared: the offset before them was not read")
        if more:
            unsure.append(f"{more:,} records in {name} were not compared: their transactions have no source offset")
        if self._may_be_shifted():
            found, unsure = [], [f"copies in {name} were not compared: not all offsets have records there"]
        return Copies((*found, *self._lost()), tuple(self._went_back()), (*unsure, *self._moved_on()))

    def _slots(self, part: CopiedPart) -> Sequence[tuple[str, int]]:
        """Return where the offsets of a part's transaction are; of a shared epoch they are counted off."""
        key = (part.producer_id, part.epoch)
        slots = self._at.get(key, [])
        if part.has_own_epoch:
            return slots
        self._taken[key] += 1
        return slots[self._taken[key] - 1 : self._taken[key]]

    def _may_be_shifted(self) -> bool:
        """Return whether parts of a shared epoch may have been joined with their neighbours' offsets.

        Where there are more offsets than parts, the last ones may be younger than what was read, or a part in between
        is missing: then an offset ended with another part than its own.
        """
        for key, taken in self._taken.items():
            slots = self._at.get(key, [])
            ends = [self.stored[topic][number].ended_ms for topic, number in slots]
            for at, slot in enumerate(slots[:taken] if taken < len(slots) else ()):
                part_ms = self._joined[slot].ended_ms
                near = [abs(each - part_ms) for each in ends[max(at - 1, 0) : at + 2]]
                own = abs(ends[at] - part_ms)
                if own > _TOGETHER_MS or near.count(own) > 1 or own > min(near):
                    return True
        return False

    def _between(self) -> Iterator[tuple[str, int, _Stored]]:
        """Return the offsets behind the first one that has records here, up to the last one that has."""
        for topic, stored in self.stored.items():
            numbers = [number for of, number in self._joined if of == topic]
            for number in range(min(numbers, default=0) + 1, max(numbers, default=-1) + 1):
                yield topic, number, stored[number]

    def _lost(self) -> Iterator[Copied]:
        """Return the copies of which the connector stored an offset, and no record is there."""
        for topic, number, each in self._between():
            start = self.stored[topic][number - 1].offset
            if (topic, number) in self._joined or each.producer_id not in self.own or start > each.offset:
                continue
            behind = min(at for of, at in self._joined if of == topic and at > number)
            part = self._joined[topic, behind]
            yield Copied(self.place, self.source, start + 1, each.offset, 0, is_cut=False, part=part)

    def _went_back(self) -> Iterator[Copied]:
        """Return the first offset that a lower one follows."""
        for topic, number, each in self._between():
            start = self.stored[topic][number - 1].offset
            if each.offset < start:
                behind = min(at for of, at in self._joined if of == topic and at >= number)
                yield Copied(
                    self.place, self.source, each.offset, start, 0, is_cut=False, part=self._joined[topic, behind]
                )
                return

    def _moved_on(self) -> Iterator[str]:
        """Report where another producer stored a higher offset, so that the records in between were left out."""
        for topic, number, each in self._between():
            start = self.stored[topic][number - 1].offset
            if each.producer_id not in self.own and each.offset > start:
                name = f"{self.source[0]}-{self.source[1]}"
                yield f"the offset of {name} was set from {start} to {each.offset}: what lies between was not copied"


@dataclass(slots=True)
class SourceCount:
    """Counts the committed records of a source partition between `bounds`, which are offsets in order."""

    bounds: Sequence[int]
    _records: list[int] = field(init=False)
    _pending: dict[ProducerId, Counter[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._records = [0] * len(self.bounds)

    def count(self, first: int, last: int) -> int:
        """Return how many records there are at these offsets; `first - 1` and `last` are among the bounds."""
        begin, end = bisect_left(self.bounds, first - 1), bisect_left(self.bounds, last)
        return sum(self._records[begin + 1 : end + 1])

    def data(self, batch: Batch) -> None:
        """Take a batch: of one that compaction left whole, as many records as its offsets say."""
        counts, low = Counter[int](), batch.base_offset
        at = bisect_left(self.bounds, low)
        while low <= batch.last_offset and at < len(self.bounds):
            high = min(batch.last_offset, self.bounds[at])
            counts[at] += high - low + 1
            low, at = high + 1, at + 1
        if batch.is_transactional:
            self._pending.setdefault(batch.producer_id, Counter()).update(counts)
        else:
            self._add(counts)

    def ended(self, part: Part) -> None:
        """Take a transaction that counts, or does not."""
        counts = self._pending.pop(part.producer_id, Counter())
        if part.is_committed:
            self._add(counts)

    def bare_marker(self, marker: Batch, *, may_be_cut: bool) -> None:
        """Take a marker of a transaction without a batch here, which counts nothing."""

    def lost(self, part: Part) -> None:
        """Take a transaction whose end is lost."""
        self._pending.pop(part.producer_id, None)

    def went_back(self, batch: Batch, newer_epoch: int) -> None:
        """Ignore the batch: the log of the source is not audited."""

    def _add(self, counts: Counter[int]) -> None:
        for at, number in counts.items():
            self._records[at] += number


def mirror_findings(
    copies: Copies, counts: Mapping[Place, SourceCount], ends: Mapping[Place, int], starts: Mapping[Place, int]
) -> tuple[list[tuple[PlaceTally, str]], list[str]]:
    """Return the faults of a target partition, and what is unproven.

    `counts`, `ends` and `starts` are of the source partitions that could be read.
    """
    found: dict[tuple[Code, Place], list[tuple[PlaceTally, str]]] = defaultdict(list)
    unsure: Counter[Place] = Counter()
    for each in copies.went_back:
        words = (
            f"offset {each.last} of {_name(each)} was copied, and then a lower one: the source topic was made again, "
            "or the offsets were reset"
        )
        found[codes.SOURCE_TOPIC_RECREATED, each.place].append((_tally(codes.SOURCE_TOPIC_RECREATED, each, 1), words))
    gone_back = {each.place for each in copies.went_back}
    for each in copies.parts:
        if each.source not in ends or each.place in gone_back:
            continue
        if each.last >= ends[each.source]:
            words = f"offset {each.last} of {_name(each)} was copied, and the source ends at {ends[each.source]}"
            found[codes.SOURCE_TOPIC_RECREATED, each.place] = [(_tally(codes.SOURCE_TOPIC_RECREATED, each, 1), words)]
            continue
        if each.source not in counts:
            continue
        there, has_all = counts[each.source].count(each.first, each.last), each.first >= starts[each.source]
        words = (
            f"{counted(each.records, 'record')} of {there:,} that the source has at offsets {each.first} to "
            f"{each.last} of {_name(each)}"
        )
        if each.records < there and not each.is_cut:
            found[codes.MIRROR_GAP, each.place].append((_tally(codes.MIRROR_GAP, each, there - each.records), words))
        elif each.records > there and has_all:
            tally = _tally(codes.MIRROR_DUPLICATE, each, each.records - there)
            found[codes.MIRROR_DUPLICATE, each.place].append((tally, words))
        elif each.records != there or not has_all:
            unsure[each.place] += 1
    texts = [
        f"{count:,} of the copies in {topic}-{number} are not proven: they may have begun before "
        "what was read, or what they copied is gone"
        for (topic, number), count in sorted(unsure.items())
    ]
    return [_together(each) for each in found.values() if each], texts


def _together(found: Sequence[tuple[PlaceTally, str]]) -> tuple[PlaceTally, str]:
    """Return the findings of a partition as one, in the words of the first."""
    (tally, words), *others = found
    for each, _words in others:
        tally.count, tally.records = tally.count + each.count, tally.records + each.records
        tally.last_offset = max(tally.last_offset, each.last_offset)
    return tally, words + (f", and so in {len(others):,} more transactions" if others else "")


def _name(each: Copied) -> str:
    return f"{each.source[0]}-{each.source[1]}"


def _tally(code: Code, each: Copied, count: int) -> PlaceTally:
    part = each.part
    return PlaceTally(
        code, *each.place, part.producer_id, part.epoch, part.first_offset, part.last_offset, part.first_ms, count,
        each.records,
    )  # fmt: skip
