"""Tasks that do their own reading and writing: Spark only decides where each of them runs, and retries it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa
from pyspark import SparkContext

Outcome = TypeVar("Outcome")


def run_tasks(context: SparkContext, count: int, work: Callable[[int], Outcome]) -> list[Outcome]:
    """Call `work` with the numbers from 0 to `count` - 1, each in a task of its own, and return the results.

    It needs no SparkSession, and so no SQL: that takes as long to start as a small migration takes altogether.
    """
    if not count:
        return []

    def of_numbers(numbers: Iterable[int]) -> Iterator[Outcome]:
        give_back_memory()
        with uncollected():
            for number in numbers:
                yield work(number)

    return context.parallelize(range(count), count).mapPartitions(of_numbers).collect()


def give_back_memory() -> None:
    """Make Arrow give back free memory from now on.

    Its own allocator (mimalloc, pyarrow 26) keeps it for later use, which was 200 MiB of 1,100 in all processes of a
    migration.
    """
    pa.set_memory_pool(pa.system_memory_pool())


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable garbage collection in the block.

    Rows hold no cycles, and looking for some takes two thirds of the time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
