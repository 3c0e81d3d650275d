"""Tasks that do their own reading and writing: Spark only says which of them runs where, and tries it again."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession


def numbered_tasks(
    spark: SparkSession, count: int, work: Callable[[int], Iterator[pa.RecordBatch]], schema: str
) -> DataFrame:
    """What `work` yields for the numbers from 0 to `count` - 1, each in a task of its own; every action calls it."""

    def of_numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with uncollected():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from work(number)

    return spark.range(0, count, 1, max(1, count)).mapInArrow(of_numbers, schema)


def task_number() -> int:
    """The number of the task that this runs in."""
    from pyspark import TaskContext

    return TaskContext.get().partitionId()  # type: ignore[union-attr] # what asks runs inside tasks only


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection in the block: rows hold no cycles, and looking for some takes two thirds of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
