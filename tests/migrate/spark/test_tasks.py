"""How ranges of offsets are divided into tasks."""

from __future__ import annotations

import pytest

from eosctl.engine.reading.ranges import OffsetRange
from eosctl.migrate.spark.job import by_parts, in_tasks


def partitions(*lengths: int) -> list[OffsetRange]:
    return [OffsetRange("t", number, 5, 5 + length, len(lengths)) for number, length in enumerate(lengths)]


@pytest.mark.parametrize(
    ("lengths", "least", "tasks"),
    [
        ([10] * 25, 4, [60, 60, 60, 70]),
        ([800_000] * 25, 4, [800_000] * 25),  # more together were held in several pieces, and all was looked at again
        ([300_000] * 10, 4, [300_000, 300_000, 600_000, 600_000, 600_000, 600_000]),
        ([0, 7, 0], 4, [7]),
        ([0], 4, []),
    ],
)
def test_a_task_reads_few_enough_records_to_hold_their_keys(lengths: list[int], least: int, tasks: list[int]) -> None:
    found = in_tasks(partitions(*lengths), least)
    assert sorted(sum(one.end - one.begin for one in some) for some in found) == tasks
    assert sorted(one.partition for some in found for one in some) == [n for n, length in enumerate(lengths) if length]


def test_parts_that_are_whole_partitions_are_read_by_themselves() -> None:
    ranges = partitions(3, 0, 2, 9)
    assert by_parts(ranges, ((0, 2), (1,), (3,))) == [[ranges[0], ranges[2]], [ranges[3]]]
