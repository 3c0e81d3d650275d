"""Tasks that do their own reading and writing: Spark only says which of them runs where, and tries it again."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import Row


def run_tasks(context: SparkContext, count: int, work: Callable[[int], Iterator[pa.RecordBatch]]) -> list[Row]:
    """Calls `work` with the numbers from 0 to `count` - 1, each in a task of its own, and returns the rows it yields.

    It needs no SparkSession, and so no SQL: that costs as long to start as a small migration takes altogether.
    """

    def of_numbers(numbers: Iterable[int]) -> Iterator[Row]:
        with uncollected():
            for number in numbers:
                for batch in work(number):
                    yield from (Row(**row) for row in batch.to_pylist())

    return context.parallelize(range(count), max(1, count)).mapPartitions(of_numbers).collect()


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
