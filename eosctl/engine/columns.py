"""The schemas of the engine's tables, and small helpers around Arrow."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.offsets.records import is_nothing


class _NoPandas:
    """A finder of modules that reports pandas as missing."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        """Raise ModuleNotFoundError for pandas."""
        if name == "pandas":
            raise ModuleNotFoundError("pyarrow is to start without it", name=name)


def _start_without_pandas() -> None:
    """Create pyarrow's first array with pandas hidden: it would import pandas for it, which takes 0.4 s and 40 MiB.

    Code that later asks pyarrow for pandas gets it (pyarrow's `_PandasAPIShim`, 26).
    """
    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, finder := _NoPandas())
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)


_start_without_pandas()
VALUES = pa.large_binary()
"""The type of keys and values: an array of `binary` ends at 2 GiB."""
NO_BYTES = pa.scalar(None, VALUES)


def arrow_schema(columns: str) -> pa.Schema:
    """Return the Arrow schema of "name type, name type, ..."."""
    types = {"string": pa.string(), "int": pa.int32(), "long": pa.int64(), "boolean": pa.bool_(), "hash": pa.uint32()}
    types |= {"binary": VALUES, "value": VALUES}
    return pa.schema([(name, types[kind]) for name, kind in map(str.split, columns.split(","))])


RECORDS = arrow_schema(
    "topic string, partition int, offset long, timestamp_ms long, key binary, value value, headers value, "
    "nothing boolean, hash hash, at_home boolean, connector string"
)
"""Records as they were read. `nothing`: the value is a deletion (`is_nothing`); `hash` is murmur2 of the key, null for
no key; `at_home`: the key is where Connect's producer puts it; `connector` is that of the key (`key_owner`), null for
none. `timestamp_ms` is -1 for none, `headers` are as they lie in a record batch (`heads.headers_in`), null for
none."""

LINES = arrow_schema(
    "topic string, partition int, offset long, timestamp_ms long, key binary, value value, headers string"
)
"""Records as a record file has them; headers are its member, null for none."""

SENT = arrow_schema("topic string, partition int, key binary, value value, headers string")
"""Records that are sent: a null value is a tombstone, headers are the member of a record file, null for none."""

Table, Batch = pa.Table, pa.RecordBatch
"""Arrow's classes, for modules that only pass them on."""

DECISIONS = arrow_schema(
    "connector string, target_connector string, source_topic string, source_partition int, source_offset long, "
    "source_key binary, value value, topic string, key binary, hash hash, partitions int, partition int, "
    "target_exists boolean, target_offset long, target_timestamp_ms long, target_headers value, before value, "
    "before_nothing boolean, action string, reason string, conflict boolean, claims long"
)
"""The decision on each target key: `value` is the source's (null for a deletion), `before` the target's bytes,
`source_key` the source's key where that is another one, `hash` murmur2 of the key, `partition` where the target has it
now (null: nowhere), `claims` how many source records wanted the key."""


def batch_of_columns(columns: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Return columns, Python's or Arrow's, as one batch of `schema`."""
    arrays = [
        column if isinstance(column, pa.Array) else pa.array(column, type=field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def batch_of_rows(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as one batch of `schema`; there is at least one."""
    return batch_of_columns(tuple(zip(*rows, strict=True)), schema)


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    return chunks[0] if len(chunks) == 1 else column.combine_chunks()


def one_batch(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return some batches as one; there is at least one, which is not copied if it is alone."""
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def one_table(tables: Sequence[pa.Table]) -> pa.Table:
    """Return some tables as one; there is at least one."""
    return pa.concat_tables(tables)


def in_one_piece(table: pa.Table) -> pa.Table:
    """Return the table with one array per column: else each taking of rows would combine the chunks again.

    Columns are combined one by one, so that not everything is in memory twice if the caller lets go of `table`.
    """
    columns, schema = list[pa.Array](), table.schema
    while table.num_columns:
        columns.append(one_array(table.column(0)))
        table = table.remove_column(0)
    return pa.Table.from_arrays(columns, schema=schema)


def filter_rows(rows: pa.Table, which: pa.ChunkedArray | pa.Array) -> pa.Table:
    """Return the rows for which `which` is true; if that is all of them, nothing is copied."""
    return rows if pc.all(which, skip_nulls=False).as_py() else rows.filter(which)


def row_numbers(count: int) -> pa.Array:
    """Return the numbers 0 to `count` - 1."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count)), 1)


def meaning(value: Any, nothing: Any) -> Any:
    """Return `Cell.meaning` of a column: the bytes that count, null for a deletion."""
    return pc.if_else(nothing, NO_BYTES, value)


def same(left: Any, right: Any) -> Any:
    """Compare two columns row by row; two nulls are the same."""
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(pc.fill_null(pc.equal(left, right), fill_value=False), both_null)


_AROUND_BYTES = 200
"""Estimated overhead of a row, in bytes."""


def row_sizes(table: pa.Table) -> pa.Array:
    """Estimate the size of each row in bytes."""
    sizes = pa.repeat(pa.scalar(_AROUND_BYTES, pa.int64()), len(table))
    for column in table.columns:
        if column.type == VALUES:
            sizes = pc.add(sizes, pc.fill_null(one_array(pc.binary_length(column)).cast(pa.int64()), 0))
    return sizes


def are_nothing(values: pa.Array) -> pa.Array:
    """Return `is_nothing` of a column.

    Nearly all values are maps or null; only the others are looked at one by one.
    """
    found = pc.is_null(values)
    may_be = pc.and_not(pc.invert(found), pc.fill_null(pc.starts_with(values, "{"), fill_value=True))
    if not pc.any(may_be).as_py():
        return found
    odd = pa.array(map(is_nothing, values.filter(may_be).to_pylist()), pa.bool_())
    return pc.replace_with_mask(found, may_be, odd)


def dictionary_of(column: pa.Array, values: dict[Any, Any], kind: pa.DataType) -> pa.Array:
    """Map each row of a column by `values`, to null if it has none, with one look-up per distinct row."""
    encoded = column.dictionary_encode()
    found = pa.array([values.get(name) for name in encoded.dictionary.to_pylist()], kind)
    return found.take(encoded.indices)


def cuts_of(column: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return where each row of a column of bytes begins in the column's data, its length, and the data."""
    _valid, offsets, data = column.buffers()
    kind = np.int64 if column.type == VALUES else np.int32
    ends = np.frombuffer(offsets, kind)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    return ends[:-1], ends[1:] - ends[:-1], np.frombuffer(data or b"", np.uint8)


def cut_column(cuts: npt.NDArray[np.int64], data: npt.NDArray[np.uint8] | bytes) -> pa.Array:
    """Return what lies in `data` between each two neighbours of `cuts`, as a column that shares its memory.

    Raises ValueError if a cut lies before the previous one or outside of `data`. Arrow checks none of them, so such an
    array would read other memory, and the positions come from bytes that others have written.
    """
    if cuts[0] < 0 or cuts[-1] > len(data) or not (cuts[1:] >= cuts[:-1]).all():
        raise ValueError("a part of a column lies outside of its bytes")
    return pa.Array.from_buffers(VALUES, len(cuts) - 1, [None, pa.py_buffer(cuts), pa.py_buffer(data)])


def cut_columns(
    ends: Sequence[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]],
    data: npt.NDArray[np.uint8] | bytes,
) -> Iterator[pa.Array]:
    """Yield a column for each of `ends`: the bytes of (first byte, end byte, size) of each row; a size below 0 is null.

    The rows of all columns lie in `data` in order, those of a row one after the other. The bytes between them are
    values of an array of Arrow, too: so it copies only the wanted ones. Raises ValueError as `cut_column` does.
    """
    count = len(ends[0][0])
    cuts = np.empty(2 * len(ends) * count + 1, np.int64)
    for number, (first, behind, _size) in enumerate(ends):
        cuts[2 * number : -1 : 2 * len(ends)], cuts[2 * number + 1 :: 2 * len(ends)] = first, behind
    cuts[-1] = ends[-1][1][-1]
    whole = cut_column(cuts, data)
    for number, (_first, _behind, size) in enumerate(ends):
        rows = np.arange(2 * number, len(cuts) - 1, 2 * len(ends), dtype=np.int32)
        is_null = size < 0
        yield whole.take(pa.array(rows, mask=is_null if is_null.any() else None))
