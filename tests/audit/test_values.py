"""Values that come twice, and numbers that are missing, in the order in which partitions are read: any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.audit.log.fields import encoded, number_in
from eosctl.audit.log.values import MOST_GAPS, FieldValue, Found, PartitionSeen, SequenceValues, UniqueValues

Rows = list[tuple[str, int, str]]
WHOLE = PartitionSeen()


def rows_of(found: Found) -> Rows:
    return [(str(tally.code), tally.count, what) for tally, what in found]


def found(of: UniqueValues | SequenceValues, values: Iterable[object], topic: str = "t") -> Rows:
    for offset, value in enumerate(values):
        of.take(FieldValue(topic, 0, offset, 1000 + offset, value))
    return rows_of(of.judge({(topic, 0): WHOLE})[0])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["a", "b"], []),
        (["a", "b", "a", "a"], [("duplicate", 2, "a")]),
        (["1", "1.0"], []),
        ([b"1.0", b"1.00"], []),
        ([Decimal(1), "1"], []),
        ([Decimal("1"), Decimal("1.0")], [("duplicate", 1, "1.0")]),
        ([Decimal("12345678901234567.01"), Decimal("12345678901234567.02")], []),
        ([True, "true"], []),
        ([("a", None), ("a", "b"), ("a", None)], [("duplicate", 1, "a, null")]),
        ([("a", "bc"), ("ab", "c")], []),
        ([{"a": Decimal(1), "b": Decimal(2)}, {"b": Decimal(2), "a": Decimal(1)}], [("duplicate", 1, "{b: 2, a: 1}")]),
    ],
)
def test_a_value_that_came_before_is_a_duplicate(values: list[object], expected: Rows) -> None:
    """Numbers used to pass through a double, and 1 and "1" were the same."""
    assert found(UniqueValues(), values) == expected


json_values = st.recursive(
    st.none() | st.booleans() | st.text(max_size=3) | st.integers(-9, 9).map(Decimal) | st.decimals(-9, 9, places=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


def tagged(value: object) -> object:
    """Values that Python takes for equal only if JSON does: True is not 1, and a text no number."""
    if isinstance(value, list):
        return ("list", tuple(map(tagged, value)))
    if isinstance(value, dict):
        return ("map", frozenset((name, tagged(each)) for name, each in value.items()))
    return (type(value).__name__, value)


@given(json_values, json_values)
def test_only_equal_values_have_the_same_bytes(one: object, other: object) -> None:
    assert (encoded(one) == encoded(other)) == (tagged(one) == tagged(other))


def test_values_are_unique_in_each_topic() -> None:
    values = UniqueValues()
    for topic in ("t", "u"):
        values.take(FieldValue(topic, 0, 0, 0, "a"))
    assert values.judge({}) == ([], [])


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        (FieldValue("t", 0, 1, 0, "a", "x"), (1, 0, 0)),
        (FieldValue("t", 0, 1, 0, "a", "y"), (0, 0, 1)),
        (FieldValue("t", 0, 1, 0, "a", "x", may_repeat=True), (0, 1, 0)),
    ],
)
def test_what_need_not_be_a_duplicate_is_counted(again: FieldValue, expected: tuple[int, int, int]) -> None:
    values = UniqueValues()
    values.take(FieldValue("t", 0, 0, 0, "a", "x"))
    values.take(again)
    duplicates, texts = values.judge({})
    assert (len(duplicates), values.repeated, values.unlike) == expected
    assert len(texts) == expected[1] + expected[2]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["5", "6", "7"], []),
        (["7", "5", "6"], []),
        (["1", "2", "5"], [("gap", 2, "3 to 4")]),
        (["1", "3", "5"], [("gap", 1, "2"), ("gap", 1, "4")]),
        (["1", "3", "5", "4", "2"], []),
        (["task-0-1", "b-7", "task-0-2", "b-9"], [("gap", 1, "b-8")]),
        (["1", "2", "2", "1"], [("duplicate", 2, "2")]),
        (["x", ""], []),
        ([Decimal("1.0"), Decimal("2.0"), Decimal("5.0")], [("gap", 2, "3 to 4")]),
        ([b"1", b"3"], [("gap", 1, "2")]),
    ],
)
def test_numbers_that_are_missing_or_come_twice(values: list[object], expected: Rows) -> None:
    assert found(SequenceValues(), values) == expected


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (Decimal("7.000"), ("", 7)),
        (Decimal("7.5"), None),
        (Decimal("1e1000000"), None),
        (Decimal("12345678901234567890123456789012345678"), ("", 12345678901234567890123456789012345678)),
        ("-3", ("", -3)),
        ("2.0", ("", 2)),
        ("2.5", None),
        ("1e999999999999999999999", None),
        ("shard-3-017", ("shard-3-", 17)),
        ("9" * 5000, None),
        ("x" + "9" * 5000, None),
        (b'{"schema": null, "payload": "a-4"}', ("a-", 4)),
        (b"line 4", ("line ", 4)),
        (True, None),
        ([Decimal(1)], None),
    ],
)
def test_a_number_is_a_whole_one(value: object, number: tuple[str, int] | None) -> None:
    """Each of 1.0, 2.0 and 5.0 was number 0 of a sequence of its own, so that nothing was missing."""
    assert number_in(value) == number


def test_a_hole_is_reported_at_the_record_behind_it() -> None:
    values = SequenceValues()
    assert found(values, ["1", "2", "9", "10"])
    (((tally, _what),), _texts) = values.judge({("t", 0): WHOLE})
    assert (tally.first_offset, tally.at_ms) == (2, 1002)


def test_what_is_no_number_is_counted() -> None:
    values = SequenceValues()
    assert found(values, ["one", Decimal("1.5"), "2"]) == []
    assert values.unreadable == 2


@pytest.mark.parametrize(
    ("gaps", "rows", "last"),
    [(MOST_GAPS + 1, MOST_GAPS + 1, 1), (MOST_GAPS + 2, MOST_GAPS + 1, 2), (3522, MOST_GAPS + 1, 3522 - MOST_GAPS)],
)
def test_so_many_gaps_have_rows(gaps: int, rows: int, last: int) -> None:
    """Each of 3,522 gaps had a line."""
    told = found(SequenceValues(), [str(2 * number) for number in range(gaps + 1)])
    assert (len(told), sum(count for _code, count, _what in told), told[-1][1]) == (rows, gaps, last)


PARTITIONS = 3
Places = Sequence[tuple[int, int]]
"""For each number in turn, its partition and what became of it: 0 is delivered, 1 is lost, 2 is somebody else's."""


@given(
    st.lists(st.tuples(st.integers(0, PARTITIONS - 1), st.sampled_from([0, 0, 0, 1, 2])), max_size=40),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=PARTITIONS, max_size=PARTITIONS),
    st.lists(st.booleans(), min_size=PARTITIONS, max_size=PARTITIONS),
)
def test_a_gap_is_a_number_that_no_partition_can_have(
    written: Places, cuts: Sequence[tuple[int, int]], looked_again: Sequence[bool]
) -> None:
    """Each partition is read without so many records at its begin and end; some are read on to their end afterwards.

    What was cut off is nowhere in what was read, so that only the truth (`written`) says whether a number was lost.
    """
    logs: Mapping[int, list[int]] = {
        partition: [number for number, (of, fate) in enumerate(written) if of == partition and fate == 0]
        for partition in range(PARTITIONS)
    }
    values, seen, took = SequenceValues(), dict[tuple[str, int], PartitionSeen](), set[int]()
    for number, (_partition, fate) in enumerate(written):
        if fate == 2:
            values.take_strange(FieldValue("t", 0, 0, 0, Decimal(number)))
    later = list[FieldValue]()
    for partition, log in logs.items():
        begin, end = cuts[partition][0], max(len(log) - cuts[partition][1], cuts[partition][0])
        for offset, number in enumerate(log[begin:end]):
            values.take(FieldValue("t", partition, offset, 0, Decimal(number)))
            took.add(number)
        if looked_again[partition]:
            later += [FieldValue("t", partition, 99, 0, Decimal(number)) for number in log[end:]]
        seen["t", partition] = PartitionSeen(begin == 0, looked_again[partition] or not log[end:])
    for value in later:
        values.take_later(value)
    gaps, texts = values.judge(seen)
    told = {number for _tally, words in gaps for number in numbers_in(words)}
    inside = set(range(min(took, default=0), max(took, default=-1) + 1))
    lost = {number for number, (_partition, fate) in enumerate(written) if fate == 1}
    assert told <= lost & inside, "a number was called lost that is somewhere"
    if all(each == WHOLE for each in seen.values()):
        assert told == lost & inside, "a number that is lost was not told"
    elif not told >= lost & inside:
        assert texts, "what could not be judged was not said"


def numbers_in(words: str) -> Iterable[int]:
    first, _to, last = words.partition(" to ")
    return range(int(first), int(last or first) + 1)


def test_numbers_of_nobody_knows_whom_are_no_gap_whenever_they_come() -> None:
    values = SequenceValues()
    values.take_strange(FieldValue("t", 0, 0, 0, "2"))
    assert found(values, ["1", "3"]) == []
    assert len(values.judge({("t", 0): WHOLE})[1]) == 1


@pytest.mark.parametrize("seen", [PartitionSeen(is_whole=False), PartitionSeen(from_start=False, to_end=True)])
def test_a_partition_that_was_not_read_may_have_the_number(seen: PartitionSeen) -> None:
    values = SequenceValues()
    found(values, ["1", "3"])
    gaps, texts = values.judge({("t", 0): WHOLE, ("t", 1): seen})
    assert (gaps, len(texts)) == ([], 1)


@given(st.lists(st.integers(-20, 20)))
def test_a_sequence_misses_what_its_numbers_miss(numbers: list[int]) -> None:
    missing = set(range(min(numbers, default=0), max(numbers, default=-1) + 1)) - set(numbers)
    rows = found(SequenceValues(), [str(number) for number in numbers])
    assert sum(count for code, count, _what in rows if code == "gap") == len(missing)
    assert sum(count for code, count, _what in rows if code == "duplicate") == len(numbers) - len(set(numbers))
