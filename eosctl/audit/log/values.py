"""Values of one field over committed records, repeated or missing from a sequence, and each record's writer. Pure.

A unique value is kept as a digest of twelve bytes, about 75 bytes with the set around it; a sequence as its ranges.

A partition's offsets were written by the connector, by others, or by an unknown writer. Records are read without their
producers; the headers of their batches have them. Batches of one writer that follow each other are one run, so that
memory grows with the turns that writers take, not with the log.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, unique
from hashlib import blake2b
from math import inf

from msgspec import Struct

from eosctl.audit import codes
from eosctl.audit.log.fields import encoded, number_in, shown
from eosctl.audit.log.tallies import PlaceTally
from eosctl.codes import Code
from eosctl.core.ids import ProducerId
from eosctl.core.records import NO_PRODUCER, Batch, Place
from eosctl.core.wording import counted

MOST_GAPS = 20
"""The number of gaps with a row of their own."""
_DIGEST_BYTES = 12
_LONGEST_SHOWN = 60

Found = list[tuple[PlaceTally, str]]
"""Findings, each with its message."""


class FieldValue(Struct, frozen=True):
    """The value of a field in one committed record; `content` and `may_repeat` as in ReadValue."""

    topic: str
    partition: int
    offset: int
    at_ms: int
    value: object
    content: object = None
    may_repeat: bool = False


class PartitionSeen(Struct, frozen=True):
    """The extent of a partition that was read: from its first record, to an end later than all that is judged.

    `is_whole`: no records in between were removed or unreadable.
    """

    from_start: bool = True
    to_end: bool = True
    is_whole: bool = True


Seen = Mapping[Place, PartitionSeen]
"""All partitions of the topics that were read."""


@dataclass(slots=True)
class UniqueValues:
    """Values that may come once in a topic.

    `repeated` are those that came again and may, `unlike` those that came again in another record.
    """

    repeated: int = 0
    unlike: int = 0
    _seen: dict[str, set[bytes]] = field(default_factory=dict)
    _contents: dict[tuple[str, bytes], bytes] = field(default_factory=dict)
    _twice: dict[Place, tuple[PlaceTally, str]] = field(default_factory=dict)

    def take(self, value: FieldValue) -> None:
        """Take the value of one more record."""
        seen, digest = self._seen.setdefault(value.topic, set()), _digest(value.value)
        content = None if value.content is None else _digest(value.content)
        if digest not in seen:
            seen.add(digest)
            if content is not None:
                self._contents[value.topic, digest] = content
        elif value.may_repeat:
            self.repeated += 1
        elif content is not None and self._contents[value.topic, digest] != content:
            self.unlike += 1
        else:
            note_twice(self._twice, value)

    def judge(self, _seen: Seen) -> tuple[Found, list[str]]:
        """Return a duplicate for each partition that has some, and what is unproven."""
        texts = []
        if self.repeated:
            texts.append(f"{counted(self.repeated, 'snapshot row')} came again, as a second snapshot has it")
        if self.unlike:
            texts.append(f"{counted(self.unlike, 'record')} have the values of another row, which are not unique")
        return list(self._twice.values()), texts


def _digest(value: object) -> bytes:
    return blake2b(encoded(value), digest_size=_DIGEST_BYTES).digest()


@dataclass(slots=True)
class _Stretches:
    """The numbers that came, as unbroken stretches in order; `begun` is the record that began each."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    begun: list[FieldValue] = field(default_factory=list)

    def take(self, number: int, value: FieldValue) -> bool:
        """Take a number, and return whether it is a new one."""
        at = bisect_right(self.starts, number) - 1
        if at >= 0 and number <= self.ends[at]:
            return False
        joins_before = at >= 0 and self.ends[at] + 1 == number
        joins_after = at + 1 < len(self.starts) and self.starts[at + 1] - 1 == number
        if joins_before and joins_after:
            self.ends[at] = self.ends.pop(at + 1)
            del self.starts[at + 1], self.begun[at + 1]
        elif joins_before:
            self.ends[at] = number
        elif joins_after:
            self.starts[at + 1], self.begun[at + 1] = number, value
        else:
            self.starts.insert(at + 1, number)
            self.ends.insert(at + 1, number)
            self.begun.insert(at + 1, value)
        return True

    def holes(self) -> Iterator[tuple[int, int, FieldValue]]:
        """Return the first and the last number of each hole, and the record behind it."""
        for at in range(1, len(self.starts)):
            yield self.ends[at - 1] + 1, self.starts[at] - 1, self.begun[at]

    def left_of(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Return the stretches of `first` to `last` that are not in here."""
        at = max(bisect_right(self.starts, first) - 1, 0)
        while first <= last and at < len(self.starts) and self.starts[at] <= last:
            if first < self.starts[at]:
                yield first, self.starts[at] - 1
            first = max(first, self.ends[at] + 1)
            at += 1
        if first <= last:
            yield first, last


@dataclass(slots=True)
class _Sequence:
    """One sequence in one topic: the connector's numbers, its first and last one in each partition, and others.

    `outside` came before or behind the window; `strange` are those of unknown producers.
    """

    own: _Stretches = field(default_factory=_Stretches)
    outside: _Stretches = field(default_factory=_Stretches)
    strange: _Stretches = field(default_factory=_Stretches)
    first: dict[int, int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)

    def judged(self, partitions: Mapping[int, PartitionSeen]) -> tuple[float, float]:
        """Return from where to where a number that did not come is missing.

        A source writes its numbers in their order. So what a partition lacks before its first number, or behind its
        last one, may be where it was not looked at.
        """
        if not all(each.is_whole for each in partitions.values()):
            return inf, -inf
        begins = [-inf if each.from_start else self.first.get(number, inf) for number, each in partitions.items()]
        ends = [inf if each.to_end else self.last.get(number, -inf) for number, each in partitions.items()]
        return max(begins, default=-inf), min(ends, default=inf)


@dataclass(slots=True)
class SequenceValues:
    """Numbers without holes; `shard-3-17` is number 17 of the sequence `shard-3-`, and each topic has its own."""

    unreadable: int = 0
    _of: dict[tuple[str, str], _Sequence] = field(default_factory=dict)
    _twice: dict[Place, tuple[PlaceTally, str]] = field(default_factory=dict)

    def take(self, value: FieldValue) -> None:
        """Take the number of one more record of the connector's."""
        found = number_in(value.value)
        if found is None:
            self.unreadable += 1
            return
        sequence, number = self._of.setdefault((value.topic, found[0]), _Sequence()), found[1]
        sequence.first.setdefault(value.partition, number)
        sequence.last[value.partition] = number
        if not sequence.own.take(number, value):
            note_twice(self._twice, value)

    def take_strange(self, value: FieldValue) -> None:
        """Take the number of a record of which nobody knows whose it is: it is not judged, and no hole either."""
        if (found := number_in(value.value)) is not None:
            self._of.setdefault((value.topic, found[0]), _Sequence()).strange.take(found[1], value)

    def take_earlier(self, value: FieldValue) -> None:
        """Take the number of a record of the connector's before the window."""
        if (found := number_in(value.value)) is not None and (known := self._of.get((value.topic, found[0]))):
            known.outside.take(found[1], value)
            known.first[value.partition] = min(found[1], known.first.get(value.partition, found[1]))

    def take_later(self, value: FieldValue) -> None:
        """Take the number of a record of the connector's behind the window."""
        if (found := number_in(value.value)) is not None and (known := self._of.get((value.topic, found[0]))):
            known.outside.take(found[1], value)
            known.last[value.partition] = found[1]

    def topics_with_holes(self) -> frozenset[str]:
        """Return the topics in which a number is missing, as far as was read."""
        return frozenset(topic for (topic, _label), known in self._of.items() if len(known.own.starts) > 1)

    def has_gap(self, seen: Seen) -> bool:
        """Return whether a number is missing for certain."""
        return any(tally.code == codes.GAP for tally, _words in self.judge(seen)[0])

    def judge(self, seen: Seen) -> tuple[Found, list[str]]:
        """Return each hole, at the record behind it, with its numbers, what came twice, and what is unproven."""
        gaps: Found = []
        unjudged, strange = dict[str, int](), 0
        for (topic, name), known in sorted(self._of.items()):
            low, high = known.judged({number: each for (of, number), each in seen.items() if of == topic})
            for first, last, behind in known.own.holes():
                for begin, end in known.outside.left_of(first, last):
                    left = list(known.strange.left_of(begin, end))
                    strange += end - begin + 1 - sum(b - a + 1 for a, b in left)
                    for a, b in left:
                        inside = (int(max(a, low)), int(min(b, high))) if max(a, low) <= min(b, high) else (0, -1)
                        count = inside[1] - inside[0] + 1
                        unjudged[topic] = unjudged.get(topic, 0) + b - a + 1 - count
                        if count:
                            gaps.append((_tally(codes.GAP, behind, count), _range(name, *inside)))
        texts = [
            f"{counted(count, 'number')} that {'is' if count == 1 else 'are'} missing in {topic} may lie where not all "
            "of its partitions were read"
            for topic, count in unjudged.items()
            if count
        ]
        if strange:
            texts.append(
                f"{counted(strange, 'number')} came in records of which it is not known that they are the connector's"
            )
        return [*_at_most(gaps), *self._twice.values()], texts


def _range(name: str, first: int, last: int) -> str:
    return f"{name}{first}" if first == last else f"{name}{first} to {name}{last}"


def _at_most(gaps: Found) -> Found:
    """Return so many gaps, and the rest of them as one: a field that is no sequence makes a gap of every record."""
    if len(gaps) <= MOST_GAPS + 1:
        return gaps
    (rest, first), others = gaps[MOST_GAPS], gaps[MOST_GAPS + 1 :]
    rest.count += sum(tally.count for tally, _words in others)
    rest.records = rest.count
    return [*gaps[:MOST_GAPS], (rest, f"{first} and {len(others):,} more gaps")]


def note_twice(twice: dict[Place, tuple[PlaceTally, str]], value: FieldValue) -> None:
    """Count a value that came before, in the partition where it came again."""
    place = (value.topic, value.partition)
    if place not in twice:
        twice[place] = _tally(codes.DUPLICATE, value, 0), shown(value.value)[:_LONGEST_SHOWN]
    tally, _first = twice[place]
    tally.count, tally.last_offset = tally.count + 1, value.offset


def _tally(code: Code, value: FieldValue, count: int) -> PlaceTally:
    return PlaceTally(
        code, value.topic, value.partition, NO_PRODUCER, -1, value.offset, value.offset, value.at_ms, count, count
    )


@unique
class WriterKind(IntEnum):
    """The writer of a record; OTHER is certainly not the connector."""

    OWN = 0
    OTHER = 1
    UNKNOWN = 2


@dataclass(slots=True)
class Writers:
    """The writer of each scanned offset; a producer that is not in `known` is UNKNOWN."""

    known: Mapping[ProducerId, WriterKind]
    _begins: dict[Place, array[int]] = field(default_factory=dict)
    _of: dict[Place, bytearray] = field(default_factory=dict)
    _ends: dict[Place, int] = field(default_factory=dict)

    def take(self, batch: Batch) -> None:
        """Take the next batch of its partition."""
        if batch.is_control:
            return
        place = (batch.topic, batch.partition)
        writer = self.known.get(batch.producer_id, WriterKind.UNKNOWN)
        self._ends[place] = batch.last_offset
        runs = self._of.setdefault(place, bytearray())
        if not runs or runs[-1] != writer:
            runs.append(writer)
            self._begins.setdefault(place, array("q")).append(batch.base_offset)

    def of(self, place: Place, offset: int) -> WriterKind:
        """Return the writer of the record at an offset."""
        at = bisect_right(self._begins.get(place, ()), offset) - 1
        return WriterKind(self._of[place][at]) if at >= 0 and offset <= self._ends[place] else WriterKind.UNKNOWN
