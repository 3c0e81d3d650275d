"""A migration from its logs to its end, on any of them, held to what each single record means; no Spark runs.

Topics and dumps of topics are read by several readers, decided in parts, backed up, written in part, resumed and
compared. The reference knows logs, records and the rule for one key, and nothing of columns, parts or files.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eosctl.core.offsets.migration import (
    Comparison,
    ConnectorRoute,
    MigrationPlan,
    PlannedTopic,
    Tally,
    parts_of,
    plan_routes,
)
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.records import is_nothing, key_owner, renamed_key
from eosctl.core.offsets.views import KeyAction, Policy
from eosctl.core.records import Bounds, Record, record_line
from eosctl.engine.columns import batch_of_rows
from eosctl.engine.files import KeyParts, land, next_reader, older_in, part_file, part_files, read_table
from eosctl.engine.reading.batches import PIECE
from eosctl.engine.reading.newest import folded
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.migrate.spark import parts as tasks_of
from eosctl.migrate.spark.files import folds_of
from eosctl.migrate.spark.parts import replaced
from tests.fakes.decision import Cell, KeyClaim, decide_claims

NAMES, SENDS = ("a", "ab", "b", "é"), (KeyAction.WRITE, KeyAction.DELETE)
VALUES = (None, None, b"", b"null", b'{"n":1}', b'{"n":2}', b'{"n":3}')
NOTHING = Tally(0, 0, 0, 0, 0, 0, 0, 0, {})
Place = tuple[str, int, bytes]


@dataclass
class Log:
    """A topic: what was appended to each partition, in order."""

    topic: str
    partitions: int
    records: list[Record] = field(default_factory=list)

    def append(self, partition: int, timestamp_ms: int, key: bytes, value: bytes | None) -> None:
        end = 1 + max((each.offset for each in self.records if each.partition == partition), default=-1)
        self.records.append(Record(self.topic, partition, end, timestamp_ms, key, value))

    def bounds(self) -> tuple[Bounds, ...]:
        ends = {
            one: 1 + max((r.offset for r in self.records if r.partition == one), default=-1) for one in self.range()
        }
        return tuple(Bounds(one, 0, end, end) for one, end in ends.items())

    def range(self) -> range:
        return range(self.partitions)

    def newest(self) -> dict[bytes, Record]:
        """By offset within a partition; across partitions by time, then where Connect's producer puts the key."""
        places: dict[tuple[bytes, int], Record] = {}
        for record in self.records:
            places[record.key or b"", record.partition] = record
        found: dict[bytes, Record] = {}
        for key, _partition in places:
            some = [record for (each, _place), record in places.items() if each == key]
            home = partition_for(key, self.partitions)
            found[key] = max(
                some, key=lambda each: (each.timestamp_ms, each.partition == home, each.offset, each.partition)
            )
        return found


@dataclass
class World:
    """Sources and targets as they are, and what is to be done."""

    sources: list[Log]
    targets: list[Log]
    planned: list[PlannedTopic]
    routes: tuple[ConnectorRoute, ...]
    policy: Policy
    rng: random.Random

    def to(self) -> list[PlannedTopic]:
        return [PlannedTopic(log.topic, "id", log.partitions, 1, log.bounds(), "c") for log in self.targets]

    def target(self, topic: str) -> Log:
        return next(log for log in self.targets if log.topic == topic)


def any_key(rng: random.Random) -> bytes:
    if rng.random() < 0.06:
        return rng.choice([b"junk", b'["a"]', b"", b"[1,{}]"])
    space = " " if rng.random() < 0.15 else ""
    return f'[{space}"{rng.choice(NAMES)}",{{"f":"{rng.randrange(3)}"}}]'.encode()


def any_log(rng: random.Random, topic: str) -> Log:
    log = Log(topic, rng.choice([1, 3, 5]))
    for _ in range(rng.randrange(20)):
        key = any_key(rng)
        home = partition_for(key, log.partitions)
        partition = home if rng.random() < 0.75 else rng.randrange(log.partitions)
        log.append(partition, rng.randrange(6), key, rng.choice(VALUES))
    return log


def any_world(rng: random.Random, folder: Path) -> World | None:
    sources = [any_log(rng, f"s{number}") for number in range(rng.randrange(1, 3))]
    planned = []
    for log in sources:
        owners = tuple(rng.sample(NAMES, 2)) if rng.random() < 0.3 else None
        if rng.random() < 0.4:
            planned.append(replace(dumped(rng, log, folder), connectors=owners))
        else:
            planned.append(PlannedTopic(log.topic, "id", log.partitions, 1, log.bounds(), "c", owners))
    there = {
        owner.connector
        for log, topic in zip(sources, planned, strict=True)
        for record in log.records
        if (owner := key_owner(record.key)) and topic.gives(owner.connector)
    }
    chosen = sorted(name for name in there if rng.random() < 0.8)
    if not chosen:
        return None
    names = rng.sample([*NAMES, "new"], len(chosen)) if rng.random() < 0.4 else chosen
    renames = {old: new for old, new in zip(chosen, names, strict=True) if old != new and rng.random() < 0.8}
    one = rng.random() < 0.5
    routes = plan_routes(
        chosen, renames, lambda name: "to" if one else f"to-{NAMES.index(name) if name in NAMES else 9}"
    )
    size = rng.choice([1, 3, 5])
    targets = [any_log(rng, name) for name in sorted({route.target_topic for route in routes})]
    for log in targets:
        kept, log.partitions, log.records = log.records, size, []
        for record in kept:
            log.append(record.partition % size, record.timestamp_ms, record.key or b"", record.value)
    return World(sources, targets, planned, routes, rng.choice(list(Policy)), rng)


def dumped(rng: random.Random, log: Log, folder: Path) -> PlannedTopic:
    """The log as a file, in whatever order."""
    file, records = folder / f"{log.topic}.ndjson", list(log.records)
    rng.shuffle(records)
    file.write_text("".join(f"{record_line(record)}\n" for record in records))
    return PlannedTopic(f"file:{file}", "digest", log.partitions, 1)


def read(
    rng: random.Random, folder: Path, topics: Sequence[PlannedTopic], logs: Sequence[Log], places: KeyParts
) -> bool:
    """What several readers land; whether every key lies at home."""
    folder.mkdir()
    in_place, by_name = True, {log.topic: log for log in logs}
    ranges = [
        OffsetRange(topic.topic, one.partition, one.begin, one.lso, topic.partitions, topic.name)
        for topic in topics
        for one in topic.bounds
        if one.begin < one.lso
    ]
    rng.shuffle(ranges)
    while ranges:
        count = rng.randrange(1, len(ranges) + 1)
        some, ranges = ranges[:count], ranges[count:]
        pieces = list(_pieces(rng, some, by_name))
        found = land(folder, next_reader(folder), folded(pieces, some, keys_at_once=rng.choice([2, 5, 1000])), places)
        in_place &= found.in_place
    for topic in topics:
        if topic.file is not None:
            folds = folds_of(topic.file, topic.name, partitions=topic.partitions)
            in_place &= land(folder, next_reader(folder), folds, places).in_place
    return in_place


def _pieces(rng: random.Random, ranges: Sequence[OffsetRange], logs: Mapping[str, Log]) -> Iterator[pa.RecordBatch]:
    """The records of each partition in order, partitions in any."""
    left = {
        number: [r for r in logs[one.topic].records if r.partition == one.partition and one.begin <= r.offset < one.end]
        for number, one in enumerate(ranges)
    }
    while left := {number: records for number, records in left.items() if records}:
        number = rng.choice(sorted(left))
        count = rng.randrange(1, len(left[number]) + 1)
        some, left[number] = left[number][:count], left[number][count:]
        rows = [(number, each.offset, each.timestamp_ms, each.key, each.value, None) for each in some]
        yield batch_of_rows(rows, PIECE)


Claims = dict[tuple[str, bytes], list[tuple[KeyClaim, Record]]]


def claims_in(world: World) -> Claims:
    """The records of routed connectors by the topic and key that they end on."""
    found: Claims = defaultdict(list)
    routes = {route.connector: route for route in world.routes}
    for number, (log, topic) in enumerate(zip(world.sources, world.planned, strict=True)):
        for key, record in log.newest().items():
            owner = key_owner(key)
            if owner is None or owner.connector not in routes or not topic.gives(owner.connector):
                continue
            route = routes[owner.connector]
            is_renamed = route.target_connector != route.connector
            final = renamed_key(key, owner, route.target_connector) if is_renamed else key
            cell = Cell(record.value, record.timestamp_ms)
            claim = KeyClaim(cell, is_renamed, number, owner.connector)
            found[route.target_topic, final].append((claim, record))
    return found


def is_decided_as_each_key(world: World, rows: Sequence[Mapping[str, Any]]) -> None:
    claims, there = claims_in(world), {log.topic: log.newest() for log in world.targets}
    assert sorted((row["topic"], row["key"]) for row in rows) == sorted(claims)
    for row in rows:
        some, record = claims[row["topic"], row["key"]], there[row["topic"]].get(row["key"])
        before = None if record is None else Cell(record.value, record.timestamp_ms)
        winner, decision = decide_claims([claim for claim, _record in some], before, world.policy)
        assert (row["action"], row["reason"], row["conflict"]) == (decision.action, decision.reason, decision.conflict)
        assert (row["claims"], row["partition"]) == (len(some), record and record.partition)
        assert (row["before"], row["target_exists"]) == (record and record.value, record is not None)
        rank = winner.renamed, winner.precedence, winner.cell.timestamp_ms
        as_good = [c.cell.meaning() for c, _r in some if (c.renamed, c.precedence, c.cell.timestamp_ms) == rank]
        assert row["value"] in as_good
        if decision.action in SENDS:
            assert before is None or row["value"] != before.meaning(), "only what differs shows that it was written"


def copies_beside(world: World, rows: Sequence[Mapping[str, Any]]) -> dict[Place, bytes]:
    """The live ones on other partitions of keys that are sent."""
    found = {}
    for row in rows:
        if row["action"] not in SENDS or row["partition"] is None:
            continue
        log = world.target(row["topic"])
        for partition in log.range():
            of_place = [r for r in log.records if r.key == row["key"] and r.partition == partition]
            if of_place and partition != row["partition"] and not is_nothing(value := of_place[-1].value):
                found[row["topic"], partition, row["key"]] = value or b""
    return found


def sends_of(world: World, rows: Sequence[Mapping[str, Any]]) -> dict[Place, bytes | None]:
    found = {}
    for row in rows:
        if row["action"] in SENDS:
            home = partition_for(row["key"], world.target(row["topic"]).partitions)
            place = home if row["partition"] is None else row["partition"]
            found[row["topic"], place, row["key"]] = row["value"]
    return found


@dataclass
class Run:
    """The plan's snapshot in a folder, and its parts, read again whenever that is asked."""

    world: World
    plan: MigrationPlan
    folder: Path

    def numbers(self) -> range:
        return range(len(self.plan.parts))

    def again(self, name: str, topics: Sequence[PlannedTopic] | None = None) -> Path:
        rng, world = self.world.rng, self.world
        read(rng, self.folder / name, topics or world.to(), world.targets, KeyParts(self.plan.parts))
        return self.folder / name

    def compared(self, name: str, topics: Sequence[PlannedTopic] | None = None, *, since: bool = False) -> Comparison:
        again = self.again(name, topics)
        found = [
            tasks_of.compare_part(self.folder, number, again, side="target", since=since, limit=9)
            for number in self.numbers()
        ]
        return tasks_of.united(found, limit=9)

    def unwritten(self, name: str) -> list[dict[str, Any]]:
        again, into = self.again(name), self.folder / f"{name}-into"
        into.mkdir()
        for number in self.numbers():
            tasks_of.land_unwritten(self.folder, number, again, into)
        return [row for number in self.numbers() for row in tasks_of.to_write(part_file(into, number)).to_pylist()]


def decided(world: World, folder: Path) -> tuple[Run, bool, list[dict[str, Any]]]:
    """Both sides read and decided; whether every key of the target lies at home."""
    rng = world.rng
    parts = parts_of(world.planned, records=1, least=rng.choice([1, 2, 4]))
    to = tuple(world.to())
    plan = MigrationPlan("c", "g", world.policy, tuple(world.planned), to, world.routes, NOTHING, "", parts=parts)
    read(rng, folder / "source", world.planned, world.sources, KeyParts(parts, plan.renames()))
    in_place = read(rng, folder / "target", plan.targets, world.targets, KeyParts(parts))
    for each in ("decisions", "sample", "stale"):
        (folder / each).mkdir()
    found = [tasks_of.decide_part(folder, number, plan) for number in range(len(parts))]
    tally = Tally.of(
        (group for part in found for group in part.groups),
        records=older_in(folder / "source") + sum(part.rows for part in found),
        keys=((*whose, count) for part in found for whose, count in part.keys.items()),
        sources=plan.sources,
        routed=plan.connectors_of("source"),
        scattered=sum(part.scattered for part in found),
    )
    tally.check()
    assert tally.records == sum(len(log.records) for log in world.sources)
    rows = [row for number in range(len(parts)) for row in tasks_of.decisions_of(folder, number).to_pylist()]
    return Run(world, replace(plan, tally=tally), folder), in_place, rows


@given(st.randoms(use_true_random=False))
def test_a_migration_is_what_each_single_record_means(
    tmp_path_factory: pytest.TempPathFactory, rng: random.Random
) -> None:
    folder = tmp_path_factory.mktemp("world")
    world = any_world(rng, folder)
    if world is None:
        return
    run, in_place, rows = decided(world, folder)
    is_decided_as_each_key(world, rows)
    sends, copies = sends_of(world, rows), copies_beside(world, rows)
    tasks_of.keep_writers(folder / "decisions", run.plan)
    written = [
        row for number in run.numbers() for row in tasks_of.rows_of_writer(folder / "decisions", number).to_pylist()
    ]
    assert len(written) == len(sends)
    assert {(row["topic"], row["partition"], row["key"]): row["value"] for row in written} == sends
    if not in_place:
        for number in run.numbers():
            tasks_of.land_stale(folder, number)
    found = [tasks_of.records_of(read_table(file)) for file in part_files(folder / "stale")]
    assert {(r.topic, r.partition, r.key): r.value for some in found for r in some} == copies
    kept = [row for table in replaced(folder) for row in table.to_pylist()]
    before = {(row["topic"], row["partition"], row["key"]): (row["value"], row["written"]) for row in kept}
    of_rows = {(row["topic"], row["key"]): row["before"] for row in rows}
    wanted = {place: (of_rows[place[0], place[2]], value) for place, value in sends.items()}
    assert (len(kept), before) == (
        len(sends) + len(copies),
        wanted | {place: (copies[place], None) for place in copies},
    )
    planned = {topic.name: topic for topic in world.to()}
    _is_written_and_compared(run, sends, copies, planned)


def _is_written_and_compared(
    run: Run, sends: Mapping[Place, bytes | None], copies: Mapping[Place, bytes], planned: Mapping[str, PlannedTopic]
) -> None:
    """Cut off anywhere, resumed, and looked at after somebody else has written."""
    world, rng = run.world, run.world.rng
    for topic, partition, key in sorted(copies):
        world.target(topic).append(partition, 100, key, None)
    done = [place for place in sorted(sends) if rng.random() < 0.5]
    for number, (topic, partition, key) in enumerate(done):
        world.target(topic).append(partition, 101 + number, key, sends[topic, partition, key])
    left = run.unwritten("resumed")
    assert {(row["topic"], row["partition"], row["key"]) for row in left} == set(sends).difference(done)
    for row in left:
        world.target(row["topic"]).append(row["partition"], 200, row["key"], row["value"])
    compared = run.compared("verified")
    assert (compared.compared, compared.differing) == (run.plan.tally.keys, 0)
    if copies:
        return
    if rng.random() < 0.7:  # somebody writes: only what came since is read, or all, and they say the same
        key, log = any_key(rng), rng.choice(world.targets)
        log.append(rng.randrange(log.partitions), rng.choice([0, 300]), key, rng.choice(VALUES))
    begun = {(name, one.partition): one.lso for name, topic in planned.items() for one in topic.bounds}
    since = [
        replace(topic, bounds=tuple(replace(one, begin=begun[topic.name, one.partition]) for one in topic.bounds))
        for topic in world.to()
    ]
    whole, new = run.compared("whole"), run.compared("since", since, since=True)
    assert whole.compared == new.compared == run.plan.tally.keys
    assert whole.differing == 0 or new.differing > 0, "a difference is never missed"
