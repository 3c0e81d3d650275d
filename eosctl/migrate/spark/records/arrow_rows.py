"""Columns of Spark's DDL as Arrow has them, and rows as Arrow's batches: what tasks take in and give out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa


def arrow_schema(columns: str) -> pa.Schema:
    """The Arrow schema of Spark's "name type, name type, ..."."""
    types = {"string": pa.string, "int": pa.int32, "long": pa.int64, "binary": pa.binary, "boolean": pa.bool_}
    return pa.schema([(name, types[kind]()) for name, kind in map(str.split, columns.split(","))])


def arrow_batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows as one batch of `schema`; there is at least one."""
    return batch_of_columns(tuple(zip(*rows, strict=True)), schema)


def batch_of_columns(columns: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Columns, Python's or Arrow's, as one batch of `schema`."""
    arrays = [
        column if isinstance(column, pa.Array) else pa.array(column, type=field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
