"""A check that a log has exactly the records that were sent, in the order in which each writer sent them.

No key is looked up for it. If the check fails, for whatever reason, nothing is wrong yet: then keys are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eosctl.engine.columns import one_array, same
from eosctl.engine.reading.batches import Piece
from eosctl.engine.reading.headers import headers_texts
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.engine.write import by_partition, partitions_of


@dataclass(slots=True)
class _Sent:
    """The records that one writer has sent to a partition, and how many of them were found."""

    keys: pa.Array
    values: pa.Array
    headers: pa.Array
    found: int = 0

    def begins_with(self, key: object) -> bool:
        return not self.found and bool(self.keys[0].as_py() == key)

    def goes_on_with(self, records: pa.RecordBatch) -> bool:
        """Tell whether these records (PIECE) are the next ones, and go past them."""
        first, self.found = self.found, self.found + len(records)
        if self.found > len(self.keys):
            return False
        here = slice(first, self.found)
        return (
            records["key"].equals(self.keys[here])
            and bool(pc.all(same(records["value"], self.values[here])).as_py())
            and headers_texts(records["headers"]).equals(self.headers[here])
        )

    def is_complete(self) -> bool:
        return self.found == len(self.keys)


def _sent(rows: pa.Table) -> _Sent:
    has_headers = "headers" in rows.column_names
    headers = one_array(rows["headers"]) if has_headers else pa.nulls(len(rows), pa.string())
    return _Sent(one_array(rows["key"]), one_array(rows["value"]), headers)


class SentInOrder:
    """The records that several writers have sent into `ranges`.

    `tables` are their rows (SENT; `headers` may be missing).
    """

    def __init__(self, tables: Iterable[pa.Table], ranges: Sequence[OffsetRange]) -> None:
        number_of = {(one.topic, one.partition): number for number, one in enumerate(ranges)}
        self._to_come: defaultdict[int, list[_Sent]] = defaultdict(list)
        self._of_writer: dict[tuple[int, int], _Sent] = {}
        for table in tables:
            for place, rows in partitions_of(by_partition(table)):
                if (number := number_of.get(place)) is not None:
                    self._to_come[number].append(_sent(rows))

    def count_in(self, pieces: Iterable[Piece]) -> int | None:
        """Return the number of records in `pieces` if they are exactly the records that were sent, else None."""
        found = 0
        for piece in pieces:
            if not self._has_next(piece):
                return None
            found += len(piece.columns)
        return found if self._is_complete() else None

    def _has_next(self, piece: Piece) -> bool:
        """Tell whether the records of a piece are the next ones of each of their writers."""
        for place, writer, first, behind in _runs(piece):
            records = piece.columns.slice(first, behind - first)
            sent = self._of_writer.get((place, writer)) or self._claimed(place, writer, records["key"][0].as_py())
            if sent is None or not sent.goes_on_with(records):
                return False
        return True

    def _is_complete(self) -> bool:
        """Tell whether all records have been found."""
        return not any(self._to_come.values()) and all(sent.is_complete() for sent in self._of_writer.values())

    def _claimed(self, place: int, writer: int, key: object) -> _Sent | None:
        """Find a writer's records for a partition by their first key, and assign them to the writer."""
        for number, sent in enumerate(self._to_come[place]):
            if sent.begins_with(key):
                self._of_writer[place, writer] = self._to_come[place].pop(number)
                return sent
        return None


def is_all_there(pieces: Iterable[Piece], tables: Iterable[pa.Table], ranges: Sequence[OffsetRange]) -> bool:
    """Tell whether the records in `ranges` are exactly those that one writer sent: the rows of `tables` in order."""
    return SentInOrder([pa.concat_tables(tables)], ranges).count_in(pieces) is not None


def _runs(piece: Piece) -> Iterator[tuple[int, int, int, int]]:
    """Yield (number of the range, producer id, first row, end row) of neighbouring records of one writer."""
    places, writers = piece.columns["place"].to_numpy(), piece.producers
    if not len(places):
        return
    ends = np.flatnonzero((places[1:] != places[:-1]) | (writers[1:] != writers[:-1])) + 1
    firsts = [0, *ends.tolist()]
    for first, behind in zip(firsts, [*firsts[1:], len(places)], strict=True):
        yield int(places[first]), int(writers[first]), first, behind
