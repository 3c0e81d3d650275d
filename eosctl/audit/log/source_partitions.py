"""The producers that committed each source partition's offsets, in the order of the offsets topic. Pure.

A task has a source partition for as long as it runs. So two producers that commit the same one in turn, and neither of
which was started again in between, are two tasks that read it at the same time (a zombie, or a second Connect group).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from eosctl.audit.log.ledger import CLOCKS_MS, Ledger
from eosctl.audit.log.segments import Part
from eosctl.core.batches import NO_PRODUCER, Place
from eosctl.core.ids import ProducerId

_MOST_RETURNS = 10_000


@dataclass(slots=True)
class SourcePartition:
    """The commits of one offset key in one partition of an offsets topic; the last one's producer, and its time."""

    key: bytes
    place: Place
    commits: int = 0
    producer_id: ProducerId = NO_PRODUCER
    epoch: int = -1
    at_ms: int = -1
    epochs: dict[ProducerId, int] = field(default_factory=dict)
    """The epoch with which each producer committed it last."""

    def is_certainly_after(self, other: SourcePartition) -> bool:
        """Check whether its last commit came after the other's: by the producer's epoch, else by brokers' clocks."""
        is_same = self.producer_id == other.producer_id
        if is_same and self.epoch > other.epoch:
            return True
        is_older = is_same and self.epoch < other.epoch
        return not is_older and self.at_ms > other.at_ms + CLOCKS_MS


@dataclass(slots=True)
class Return:
    """A producer that commits a source partition again, after `other` has; `former_epoch` is that of its last time."""

    source_partition: SourcePartition
    part: Part
    other: ProducerId
    former_epoch: int


@dataclass(slots=True)
class SourcePartitions:
    """The histories, by offset key and place; `unkept` returns were too many to be kept."""

    of: dict[tuple[bytes, Place], SourcePartition] = field(default_factory=dict)
    unkept: int = 0
    _returns: list[Return] = field(default_factory=list)

    def commit(self, key: bytes, part: Part) -> None:
        """Note an offset that a transaction committed, in the order of its partition's log."""
        place = (part.topic, part.partition)
        known = self.of.get((key, place))
        if known is None:
            known = self.of[key, place] = SourcePartition(key, place)
        producer_id, epoch = part.producer_id, part.epoch
        former = known.epochs.get(producer_id)
        if former is not None and known.producer_id != producer_id:
            if len(self._returns) < _MOST_RETURNS:
                self._returns.append(Return(known, part, known.producer_id, former))
            else:
                self.unkept += 1
        known.epochs[producer_id] = epoch
        known.commits += 1
        known.producer_id, known.epoch, known.at_ms = producer_id, epoch, part.ended_ms

    def shared(self, ledger: Ledger) -> Iterator[Return]:
        """Yield the returns of producers that were not started again in between."""
        for each in self._returns:
            if not ledger.began_anew(each.part.producer_id, each.former_epoch, each.part.epoch):
                yield each
