"""The part of the work that a key belongs to, where all records of the key come together, wherever they were read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eosctl.core.offsets.migration import Parts
from eosctl.engine.columns import dictionary_of
from eosctl.engine.keys.homes import hash_column, homes_by
from eosctl.engine.keys.owners import renamed
from eosctl.engine.reading.newest import Fold

_ROWS_AT_ONCE = 100_000


class KeyParts(Struct, frozen=True):
    """The assignment of keys to parts of the work.

    A key belongs to the part that has its partition, in a topic of as many partitions as there are numbers in `parts`,
    under the new name of its connector, if `renames` has one. Of a topic with that many partitions, a part has whole
    partitions, as far as their keys are where they should be.
    """

    parts: Parts
    renames: Mapping[str, str] = {}

    def size(self) -> int:
        """Return the number of partitions that keys are distributed over."""
        return sum(map(len, self.parts))

    def split(self, fold: Fold) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield each part with records of it, which are not copied more than needed; a part may come several times."""
        for batch in fold.records.to_batches(max_chunksize=_ROWS_AT_ONCE):
            yield from self._split(batch, fold.sizes)

    def _split(self, records: pa.RecordBatch, sizes: Mapping[str, int]) -> Iterator[tuple[int, pa.RecordBatch]]:
        numbers = self._numbers(records, sizes) if len(self.parts) > 1 else pa.array([0] * len(records))
        found = sorted(pc.unique(numbers).to_pylist())
        if len(found) < 2:
            yield from ((number, records) for number in found)
            return
        counts = {row["values"]: row["counts"] for row in pc.value_counts(numbers).to_pylist()}
        in_order, begin = records.take(pc.sort_indices(numbers)), 0
        for number in found:
            yield number, in_order.slice(begin, counts[number])
            begin += counts[number]

    def _numbers(self, records: pa.RecordBatch, sizes: Mapping[str, int]) -> pa.Array:
        """Return the part of each record; a record without a key belongs to the first part."""
        topics, keys, connectors = (records[name] for name in ("topic", "key", "connector"))
        size = self.size()
        found, partitions = records["at_home"], records["partition"]
        if set(sizes.values()) != {size}:
            found = pc.and_(found, pc.equal(dictionary_of(topics, dict(sizes), pa.int32()), size))
        if self.renames:
            changed = pc.is_in(connectors, value_set=pa.array(list(self.renames), pa.string()))
            found = pc.and_(found, pc.invert(changed))
        places = partitions
        if not pc.all(found).as_py():
            other = pc.invert(found)
            given = keys.filter(other)
            final = renamed(given, connectors.filter(other), self.renames)
            hashes = records["hash"].filter(other) if final is given else hash_column(final)
            homes = homes_by(hashes, size).fill_null(0)
            places = pc.replace_with_mask(partitions, other, homes)
        number_of = {place: number for number, part in enumerate(self.parts) for place in part}
        return pa.array([number_of[place] for place in range(size)], pa.int32()).take(places)
