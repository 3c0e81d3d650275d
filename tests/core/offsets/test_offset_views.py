"""Views across stores and the merge's rule, as tables."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.views import (
    DiffStatus,
    Flag,
    KeyAction,
    PlannedWrite,
    Policy,
    Prefer,
    Store,
    diff_status,
    fold_store,
    offset_views,
)
from eosctl.core.records import Bounds, Record, TopicRead
from tests.core.offsets.merging import decide_by_columns, plan_merge
from tests.fakes.decision import Cell, Decision, decide

PARTITIONS = 5


def key_of(name: str, connector: str = "reddit") -> bytes:
    return f'["{connector}",{{"subreddit":"{name}"}}]'.encode()


def record(
    key: bytes | None, value: bytes | None, *, offset: int = 0, at: int = 1, partition: int | None = None
) -> Record:
    home = partition_for(key or b"", PARTITIONS) if partition is None else partition
    return Record("t", home, offset, at, key, value)


def store(*records: Record, behind: Sequence[Record] = ()) -> Store:
    blocked = {each.partition for each in behind}
    bounds = tuple(Bounds(p, 0, 5, 9 if p in blocked else 5) for p in range(PARTITIONS))
    in_order = tuple(sorted(records, key=lambda each: (each.partition, each.offset)))
    return fold_store(TopicRead("t", bounds, in_order, len(in_order)), behind)


APACHE, CATS, CHEESE = key_of("apachekafka"), key_of("CatsStandingUp"), key_of("grilledcheese")
GLOBAL_STORE = store(record(APACHE, b'{"timestamp":"4761"}'), record(CATS, b'{"timestamp":"2112"}'))
DEDICATED_STORE = store(record(CATS, b'{"timestamp":"2169"}'), record(CHEESE, b'{"timestamp":"489"}'))


def test_the_example_of_kip_618() -> None:
    """KIP-618 promises the middle column; Kafka gives the last one, until a merge makes them equal."""
    views = offset_views({"global": GLOBAL_STORE, "dedicated": DEDICATED_STORE}, "reddit", dedicated_in_use=True)
    seen = {v.key.raw: (v.documented and v.documented.value, v.runtime and v.runtime.value) for v in views}
    assert seen == {
        APACHE: (b'{"timestamp":"4761"}', None),
        CATS: (b'{"timestamp":"2169"}', b'{"timestamp":"2169"}'),
        CHEESE: (b'{"timestamp":"489"}', b'{"timestamp":"489"}'),
    }
    planned = plan_merge(GLOBAL_STORE, DEDICATED_STORE, "reddit", into="dedicated")
    assert [(p.key.raw, p.action, p.reason, p.after) for p in planned] == [
        (CATS, KeyAction.KEEP, "conflict_kept", b'{"timestamp":"2169"}'),
        (APACHE, KeyAction.WRITE, "missing", b'{"timestamp":"4761"}'),
        (CHEESE, KeyAction.KEEP, "only_in_target", b'{"timestamp":"489"}'),
    ]


def test_without_a_dedicated_store_the_global_one_counts() -> None:
    views = offset_views({"global": GLOBAL_STORE}, "reddit", dedicated_in_use=False)
    assert all(view.runtime is view.documented is view.cells["global"] for view in views)


LIVE, NEWER, GONE, NULL = Cell(b'{"n":1}', 1), Cell(b'{"n":2}', 2), Cell(None, 3), Cell(b"null", 3)
KEEP, WRITE, DELETE = KeyAction.KEEP, KeyAction.WRITE, KeyAction.DELETE


@pytest.mark.parametrize(
    ("source", "target", "policy", "expected"),
    [
        (None, LIVE, Policy.KEEP_TARGET, Decision(KEEP, "only_in_target")),
        (LIVE, None, Policy.KEEP_TARGET, Decision(WRITE, "missing")),
        (GONE, None, Policy.TAKE_SOURCE, Decision(KEEP, "nothing_to_delete")),
        (NULL, None, Policy.TAKE_SOURCE, Decision(KEEP, "nothing_to_delete")),
        (NULL, GONE, Policy.FAIL, Decision(KEEP, "equal")),
        (Cell(b"", 1), NULL, Policy.FAIL, Decision(KEEP, "equal")),
        (LIVE, LIVE, Policy.TAKE_SOURCE, Decision(KEEP, "equal")),
        (LIVE, NEWER, Policy.KEEP_TARGET, Decision(KEEP, "conflict_kept", conflict=True)),
        (LIVE, NEWER, Policy.TAKE_SOURCE, Decision(WRITE, "source_taken", conflict=True)),
        (LIVE, NEWER, Policy.NEWEST, Decision(KEEP, "conflict_kept", conflict=True)),
        (NEWER, LIVE, Policy.NEWEST, Decision(WRITE, "source_taken", conflict=True)),
        (LIVE, GONE, Policy.KEEP_TARGET, Decision(KEEP, "conflict_kept", conflict=True)),
        (LIVE, GONE, Policy.TAKE_SOURCE, Decision(WRITE, "source_taken", conflict=True)),
        (LIVE, NULL, Policy.KEEP_TARGET, Decision(KEEP, "conflict_kept", conflict=True)),
        (LIVE, GONE, Policy.NEWEST, Decision(KEEP, "conflict_kept", conflict=True)),
        (GONE, LIVE, Policy.KEEP_TARGET, Decision(KEEP, "conflict_kept", conflict=True)),
        (GONE, LIVE, Policy.TAKE_SOURCE, Decision(DELETE, "source_taken", conflict=True)),
        (GONE, LIVE, Policy.NEWEST, Decision(DELETE, "source_taken", conflict=True)),
        (NULL, LIVE, Policy.NEWEST, Decision(DELETE, "source_taken", conflict=True)),
    ],
)
def test_decide(source: Cell | None, target: Cell | None, policy: Policy, expected: Decision) -> None:
    """`merge` used to write over a deletion where `migrate` kept it, and to keep what `migrate` deleted."""
    for rule in (decide, decide_by_columns):
        assert rule(source, target, policy) == expected


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (LIVE, GONE, Decision(WRITE, "deleted_in_target", conflict=True)),
        (LIVE, NULL, Decision(WRITE, "deleted_in_target", conflict=True)),
        (GONE, LIVE, Decision(KEEP, "deleted_in_source", conflict=True)),
        (GONE, NULL, Decision(KEEP, "equal")),
        (GONE, None, Decision(KEEP, "nothing_to_delete")),
    ],
)
@pytest.mark.parametrize("policy", [Policy.KEEP_TARGET, Policy.TAKE_SOURCE])
def test_with_the_documented_fallback_a_value_stands(
    source: Cell, target: Cell | None, expected: Decision, policy: Policy
) -> None:
    for rule in (decide, decide_by_columns):
        assert rule(source, target, policy, fallback=True) == expected


@pytest.mark.parametrize("into", ["dedicated", "global"])
@pytest.mark.parametrize("prefer", [Prefer.DEDICATED, Prefer.GLOBAL, Prefer.NEWEST])
def test_a_merge_of_a_connectors_stores_makes_what_runs_what_is_documented(into: str, prefer: Prefer) -> None:
    """A deletion in the dedicated topic used to be kept, or to delete the global value that KIP-618 falls back on."""
    gone, live = store(record(CATS, None, at=9)), store(record(CATS, b"7", at=1))
    for source, target in ((gone, live), (live, gone)):
        (planned,) = plan_merge(source, target, "reddit", into=into, prefer=prefer, fallback=True)
        assert planned.after == (None if prefer is Prefer.NEWEST else b"7")


@pytest.mark.parametrize("into", ["dedicated", "global"])
@pytest.mark.parametrize("prefer", [Prefer.DEDICATED, Prefer.GLOBAL])
def test_after_a_merge_the_target_holds_the_preferred_view(into: str, prefer: Prefer) -> None:
    stores = {"global": GLOBAL_STORE, "dedicated": DEDICATED_STORE}
    target, source = stores[into], stores["global" if into == "dedicated" else "dedicated"]
    planned = plan_merge(source, target, "reddit", into=into, prefer=prefer)
    first, second = stores[prefer.value], stores["global" if prefer is Prefer.DEDICATED else "dedicated"]
    wanted = {raw: r.value for raw, r in {**second.records, **first.records}.items()}
    assert {p.key.raw: p.after for p in planned} == wanted


@pytest.mark.parametrize(
    ("left", "right", "status"),
    [
        (b"1", b"1", DiffStatus.SAME),
        (b"1", b"2", DiffStatus.DIFFERS),
        (b"1", "absent", DiffStatus.ONLY_LEFT),
        ("absent", b"1", DiffStatus.ONLY_RIGHT),
        (None, b"1", DiffStatus.DELETED_LEFT),
        (b"1", None, DiffStatus.DELETED_RIGHT),
        (None, None, DiffStatus.SAME),
        (None, "absent", DiffStatus.SAME),
        (b"null", None, DiffStatus.SAME),
    ],
)
def test_diff_status(left: bytes | str | None, right: bytes | str | None, status: DiffStatus) -> None:
    sides = [None if isinstance(side, str) else record(APACHE, side) for side in (left, right)]
    assert diff_status(*sides) is status


def flags(there: Store) -> dict[bytes, tuple[Flag, ...]]:
    return {view.key.raw: view.flags for view in offset_views({"global": there}, "reddit", dedicated_in_use=True)}


def test_flags() -> None:
    spelled = b'["reddit", {"subreddit":"apachekafka"}]'
    wrong = (partition_for(CATS, PARTITIONS) + 1) % PARTITIONS
    assert flags(store(record(APACHE, b"1"), record(spelled, b"1"))) == {
        APACHE: (Flag.DUPLICATE_SPELLING,), spelled: (Flag.DUPLICATE_SPELLING,),
    }  # fmt: skip
    assert flags(store(record(CATS, None, partition=wrong))) == {CATS: (Flag.DELETED, Flag.WRONG_PARTITION)}
    assert flags(store(record(APACHE, b"1"), behind=[record(APACHE, b"2")])) == {APACHE: (Flag.HIDDEN,)}
    assert flags(store(record(b'["reddit",null]', b"1"))) == {b'["reddit",null]': (Flag.NULL_PARTITION,)}
    both = store(record(CATS, b"1", at=5), record(CATS, b"2", at=1, partition=wrong))
    assert flags(both) == {CATS: (Flag.SEVERAL_PARTITIONS,)}


def test_each_flag_is_told_beside_the_others() -> None:
    wrong = (partition_for(CATS, PARTITIONS) + 1) % PARTITIONS
    there = store(record(CATS, b"1", at=1), record(CATS, None, at=5, partition=wrong), behind=[record(CATS, b"2")])
    assert flags(there) == {CATS: (Flag.DELETED, Flag.SEVERAL_PARTITIONS, Flag.WRONG_PARTITION, Flag.HIDDEN)}
    spelled = b'["reddit", {"subreddit":"apachekafka"}]'
    mixed = flags(store(record(APACHE, b"1"), record(spelled, b"1"), record(CATS, b"1")))
    assert mixed[CATS] == (), "the spelling of another key is none of its"
    of_nobody = offset_views({"global": GLOBAL_STORE}, "reddit", dedicated_in_use=False, gone=True)
    assert {view.flags for view in of_nobody} == {(Flag.CONNECTOR_GONE,)}


def test_two_records_of_one_partition_are_no_key_of_several() -> None:
    there = store(record(CATS, b"1", offset=3), record(CATS, b"2", offset=4))
    assert (there.several, there.records[CATS].value) == ({}, b"2")


@pytest.mark.parametrize("place", [0, 1])
def test_a_store_knows_what_is_blocked_and_where_its_reader_puts_a_key(place: int) -> None:
    bounds = (Bounds(0, 0, 5, 5), Bounds(1, 0, 5, 9))
    there = fold_store(TopicRead("t", bounds, (), 0, partition_for=lambda _key, _count: place))
    assert (there.blocked, there.home(CATS)) == (frozenset({1}), place)


def test_what_views_tell_without_being_made() -> None:
    stores = {"global": GLOBAL_STORE, "dedicated": DEDICATED_STORE}
    views = offset_views(stores, "reddit", dedicated_in_use=True)
    assert list(views.effective()) == [(view.documented, view.runtime) for view in views]
    assert (views.unseen_at_runtime(), views.is_live(), views.connector) == (1, True, "reddit")
    deleted = {"global": store(record(APACHE, None))}
    assert not offset_views(deleted, "reddit", dedicated_in_use=False).is_live()
    cats = views.of({key.identity for key in views.keys if key.raw == CATS})
    assert [key.raw for key in cats.keys] == [CATS]
    only = offset_views(stores, "reddit", dedicated_in_use=True, only=["dedicated", "nosuch"])
    assert {view.key.raw for view in only} == {CATS, CHEESE}


HOME = partition_for(CATS, PARTITIONS)


def test_what_an_open_transaction_hides_is_told_by_key_and_connector() -> None:
    """Any open transaction on a key's partition counted as hiding it; a key that nothing showed was not looked for."""
    odd, others, nameless = b"odd", b'["other",{}]', Record("t", 0, 6, 1, None, b"1")
    behind = [record(CATS, b"1", offset=6), record(CATS, b"2", offset=7, partition=(HOME + 1) % PARTITIONS)]
    there = store(record(APACHE, b"1"), behind=[*behind, record(others, b"1"), record(odd, b"1"), nameless])
    assert [key for key in (CATS, APACHE, others, odd) if there.hides(key)] == [CATS, others, odd]
    assert (there.hides_of("reddit"), there.hides_of("other"), there.hides_of("nobody")) == ([CATS], [others], [])
    assert {place: found.value for place, found in there.hidden[CATS].items()} == {
        HOME: b"1", (HOME + 1) % PARTITIONS: b"2",
    }  # fmt: skip
    assert there.names() == {"reddit", "other"}


@pytest.mark.parametrize("partition", range(PARTITIONS))
def test_a_key_is_flagged_as_hidden_wherever_it_is(partition: int) -> None:
    assert flags(store(record(CATS, b"1"), behind=[record(CATS, b"2", partition=partition)])) == {CATS: (Flag.HIDDEN,)}


def test_a_key_that_is_only_hidden_has_a_view_with_nothing_in_it() -> None:
    stores = {"global": store(behind=[record(CATS, b"1")])}
    (view,) = offset_views(stores, "reddit", dedicated_in_use=False)
    assert (view.key.raw, view.cells, view.documented, view.runtime) == (CATS, {"global": None}, None, None)


def test_a_merge_of_two_connectors_stores_takes_deletions_as_facts() -> None:
    """The fallback is for the two stores of one connector, and only where it is asked for."""
    gone, live = store(record(CATS, None)), store(record(CATS, b"7"))
    (planned,) = plan_merge(gone, live, "reddit", into="dedicated", prefer=Prefer.GLOBAL)
    assert (planned.action, planned.after) == (DELETE, None)


def test_a_merge_writes_over_the_targets_record_where_that_lies() -> None:
    strayed = store(record(CATS, b"1", partition=(HOME + 1) % PARTITIONS))
    (planned,) = plan_merge(store(record(CATS, b"2")), strayed, "reddit", into="global")
    there = strayed.records[CATS]
    assert planned == PlannedWrite(
        WRITE, "source_taken", planned.key, "t", there.partition,
        before=there, after=b"2", replaces=there, conflict=True,
    )  # fmt: skip


def test_a_merge_writes_what_the_target_lacks_at_home() -> None:
    (planned,) = plan_merge(store(record(CATS, b"2")), store(), "reddit", into="global")
    assert planned == PlannedWrite(WRITE, "missing", planned.key, "t", HOME, before=None, after=b"2")


def test_across_partitions_the_newest_of_each_partition_competes() -> None:
    """A record that its own partition has superseded must not win by a later timestamp."""
    there = store(
        record(CATS, b"old", offset=0, at=300, partition=1),
        record(CATS, b"superseding", offset=1, at=50, partition=1),
        record(CATS, b"newest", offset=0, at=100, partition=0),
    )
    assert there.records[CATS].value == b"newest"
    assert list(there.several) == [CATS]
    assert [r and r.value for r in (there.at(CATS, 0), there.at(CATS, 1), there.at(CATS, 2))] == [
        b"newest", b"superseding", None,
    ]  # fmt: skip


def test_ignored_keys_are_kept_with_their_reason() -> None:
    there = store(record(None, b"1"), record(b"junk", b"2"), record(APACHE, b"3"))
    assert [(each.record.key, each.fault.value) for each in there.ignored] == [
        (None, "null_key"),
        (b"junk", "not_json"),
    ]
    assert list(there.connectors) == ["reddit"]
    assert there.records[b"junk"].value == b"2", "a backup of it can be compared and restored"


def test_an_ignored_key_on_two_partitions_is_told_twice() -> None:
    records = (Record("t", 0, 0, 1, b"junk", b"1"), Record("t", 1, 0, 2, b"junk", b"2"))
    there = fold_store(TopicRead("t", (Bounds(0, 0, 1, 1), Bounds(1, 0, 1, 1)), records, 2))
    assert [each.record.partition for each in there.ignored] == [0, 1]
    assert list(there.several) == [b"junk"]
