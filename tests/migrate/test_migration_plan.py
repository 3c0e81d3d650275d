"""What a migration's plan says of itself: where its topics are, what it counts, and which partitions go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from eosctl.core.offsets.migration import (
    ConnectorRoute,
    MigrationPlan,
    PlannedTopic,
    Tally,
    in_bins,
    in_runs,
    parts_of,
    topic_of,
    with_sample,
    writers_of,
)
from eosctl.core.offsets.views import Policy
from eosctl.core.records import Bounds
from eosctl.errors import EosctlError


def counted() -> Tally:
    return Tally.of(
        [("a", "write", 2, 3, 1), ("b", "keep", 4, 4, 0), ("a", "write", 1, 1, 0), ("a", "delete", 5, 6, 5),
         ("b", "conflict", 1, 1, 1)],
        records=40, scattered=7, routed={"a", "b"},
        keys=[("s", "a", 8), ("s", None, 2), ("own", "b", 4), ("own", "a", 1), ("s", "c", 1), ("s", "a", 2),
              ("own", "a", 1), ("s", "a", 1)],
        sources=[PlannedTopic("s", "id", 1, 1), PlannedTopic("own", "id", 1, 1, connectors=("b",))],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "topic", "profile", "file"),
    [
        ("offsets", "offsets", None, None),
        ("offsets@dr", "offsets", "dr", None),
        ("offsets@dr@eu", "offsets", "dr@eu", None),
        ("file:/a/b@c.jsonl", "file:/a/b@c.jsonl", None, "/a/b@c.jsonl"),
    ],
)
def test_where_a_planned_topic_is(name: str, topic: str, profile: str | None, file: str | None) -> None:
    planned = PlannedTopic(name, "id", 1, 1)
    assert (planned.topic, planned.profile, planned.file) == (topic, profile, file)
    assert topic_of(name) == topic


def test_what_there_is_to_read_and_what_an_open_transaction_hides() -> None:
    planned = PlannedTopic("t", "id", 3, 1, (Bounds(0, 10, 15, 15), Bounds(1, 0, 7, 9), Bounds(2, 4, 4, 5)))
    assert planned.records() == 12
    assert planned.has_open_transaction() == (1, 2)


def test_a_tally_counts_what_comes_in_pieces() -> None:
    counts = {"write": 3, "delete": 5, "keep": 4, "conflict": 1}
    tally = counted()
    assert asdict(tally) == {
        "records": 40,
        "older": 20,
        "unowned": 2,
        "not_selected": 3,
        "superseded": 2,
        "keys": 13,
        "conflicts": 7,
        "scattered": 7,
        "counts": counts,
        "connector_counts": {"a": {"write": 3, "delete": 5}, "b": {"keep": 4, "conflict": 1}},
        "others": {"own": {"a": 2}},
    }
    assert tally.to_write() == 8
    tally.check()


@pytest.mark.parametrize("found", [[], [("a", "write", 2, 2, 0)]])
def test_a_key_that_was_lost_or_decided_twice_is_noticed(found: list[tuple[str, str, int, int, int]]) -> None:
    """It was counted with those that nobody selected: what was counted there was only the rest."""
    keys, sources = [("s", "a", 1), ("s", "b", 1)], [PlannedTopic("s", "id", 1, 1)]
    tally = Tally.of(found, records=2, keys=keys, sources=sources, routed={"a"}, scattered=0)
    with pytest.raises(EosctlError, match="the counts do not add up"):
        tally.check()


def test_a_tally_of_nothing_has_every_count() -> None:
    empty = Tally.of([], records=0, keys=[], sources=[], routed=[], scattered=0)
    assert empty.counts == {"write": 0, "delete": 0, "keep": 0, "conflict": 0}
    assert (empty.keys, empty.conflicts, empty.superseded, empty.to_write()) == (0, 0, 0, 0)


def planned(*lengths: int, name: str = "t") -> PlannedTopic:
    bounds = tuple(Bounds(at, 5, 5 + length, 5 + length) for at, length in enumerate(lengths))
    return PlannedTopic(name, "id", len(lengths), 1, bounds)


PLAN = MigrationPlan(
    cluster_id="cluster",
    group_id=None,
    policy=Policy.NEWEST,
    sources=(planned(1, name="a@east"), planned(1, name="b")),
    targets=(planned(1, name="c@west"), planned(1, name="d@east")),
    routes=(ConnectorRoute("y", "x", "c"), ConnectorRoute("b", "b", "c")),
    tally=counted(),
    snapshot_base="/somewhere",
)


def test_what_a_plan_tells_of_itself() -> None:
    assert PLAN.name() == PLAN.digest()[:16]
    assert PLAN.transactional_id() == f"eosctl-migrate-{PLAN.name()}"
    assert PLAN.cleaning_id() == f"{PLAN.transactional_id()}-stale"
    assert PLAN.renames() == {"y": "x"}
    assert PLAN.profiles() == ["east", "west"]
    assert PLAN.connectors() == ["b", "x", "y"]
    assert (PLAN.connectors_of("source"), PLAN.connectors_of("target")) == ({"b", "y"}, {"b", "x"})
    assert (PLAN.target_file(), PLAN.target_profile()) == (None, "west")
    shown = with_sample(PLAN, [{"key": "k"}])
    assert (shown.sample, replace(shown, sample=())) == (({"key": "k"},), PLAN)


def test_a_plan_without_a_target_has_no_file_and_no_profile() -> None:
    nothing = replace(PLAN, targets=())
    assert (nothing.target_file(), nothing.target_profile()) == (None, None)
    to_file = replace(PLAN, targets=(planned(1, name="file:/x"),))
    assert (to_file.target_file(), to_file.target_profile()) == ("/x", None)


@pytest.mark.parametrize(
    ("sources", "least", "parts"),
    [
        pytest.param([planned(9, 5, 4)], 2, ((0,), (1, 2)), id="about equally long"),
        pytest.param([planned(1, 1)], 3, ((0, 3), (1,), (2,)), id="more parts than partitions"),
        pytest.param([planned(0, 0, 0)], 1, ((0, 1, 2),), id="one part"),
        pytest.param([planned(500_000, 500_000, 500_000)], 1, ((0,), (1,), (2,)), id="a part for half a million"),
        pytest.param([planned(500_000, 500_000, 1, 0)], 1, ((0,), (1,), (2, 3)), id="a part for one more"),
        pytest.param([planned(1_500_000)], 1, ((0,), (1,), (2,)), id="a partition that is too long for a part"),
        pytest.param([planned(1), planned(1, 2)], 1, ((0, 1),), id="the places of the largest source"),
        pytest.param([planned(0, 0, name="file:/x")], 1, ((0, 1),), id="a file"),
        pytest.param([planned(0, 0, name="file:/x"), planned(1)], 1, ((0,),), id="a topic rather than a file"),
    ],
)
def test_the_work_in_parts(sources: list[PlannedTopic], least: int, parts: Sequence[Sequence[int]]) -> None:
    assert parts_of(sources, records=sum(map(PlannedTopic.records, sources)), least=least) == parts


def test_a_part_is_as_long_as_what_is_left_of_it_to_read() -> None:
    compacted = (Bounds(0, 900, 901, 901), Bounds(1, 0, 5, 5), Bounds(2, 0, 5, 9))
    assert parts_of([PlannedTopic("t", "id", 3, 1, compacted)], records=11, least=2) == ((0, 1), (2,))


@given(st.lists(st.integers(0, 1000), max_size=30), st.integers(1, 8))
def test_bins_are_about_equally_long_and_lose_nothing(lengths: list[int], count: int) -> None:
    bins = in_bins([(length, at) for at, length in enumerate(lengths)], count)
    assert len(bins) == count
    assert sorted(at for each in bins for at in each) == list(range(len(lengths)))
    filled = [sum(lengths[at] for at in each) for each in bins]
    assert max(filled) - min(filled) <= max(lengths, default=0)


@given(st.lists(st.integers(0, 1000), max_size=30), st.integers(1, 8))
def test_stretches_are_about_equally_long_and_lose_nothing(lengths: list[int], count: int) -> None:
    stretches = in_runs([(length, at) for at, length in enumerate(lengths)], count)
    assert len(stretches) == count
    assert [at for each in stretches for at in each] == list(range(len(lengths)))
    filled = [sum(lengths[at] for at in each) for each in stretches]
    assert max(filled) <= sum(lengths) / count + max(lengths, default=0)


@pytest.mark.parametrize(
    ("lengths", "stretches"),
    [
        ([10] * 6, [[0, 1], [2, 3], [4, 5]]),
        ([5, 1, 1, 1, 0], [[0], [], [1, 2, 3, 4]]),
        ([1, 1, 1, 5], [[0, 1, 2], [], [3]]),
        ([7], [[], [0], []]),
        ([0, 0], [[0, 1], [], []]),
    ],
)
def test_what_lies_in_a_stretch_is_told_by_its_middle(lengths: list[int], stretches: list[list[int]]) -> None:
    assert in_runs([(length, at) for at, length in enumerate(lengths)], 3) == stretches


def _plan_into(topics: int, partitions: int, *, counts: Sequence[int], parts: int) -> MigrationPlan:
    """Each connector has a topic of its own, and so many keys to be written."""
    names = [f"c{number}" for number in range(topics)]
    targets = tuple(PlannedTopic(f"to-{name}@there", "id", partitions, 1) for name in names)
    routes = tuple(ConnectorRoute(name, name, f"to-{name}@there") for name in names)
    decided = {name: {"write": count, "keep": 10**6} for name, count in zip(names, counts, strict=True)}
    tally = Tally(0, 0, 0, 0, 0, 0, 0, 0, {}, decided)
    divided = tuple((number,) for number in range(parts))
    return MigrationPlan("id", None, Policy.FAIL, (), targets, routes, tally, "", parts=divided)


def test_of_many_partitions_each_is_written_by_one_task() -> None:
    """A thousand topics took six times the CPU when each task wrote to all of them."""
    found = writers_of(_plan_into(64, 2, counts=[100] * 64, parts=4))
    assert found is not None
    written = [place for some in found for place in some]
    places = [(f"to-c{number}", partition) for number in range(64) for partition in (0, 1)]
    assert written == sorted(places), "neighbours: they lie together in files of decisions"
    assert [len(some) for some in found] == [32] * 4


def _written(plan: MigrationPlan) -> list[int] | None:
    """How many partitions each task writes alone."""
    found = writers_of(plan)
    return None if found is None else [len(some) for some in found]


def _with_counts(plan: MigrationPlan, counts: Mapping[str, Mapping[str, int]]) -> MigrationPlan:
    return replace(plan, tally=replace(plan.tally, connector_counts=counts))


def test_tasks_have_about_as_many_records_to_write_as_each_other() -> None:
    """A partition counts as one more than its records; what is kept is not written."""
    plan = _plan_into(32, 1, counts=[0] * 32, parts=2)
    assert _written(plan) == [16, 16]
    assert _written(_with_counts(plan, {"c9": {"write": 20, "delete": 11, "keep": 500}})) == [31, 1]
    two = replace(plan, routes=(*plan.routes, ConnectorRoute("a", "a", "to-c9@there")))
    assert _written(_with_counts(two, {"a": {"write": 16}, "c9": {"delete": 15}})) == [31, 1]


def test_a_task_may_have_a_quarter_more_than_the_others() -> None:
    plan = _plan_into(32, 1, counts=[79, *[1] * 17, *[0] * 14], parts=2)
    assert _written(plan) == [1, 31]
    assert _written(_plan_into(32, 1, counts=[80, *[1] * 17, *[0] * 14], parts=2)) is None


@pytest.mark.parametrize(
    ("topics", "counts", "parts"),
    [(64, [100] * 64, 1), (31, [100] * 31, 2), (64, [10_000, *[100] * 63], 4)],
    ids=["one task", "few partitions", "one that is much larger"],
)
def test_else_each_task_writes_the_keys_of_its_part(topics: int, counts: Sequence[int], parts: int) -> None:
    assert writers_of(_plan_into(topics, 1, counts=counts, parts=parts)) is None
