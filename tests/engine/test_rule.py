"""The rule over columns says what the rule for one key says, on every kind of record that a topic may hold."""

from __future__ import annotations

import functools
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.offsets.migration import ConnectorRoute
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.records import key_owner, renamed_key
from eosctl.core.offsets.views import Policy
from eosctl.core.records import Record
from eosctl.engine import rule
from eosctl.engine.columns import RECORDS
from eosctl.engine.reading.newest import records_table
from tests.fakes.decision import Cell, KeyClaim, decide, decide_claims

SOURCES = ("offsets-old", "offsets-global")
ROUTES = (
    ConnectorRoute("a", "a", "to-a"),
    ConnectorRoute("b", "c", "to-c"),
    ConnectorRoute("c", "c", "to-c"),
    ConnectorRoute("ü", 'q"x', "to-q"),
)
PARTITIONS = {"to-a": 5, "to-c": 5, "to-q": 7}
NOTHINGS = (None, None, b"", b" null", b"null")
ODD = (None, b"", b"\xff\xfe", b'["a"]', b"[1,{}]", b'["a",[]]', b"not json")
CASES = 10_000


def table(records: Iterable[Record], sizes: int = 3) -> pa.Table:
    topics: dict[str, list[Record]] = {}
    for record in records:
        topics.setdefault(record.topic, []).append(record)
    return pa.concat_tables(
        [RECORDS.empty_table(), *(records_table(name, rows, partitions=sizes) for name, rows in topics.items())]
    )


def random_records(rng: random.Random, topics: Sequence[str], count: int, *, keys: int) -> list[Record]:
    """Superseded keys, tombstones, spellings of names and of nothing, scattered keys, odd and null keys."""
    names = ["a", "b", "c", "ü", "other"]
    offsets: dict[tuple[str, int], int] = defaultdict(int)
    records = []
    for number in range(count):
        name, part = rng.choice(names), rng.randrange(keys)
        spelled = rng.choice([name.encode(), name.encode(), b"\\u%04x" % ord(name)]) if len(name) == 1 else b"other"
        spaced = b" " if rng.random() < 0.2 else b""
        key: bytes | None = b'["%s",%s{"p":%d}]' % (spelled, spaced, part)
        if rng.random() < 0.02:
            key = rng.choice(ODD)
        value = rng.choice(NOTHINGS) if rng.random() < 0.25 else b'{"n":%d}' % rng.randrange(2)
        topic = rng.choice(topics)
        partition = rng.randrange(3) if rng.random() < 0.3 or key is None else partition_for(key, 3)
        where = (topic, partition)
        offsets[where] += rng.randrange(1, 3)
        # ties between source and target are wanted; within one topic every time is another one
        records.append(Record(topic, partition, offsets[where], 1_000 + number, key, value))
    return records


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


def expected(source: Sequence[Record], target: Sequence[Record], policy: Policy) -> set[tuple[Any, ...]]:
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


def decided(source: pa.Table, target: pa.Table, policy: Policy, sources: Sequence[str] = SOURCES) -> pa.Table:
    claims = rule.claims_of(rule.newest_per_key(source).records, ROUTES, sources=sources)
    there = rule.newest_per_key(rule.wanted(target, claims)).records
    return rule.decide(rule.strongest(claims, policy), there, PARTITIONS, policy)


COLUMNS = ["topic", "key", "connector", "value", "action", "reason", "conflict", "partition", "before", "claims"]


@functools.cache
def ten_thousand() -> tuple[Sequence[Record], Sequence[Record]]:
    """Sources and targets, the same for every policy."""
    rng = random.Random(618)  # noqa: S311 - not for secrets
    source = random_records(rng, SOURCES, 2 * CASES, keys=CASES // 4)
    return source, random_records(rng, sorted(PARTITIONS), 2 * CASES, keys=CASES // 4)


@pytest.mark.parametrize("policy", list(Policy))
def test_columns_and_single_keys_agree(policy: Policy) -> None:
    """Some ten thousand keys for each policy: each is a case of its own."""
    source, target = ten_thousand()
    found = decided(table(source), table(target), policy)
    rows = {tuple(row[column] for column in COLUMNS) for row in found.to_pylist()}
    assert rows == expected(source, target, policy)
    assert len(rows) == found.num_rows > CASES / 2
    seldom = "rename_collides" if policy is Policy.FAIL else "equal"
    assert {row[5] for row in rows} >= {"missing", "nothing_to_delete", seldom}
    assert any(row[-1] > 1 for row in rows), "no two records met on one key: the test would prove little"


@pytest.mark.parametrize("fallback", [False, True])
@pytest.mark.parametrize("policy", list(Policy))
def test_every_pair_of_values_is_decided_as_for_one_key(policy: Policy, *, fallback: bool) -> None:
    values = (None, b"", b"null", b"\xef\xbb\xbf null", b"{}", b'{"n":1}', b'{"n":2}', b"nullable")
    cells = [Cell(value, time_ms) for value in values for time_ms in (-1, 1, 2)]
    pairs = [(one, other) for one in cells for other in [None, *cells]]
    keys = [b'["a",{"p":%d}]' % number for number in range(len(pairs))]
    source = [
        Record("s", 0, number, one.timestamp_ms, key, one.value)
        for number, (key, (one, _)) in enumerate(zip(keys, pairs, strict=True))
    ]
    target = [
        Record("to-a", 0, number, other.timestamp_ms, key, other.value)
        for number, (key, (_, other)) in enumerate(zip(keys, pairs, strict=True))
        if other is not None
    ]
    claims = rule.strongest(rule.claims_of(table(source), ROUTES, sources=["s"]), policy)
    rows = rule.decide(claims, table(target), PARTITIONS, policy, fallback=fallback).to_pylist()
    for row, (one, other) in zip(rows, pairs, strict=True):
        wanted = decide(one, other, policy, fallback=fallback)
        assert (row["action"], row["reason"], row["conflict"]) == (wanted.action, wanted.reason, wanted.conflict)
        assert row["target_exists"] is (other is not None)


@pytest.mark.parametrize(("connector", "kept"), [("a", []), ("b", [b'["b",{"p":%d}]' % n for n in range(1000)])])
def test_the_key_in_the_source_is_kept_only_where_it_is_another_one(connector: str, kept: list[bytes]) -> None:
    """Its column had the bytes of all keys, in memory and on the disk."""
    keys = [b'["%s",{"p":%d}]' % (name, number) for name in (b"a", b"b") for number in range(1000)]
    records = table(Record("s", 0, number, 1, key, b"{}") for number, key in enumerate(keys))
    claims = rule.claims_of(records, [route for route in ROUTES if route.connector == connector], sources=["s"])
    column = claims["source_key"]
    assert column.drop_null().to_pylist() == kept
    both = rule.claims_of(records, ROUTES, sources=["s"])["source_key"]
    assert both.null_count == 1000
    assert both.nbytes < records["key"].nbytes * 0.8


def test_newest_is_by_offset_within_a_partition_and_by_time_across() -> None:
    records = [
        Record("t", 0, 1, 9_000, b"k", b"older offset, later time"),
        Record("t", 0, 2, 1_000, b"k", b"newest of partition 0"),
        Record("t", 1, 1, 2_000, b"k", b"later than that"),
        Record("t", 1, 5, 3_000, None, b"a null key is a key"),
        Record("u", 0, 7, 1_000, b"k", None),
    ]
    found = rule.newest_per_key(table(records))
    assert {(row["topic"], row["key"]): row["value"] for row in found.records.to_pylist()} == {
        ("t", b"k"): b"later than that",
        ("t", None): b"a null key is a key",
        ("u", b"k"): None,
    }
    assert found.scattered == 1


ALIKE = [b'["a",{"n":85622}]', b'["a",{"n":95541}]']
"""Two keys with one hash."""


@given(
    st.lists(
        st.builds(
            Record, st.sampled_from(["t", "u"]), st.integers(0, 2), st.integers(0, 9), st.integers(-1, 2),
            st.sampled_from([*ALIKE, b"k", b"", None]), st.sampled_from([None, b"1"]),
        ),
        max_size=20, unique_by=lambda record: record[:3],
    )
)  # fmt: skip
def test_the_newest_of_records_that_nobody_has_folded(records: list[Record]) -> None:
    """In any order, with keys of one hash, as a file may have them."""
    places: dict[tuple[str, int, bytes | None], Record] = {}
    for record in sorted(records, key=lambda each: each.offset):
        places[record.topic, record.partition, record.key] = record
    keys: dict[tuple[str, bytes | None], list[Record]] = defaultdict(list)
    for record in places.values():
        keys[record.topic, record.key].append(record)

    def youngest(some: list[Record]) -> Record:
        homes = {each: each.key is not None and partition_for(each.key, 3) == each.partition for each in some}
        return max(some, key=lambda each: (each.timestamp_ms, homes[each], each.offset, each.partition))

    def found(rows: pa.Table) -> list[tuple[Any, ...]]:
        return sorted(zip(*(rows[name].to_pylist() for name in ("topic", "partition", "offset")), strict=True))

    per_key = rule.newest_per_key(table(records))
    assert found(per_key.records) == sorted(youngest(some)[:3] for some in keys.values())
    assert per_key.scattered == sum(len(some) > 1 for some in keys.values())
    assert found(rule.newest_per_place(table(records))) == sorted(each[:3] for each in places.values())


def test_a_copy_away_from_home_is_found_among_many() -> None:
    home = [Record("t", partition_for(b"k%d" % n, 3), n, n, b"k%d" % n, b"{}") for n in range(30)]
    assert rule.newest_per_key(table(home)).records == table(home)
    copy = home[7]._replace(partition=(home[7].partition + 1) % 3, timestamp_ms=99, value=b"younger")
    found = rule.newest_per_key(table([*home, copy]))
    assert found.scattered == 1
    assert sorted(found.records["offset"].to_pylist()) == list(range(30))
    assert b"younger" in found.records["value"].to_pylist()


@pytest.mark.parametrize("policy", list(Policy))
def test_empty_sides(policy: Policy) -> None:
    nothing = RECORDS.empty_table()
    assert decided(nothing, nothing, policy).num_rows == 0
    source = [Record("offsets-old", 0, 1, 1, b'["a",{}]', b"{}")]
    assert decided(table(source), nothing, policy)["reason"].to_pylist() == ["missing"]
    assert decided(nothing, table(source), policy).num_rows == 0
