"""The rule over columns says what the rule for one key says, on every kind of record that a topic may hold."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from eosctl.core.offsets.decision import Cell, KeyClaim, Policy, decide_claims
from eosctl.core.offsets.keys import key_owner, renamed_key
from eosctl.core.offsets.migration import ConnectorRoute
from eosctl.core.offsets.records import is_nothing
from eosctl.core.records import Record
from eosctl.migrate.spark.records import transforms
from tests.migrate.spark.frames import frame_of

pytestmark = pytest.mark.spark

SOURCES = ("offsets-old", "offsets-global")
ROUTES = (
    ConnectorRoute("a", "a", "to-a"),
    ConnectorRoute("b", "c", "to-c"),
    ConnectorRoute("c", "c", "to-c"),
    ConnectorRoute("ü", 'q"x', "to-q"),
)
PARTITIONS = {"to-a": 5, "to-c": 5, "to-q": 7}


NOTHINGS = (None, None, b"", b" null")


def frame(spark: SparkSession, records: Iterable[Record]) -> DataFrame:
    return frame_of(spark, records, partitions=3)


def random_records(rng: random.Random, topics: Sequence[str], count: int) -> list[Record]:
    """Records with superseded keys, tombstones, two spellings, scattered keys, garbage and null keys."""
    names = ["a", "b", "c", "ü", "other"]
    offsets: dict[tuple[str, int], int] = defaultdict(int)
    records = []
    for number in range(count):
        name, part = rng.choice(names), rng.randrange(6)
        spaced = b" " if rng.random() < 0.2 else b""
        key: bytes | None = b'["%s",%s{"p":%d}]' % (name.encode(), spaced, part)
        if rng.random() < 0.05:
            key = rng.choice([None, b"", b"\xff\xfe", b'["a"]', b"[1,{}]", b'["a",[]]', b"not json"])
        value = rng.choice(NOTHINGS) if rng.random() < 0.25 else b'{"n":%d}' % rng.randrange(2)
        topic, partition = rng.choice(topics), rng.randrange(3)
        where = (topic, partition)
        offsets[where] += rng.randrange(1, 3)
        # ties between source and target are wanted; within one topic every time is another one
        records.append(Record(topic, partition, offsets[where], 1_000 + number, key, value))
    return records


def plain(cell: Any) -> Any:
    return bytes(cell) if isinstance(cell, bytearray) else cell


def newest(records: Iterable[Record]) -> dict[tuple[str, bytes | None], Record]:
    per_partition: dict[Any, Record] = {}
    for record in records:
        where = record.topic, record.key, record.partition
        if where not in per_partition or per_partition[where].offset < record.offset:
            per_partition[where] = record
    found: dict[tuple[str, bytes | None], Record] = {}
    for record in per_partition.values():
        best = found.get((record.topic, record.key))
        if best is None or best.timestamp_ms < record.timestamp_ms:
            found[record.topic, record.key] = record
    return found


def expected(source: list[Record], target: list[Record], policy: Policy) -> set[tuple[Any, ...]]:
    routes = {route.connector: route for route in ROUTES}
    claims: dict[tuple[str, bytes], list[KeyClaim]] = defaultdict(list)
    for (topic, key), record in newest(source).items():
        owner = key_owner(key)
        if key is None or owner is None or owner.connector not in routes:
            continue
        route = routes[owner.connector]
        renamed = route.connector != route.target_connector
        final = renamed_key(key, owner, route.target_connector) if renamed else key
        cell = Cell(record.value, record.timestamp_ms)
        claims[route.target_topic, final].append(KeyClaim(cell, renamed, SOURCES.index(topic), owner.connector))
    there = newest(target)
    rows = set()
    for (topic, key), wanted in claims.items():
        old = there.get((topic, key))
        target_cell = Cell(old.value, old.timestamp_ms) if old else None
        winner, decision = decide_claims(wanted, target_cell, policy)
        verdict = (str(decision.action), decision.reason, decision.conflict)
        before = (old.partition if old else None, old.value if old else None)
        rows.add((topic, key, winner.connector, winner.cell.meaning(), *verdict, *before, len(wanted)))
    return rows


@pytest.mark.parametrize("policy", list(Policy))
def test_columns_and_single_keys_agree(spark: SparkSession, policy: Policy) -> None:
    rng = random.Random(618)  # noqa: S311 - the same records every time
    source = random_records(rng, SOURCES, 400)
    target = random_records(rng, sorted(PARTITIONS), 250)
    claims = transforms.claims(transforms.newest_per_key(frame(spark, source)), ROUTES, sources=SOURCES)
    decided = transforms.decisions(
        transforms.strongest(claims, policy),
        transforms.newest_per_key(frame(spark, target)),
        partitions=PARTITIONS,
        policy=policy,
    )
    columns = ["topic", "key", "connector", "value", "action", "reason", "conflict", "partition", "before", "claims"]
    rows = {tuple(plain(row[column]) for column in columns) for row in decided.collect()}
    assert rows == expected(source, target, policy)
    seldom = "rename_collides" if policy is Policy.FAIL else "equal"
    assert {row[5] for row in rows} >= {"missing", "nothing_to_delete", seldom}
    assert any(row[-1] > 1 for row in rows), "no two records met on one key: the test would prove little"


def test_newest_is_by_offset_within_a_partition_and_by_time_across(spark: SparkSession) -> None:
    records = [
        Record("t", 0, 1, 9_000, b"k", b"older offset, later time"),
        Record("t", 0, 2, 1_000, b"k", b"newest of partition 0"),
        Record("t", 1, 1, 2_000, b"k", b"later than that"),
        Record("t", 1, 5, 3_000, None, b"a null key is a key"),
        Record("u", 0, 7, 1_000, b"k", None),
    ]
    rows = transforms.newest_per_key(frame(spark, records)).collect()
    found = {(r.topic, r.key and bytes(r.key)): (r.value and bytes(r.value), r.places) for r in rows}
    assert found == {
        ("t", b"k"): (b"later than that", 2),
        ("t", None): (b"a null key is a key", 1),
        ("u", b"k"): (None, 1),
    }


def test_newest_per_key_shuffles_once(spark: SparkSession) -> None:
    """Both windows live on the one explicit repartition; a second exchange would double the cost of the stage."""
    plan = transforms.newest_per_key(frame(spark, []))._jdf.queryExecution().executedPlan().toString()
    assert plan.count("Exchange") == 1


def test_empty_sides(spark: SparkSession) -> None:
    nothing = transforms.newest_per_key(frame(spark, []))
    claims = transforms.claims(nothing, ROUTES, sources=SOURCES)
    rows = transforms.decisions(
        transforms.strongest(claims, Policy.FAIL), nothing, partitions=PARTITIONS, policy=Policy.FAIL
    )
    assert rows.collect() == []


MISMATCHES: tuple[tuple[str, bytes | None, bytes | None, Any, str | None], ...] = (
    ("write", b"1", None, b"1", None),
    ("write", b"1", None, "absent", "missing"),
    ("write", b"1", None, None, "deleted"),
    ("write", b"1", b"0", b"2", "differs"),
    ("delete", None, b"0", None, None),
    ("delete", None, b"0", "absent", None),
    ("delete", None, b"0", b"0", "unexpected"),
    ("keep", b"1", b"0", b"0", None),
    ("keep", None, None, b"0", "unexpected"),
    ("conflict", b"1", b"0", b"1", "differs"),
)
"""Action, value and what was there before, what is there now, and the status of that."""


def test_target_mismatches(spark: SparkSession) -> None:
    """A key per case, all in one query."""
    decided, there, expected = [], [], {}
    for number, (action, value, before, now, status) in enumerate(MISMATCHES):
        key = b'["a",{"case":%d}]' % number
        there_before = (before is not None, 3, 1, before, is_nothing(before))
        decided.append(("a", "a", "s", 0, 1, key, value, "t", key, 5, 0, *there_before, action, "", False, 1))
        if now != "absent":
            there.append(Record("t", 2, 9 + number, 1, key, now))
        if status is not None:
            expected[key] = status
    found = transforms.target_mismatches(
        spark.createDataFrame(decided, transforms.DECISIONS), transforms.newest_per_key(frame(spark, there))
    ).collect()
    assert {bytes(row.key): row.status for row in found} == expected
    assert len(found) == len(expected)
