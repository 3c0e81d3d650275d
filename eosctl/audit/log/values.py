"""Values of one field over committed records: which come twice, and which numbers of a sequence are missing. Pure.

Of unique values a digest of twelve bytes is kept, about 75 bytes with the set around it; of a sequence its stretches.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from eosctl.audit import codes
from eosctl.audit.log.tallies import PlaceTally
from eosctl.codes import Code
from eosctl.core.batches import NO_PRODUCER
from eosctl.core.frozen import frozen

_DIGEST_BYTES = 12
_NUMBERED = re.compile(r"(?P<number>-[0-9]+)|(?P<label>.*?)(?P<count>[0-9]+)", re.DOTALL)
_LONGEST_SHOWN = 60


@frozen
class FieldValue:
    """The value of a field in one committed record, as text."""

    topic: str
    partition: int
    offset: int
    at_ms: int
    text: str


@dataclass(slots=True)
class UniqueValues:
    """Values that may come once in a topic."""

    _seen: dict[str, set[bytes]] = field(default_factory=dict)
    _twice: dict[tuple[str, int], tuple[PlaceTally, str]] = field(default_factory=dict)

    def take(self, value: FieldValue) -> None:
        """The value of one more record."""
        seen = self._seen.setdefault(value.topic, set())
        before = len(seen)
        seen.add(blake2b(value.text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest())
        if len(seen) == before:
            note_twice(self._twice, value)

    def findings(self) -> Iterator[tuple[PlaceTally, str]]:
        """A duplicate for each partition that has some, and the first value that came again."""
        yield from self._twice.values()


@dataclass(slots=True)
class _Stretches:
    """The numbers that came, as unbroken stretches in order; `begun` is the record that began each."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    begun: list[FieldValue] = field(default_factory=list)

    def take(self, number: int, value: FieldValue) -> bool:
        """Whether the number is a new one."""
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


@dataclass(slots=True)
class SequenceValues:
    """Numbers without holes; `shard-3-17` is number 17 of the sequence `shard-3-`, and each topic has its own."""

    unreadable: int = 0
    _of: dict[tuple[str, str], _Stretches] = field(default_factory=dict)
    _twice: dict[tuple[str, int], tuple[PlaceTally, str]] = field(default_factory=dict)

    def take(self, value: FieldValue) -> None:
        """The value of one more record."""
        match = _NUMBERED.fullmatch(value.text)
        if match is None:
            self.unreadable += 1
            return
        stretches = self._of.setdefault((value.topic, match["label"] or ""), _Stretches())
        if not stretches.take(int(match["count"] or match["number"]), value):
            note_twice(self._twice, value)

    def findings(self) -> Iterator[tuple[PlaceTally, str]]:
        """Each hole, at the record behind it, with the numbers that are missing; and what came twice."""
        for (_topic, name), known in sorted(self._of.items()):
            for at in range(1, len(known.starts)):
                first, last = known.ends[at - 1] + 1, known.starts[at] - 1
                missing = f"{name}{first}" if first == last else f"{name}{first} to {name}{last}"
                yield _tally(codes.GAP, known.begun[at], last - first + 1), missing
        yield from self._twice.values()


def note_twice(twice: dict[tuple[str, int], tuple[PlaceTally, str]], value: FieldValue) -> None:
    """Counts a value that came before, in the partition where it came again."""
    place = (value.topic, value.partition)
    if place not in twice:
        twice[place] = _tally(codes.DUPLICATE, value, 0), value.text[:_LONGEST_SHOWN]
    tally, _first = twice[place]
    tally.count, tally.last_offset = tally.count + 1, value.offset


def _tally(code: Code, value: FieldValue, count: int) -> PlaceTally:
    return PlaceTally(
        code, value.topic, value.partition, NO_PRODUCER, -1, value.offset, value.offset, value.at_ms, count, count
    )
