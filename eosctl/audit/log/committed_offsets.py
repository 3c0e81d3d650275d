"""Which transactions of which producers committed offsets of a connector, as its offsets topics say. Pure.

From transaction version 2 on (KIP-890) each transaction of a producer has an epoch of its own, by which it is known in
every partition. Before, transactions of one producer share an epoch. They are then matched by time, in their order:
nobody is accused whose offsets a leader's loss, or a clock that is wrong by less than a second, has moved.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntFlag

from eosctl.audit.log.segments import Part
from eosctl.core.ids import ProducerId

_EPOCHS = 1 << 15
_TOLERANCE_MS = 1000
_COPIED_LATER_MS = 10_000


class Has(IntFlag):
    """What a transaction has in the offsets topics: an offset in the topic in use, elsewhere, deletions only."""

    NOTHING = 0
    OFFSET = 1
    ELSEWHERE = 2
    DELETION = 4
    COMMITTED = 8


@dataclass(slots=True)
class _Producer:
    """Its epochs' flags, and, where transactions share one, when those with offsets began and ended."""

    flags: bytearray = field(default_factory=lambda: bytearray(_EPOCHS))
    spans: list[tuple[int, int]] = field(default_factory=list)
    begins: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))
    first_ms: int = -1
    last_ms: int = -1


@dataclass(slots=True)
class CommittedOffsets:
    """Producer id -> its transactions with offsets of the connector; `complete_since_ms`: none before is missing.

    `elsewhere_since_ms` and `elsewhere_until_ms` are when it first and last had offsets in a topic not in use now.
    """

    complete_since_ms: int = -1
    elsewhere_since_ms: int = -1
    elsewhere_until_ms: int = -1
    _of: dict[ProducerId, _Producer] = field(default_factory=dict)
    _at: dict[tuple[str, int, ProducerId], int] = field(default_factory=dict)

    def note(self, part: Part, has: Has) -> None:
        """A part in an offsets topic: what it has of the connector. An aborted one has nothing."""
        if part.marker is not None and not part.is_committed:
            return
        known = self._of.setdefault(part.producer_id, _Producer())
        known.first_ms = part.first_ms if known.first_ms < 0 else min(known.first_ms, part.first_ms)
        known.last_ms = max(known.last_ms, part.ended_ms)
        if has & Has.ELSEWHERE:
            first_ms = part.first_ms if self.elsewhere_since_ms < 0 else min(self.elsewhere_since_ms, part.first_ms)
            self.elsewhere_since_ms = first_ms
            self.elsewhere_until_ms = max(self.elsewhere_until_ms, part.first_ms, part.ended_ms)
        known.flags[part.epoch] |= has | (Has.COMMITTED if part.has_own_epoch else Has.NOTHING)
        if has & (Has.OFFSET | Has.ELSEWHERE) and not part.has_own_epoch:
            known.spans.append((part.ended_ms if part.marker else 1 << 62, part.first_ms))

    def close(self) -> None:
        """All parts are there."""
        for known in self._of.values():
            known.spans.sort()
            known.ends, known.begins = (array("q", (span[at] for span in known.spans)) for at in (0, 1))
            known.spans = []

    def were_elsewhere_at(self, at_ms: int) -> bool:
        """Whether the offsets in use were in another topic then, give or take a moment."""
        since_ms, until_ms = self.elsewhere_since_ms - _TOLERANCE_MS, self.elsewhere_until_ms + _COPIED_LATER_MS
        return self.elsewhere_since_ms >= 0 and since_ms <= at_ms <= until_ms

    def producers(self) -> Iterator[ProducerId]:
        """Those that committed offsets of the connector, or deleted some."""
        yield from self._of

    def is_committed(self, producer_id: ProducerId, epoch: int) -> bool:
        """Whether the offsets topics show that a transaction of this very epoch was committed."""
        known = self._of.get(producer_id)
        return known is not None and bool(known.flags[epoch] & Has.COMMITTED)

    def of(self, part: Part) -> Has:
        """What the transaction of a committed part has; ask in the order of each partition's log."""
        known = self._of.get(part.producer_id)
        if known is None:
            return Has.NOTHING
        if part.has_own_epoch or not known.ends:
            return Has(known.flags[part.epoch])
        place = (part.topic, part.partition, part.producer_id)
        earliest_ms = min(part.first_ms, part.ended_ms) - _TOLERANCE_MS
        at = bisect_left(known.ends, earliest_ms, self._at.get(place, 0))
        if at < len(known.ends) and known.begins[at] <= part.ended_ms + _TOLERANCE_MS:
            self._at[place] = at + 1
            return Has(known.flags[part.epoch]) | Has.OFFSET
        return Has(known.flags[part.epoch] & Has.DELETION)
