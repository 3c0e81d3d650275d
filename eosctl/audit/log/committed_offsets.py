"""Which transactions of which producers committed offsets of a connector, as its offsets topics say. Pure.

From transaction version 2 on (KIP-890) each transaction of a producer has an epoch of its own, by which it is known in
every partition. Before, transactions of one producer share an epoch: then markers' times tell (`shared_epochs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntFlag

from eosctl.audit.log.segments import Part
from eosctl.audit.log.shared_epochs import SharedEpoch
from eosctl.core.ids import ProducerId

_EPOCHS = 1 << 15
_TOLERANCE_MS = 1000
_COPIED_LATER_MS = 10_000
SETTLED_MS = 10_000
"""Markers of a transaction come to its partitions one after the other: what is younger may still come."""


class Has(IntFlag):
    """What a transaction has in the offsets topics: an offset in the topic in use, elsewhere, deletions only."""

    NOTHING = 0
    OFFSET = 1
    ELSEWHERE = 2
    DELETION = 4
    COMMITTED = 8


@dataclass(slots=True)
class CommittedOffsets:
    """Producer id -> what its transactions have; `complete_since_ms`: none that ended later is missing.

    `is_unread`: a part of the offsets topics could not be read, so that any may be missing. `settled_ms` is up to when
    markers are everywhere if they are anywhere. `elsewhere_since_ms` and `elsewhere_until_ms` are when offsets were
    first and last in a topic that is not in use now.
    """

    complete_since_ms: int = -1
    is_unread: bool = False
    settled_ms: int = 1 << 62
    elsewhere_since_ms: int = -1
    elsewhere_until_ms: int = -1
    _of: dict[ProducerId, bytearray] = field(default_factory=dict)
    _shared: dict[tuple[ProducerId, int], SharedEpoch] = field(default_factory=dict)

    def note(self, part: Part, has: Has) -> None:
        """A part in an offsets topic: what it has of the connector. An aborted one has nothing."""
        if part.marker is not None and not part.is_committed:
            return
        flags = self._of.setdefault(part.producer_id, bytearray(_EPOCHS))
        if has & Has.ELSEWHERE:
            first_ms = part.first_ms if self.elsewhere_since_ms < 0 else min(self.elsewhere_since_ms, part.first_ms)
            self.elsewhere_since_ms = first_ms
            self.elsewhere_until_ms = max(self.elsewhere_until_ms, part.first_ms, part.ended_ms)
        if part.has_own_epoch and part.ended_ms <= self.settled_ms:
            has |= Has.COMMITTED
        flags[part.epoch] |= has
        if has & (Has.OFFSET | Has.ELSEWHERE) and not part.has_own_epoch:
            self._shared.setdefault((part.producer_id, part.epoch), SharedEpoch()).note(part)

    def close(self) -> None:
        """All offsets are there."""
        for each in self._shared.values():
            each.close()

    def were_elsewhere_at(self, at_ms: int) -> bool:
        """Whether the offsets in use were in another topic then, give or take a moment."""
        since_ms, until_ms = self.elsewhere_since_ms - _TOLERANCE_MS, self.elsewhere_until_ms + _COPIED_LATER_MS
        return self.elsewhere_since_ms >= 0 and since_ms <= at_ms <= until_ms

    def producers(self) -> Iterator[ProducerId]:
        """Those that committed offsets of the connector, or deleted some."""
        yield from self._of

    def is_committed(self, producer_id: ProducerId, epoch: int) -> bool:
        """Whether the offsets topics show that a transaction of this very epoch was committed, not just now."""
        known = self._of.get(producer_id)
        return known is not None and bool(known[epoch] & Has.COMMITTED)

    def is_missing_from(self, part: Part) -> bool:
        """Whether offsets that a committed part may have had can be missing in what was read."""
        return self.is_unread or (self.complete_since_ms >= 0 and part.ended_ms <= self.complete_since_ms + SETTLED_MS)

    def without(self, part: Part) -> Sequence[Part]:
        """A committed part, in the order of its partition's log: those of which it is known now that they have none."""
        shared = None if part.has_own_epoch else self._shared.get((part.producer_id, part.epoch))
        if shared is None:
            known = self._of.get(part.producer_id)
            return () if known is not None and known[part.epoch] & (Has.OFFSET | Has.ELSEWHERE) else (part,)
        if self.is_missing_from(part):
            return () if shared.take_without_order(part) else (part,)
        return tuple(shared.take(part))

    def finish(self) -> Iterator[tuple[ProducerId, Sequence[Part], int]]:
        """All parts came: by producer, further ones without offsets, and of how many nobody can say."""
        for (producer_id, _epoch), each in self._shared.items():
            found = tuple(each.finish())
            yield producer_id, found, each.unsure
