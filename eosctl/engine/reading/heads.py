"""The heads of record batches as columns: a topic of small transactions has as many of them as it has records.

batches = batches_in(records, topic="connect-offsets", partition=3).visible(aborted)
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from eosctl.wire.log.batches import BATCH_HEAD, CONTROL, TRANSACTIONAL, batch_places, end_of_transaction, no_batch

Integers = npt.NDArray[np.int64]
HEAD = np.dtype([(name, f">{code}") for name, code in BATCH_HEAD.items()])


class Batches(Struct, frozen=True):
    """Batches in `data`: where each begins and ends, and their `heads`, as in HEAD."""

    data: memoryview
    begins: Integers
    ends: Integers
    heads: npt.NDArray[np.void]

    def bases(self) -> Integers:
        """Return the first offset of each batch."""
        return self.heads["base_offset"].astype(np.int64)

    def lasts(self) -> Integers:
        """Return the last offset of each batch."""
        lasts: Integers = self.bases() + self.heads["last_offset_delta"]
        return lasts

    def some(self, rows: slice | npt.NDArray[np.bool_]) -> Batches:
        """Return some of the batches."""
        return Batches(self.data, self.begins[rows], self.ends[rows], self.heads[rows])

    def visible(self, aborted: Iterable[tuple[int, int]]) -> Batches:
        """Return the batches with records that a consumer sees.

        `aborted` are producer ids and first offsets of aborted transactions. Decided as Kafka's consumer does
        (`CompletedFetch`, Kafka 4.3).
        """
        is_seen = (self.heads["attributes"] & CONTROL == 0) & (self.heads["records"] > 0)
        to_come = sorted((offset, producer_id) for producer_id, offset in aborted)
        if to_come:
            is_seen[self._aborted(to_come)] = False
        return self if is_seen.all() else self.some(is_seen)

    def _aborted(self, to_come: list[tuple[int, int]]) -> list[int]:
        """Return the rows of the batches in aborted transactions, given by first offset and producer id."""
        found, aborted = list[int](), set[int]()
        columns = (self.lasts(), self.heads["producer_id"], self.heads["attributes"])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for row, (last, producer_id, attributes) in enumerate(rows):
            while to_come and to_come[0][0] <= last:
                aborted.add(to_come.pop(0)[1])
            if producer_id not in aborted:
                continue
            if attributes & CONTROL:
                if self._is_abort(row):
                    aborted.remove(producer_id)
            elif attributes & TRANSACTIONAL:
                found.append(row)
        return found

    def _is_abort(self, row: int) -> bool:
        record = self.data[int(self.begins[row]) + HEAD.itemsize : int(self.ends[row])]
        return len(record) > 0 and end_of_transaction(record)[0] is False


def batches_in(records: memoryview, *, topic: str, partition: int) -> Batches:
    """Return the whole batches that were fetched from a partition; raises ProtocolError or OldFormatError."""
    places = np.array(batch_places(records, topic=topic, partition=partition), np.int64)
    begins = places[:-1]
    if not len(begins):
        return Batches(records, begins, begins, np.empty(0, HEAD))
    heads = np.ndarray(len(records) - HEAD.itemsize + 1, HEAD, records, strides=(1,))[begins]
    impossible = (heads["base_offset"] | heads["last_offset_delta"] | heads["records"]) < 0
    if impossible.any():
        raise no_batch(topic, partition, int(heads["base_offset"][impossible][0]))
    return Batches(records, begins, places[1:], heads)
