"""A migration of two connectors that can be killed at every step there is, with topics in memory.

The stages are stand-ins, whose transactions stay open when their writer is killed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.migration import MigrationPlan, Parts, PlannedTopic, Selection, Tally, read_plan
from eosctl.core.migration_results import Comparison, SentCounts, Snapshot
from eosctl.core.murmur2 import partition_for
from eosctl.core.offset_keys import key_owner
from eosctl.core.record_file import encode_bytes, record_line
from eosctl.core.records import OutRecord, Record
from eosctl.deadline import Deadline
from eosctl.ops.app import App
from eosctl.ops.migrate import Allowances, MigrationRequest
from eosctl.ops.migrate_run import Engine, migration_from_file, prepared_migration
from eosctl.profiles import Target
from eosctl.report import Report
from tests.fakes.broker import FakeCluster
from tests.fakes.broker_state import BrokerState
from tests.fakes.clock import FakeTime
from tests.fakes.faults import Call, KilledError
from tests.fakes.topics import FakeTopicStore

SOURCE, PARTITIONS, TASKS = "connect-offsets", 3, 2
KEYS = {b'["%s",{"p":%d}]' % (name, number): b'{"n":%d}' % number for name in (b"a", b"b") for number in range(3)}
KEPT = b'["a",{"p":99}]'
OLD = b'["a",{"p":0}]'
DOWN = Allowances(force_running=True)
Row = tuple[str, int, bytes, bytes | None]


class World:
    """The cluster, and how many steps the next run may take before it is killed, or ends with another `ending`."""

    def __init__(self) -> None:
        self.brokers = FakeCluster(state=BrokerState(cluster_id="cluster", brokers=3))
        self.topics = FakeTopicStore(self.brokers.state)
        self.steps_left = -1
        self.ending: BaseException = KilledError()
        self.steps = 0
        self.fenced: list[str] = []
        for each in ("record", "create"):
            self.topics.before(each, lambda _call: self.step())
        for each in ("write", "create"):
            self.topics.after(each, lambda _call: self.step())
        self.brokers.calls.before("fence", self._fences)

    def step(self) -> None:
        self.steps += 1
        self.steps_left -= 1
        if self.steps_left == -1:
            raise self.ending

    def _fences(self, call: Call) -> None:
        self.step()
        self.fenced.append(str(call.what[0]))

    def committed(self, topic: str) -> dict[bytes, Record]:
        return {record.key or b"": record for record in self.topics.read(topic).records}

    def open_ids(self) -> list[str]:
        """The ids of the writers that have a transaction open."""
        return [name for name, known in self.brokers.state.transactions.items() if known.state == "Ongoing"]


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
                log = self.world.topics.state.log(topic.name, bound.partition)
                for record in log.visible("read_committed"):
                    new = bound.begin <= record.offset < bound.lso
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
                sent = [OutRecord(topic, key, value, partition) for topic, partition, key, value in mine]
                self.world.topics.write(sent, transactional_id=f"{plan.transactional_id()}-{task}")
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
        self.world = World()
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
            self.world.topics.put(topic, key, value)

    def app(self) -> App:
        time = FakeTime(1_700_000_000.0)

        def now_s() -> float:
            self.world.step()  # each line of the journal begins with the time
            return time.now_s

        clock = replace(time.clock(), now_s=now_s)
        return App(
            Target(group_id="g"),
            Deadline.after(30, clock),
            self.folder,
            clock=clock,
            open_topics=lambda _app: self.world.topics,
            open_transactions=self.world.brokers.open_transactions,
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
