"""A migration of two connectors that can be killed at every step there is, with topics in memory.

The stages are stand-ins, whose transactions stay open when their writer is killed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from eosctl.core.migration import MigrationPlan, Parts, PlannedTopic, Selection, Tally, read_plan
from eosctl.core.migration_results import Comparison, SentCounts, Snapshot
from eosctl.core.murmur2 import partition_for
from eosctl.core.offset_keys import key_owner
from eosctl.core.record_file import encode_bytes, record_line
from eosctl.core.records import OutRecord, Record
from eosctl.core.transactions import FenceAnswer, KafkaFault
from eosctl.deadline import Clock, Deadline
from eosctl.ops.app import App
from eosctl.ops.migrate import Allowances, MigrationRequest
from eosctl.ops.migrate_run import Engine, migration_from_file, prepared_migration
from eosctl.ops.ports import TransactionAdmin
from eosctl.profiles import Target
from eosctl.report import Report
from tests.fakes.faults import KilledError
from tests.fakes.topics import FakeTopicStore

SOURCE, PARTITIONS, TASKS = "connect-offsets", 3, 2
KEYS = {b'["%s",{"p":%d}]' % (name, number): b'{"n":%d}' % number for name in (b"a", b"b") for number in range(3)}
KEPT = b'["a",{"p":99}]'
OLD = b'["a",{"p":0}]'
DOWN = Allowances(force_running=True)
Row = tuple[str, int, bytes, bytes | None]


@dataclass
class World:
    """The cluster, and how many steps the next run may take before it is killed, or ends with another `ending`."""

    topics: KillableTopics
    steps_left: int = -1
    ending: BaseException = field(default_factory=KilledError)
    steps: int = 0
    open_ids: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)
    fenced: list[str] = field(default_factory=list)
    fence_fails: bool = False

    def step(self) -> None:
        self.steps += 1
        self.steps_left -= 1
        if self.steps_left == -1:
            raise self.ending

    def committed(self, topic: str) -> dict[bytes, Record]:
        logs = self.topics.topics[topic].partitions
        records = [r for log in logs for r in log.records if r.offset < log.lso and r.offset not in log.aborted]
        return {record.key or b"": record for record in records}

    def write_as(self, transactional_id: str, rows: Sequence[Row]) -> None:
        """One transaction; killed in the middle it stays open, until its id is fenced."""
        mine = self.open_ids.setdefault(transactional_id, [])
        for topic, partition, key, value in rows:
            self.step()
            log = self.topics.topics[topic].partitions[partition]
            if log.open_from is None:
                self.topics.open_transaction(topic, partition)
            mine.append((topic, partition, log.end))
            self.topics._append(OutRecord(topic, key, value), partition)
        self.step()
        self._end(transactional_id)

    def abort(self, transactional_id: str) -> None:
        for topic, partition, offset in self.open_ids.get(transactional_id, []):
            self.topics.topics[topic].partitions[partition].aborted.add(offset)
        self._end(transactional_id)

    def _end(self, transactional_id: str) -> None:
        for topic, partition in {(topic, partition) for topic, partition, _ in self.open_ids.pop(transactional_id, [])}:
            self.topics.close_transaction(topic, partition)

    # what a TransactionAdmin is asked for
    def __enter__(self) -> World:
        return self

    def __exit__(self, *_exc: object) -> None: ...

    def fence(self, ids: Sequence[str], *, transaction_timeout_ms: int) -> Iterator[FenceAnswer]:
        for each in ids:
            self.step()
            self.fenced.append(each)
            if self.fence_fails:
                yield FenceAnswer(each, None, fault=KafkaFault(51, "CONCURRENT_TRANSACTIONS", "busy"))
                continue
            self.abort(each)
            yield FenceAnswer(each, None, producer_id=1, producer_epoch=1)


class KillableTopics(FakeTopicStore):
    world: World

    def create(self, topic: str, *, partitions: int, replication_factor: int, config: Mapping[str, str]) -> None:
        self.world.step()
        super().create(topic, partitions=partitions, replication_factor=replication_factor, config=config)
        self.world.step()


@dataclass
class Stages:
    """Every stage in plain Python; what Spark would keep in the snapshot is kept here."""

    world: World
    decided: list[Row] = field(default_factory=list)
    before: dict[tuple[str, bytes], Record] = field(default_factory=dict)
    missing: list[Row] = field(default_factory=list)
    ranges: dict[str, Sequence[PlannedTopic]] = field(default_factory=dict)

    def least_parts(self, records: int) -> int:
        return 1

    def snapshot(self, topics: Sequence[PlannedTopic], folder: Path, *, parts: Parts = ()) -> Snapshot:
        self.world.step()
        self.ranges[folder.name] = topics
        return Snapshot(frozenset({"a", "b"}))

    def decide(self, folder: Path, plan: MigrationPlan) -> Tally:
        routes = {route.connector: route.target_topic for route in plan.routes}
        for key, record in sorted(self.world.committed(SOURCE).items()):
            owner = key_owner(key)
            assert owner is not None
            topic = routes[owner.connector]
            self.decided.append((topic, partition_for(key, PARTITIONS), key, record.value))
            if topic in self.world.topics.topics and key in self.world.committed(topic):
                self.before[topic, key] = self.world.committed(topic)[key]
        (folder / "decisions").mkdir()
        (folder / "decisions" / "_SUCCESS").touch()
        count = len(self.decided)
        return Tally(count, 0, 0, 0, 0, count, 1, 0, {"write": count, "delete": 0, "keep": 0, "conflict": 0})

    def sample(self, folder: Path, *, limit: int = 100) -> list[Any]:
        return []

    def backup(self, folder: Path, plan: MigrationPlan) -> Iterator[bytes]:
        for topic, partition, key, value in self.decided:
            self.world.step()
            before = self.before.get((topic, key), Record(topic, partition, -1, -1, key, None))
            yield f"{record_line(before, {'written': encode_bytes(value), 'cluster_id': plan.cluster_id})}\n".encode()

    def new_offsets(self, drift: Path, folder: Path, *, side: str) -> list[str]:
        ours = {(topic, key, value) for topic, _partition, key, value in self.decided}
        found = set()
        for topic in self.ranges[drift.name]:
            for bound in topic.bounds:
                log = self.world.topics.topics[topic.name].partitions[bound.partition]
                for record in log.records:
                    new = bound.begin <= record.offset < bound.lso and record.offset not in log.aborted
                    if new and (side == "source" or (topic.name, record.key, record.value) not in ours):
                        owner = key_owner(record.key)
                        found.add(owner.connector if owner else "")
        return sorted(found)

    def write_tasks(self, plan: MigrationPlan) -> int:
        return TASKS

    def unwritten(self, folder: Path, targets: Sequence[PlannedTopic]) -> int:
        self.world.step()
        there = {topic.name: self.world.committed(topic.name) for topic in targets}
        now = {(topic, key): record.value for topic, records in there.items() for key, record in records.items()}
        self.missing = [row for row in self.decided if now.get((row[0], row[2])) != row[3]]
        return len(self.missing)

    def write(
        self, folder: Path, plan: MigrationPlan, *, tasks: int, records: int, part: str = "decisions"
    ) -> SentCounts:
        assert tasks == TASKS, "another number of tasks gives the partitions to other ids"
        rows = self.decided if part == "decisions" else self.missing
        for task in range(tasks):
            mine = [row for row in rows if row[1] % tasks == task]
            if mine:
                self.world.write_as(f"{plan.transactional_id()}-{task}", mine)
        return SentCounts({"all": (len(rows), 0)}, {}, tasks)

    def compare(
        self, folder: Path, topics: Sequence[PlannedTopic], *, side: str, parts: Parts = (), limit: int = 100
    ) -> Comparison:
        self.world.step()
        wrong = [row for row in self.decided if self.world.committed(row[0]).get(row[2], _NOTHING).value != row[3]]
        return Comparison(len(self.decided), len(wrong), ())


_NOTHING = Record("", 0, 0, 0, b"", b"nothing")


class Scene:
    """One plan over a world of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.world = World(KillableTopics(cluster_id="cluster"))
        self.world.topics.world = self.world
        self.stages = Stages(self.world)
        self.world.topics.add_topic(SOURCE, PARTITIONS)
        self.world.topics.add_topic("offsets-a", PARTITIONS)
        self.put(SOURCE, KEYS)
        self.put("offsets-a", {KEPT: b'{"n":99}', OLD: b'{"n":-1}'})
        request = MigrationRequest(selection=Selection(all_connectors=True), dedicated_topic="offsets-{connector}")
        with prepared_migration(self.app(), request, self.engine(), allowances=DOWN) as prepared:
            path = Path(str(prepared.report.data["plan_file"]))
        self.plan = read_plan(path.read_text(), path=str(path))

    def put(self, topic: str, lines: Mapping[bytes, bytes | None]) -> None:
        for key, value in lines.items():
            self.world.topics._append(OutRecord(topic, key, value), partition_for(key, PARTITIONS))

    def app(self) -> App:
        def now_s() -> float:
            self.world.step()  # each line of the journal begins with the time
            return 1_700_000_000.0

        return App(
            Target(group_id="g"),
            Deadline.after(30, Clock()),
            self.folder,
            clock=Clock(now_s=now_s),
            open_topics=lambda _app: self.world.topics,
            open_transactions=lambda _app: cast(TransactionAdmin, self.world),
        )

    def engine(self) -> Engine:
        @contextmanager
        def opened(_records: int) -> Iterator[Any]:
            yield self.stages

        return Engine(self.folder / "migrations", open_stages=opened)

    def apply(self, *, resume: bool = False, allowances: Allowances = DOWN, steps: int = -1) -> Report:
        self.world.steps_left, self.world.steps = steps, 0
        apply = migration_from_file(
            self.app(), self.plan, self.engine(), allowances=allowances, plan_file=Path("p.json"), resume=resume
        ).apply
        assert apply is not None
        return apply()

    def killed_after(self, steps: int, *, resume: bool = False) -> None:
        with pytest.raises(KilledError):
            self.apply(steps=steps, resume=resume)
        self.world.steps_left = -1

    def target(self) -> dict[bytes, tuple[int, bytes | None]]:
        found = {**self.world.committed("offsets-a"), **self.world.committed("offsets-b")}
        return {key: (record.partition, record.value) for key, record in found.items()}

    def backup(self) -> list[str]:
        return (Path(self.plan.snapshot_base) / self.plan.name() / "backup.ndjson").read_text().splitlines()


EXPECTED = {key: (partition_for(key, PARTITIONS), value) for key, value in {KEPT: b'{"n":99}', **KEYS}.items()}
