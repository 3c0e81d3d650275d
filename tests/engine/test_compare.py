"""What is there now is compared with what was decided, key by key."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.offsets.records import decode_key, is_nothing
from eosctl.core.offsets.views import KeyAction, PlannedWrite
from eosctl.core.records import Record
from eosctl.engine.columns import DECISIONS
from eosctl.engine.compare import RecordsSince, check_writes, compare, expected_in_target
from eosctl.engine.planned import PlannedWrites
from eosctl.engine.reading.newest import records_table

VALUES = st.sampled_from([None, b"", b"null", b"1", b"2"])
COLUMNS = ("connector", "topic", "key", "value", "before", "before_nothing", "action")
SCHEMA = pa.schema([DECISIONS.field(name) for name in COLUMNS])
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


def had(row: dict[str, Any]) -> bytes | str:
    return ABSENT if is_nothing(row["before"]) else row["before"]


@given(
    st.lists(st.tuples(st.sampled_from(KeyAction), VALUES, VALUES | st.just(ABSENT), VALUES | st.just(ABSENT))),
    st.integers(0, 8),
    st.booleans(),
)
def test_each_key_is_compared_with_what_was_decided_for_it(
    cases: list[tuple[KeyAction, bytes | None, bytes | str | None, bytes | str | None]],
    limit: int,
    since: bool,
) -> None:
    """`since` the decisions a key without a record has what it had: a delete that was not written passed as done."""
    rows = [decided(number, *case[:3]) for number, case in enumerate(cases)]
    there = {row["key"]: case[3] for row, case in zip(rows, cases, strict=True) if case[3] != ABSENT}
    records = [Record("t@p", 3, number, 1, key, value) for number, (key, value) in enumerate(there.items())]  # type: ignore[arg-type]
    decisions = pa.Table.from_pylist(rows, schema=SCHEMA)
    now = records_table("t@p", records, partitions=5)
    found = compare(expected_in_target(decisions), now, side="target", limit=limit, since=since)
    expected = [
        ("target", how, "a", "t@p", None if case[3] == ABSENT else 3, row["key"], wanted(row))
        for row, case in zip(rows, cases, strict=True)
        if (how := status(wanted(row), had(row) if since and case[3] == ABSENT else case[3])) is not None
    ]
    assert (found.compared, found.differing) == (len(rows), len(expected))
    assert [
        (one.side, one.status, one.connector, one.topic, one.partition, one.key, one.expected)
        for one in found.mismatches
    ] == expected[:limit]


def test_a_record_without_its_headers_is_not_what_was_sent() -> None:
    """Nothing that reads back looked at them: one that had lost them was `written`."""
    key, headers = b'["a",{"f":"x"}]', (("origin", b"\xff"), ("origin", None))
    write = PlannedWrite(KeyAction.WRITE, "restored", decode_key(key), "t", 0, None, b"1", headers=headers)
    [sends] = PlannedWrites.of([write]).tables()
    for found, is_there in ((headers, True), ((), False), (headers[:1], False)):
        records = records_table("t", [Record("t", 0, 7, 1, key, b"1", found)], partitions=1)
        assert check_writes(sends, RecordsSince(["t"], records, [], frozenset()), accepted=False).holds.to_pylist() == [
            is_there
        ]
