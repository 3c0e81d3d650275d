"""Values that come twice, and numbers that are missing, in the order in which partitions are read: any."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.audit.log.values import FieldValue, SequenceValues, UniqueValues

Found = list[tuple[str, int, str]]


def found(of: UniqueValues | SequenceValues, texts: Iterable[str], topic: str = "t") -> Found:
    for offset, text in enumerate(texts):
        of.take(FieldValue(topic, 0, offset, 1000 + offset, text))
    return [(str(tally.code), tally.count, what) for tally, what in of.findings()]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["a", "b"], []),
        (["a", "b", "a", "a"], [("duplicate", 2, "a")]),
        (["1", "1.0"], []),
    ],
)
def test_a_value_that_came_before_is_a_duplicate(texts: list[str], expected: Found) -> None:
    assert found(UniqueValues(), texts) == expected


def test_values_are_unique_in_each_topic() -> None:
    values = UniqueValues()
    for topic in ("t", "u"):
        values.take(FieldValue(topic, 0, 0, 0, "a"))
    assert list(values.findings()) == []


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["5", "6", "7"], []),
        (["7", "5", "6"], []),
        (["1", "2", "5"], [("gap", 2, "3 to 4")]),
        (["1", "3", "5"], [("gap", 1, "2"), ("gap", 1, "4")]),
        (["1", "3", "5", "4", "2"], []),
        (["task-0-1", "b-7", "task-0-2", "b-9"], [("gap", 1, "b-8")]),
        (["1", "2", "2", "1"], [("duplicate", 2, "2")]),
        (["x", ""], []),
    ],
)
def test_numbers_that_are_missing_or_come_twice(texts: list[str], expected: Found) -> None:
    assert found(SequenceValues(), texts) == expected


def test_a_hole_is_reported_at_the_record_behind_it() -> None:
    values = SequenceValues()
    assert found(values, ["1", "2", "9", "10"])
    ((tally, _what),) = values.findings()
    assert (tally.first_offset, tally.at_ms) == (2, 1002)


def test_what_is_no_number_is_counted() -> None:
    values = SequenceValues()
    assert found(values, ["one", "2"]) == []
    assert values.unreadable == 1


@given(st.lists(st.integers(-20, 20)))
def test_a_sequence_misses_what_its_numbers_miss(numbers: list[int]) -> None:
    missing = set(range(min(numbers, default=0), max(numbers, default=-1) + 1)) - set(numbers)
    rows = found(SequenceValues(), [str(number) for number in numbers])
    assert sum(count for code, count, _what in rows if code == "gap") == len(missing)
    assert sum(count for code, count, _what in rows if code == "duplicate") == len(numbers) - len(set(numbers))
