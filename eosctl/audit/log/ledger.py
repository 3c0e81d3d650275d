"""Each transaction's parts in all partitions that were read, and each source partition's committers. Pure.

Output and offsets topics are treated alike. From transaction version 2 on (KIP-890) each transaction of a producer has
an epoch of its own, by which it is known in every partition. Before, transactions of one producer share an epoch, and
the markers' times decide (`segments.SharedEpoch`). Each transaction takes one byte; parts are kept only of those that
were aborted or have not ended.

The producers that committed a source partition's offsets are kept in the order of the offsets topic. A task has a
source partition for as long as it runs. So two producers that commit the same one in turn, neither of which was started
again in between, are two tasks that read it at the same time (a zombie, or a second Connect group).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from eosctl.audit.log.segments import SAME_MS, Part, SharedEpoch
from eosctl.core.ids import ProducerId
from eosctl.core.records import NO_PRODUCER, Batch, Place

_TOLERANCE_MS = 1000
_COPIED_LATER_MS = 10_000
CLOCKS_MS = 5000
"""More than brokers' clocks differ: an event so close to an edge may lie on either side of it."""
SETTLED_MS = 10_000
"""A transaction's markers reach its partitions one after the other: younger ones may still come."""
_TIME_EACH = 8
MOST_KEPT = 100_000
"""So many transactions with aborted parts are kept; `aborted_unkept` counts further parts, which leave it unproven."""


class Has:
    """Bits for what one transaction has: source offsets of the connector by kind and end, and output records by end.

    COMMITTED is an offsets part that was committed under an epoch of its own, RECORDS_COMMITTED such an output part.
    Of what was committed under a shared epoch nothing is in here: the last transaction of it may have it for its own.
    They are kept in bytes, and are numbers as those are: an IntFlag's operators took a tenth of an audit.
    """

    NOTHING = 0
    OFFSET = 1
    ELSEWHERE = 2
    DELETION = 4
    COMMITTED = 8
    RECORDS = 16
    RECORDS_COMMITTED = 32
    ABORTED = 64
    OFFSETS_ABORTED = 128


_ANY_OFFSET = Has.OFFSET | Has.ELSEWHERE
_ANY_RECORDS = Has.RECORDS | Has.RECORDS_COMMITTED | Has.ABORTED
_WAS_COMMITTED = Has.COMMITTED | Has.RECORDS_COMMITTED


class Transaction(Struct, frozen=True):
    """A transaction with an epoch of its own."""

    producer_id: ProducerId
    epoch: int


@dataclass(slots=True)
class _Times:
    """The times at which some of a producer's transactions ended, by epoch: later epochs ended later."""

    epochs: array[int] = field(default_factory=lambda: array("q"))
    ended_ms: array[int] = field(default_factory=lambda: array("q"))
    noted: int = 0

    def note(self, epoch: int, ended_ms: int) -> None:
        self.noted += 1
        if self.noted % _TIME_EACH == 1 and (not self.epochs or epoch > self.epochs[-1]):
            self.epochs.append(epoch)
            self.ended_ms.append(ended_ms)

    def not_before(self, epoch: int) -> int:
        """Return a time that the transaction certainly did not end before, in ms; -1 where none is known."""
        at = bisect_right(self.epochs, epoch) - 1
        return self.ended_ms[at] if at >= 0 else -1

    def not_after(self, epoch: int) -> int:
        """Return a time that it certainly did not end after; a time far away where none is known."""
        at = bisect_left(self.epochs, epoch)
        return self.ended_ms[at] if at < len(self.epochs) else 1 << 62


@dataclass(slots=True)
class Ledger:
    """All transactions that have source offsets of the connector, or records in its output topics.

    `complete_since_ms`: no offset of a transaction that ended later is missing. `is_unread`: a part of the offsets
    topics could not be read, so that any may be missing. `elsewhere_since_ms` and `elsewhere_until_ms` are when offsets
    were first and last in a topic that is not in use now. `offsets_since_ms` is when a transaction first had offsets of
    the connector, or deleted some.
    """

    complete_since_ms: int = -1
    is_unread: bool = False
    elsewhere_since_ms: int = -1
    elsewhere_until_ms: int = -1
    offsets_since_ms: int = 1 << 62
    aborted: dict[Transaction, list[Part]] = field(default_factory=dict)
    aborted_unkept: int = 0
    bare_commits: set[Transaction] = field(default_factory=set)
    open_offsets: list[Part] = field(default_factory=list)
    went_back: list[Part] = field(default_factory=list)
    _of: dict[ProducerId, bytearray] = field(default_factory=dict)
    _newest: dict[ProducerId, int] = field(default_factory=dict)
    _first_own: dict[ProducerId, int] = field(default_factory=dict)
    _times: dict[ProducerId, _Times] = field(default_factory=dict)
    _shared: dict[tuple[ProducerId, int], SharedEpoch] = field(default_factory=dict)
    _with_offsets: dict[ProducerId, None] = field(default_factory=dict)

    # -- what was read

    def note_offsets(self, part: Part, has: int) -> None:
        """Record a part in an offsets topic, with its offsets of the connector; those of an open one are not certain
        yet.
        """
        if part.marker is not None and not part.is_committed:
            self._add(part, Has.OFFSETS_ABORTED if has & (_ANY_OFFSET | Has.DELETION) else Has.NOTHING)
            self._keep_aborted(part)
            return
        self._with_offsets[part.producer_id] = None
        if has & Has.ELSEWHERE:
            self._note_elsewhere(part)
        if part.marker is None:
            self.open_offsets.append(part)
        else:
            self.offsets_since_ms = min(self.offsets_since_ms, part.ended_ms)
        self._note_committed(part)
        if part.has_own_epoch:
            self._times.setdefault(part.producer_id, _Times()).note(part.epoch, part.ended_ms)
            self._add(part, has | Has.COMMITTED)
            return
        shared = self._shared.setdefault((part.producer_id, part.epoch), SharedEpoch())
        shared.note(part, has_offset=bool(has & _ANY_OFFSET))
        if part.marker is None:  # which of both it is, its end will show
            self._add(part, has)

    def _note_elsewhere(self, part: Part) -> None:
        """Record the times, by the workers' clocks, at which offsets were in another topic, to compare a copy with."""
        first_ms = part.first_ms if self.elsewhere_since_ms < 0 else min(self.elsewhere_since_ms, part.first_ms)
        self.elsewhere_since_ms = first_ms
        self.elsewhere_until_ms = max(self.elsewhere_until_ms, part.first_ms, part.ended_ms)

    def close_offsets(self) -> None:
        """Close the shared epochs once all offsets topics have been read."""
        for each in self._shared.values():
            each.close()

    def has_records(self, producer_id: ProducerId, epoch: int) -> None:
        """Note that a transaction has records in an output topic, and no end that was read."""
        self._set(producer_id, epoch, Has.RECORDS)

    def note_output(self, part: Part) -> bool:
        """Note a part in an output topic that ended; return whether it is its transaction's first, as far as known."""
        if not part.is_committed:
            is_new = not self._flags(part.producer_id, part.epoch) & Has.ABORTED
            self._add(part, Has.ABORTED)
            self._keep_aborted(part)
            return is_new
        self._note_committed(part)
        if not part.has_own_epoch:
            return True
        is_new = not self._flags(part.producer_id, part.epoch) & Has.RECORDS_COMMITTED
        self._add(part, Has.RECORDS_COMMITTED)
        return is_new

    def recognise(self, part: Part) -> None:
        """Note that a part has an epoch of its own, though its marker did not raise it, as its producer's epochs do.

        Such a marker is one that somebody wrote in place of the coordinator (`eosctl txn complete`).
        """
        first = self._first_own.get(part.producer_id)
        if part.is_committed and first is not None and part.epoch > first:
            part.has_own_epoch = True

    def _note_committed(self, part: Part) -> None:
        """Record up to which epoch all transactions of the producer are over; those of a shared one may continue."""
        if part.has_own_epoch:
            self._first_own[part.producer_id] = min(self._first_own.get(part.producer_id, part.epoch), part.epoch)
        if part.is_committed:
            over = part.epoch if part.has_own_epoch else part.epoch - 1
            self._newest[part.producer_id] = max(self._newest.get(part.producer_id, -1), over)

    def bare_marker(self, marker: Batch, *, may_be_cut: bool) -> None:
        """Note a marker in an output partition that has no records of its transaction."""
        if marker.commit is not True or marker.producer_epoch < 1:
            return
        if may_be_cut:
            self.has_records(marker.producer_id, marker.producer_epoch - 1)
        elif len(self.bare_commits) < MOST_KEPT:
            self.bare_commits.add(Transaction(marker.producer_id, marker.producer_epoch - 1))

    # -- what that comes to

    def were_elsewhere_at(self, at_ms: int) -> bool:
        """Check whether the offsets in use were in another topic at that time, within the clocks' tolerance."""
        since_ms, until_ms = self.elsewhere_since_ms - _TOLERANCE_MS, self.elsewhere_until_ms + _COPIED_LATER_MS
        return self.elsewhere_since_ms >= 0 and since_ms <= at_ms <= until_ms

    def known(self) -> Iterator[ProducerId]:
        """Yield all producers of which a transaction was noted."""
        yield from self._of

    def producers(self) -> Iterator[ProducerId]:
        """Yield those that committed offsets of the connector, or deleted some."""
        yield from self._with_offsets

    def is_over(self, producer_id: ProducerId, epoch: int) -> bool:
        """Check whether this or a later transaction of the producer was committed; then its markers are on the way."""
        return self._newest.get(producer_id, -1) >= epoch

    def may_be_over(self, part: Part) -> bool:
        """Check whether its producer has since committed offsets under a shared epoch, so that it may not be open."""
        found = self._shared.get((part.producer_id, part.epoch))
        return found is not None and found.may_have_ended_after(part, part.after_ms)

    def may_be_committed(self, part: Part) -> bool:
        """Check whether an aborted part of a shared epoch may belong to a transaction that committed its offsets."""
        found = self._shared.get((part.producer_id, part.epoch))
        if found is None or part.marker is None:
            return False
        raised = part.marker.producer_epoch
        if raised > part.epoch:  # after a fence, or a timeout, nothing is committed, and nobody is given that epoch
            if found.may_have_ended_after(part, part.ended_ms - 2 * SAME_MS):
                return True
            if (part.producer_id, raised) not in self._shared and not self._flags(part.producer_id, raised):
                return False
        return found.may_have_ended_between(part, part.after_ms, part.ended_ms)

    def is_missing_from(self, part: Part) -> bool:
        """Check whether the offsets of a committed part may be missing from what was read."""
        ended_ms = part.after_ms if part.is_unmarked else part.ended_ms  # the marker that ended it came later
        return self.is_unread or (self.complete_since_ms >= 0 and ended_ms <= self.complete_since_ms + SETTLED_MS)

    def has_only_offsets(self, part: Part) -> bool:
        """Check whether an offsets part's transaction, or all of its epoch where that is shared, has no records."""
        shared = None if part.has_own_epoch else self._shared.get((part.producer_id, part.epoch))
        if shared is not None:
            return not shared.has_taken
        return not self._flags(part.producer_id, part.epoch) & _ANY_RECORDS

    def has_deletions(self, part: Part) -> bool:
        """Check whether the transaction deleted offsets of the connector, or wrote a source offset of null."""
        return bool(self._flags(part.producer_id, part.epoch) & Has.DELETION)

    def has_aborted_offsets(self, part: Part) -> bool:
        """Check whether a part with an epoch of its own was committed while its offsets were aborted."""
        return part.has_own_epoch and bool(self._flags(part.producer_id, part.epoch) & Has.OFFSETS_ABORTED)

    def is_before_all_offsets(self, part: Part) -> bool:
        """Check whether the part ended before any offset that was read; its own may have been in a deleted topic."""
        return part.ended_ms + CLOCKS_MS < self.offsets_since_ms

    def without(self, part: Part) -> Sequence[Part]:
        """Give a committed part, in the order of its partition's log: those that are known now to have no offsets."""
        shared = None if part.has_own_epoch else self._shared.get((part.producer_id, part.epoch))
        if shared is None:
            has_offset = part.has_own_epoch and self._flags(part.producer_id, part.epoch) & _ANY_OFFSET
            return () if has_offset else (part,)
        if self.is_missing_from(part):
            return () if shared.take_without_order(part) else (part,)
        shared.take(part)
        return ()

    def finish_shared(self) -> Iterator[tuple[ProducerId, Sequence[Part], int]]:
        """Yield per producer, once all parts are in, those without offsets and the number of undecided ones."""
        for (producer_id, _epoch), each in self._shared.items():
            yield producer_id, tuple(each.finish()), each.unsure

    def shared_without_records(self, *, since_ms: int, until_ms: int) -> Iterator[tuple[ProducerId, int]]:
        """Yield whose groups of offsets under shared epochs ended when, in that time, that no output part took."""
        for (producer_id, _epoch), each in self._shared.items():
            yield from ((producer_id, ended_ms) for ended_ms in each.unclaimed(since_ms, until_ms))

    def without_records(self, producer_id: ProducerId, *, since_ms: int, until_ms: int) -> Iterator[Transaction]:
        """Yield the transactions of a producer that committed offsets, and have no records anywhere.

        Of some of those that ended outside of that time, that is not known yet.
        """
        times = self._times.get(producer_id)
        if times is None:
            return
        for epoch, flags in enumerate(self._of.get(producer_id, b"")):
            is_one = flags & _ANY_OFFSET and flags & Has.COMMITTED and not flags & _ANY_RECORDS
            if is_one and times.not_after(epoch) >= since_ms and times.not_before(epoch) <= until_ms:
                yield Transaction(producer_id, epoch)

    def has_shared(self, producer_id: ProducerId, epoch: int) -> bool:
        """Check whether transactions of the producer that have offsets share this epoch."""
        return (producer_id, epoch) in self._shared

    def follows_an_abort(self, transaction: Transaction) -> bool:
        """Check whether the transaction before was aborted, after which Connect may commit offsets without records.

        It does so where a connector that sets its own boundaries aborts (`ExactlyOnceWorkerSourceTask`, Kafka 3.3+).
        """
        return bool(self._flags(transaction.producer_id, transaction.epoch - 1) & (Has.ABORTED | Has.OFFSETS_ABORTED))

    def torn(self, producer_id: ProducerId) -> Iterator[Transaction]:
        """Yield the transactions of which one part was committed, and another one aborted.

        Where a producer passes from shared epochs to ones of its own (an upgrade), the first of these may have another
        transaction's aborted part: `is_certainly_torn` tells.
        """
        for epoch, flags in enumerate(self._of.get(producer_id, b"")):
            if flags & _WAS_COMMITTED and flags & (Has.ABORTED | Has.OFFSETS_ABORTED):
                yield Transaction(producer_id, epoch)

    def is_certainly_torn(self, transaction: Transaction) -> bool:
        """Check whether no earlier transaction of the same epoch can have left the aborted part."""
        parts = self.aborted.get(transaction, ())
        if any(part.marker is not None and part.marker.producer_epoch > part.epoch for part in parts):
            return True
        return bool(self._flags(transaction.producer_id, transaction.epoch - 1) & _WAS_COMMITTED)

    def began_anew(self, producer_id: ProducerId, first: int, last: int) -> bool:
        """Check whether the producer was restarted between two epochs: InitProducerId takes one that writes nothing."""
        if (producer_id, first) in self._shared and not self._flags(producer_id, first) & _WAS_COMMITTED:
            return last > first
        return any(not self._flags(producer_id, epoch) for epoch in range(first + 1, last))

    # -- the bytes

    def _add(self, part: Part, has: int) -> None:
        self._set(part.producer_id, part.epoch, has)

    def _set(self, producer_id: ProducerId, epoch: int, has: int) -> None:
        if epoch < 0:
            return
        known = self._of.setdefault(producer_id, bytearray())
        if epoch >= len(known):
            known.extend(bytes(epoch + 1 - len(known)))
        known[epoch] |= has

    def _flags(self, producer_id: ProducerId, epoch: int) -> int:
        known = self._of.get(producer_id)
        return known[epoch] if known is not None and 0 <= epoch < len(known) else 0

    def _keep_aborted(self, part: Part) -> None:
        if len(self.aborted) < MOST_KEPT:
            self.aborted.setdefault(Transaction(part.producer_id, part.epoch), []).append(part)
        else:
            self.aborted_unkept += 1


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
