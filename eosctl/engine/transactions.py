"""The size of one transaction of offset writes: everything, unless that is very much.

Brokers abort a transaction that is open for minutes, workers that read the topic to its end wait as long, and the
records of one transaction are in memory here. The coordinator keeps the topics and partitions of a transaction in one
record, which may have 1 MiB (`max.message.bytes` of __transaction_state; TransactionLogValue, Kafka 4.3).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.engine.write import first_rows_of, record_sizes

MOST_RECORDS, MOST_BYTES, MOST_PARTITION_BYTES = 200_000, 1 << 28, 1 << 19
_AROUND_TOPIC, _OF_PARTITION = 10, 4


def in_transactions(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows (SENT) of one transaction after the other, in order."""
    some, room = list[pa.Table](), _TransactionSize()
    for table in tables:
        while len(table):
            if count := room.take(table):
                some.append(table.slice(0, count))
            table = table.slice(count)
            if len(table):
                yield pa.concat_tables(some)
                some, room = [], _TransactionSize()
    if some:
        yield pa.concat_tables(some)


def are_several(tables: Iterable[pa.Table]) -> bool:
    """Tell whether the rows are too many for one transaction."""
    return any(True for _second in islice(in_transactions(tables), 1, 2))


@dataclass(slots=True)
class _TransactionSize:
    """The contents of the current transaction, by number and size."""

    records: int = 0
    size: int = 0
    places_size: int = 0
    places: set[object] = field(default_factory=set)

    def take(self, table: pa.Table) -> int:
        """Add as many of the first rows as fit, and return their number; an empty transaction takes at least one."""
        rows = table.slice(0, MOST_RECORDS - self.records)
        ends = pc.cumulative_sum(record_sizes(rows)).to_pylist()
        count = bisect_right(ends, MOST_BYTES - self.size)
        if not self.records:
            count = max(count, 1)
        count = self._take_places(rows.slice(0, count))
        if count:
            self.records, self.size = self.records + count, self.size + ends[count - 1]
        return count

    def _take_places(self, rows: pa.Table) -> int:
        """Add partitions in order, and return the number of rows before the first one whose partition does not fit."""
        for first, topic, partition in first_rows_of(rows):
            if (topic, partition) in self.places:
                continue
            more = _OF_PARTITION + (0 if topic in self.places else _AROUND_TOPIC + len(topic))
            if self.places and self.places_size + more > MOST_PARTITION_BYTES:
                return first
            self.places |= {topic, (topic, partition)}
            self.places_size += more
        return len(rows)
