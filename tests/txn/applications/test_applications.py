"""Ids become applications: what belongs together, what the cluster says of it, and what is worth a word."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.transactions import Coordinator, TransactionDescription, TransactionListing, TransactionState
from eosctl.txn.applications.gather import ApplicationFacts, BrokerLimits, facts_of, remarks_of
from eosctl.txn.applications.rules import ApplicationIds, ClusterFacts, applications_of, common_prefix, sample, sharing

NOTHING = ClusterFacts()
DAY_MS = 86_400_000
UUIDS = ["0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"]


def listed(name: str, state: TransactionState = TransactionState.EMPTY) -> TransactionListing:
    return TransactionListing(TransactionalId(name), state, ProducerId(1), 1)


def grouped(names: Iterable[str], known: ClusterFacts = NOTHING) -> list[ApplicationIds]:
    return applications_of([listed(name) for name in names], known)


def shown(applications: Sequence[ApplicationIds]) -> list[tuple[str, str, int]]:
    return [(each.kind, each.name, len(each.ids)) for each in applications]


def test_each_application_is_one_row() -> None:
    names = [f"sink-{subtask}-{checkpoint}" for subtask in (0, 1) for checkpoint in (5, 6)]
    names += [f"shop-{process}-{thread}" for process in UUIDS for thread in (1, 2)]
    names += ["shop-0_0", "shop-0_1", "connect-c-0", "connect-c-1", "connect-cluster-connect", "eosctl-config-connect"]
    known = ClusterFacts({"connect": frozenset({"c"})}, frozenset({"shop"}))
    found = grouped(names, known)
    assert shown(found) == [
        ("connect", "connect-c", 2),
        ("connect", "connect-cluster-connect", 1),
        ("eosctl", "eosctl", 1),
        ("kafka-streams", "shop", 2),
        ("kafka-streams", "shop", 4),
        ("flink-sink", "sink", 4),
    ]
    assert [each.guarantee for each in found if each.name == "shop"] == ["exactly_once", "exactly_once_v2"]
    assert [each.sure for each in found] == [True] * 5 + [False]
    assert [(each.naming, each.firsts, each.highest) for each in found if each.kind == "flink-sink"] == [
        ("incrementing", 2, 6)
    ]


@pytest.mark.parametrize(
    ("numbers", "kind", "naming"),
    [
        ([(0, 1), (0, 2), (1, 1)], "flink-sink", "incrementing"),
        ([(0, 7)], "flink-sink", "incrementing"),
        ([(0, 0), (0, 2), (1, 0)], "flink-sink", "pooling"),
        ([(0, 0), (0, 1), (1, 0)], "ambiguous", None),  # Spring with a prefix for each instance makes these, too
    ],
)
def test_the_numbers_tell_how_a_flink_sink_names(numbers: list[tuple[int, int]], kind: str, naming: str | None) -> None:
    (found,) = grouped(f"s-{one}-{other}" for one, other in numbers)
    assert (found.kind, found.naming) == (kind, naming)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["pay-alpha", "pay-beta", "pay-gamma"], [("pay-", 3)]),
        (["alpha", "beta"], [("alpha", 1), ("beta", 1)]),
        (["x.a.p", "x.a.q", "x.b.p", "x.b.q"], [("x.a.", 2), ("x.b.", 2)]),
        ([f"app-{each}" for each in UUIDS], [("app-", 2)]),  # one ends in a digit
        (["a", "a-x", "a-y"], [("a", 1), ("a-", 2)]),
        (["same", "same"], [("same", 2)]),
        ([chr(97 + number) * 2 for number in range(21)], [("", 21)]),
    ],
)
def test_what_nothing_makes_goes_by_what_it_has_in_common(names: list[str], expected: list[tuple[str, int]]) -> None:
    assert [(each.name, len(each.ids)) for each in grouped(names)] == expected
    assert {each.kind for each in grouped(names)} == {"unknown"}


@given(st.lists(st.text("ab-_.0123:", max_size=8), unique=True, max_size=40))
def test_every_id_is_in_one_application_and_begins_with_its_name(names: list[str]) -> None:
    found = grouped(names)
    assert sorted(one.transactional_id for each in found for one in each.ids) == sorted(names)
    for each in found:
        assert each.kind == "eosctl" or all(one.transactional_id.startswith(each.name) for one in each.ids)
    assert shown(found) == shown(grouped(reversed(names)))


@given(st.lists(st.text("ab", max_size=6), min_size=1))
def test_the_first_and_the_last_have_the_common_prefix_of_all(names: list[str]) -> None:
    in_order = sorted(names)
    prefix = common_prefix(in_order[0], in_order[-1])
    assert all(name.startswith(prefix) for name in names)
    longer = in_order[0][: len(prefix) + 1]
    assert longer == prefix or not all(name.startswith(longer) for name in names)


def test_a_pool_s_prefix_that_begins_another_s_is_shared() -> None:
    """Flink's POOLING aborts by prefix; INCREMENTING does not, and Streams' application.id harms none."""
    pooled = ["s-0-0", "s-0-2"]
    found = grouped(
        [*pooled, "s-2-0-5", "s-2-0-6", "other-0-7", "connect-c-0"], ClusterFacts({"connect": frozenset({"c"})})
    )
    assert sharing(found) == {"flink-sink::s": ["s-2"], "flink-sink::s-2": ["s"]}
    assert sharing(grouped(["s-0-3", "s-2-0-5"])) == {}
    assert sharing(grouped([f"shop-{UUIDS[0]}-1", f"shop-eu-{UUIDS[0]}-1", "shop-0_0"])) == {}


def test_two_products_under_one_name_share_it() -> None:
    assert sharing(grouped(["app-0-3", "app-0_0"])) == {
        "flink-sink::app": ["app"],
        "kafka-streams:exactly_once:app": ["app"],
    }


def test_a_sample_is_spread_evenly() -> None:
    ids = [listed(str(number)) for number in range(100)]
    assert [one.transactional_id for one in sample(ids, 4)] == ["0", "25", "50", "75"]
    assert sample(ids[:3], 4) == ids[:3]


def described(
    name: str,
    *,
    state: TransactionState = TransactionState.EMPTY,
    started_ms: int | None = None,
    timeout_ms: int = 60_000,
) -> TransactionDescription:
    is_open = state is TransactionState.ONGOING
    return TransactionDescription(
        TransactionalId(name), Coordinator(1, "h", 1), state, ProducerId(1), 0, timeout_ms,
        started_ms if is_open else None, (), started_ms,
    )  # fmt: skip


def facts(
    states: Sequence[TransactionDescription],
    *,
    before: dict[str, int] | None = None,
    limits: BrokerLimits | None = None,
) -> ApplicationFacts:
    """Of one Flink sink whose ids were all described, on day 10."""
    (application,) = applications_of([listed(each.transactional_id, each.state) for each in states], NOTHING)
    known = {each.transactional_id: each for each in states}
    return facts_of(application, known, limits or BrokerLimits(900_000, 7 * DAY_MS), before, (), now_ms=10 * DAY_MS)


def test_the_oldest_open_transaction_is_named() -> None:
    ongoing = TransactionState.ONGOING
    found = facts(
        [
            described("s-0-3", started_ms=DAY_MS),
            described("s-0-4", state=ongoing, started_ms=10 * DAY_MS - 2000),
            described("s-1-4", state=ongoing, started_ms=10 * DAY_MS - 3000, timeout_ms=90_000),
        ]
    )
    assert (found.open, found.oldest_id, found.oldest_age_ms) == (2, "s-1-4", 3000)
    assert (found.timeout_ms_min, found.timeout_ms_max) == (60_000, 90_000)
    assert found.expires_ms is None


@pytest.mark.parametrize(
    ("started_days", "expires_days", "remarks"),
    [(None, None, []), (9, 16, []), (4, 11, ["ids_expire"]), (2, 9, ["ids_expire"])],
)
def test_an_idle_application_expires(started_days: int | None, expires_days: int | None, remarks: list[str]) -> None:
    found = facts([described("s-0-3", started_ms=None if started_days is None else started_days * DAY_MS)])
    assert found.expires_ms == (None if expires_days is None else expires_days * DAY_MS)
    assert remarks_of(found, BrokerLimits(900_000, 7 * DAY_MS)) == remarks


def test_what_can_t_be_read_is_no_remark() -> None:
    found = facts([described("s-0-3", started_ms=0, timeout_ms=2**31 - 1)], limits=BrokerLimits())
    assert (found.expires_ms, remarks_of(found, BrokerLimits())) == (None, [])


def test_a_timeout_above_the_maximum_is_remarked() -> None:
    states = [described("s-0-3", timeout_ms=900_001), described("s-0-4", timeout_ms=5)]
    assert remarks_of(facts(states), BrokerLimits(900_000, None)) == ["timeout_above_maximum"]
    assert remarks_of(facts(states), BrokerLimits(900_001, None)) == []


@pytest.mark.parametrize(
    ("ids", "before", "grown_by", "remarks"),
    [
        (100, None, None, []),
        (100, {}, 100, []),  # a new application does not grow, it is new
        (100, {"flink-sink::s": 100}, 0, []),
        (100, {"flink-sink::s": 40}, 60, ["ids_grow"]),
        (100, {"flink-sink::s": 120}, -20, []),
        (1000, {"flink-sink::s": 940}, 60, []),
    ],
)
def test_growth_since_the_last_look(
    ids: int, before: dict[str, int] | None, grown_by: int | None, remarks: list[str]
) -> None:
    found = facts([described(f"s-0-{number + 1}") for number in range(ids)], before=before)
    assert (found.grown_by, remarks_of(found, BrokerLimits())) == (grown_by, remarks)


def test_many_ids_take_little_beside_their_listing() -> None:
    """Bounded memory: some tens of bytes for each id, whatever they look like; time by hand, beside `txn list`."""
    chance = random.Random(7)  # noqa: S311 - the same ids each time
    listings = [listed(f"sink-{number % 50}-{number // 50}") for number in range(10_000)]
    listings += [listed(f"app-{chance.getrandbits(128):032x}") for _ in range(10_000)]
    listings += [listed(f"tx-{number}") for number in range(5_000)]
    listings += [listed(f"team{number % 50}.job{number}") for number in range(5_000)]
    known = ClusterFacts({"connect": frozenset()}, frozenset({"g"}), {"t": 1})
    tracemalloc.start()
    try:
        found = applications_of(listings, known)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(len(each.ids) for each in found) == 30_000
    assert len(found) <= 60
    assert peak < 30_000 * 100, peak
