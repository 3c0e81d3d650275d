"""The writers of a partition's offsets: the connector, others, or unknown. Pure.

Records are read without their producers; the headers of their batches have them. Batches of one writer that follow each
other are one run, so that memory grows with the turns that writers take, not with the log.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, unique

from eosctl.core.batches import Batch, Place
from eosctl.core.ids import ProducerId


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
