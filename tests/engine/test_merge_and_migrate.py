"""`merge` (plain Python, one store against another) and the engine give the same result on the same topics."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.offsets.migration import ConnectorRoute
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.records import is_nothing
from eosctl.core.offsets.views import Policy, Prefer, fold_store
from eosctl.core.records import Bounds, Record, TopicRead
from eosctl.engine import rule
from eosctl.engine.reading.newest import records_table
from tests.core.offsets.merging import merged_key_by_key, plan_merge

PARTITIONS = 3
INTO_DEDICATED = {
    Policy.KEEP_TARGET: Prefer.DEDICATED,
    Policy.TAKE_SOURCE: Prefer.GLOBAL,
    Policy.NEWEST: Prefer.NEWEST,
}
CONNECTORS = ("a", "ü")
KEYS = [
    *(b'["a",{"p":%d}]' % number for number in range(120)),
    *('["ü", {"p":%d}]'.encode() % number for number in range(40)),
    *(b'["a", {"p":1}]', b'["\\u0061",null]', b'["a"]', b'["a\n",{}]', b"\xff", b"", None),
]
VALUES = [b'{"n":1}', b'{"n":2}', None, b"", b"null", b" null ", b"nullable", b"\xef\xbb\xbfnull", b"null\xff", b"{"]
Drawn = tuple[str, bytes | None, int, bytes | None, int]


def records(rng: random.Random) -> list[Drawn]:
    """Store, key, partition (mostly at home), value, time: ties, other partitions and old records all happen.

    Three for a key on the average, so that many keys are in one store alone.
    """
    stores, places = ("source", "target"), (-1, -1, -1, 0, 1, 2)
    return [
        (rng.choice(stores), rng.choice(KEYS), rng.choice(places), rng.choice(VALUES), rng.randint(1, 3))
        for _ in range(3 * len(KEYS))
    ]


def topic_read(drawn: Sequence[Drawn], store: str) -> TopicRead:
    """The topic that holds the drawn records of `store`, in the order drawn."""
    ends = [0] * PARTITIONS
    found = []
    for whose, key, place, value, time_ms in drawn:
        if whose == store:
            partition = partition_for(key or b"", PARTITIONS) if place < 0 else place
            found.append(Record(store, partition, ends[partition], time_ms, key, value))
            ends[partition] += 1
    bounds = tuple(Bounds(number, 0, end, end) for number, end in enumerate(ends))
    return TopicRead(store, bounds, tuple(sorted(found, key=lambda r: (r.partition, r.offset))), len(found))


def merged(source: TopicRead, target: TopicRead, policy: Policy) -> dict[bytes, tuple[Any, ...]]:
    there = fold_store(source)
    found = {}
    for connector in CONNECTORS:
        stores, prefer = (there, fold_store(target), connector), INTO_DEDICATED[policy]
        planned = plan_merge(*stores, into="dedicated", prefer=prefer)
        assert planned == merged_key_by_key(*stores, into="dedicated", prefer=prefer)
        for each in planned:
            before = each.before.value if each.before else None
            if each.key.raw in there.records:
                found[each.key.raw] = (each.action, each.reason, each.conflict, each.partition, before, each.after)
            else:
                assert (each.sends(), each.reason, each.after) == (False, "only_in_target", before)
    return found


def migrated(source: TopicRead, target: TopicRead, policy: Policy) -> dict[bytes, tuple[Any, ...]]:
    there, newest = (
        rule.newest_per_key(records_table(read.topic, read.records, partitions=PARTITIONS)).records
        for read in (target, source)
    )
    routes = [ConnectorRoute(connector, connector, "target") for connector in CONNECTORS]
    claims = rule.strongest(rule.claims_of(newest, routes, sources=["source"]), policy)
    return {row["key"]: _outcome(row) for row in rule.decide(claims, there, {"target": PARTITIONS}, policy).to_pylist()}


def _outcome(row: dict[str, Any]) -> tuple[Any, ...]:
    after = row["value"] if row["action"] in ("write", "delete") else row["before"]
    partition = partition_for(row["key"], row["partitions"]) if row["partition"] is None else row["partition"]
    return row["action"], row["reason"], row["conflict"], partition, row["before"], after


@pytest.mark.parametrize("policy", list(INTO_DEDICATED))
@pytest.mark.parametrize("seed", range(25))
def test_the_same_result_on_the_same_input(policy: Policy, seed: int) -> None:
    """They used to differ on deletions of either side, keys on the wrong partition, and values that say nothing."""
    drawn = records(random.Random(seed))  # noqa: S311 - the same records every time
    source, target = topic_read(drawn, "source"), topic_read(drawn, "target")
    by_merge = merged(source, target, policy)
    assert migrated(source, target, policy) == by_merge
    reasons = {outcome[1] for outcome in by_merge.values()}
    assert reasons >= {"missing", "equal", "nothing_to_delete"}
    assert len(reasons) > 3, "no key was in both stores with two values: the test would prove little"


@given(st.binary(max_size=6) | st.sampled_from(VALUES) | st.binary(max_size=3).map(lambda tail: b" null" + tail))
def test_the_quick_look_at_a_value_is_right(value: bytes | None) -> None:
    """Only values that begin like nothing are parsed at all."""
    from eosctl.core.configs.records import UnparsableValueError, decode_value

    try:
        nothing = decode_value(value) is None
    except UnparsableValueError:
        nothing = False
    assert is_nothing(value) is nothing
