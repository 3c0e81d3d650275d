"""Which records a set, a reset and a takeover need: tables over small stores."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eosctl.core.offsets.names import DEDICATED, GLOBAL
from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.core.offsets.views import KeyAction, PlannedWrite, Store, fold_store
from eosctl.core.records import Bounds, Record, TopicRead
from eosctl.offsets.edit.edit import plan_reset, plan_set, spellings
from eosctl.offsets.switch.takeover import plan_takeover

A, A_SPACED = b'["c",{"f":"a","g":1}]', b'["c",{"g":1, "f":"a"}]'
B = b'["c",{"f":"b","g":1}]'
Cells = list[tuple[bytes, bytes | None]]


def key(raw: bytes) -> OffsetKey:
    decoded = decode_key(raw)
    assert isinstance(decoded, OffsetKey)
    return decoded


def store(topic: str, cells: Cells, *, partitions: int = 3, at: int | None = None) -> Store:
    """Records in the order of time, each where Connect's producer puts it unless `at` says otherwise."""
    empty = Store(topic, partitions)
    records = [
        Record(topic, empty.home(raw) if at is None else at, offset, 1000 + offset, raw, value)
        for offset, (raw, value) in enumerate(cells)
    ]
    bounds = tuple(Bounds(partition, 0, 99, 99) for partition in range(partitions))
    return fold_store(TopicRead(topic, bounds, tuple(records), len(records)))


def sent(writes: list[PlannedWrite]) -> list[tuple[str, bytes, bytes | None]]:
    return [(write.topic, write.key.raw, write.after) for write in writes if write.sends()]


@pytest.mark.parametrize(
    ("cells", "written"),
    [
        pytest.param([], [A], id="no key known: Connect's own spelling"),
        pytest.param([(A_SPACED, b"1")], [A_SPACED], id="the connector's spelling is kept"),
        pytest.param([(A, b"1"), (A_SPACED, b"2")], [A_SPACED, A], id="two spellings with a value: both"),
        pytest.param([(A, None), (A_SPACED, b"2")], [A_SPACED], id="a deleted spelling is not woken up"),
        pytest.param([(A_SPACED, None), (A, None)], [A], id="only deleted ones: the last"),
        pytest.param([(A, None), (A_SPACED, None)], [A_SPACED], id="only deleted ones: the last, by time not by bytes"),
    ],
)
def test_the_keys_that_a_set_writes(cells: Cells, written: list[bytes]) -> None:
    writes = plan_set({GLOBAL: store("g", cells)}, key(b'["c",{ "g": 1,"f":"a" }]'), b"9")
    assert sorted(sent(writes)) == sorted(("g", raw, b"9") for raw in written)


def test_a_set_goes_to_the_dedicated_store_first_and_to_the_global_one_too() -> None:
    stores = {GLOBAL: store("g", [(A_SPACED, b"1")]), DEDICATED: store("d", [])}
    assert sent(plan_set(stores, key(A), b"9")) == [("d", A_SPACED, b"9"), ("g", A_SPACED, b"9")]


def test_the_spelling_deleted_last_is_looked_for_in_both_stores() -> None:
    stores = {GLOBAL: store("g", [(A, None)]), DEDICATED: store("d", [(B, b"1"), (A_SPACED, None), (B, b"2")])}
    assert sent(plan_set(stores, key(A), b"9")) == [("d", A_SPACED, b"9"), ("g", A_SPACED, b"9")]


def test_a_set_says_what_was_there() -> None:
    home = Store("g", 3).home(A)
    there = store("g", [(A, b"1")])
    [write] = plan_set({GLOBAL: there}, key(A), b"9")
    assert write == PlannedWrite(
        KeyAction.WRITE, "set", key(A), "g", home, before=there.records[A], after=b"9", replaces=there.records[A]
    )
    elsewhere = store("g", [(A, b"9")], at=(home + 1) % 3)
    [moved, stale] = plan_set({GLOBAL: elsewhere}, key(A), b"9")
    assert (stale.reason, stale.replaces, stale.after) == ("stale_copy", elsewhere.records[A], None)
    assert moved == replace(write, before=elsewhere.records[A], replaces=None), "the same value in the wrong place"


def test_a_set_to_what_is_there_sends_nothing() -> None:
    there = store("g", [(A, b"9")])
    [write] = plan_set({GLOBAL: there}, key(A), b"9")
    assert (write.sends(), write.reason, write.before) == (False, "equal", there.records[A])


def test_a_reset_deletes_every_spelling_in_the_global_store_first() -> None:
    stores = {DEDICATED: store("d", [(A, b"1")]), GLOBAL: store("g", [(A, b"1"), (A_SPACED, b"2"), (B, b"3")])}
    keys = spellings(stores.values(), key(A))
    assert sent(plan_reset(stores, keys)) == [("g", A, None), ("g", A_SPACED, None), ("d", A, None)]


def test_a_reset_reaches_every_partition_that_has_a_value() -> None:
    """A tombstone on the right partition leaves a value on the wrong one, which a worker may read last."""
    home = Store("g", 3).home(A)
    wrong = store("g", [(A, b"1")], at=(home + 1) % 3)
    record = wrong.records[A]
    assert plan_reset({GLOBAL: wrong}, [key(A)]) == [
        PlannedWrite(KeyAction.DELETE, "reset", key(A), "g", (home + 1) % 3, before=record, after=None, replaces=record)
    ]


@pytest.mark.parametrize("nothing", [None, b"null"])
def test_a_reset_of_what_is_deleted_sends_nothing(nothing: bytes | None) -> None:
    there = store("g", [(A, nothing)])
    [write] = plan_reset({GLOBAL: there}, [key(A)])
    assert (write.sends(), write.reason) == (False, "deleted_already")
    assert (write.before, write.replaces, write.after) == (there.records[A], there.records[A], nothing)


@pytest.mark.parametrize(
    ("in_use", "target", "fallback", "reason", "after"),
    [
        ([(A, b"1")], [], None, "missing", b"1"),
        ([(A, b"1")], [(A, b"1")], None, "equal", b"1"),
        ([(A, b"1")], [(A, b"9")], None, "in_use_taken", b"1"),
        ([(A, b"1")], [(A, None)], None, "missing", b"1"),
        ([(A, b"1")], [], [(A, b"7")], "missing", b"1"),
        ([(A, None)], [(A, b"9")], None, "deleted_in_use", None),
        ([], [(A, b"9")], None, "only_in_target", b"9"),
        ([], [(A, b"9")], [(A, b"7")], "only_in_target", b"9"),
        ([], [], [(A, b"7")], "from_global", b"7"),
        ([(A, None)], [], [(A, b"7")], "no_offset", None),
        ([(A, None)], [(A, b"9")], [(A, b"7")], "deleted_in_use", None),
        ([(A, None)], [], None, "no_offset", None),
    ],
)
def test_what_a_connector_gets_in_its_next_store(
    in_use: Cells, target: Cells, fallback: Cells | None, reason: str, after: bytes | None
) -> None:
    third = store("g", fallback) if fallback is not None else None
    following = store("next", target)
    [write] = plan_takeover(store("now", in_use), following, "c", fallback=third)
    assert (write.reason, write.after, write.topic) == (reason, after, "next")
    assert write.sends() == (reason in ("missing", "in_use_taken", "deleted_in_use", "from_global"))
    assert write.conflict == (reason in ("in_use_taken", "deleted_in_use")), "whether something else was there"
    assert write.before == write.replaces == following.records.get(A)


def test_what_was_reset_in_a_dedicated_topic_is_deleted_from_the_global_one_that_follows() -> None:
    """The old value there was kept as one that only the target has, and the reset was undone."""
    following = store("g", [(A, b"7")])
    [write] = plan_takeover(store("now", [(A, None)]), following, "c", fallback=following)
    assert (write.reason, write.after, write.sends()) == ("deleted_in_use", None, True)
    [never_ran] = plan_takeover(store("now", [(A, None)]), following, "c", fallback=following, deletions=False)
    assert (never_ran.reason, never_ran.after) == ("only_in_target", b"7")
    [nowhere] = plan_takeover(store("now", [(A, None)]), store("next", []), "c", fallback=None, deletions=False)
    assert (nowhere.reason, nowhere.after, nowhere.conflict) == ("no_offset", None, False)


def test_what_a_connector_gets_lies_where_its_tasks_write() -> None:
    home = Store("next", 3).home(A)
    elsewhere = store("next", [(A, b"9")], at=(home + 1) % 3)
    [write, stale] = plan_takeover(store("now", [(A, b"1")]), elsewhere, "c")
    assert (stale.partition, stale.after) == ((home + 1) % 3, None)
    assert (write.partition, write.before, write.replaces) == (home, elsewhere.records[A], None)
