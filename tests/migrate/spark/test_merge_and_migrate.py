"""`merge` (plain Python, one store against another) and `migrate` (Spark) give the same result on the same topics."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from eosctl.core.offsets.decision import Policy
from eosctl.core.offsets.migration import ConnectorRoute
from eosctl.core.offsets.murmur2 import partition_for
from eosctl.core.offsets.records import is_nothing
from eosctl.core.offsets.views import Prefer, fold_store, plan_merge
from eosctl.core.records import Bounds, Record, TopicRead
from eosctl.migrate.spark.records import transforms
from tests.migrate.spark.frames import frame_of

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
        planned = plan_merge(there, fold_store(target), connector, into="dedicated", prefer=INTO_DEDICATED[policy])
        for each in planned:
            before = each.before.value if each.before else None
            if each.key.raw in there.records:
                found[each.key.raw] = (each.action, each.reason, each.conflict, each.partition, before, each.after)
            else:
                assert (each.sends(), each.reason, each.after) == (False, "only_in_target", before)
    return found


def migrated(spark: SparkSession, source: TopicRead, target: TopicRead, policy: Policy) -> dict[bytes, tuple[Any, ...]]:
    newest = [
        transforms.newest_per_key(frame_of(spark, read.records, partitions=PARTITIONS)) for read in (source, target)
    ]
    routes = [ConnectorRoute(connector, connector, "target") for connector in CONNECTORS]
    claims = transforms.claims(newest[0], routes, sources=["source"])
    decided = transforms.decisions(
        transforms.strongest(claims, policy), newest[1], partitions={"target": PARTITIONS}, policy=policy
    )
    return {bytes(row.key): _outcome(row) for row in decided.collect()}


def _outcome(row: Any) -> tuple[Any, ...]:
    value, before = (None if each is None else bytes(each) for each in (row.value, row.before))
    after = value if row.action in ("write", "delete") else before
    partition = partition_for(bytes(row.key), row.partitions) if row.partition is None else row.partition
    return row.action, row.reason, row.conflict, partition, before, after


@pytest.mark.spark
@pytest.mark.parametrize("policy", list(INTO_DEDICATED))
def test_the_same_result_on_the_same_input(spark: SparkSession, policy: Policy) -> None:
    """They used to differ on deletions of either side, keys on the wrong partition, and values that say nothing."""
    drawn = records(random.Random(618))  # noqa: S311 - the same records every time
    source, target = topic_read(drawn, "source"), topic_read(drawn, "target")
    by_merge = merged(source, target, policy)
    assert migrated(spark, source, target, policy) == by_merge
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
