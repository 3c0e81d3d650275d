"""Copies of a key on several partitions: after a takeover or a set it has its value in one place only."""

from __future__ import annotations

import pytest

from eosctl.core.offsets.names import GLOBAL, partition_for
from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.core.offsets.views import PlannedWrite, Store, fold_store
from eosctl.core.records import Bounds, Record, TopicRead
from eosctl.offsets.edit.edit import plan_set
from eosctl.offsets.switch.takeover import plan_takeover

KEY, PARTITIONS = b'["c",{"f":"x"}]', 5
HOME = partition_for(KEY, PARTITIONS)
AWAY, FAR = sorted({*range(PARTITIONS)} - {HOME})[:2]
Copy = tuple[int, bytes | None]


def store(topic: str, *copies: Copy) -> Store:
    """A topic with copies of KEY, (partition, value), the oldest first."""
    records = [Record(topic, partition, at, at, KEY, value) for at, (partition, value) in enumerate(copies)]
    bounds = tuple(Bounds(number, 0, len(copies), len(copies)) for number in range(PARTITIONS))
    return fold_store(TopicRead(topic, bounds, tuple(sorted(records, key=lambda r: r.partition)), len(records)))


def after(target: Store, writes: list[PlannedWrite]) -> dict[int, bytes | None]:
    """The newest value of KEY on each partition once the plan is done."""
    there = target.several.get(KEY) or ({target.records[KEY].partition: target.records[KEY]} if target.records else {})
    values = {partition: record.value for partition, record in there.items()}
    return values | {write.partition: write.after for write in writes if write.sends()}


CASES: list[tuple[bytes | None, list[Copy], dict[int, bytes | None]]] = [
    (b"9", [], {HOME: b"9"}),
    (b"9", [(HOME, b"1")], {HOME: b"9"}),
    (b"9", [(AWAY, b"1")], {HOME: b"9", AWAY: None}),
    (b"9", [(AWAY, b"1"), (HOME, b"9")], {HOME: b"9", AWAY: None}),
    (b"9", [(HOME, b"1"), (AWAY, b"9")], {HOME: b"9", AWAY: None}),
    (b"9", [(AWAY, b"9")], {HOME: b"9", AWAY: None}),
    (b"9", [(AWAY, b"1"), (FAR, b"2"), (HOME, b"3")], {HOME: b"9", AWAY: None, FAR: None}),
    (b"9", [(AWAY, None), (HOME, b"9")], {HOME: b"9", AWAY: None}),
]


@pytest.mark.parametrize(("value", "copies", "expected"), CASES)
def test_a_takeover_leaves_one_copy(value: bytes, copies: list[Copy], expected: dict[int, bytes | None]) -> None:
    """A copy on another partition stayed, and a worker that restarted might read it last."""
    target = store("own", *copies)
    writes = plan_takeover(store(GLOBAL, (HOME, value)), target, "c")
    assert after(target, writes) == expected
    assert {write.reason for write in writes if write.partition != HOME} <= {"stale_copy"}


@pytest.mark.parametrize(("value", "copies", "expected"), CASES)
def test_set_leaves_one_copy(value: bytes, copies: list[Copy], expected: dict[int, bytes | None]) -> None:
    key, there = decode_key(KEY), store(GLOBAL, *copies)
    assert isinstance(key, OffsetKey)
    assert after(there, plan_set({GLOBAL: there}, key, value)) == (expected if copies else {HOME: b"9"})


def test_what_was_deleted_where_it_is_in_use_is_deleted_everywhere() -> None:
    target = store("own", (AWAY, b"1"), (HOME, b"2"))
    assert after(target, plan_takeover(store(GLOBAL, (HOME, None)), target, "c")) == {HOME: None, AWAY: None}


def test_an_older_copy_of_what_nobody_has_any_more_does_not_come_back() -> None:
    target = store("own", (AWAY, b"1"), (HOME, None))
    assert after(target, plan_takeover(store(GLOBAL), target, "c")) == {HOME: None, AWAY: None}


def test_what_only_the_target_has_is_kept_in_one_place() -> None:
    target = store("own", (AWAY, b"1"), (FAR, b"2"))
    writes = plan_takeover(store(GLOBAL), target, "c")
    assert after(target, writes) == {HOME: b"2", AWAY: None, FAR: None}
    assert [write.reason for write in writes] == ["moved_home", "stale_copy", "stale_copy"]
