"""A part that is read back is compared with its decisions key by key, or says nothing where a key may be elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.offsets.decision import KeyAction
from eosctl.core.offsets.records import is_nothing
from eosctl.migrate.spark.records.comparisons import compare, compare_found, in_place, newest_of
from eosctl.migrate.spark.records.kafka_io import Newest
from eosctl.migrate.spark.records.offset_ranges import OffsetRange
from eosctl.migrate.spark.records.parts import ARROW_DECISIONS

VALUES = st.sampled_from([None, b"", b"null", b"1", b"2"])
COLUMNS = ("connector", "topic", "key", "value", "before", "before_nothing", "action")
SCHEMA = pa.schema([ARROW_DECISIONS.field(name) for name in COLUMNS])
ABSENT = "absent"


def decided(number: int, action: KeyAction, value: bytes | None, before: bytes | str | None) -> dict[str, Any]:
    """A decision, as the rule makes them: what is sent has no spelling of nothing but null."""
    there = None if before == ABSENT else before
    return {
        "connector": "a",
        "topic": "t@p",
        "key": b"k%02d" % number,
        "value": None if is_nothing(value) else value,
        "before": there,
        "before_nothing": None if before == ABSENT else is_nothing(before),  # type: ignore[arg-type]
        "action": action.value,
    }


def wanted(row: dict[str, Any]) -> bytes | None:
    if row["action"] in ("write", "delete"):
        return row["value"]  # type: ignore[no-any-return]
    return None if is_nothing(row["before"]) else row["before"]


def status(expected: bytes | None, actual: bytes | str | None) -> str | None:
    meaning = None if actual == ABSENT or is_nothing(actual) else actual  # type: ignore[arg-type]
    if meaning == expected:
        return None
    if actual == ABSENT:
        return "missing"
    if meaning is None:
        return "deleted"
    return "unexpected" if expected is None else "differs"


@given(
    st.lists(st.tuples(st.sampled_from(KeyAction), VALUES, VALUES | st.just(ABSENT), VALUES | st.just(ABSENT))),
    st.integers(1, 5),
    st.integers(0, 8),
)
def test_each_key_is_compared_with_what_was_decided_for_it(
    cases: list[tuple[KeyAction, bytes | None, bytes | str | None, bytes | str | None]], rows_at_once: int, limit: int
) -> None:
    """Where a key was deleted meanwhile, the comparison failed: a message without a value is false."""
    rows = [decided(number, *case[:3]) for number, case in enumerate(cases)]
    there = {row["key"]: case[3] for row, case in zip(rows, cases, strict=True) if case[3] != ABSENT}
    messages = {("t@p", key): message(3, key, value) for key, value in there.items()}
    batches = pa.Table.from_pylist(rows, schema=SCHEMA).to_batches(max_chunksize=rows_at_once)
    found = compare(batches, messages, limit=limit)
    expected = [
        ("target", how, "a", "t@p", None if how == "missing" else 3, row["key"], wanted(row))
        for row, case in zip(rows, cases, strict=True)
        if (how := status(wanted(row), case[3])) is not None
    ]
    assert (found.compared, found.differing) == (len(rows), len(expected))
    assert [
        (one.side, one.status, one.connector, one.topic, one.partition, one.key, one.expected)
        for one in found.mismatches
    ] == expected[:limit]


def message(partition: int, key: bytes | None, value: Any) -> Message:
    return Message(topic="t", partition=partition, key=key, value=value)


def newest(*places: tuple[int, bytes | None]) -> Newest:
    found: Newest = {("t", 0): {}, ("t", 1): {}}
    for partition, key in places:
        found["t", partition][key] = [message(partition, key, b"1"), 1]
    return found


def test_keys_are_in_place_where_the_producer_of_connect_puts_them() -> None:
    assert in_place(newest((0, b"a"), (1, b"d")), {"t": 2})
    assert not in_place(newest((1, b"a")), {"t": 2})
    assert not in_place(newest((0, None)), {"t": 2})


def test_messages_are_under_the_names_that_the_plan_has_for_topics() -> None:
    assert list(newest_of(newest((0, b"a"), (1, b"d")), {"t": "t@p"})) == [("t@p", b"a"), ("t@p", b"d")]


@pytest.mark.parametrize("found", [[newest((0, b"a")), newest((0, b"a"))], [newest((1, b"a"))]])
def test_a_part_whose_keys_may_be_elsewhere_says_nothing(found: list[Newest]) -> None:
    """Its decisions are not even looked at: there are none here."""
    ranges = [OffsetRange("t", partition, 0, 1, 2, "t@p") for partition in (0, 1)]
    assert compare_found(found, ranges, Path("nowhere"), limit=7) is None
