"""`merge` (a key after the other, one store against another) and the columns that `migrate` uses say the same."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from typing import Any

import pytest

from eosctl.core.offsets.migration import ConnectorRoute
from eosctl.core.offsets.views import Policy, Prefer, Store, fold_store
from eosctl.core.records import Bounds, Record, TopicRead
from eosctl.engine import rule
from eosctl.engine.write import placed
from tests.core.offsets.merging import merged_key_by_key, plan_merge
from tests.engine.test_rule import CASES, random_records, table

PARTITIONS = 3
CONNECTORS = ("a", "b", "c", "ü", "other")
POLICIES = {
    Prefer.DEDICATED: Policy.KEEP_TARGET,
    Prefer.GLOBAL: Policy.TAKE_SOURCE,
    Prefer.NEWEST: Policy.NEWEST,
}
Outcome = dict[bytes, tuple[Any, ...]]


@functools.cache
def folded(topic: str, records: Sequence[Record]) -> Store:
    in_order = tuple(sorted(records, key=lambda record: (record.partition, record.offset)))
    bounds = tuple(Bounds(number, 0, 10**6, 10**6) for number in range(PARTITIONS))
    return fold_store(TopicRead(topic, bounds, in_order, len(in_order)))


def by_key(source: Store, target: Store, prefer: Prefer, *, fallback: bool) -> Outcome:
    found: Outcome = {}
    for connector in CONNECTORS:
        for each in merged_key_by_key(source, target, connector, into="dedicated", prefer=prefer, fallback=fallback):
            before = each.before.value if each.before else None
            if each.key.raw in source.records:
                found[each.key.raw] = (each.action, each.reason, each.conflict, each.partition, before, each.after)
            else:
                assert (each.sends(), each.reason, each.after) == (False, "only_in_target", before)
    return found


def by_column(source: Sequence[Record], target: Sequence[Record], policy: Policy, *, fallback: bool) -> Outcome:
    routes = [ConnectorRoute(connector, connector, "target") for connector in CONNECTORS]
    newest, there = (rule.newest_per_key(table(records)).records for records in (source, target))
    claims = rule.strongest(rule.claims_of(newest, routes, sources=["source"]), policy)
    decided = rule.decide(claims, there, {"target": PARTITIONS}, policy, fallback=fallback)
    places = placed(decided)["partition"].to_pylist()
    return {row["key"]: _outcome(row, place) for row, place in zip(decided.to_pylist(), places, strict=True)}


def _outcome(row: dict[str, Any], place: int) -> tuple[Any, ...]:
    after = row["value"] if row["action"] in ("write", "delete") else row["before"]
    return row["action"], row["reason"], row["conflict"], place, row["before"], after


@functools.cache
def ten_thousand() -> tuple[Sequence[Record], Sequence[Record]]:
    """Source and target, the same for every policy."""
    records = random_records(random.Random(20), ("source", "target"), 4 * CASES, keys=CASES // 4)  # noqa: S311
    source, target = (tuple(each for each in records if each.topic == topic) for topic in ("source", "target"))
    return source, target


@pytest.mark.parametrize("prefer", list(POLICIES))
@pytest.mark.parametrize("fallback", [True, False])
def test_ten_thousand_keys_end_alike(prefer: Prefer, *, fallback: bool) -> None:
    """They are two programs: one rule for a key, one for columns; deletions, ties and scattered keys fell apart."""
    source, target = ten_thousand()
    stores = folded("source", source), folded("target", target)
    policy, falls = POLICIES[prefer], fallback and prefer is not Prefer.NEWEST
    expected = by_key(*stores, prefer, fallback=fallback)
    assert len(expected) >= CASES
    assert by_column(source, target, policy, fallback=falls) == expected
    assert {outcome[0] for outcome in expected.values()} == {"write", "keep", "delete"} - (
        {"delete"} if falls or prefer is Prefer.DEDICATED else set()
    )


@pytest.mark.parametrize("part_bytes", [1, 5000])
def test_large_stores_are_merged_in_parts_with_the_same_outcome(part_bytes: int) -> None:
    """Between any two keys it may be cut; a merge of all at once held six times the values."""
    records = random_records(random.Random(2), ("source", "target"), 200, keys=40)  # noqa: S311 - the same every time
    stores = [folded(name, tuple(each for each in records if each.topic == name)) for name in ("source", "target")]
    for connector in CONNECTORS:
        whole, parts = (
            plan_merge(stores[0], stores[1], connector, into="dedicated", prefer=Prefer.NEWEST, part_bytes=limit)
            for limit in (10**9, part_bytes)
        )
        assert parts == whole
