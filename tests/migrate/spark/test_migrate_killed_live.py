"""`offsets migrate` killed with -9, resumed, and killed again, on a real broker: what is there in the end is what an
undisturbed run leaves, and `restore` puts back what was there before.

Killed when its first records are there, and early in the verification; `pytest --big` takes ten random
points of every stage, planning too, of another seed each time, which is printed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from eosctl.core.configs.records import Selection
from eosctl.core.offsets.migration import MigrationPlan, read_plan
from eosctl.core.offsets.views import Policy
from eosctl.deadline import Clock
from eosctl.errors import ExitCode
from eosctl.migrate.journal import Stage, migration_journal, read_earlier_runs
from eosctl.migrate.plan import MigrationRequest, snapshot_folder
from eosctl.migrate.run import Engine, migration_from_file, prepared_migration
from eosctl.report import Report
from tests.conftest import Invoke
from tests.migrate.spark.cluster import DOWN, PARTITIONS, Cluster, Line, app
from tests.migrate.spark.driver import kill_driver
from tests.sandbox_fixtures import PATIENCE_S

pytestmark = [pytest.mark.live, pytest.mark.spark]

OLD_TOPICS = ("c0", "c1")
"""Whose topics are there before, with other offsets: some stay, some are overwritten. Those of c2 and c3 are made."""
State = dict[tuple[str, int, bytes], bytes | None]
"""(connector, partition, key) -> value."""


def source_lines() -> Iterator[Line]:
    for number in range(15_000):
        yield b'["c%d",{"file":"f%d"}]' % (number % 4, number % 10_000), b'{"position":%d}' % number


def old_lines(connector: str) -> Iterator[Line]:
    for number in range(0, 11_000, 5):
        yield b'["%s",{"file":"f%d"}]' % (connector.encode(), number), b'{"position":-%d}' % number


@dataclass
class Move:
    """One plan: from the cluster's global topic to topics of its own, which begin with `prefix`."""

    cluster: Cluster
    engine: Engine
    prefix: str
    made: MigrationPlan = field(init=False)

    def __post_init__(self) -> None:
        self.cluster.create(*(f"{self.prefix}-{connector}" for connector in OLD_TOPICS))
        for connector in OLD_TOPICS:
            self.cluster.write(f"{self.prefix}-{connector}", old_lines(connector))
        self.plan_file = self.engine.snapshots.parent / f"{self.prefix}.json"
        self.app = app(self.cluster, self.engine.snapshots.parent)

    def plan(self) -> None:
        wanted = MigrationRequest(
            selection=Selection(all_connectors=True),
            policy=Policy.TAKE_SOURCE,
            dedicated_topic=f"{self.prefix}-{{connector}}",
        )
        with prepared_migration(self.app, wanted, self.engine, allowances=DOWN, plan_out=self.plan_file):
            self.made = read_plan(self.plan_file.read_text(), path=str(self.plan_file))

    def journal(self) -> list[Mapping[str, object]]:
        return migration_journal(snapshot_folder(self.made), Clock()).entries()

    def is_over(self, stage: Stage) -> bool:
        return stage in read_earlier_runs(migration_journal(snapshot_folder(self.made), Clock())).done

    def finish(self) -> Report:
        """In this process, on the session that is there."""
        prepared = migration_from_file(
            self.app, self.made, self.engine, allowances=DOWN, plan_file=self.plan_file, resume=True
        )
        assert prepared.apply is not None
        result = prepared.apply()
        assert (result.exit_code, result.problems) == (ExitCode.OK, ())
        assert result.summary.verified == result.summary.keys
        sent = sum(getattr(result.summary, name) or 0 for name in ("sent", "already_written"))
        assert sent == self.made.tally.to_write()
        return result

    def state(self) -> State:
        topics = AdminClient({"bootstrap.servers": self.cluster.servers}).list_topics(timeout=PATIENCE_S).topics
        return {
            (topic.removeprefix(self.prefix), partition, key): value
            for topic in topics
            if topic.startswith(f"{self.prefix}-")
            for (partition, key), value in self.cluster.per_partition(topic).items()
        }

    def kill(self, there: Callable[[], bool], *flags: str, after_s: float = 0.0) -> None:
        """Applies the plan, or goes on where it was cut off, and kills that so long after `there()`."""
        resume = ["--resume"] if self.journal() else []
        arguments = ["--plan", str(self.plan_file), "--yes", "--force-running", *resume, *flags]
        kill_driver(self.cluster, arguments, there, after_s=after_s)

    def kill_in(self, stage: Stage, *, after_s: float) -> bool:
        """Kills a run so long after the stage began; False where the stage was over by then."""

        def begun() -> int:
            return sum((line["event"], line.get("stage")) == ("started", stage.value) for line in self.journal())

        before = begun()
        self.kill(lambda: begun() > before, after_s=after_s)
        return not self.is_over(stage)

    def kill_while_planning(self, *, after_s: float) -> None:
        snapshots = self.engine.snapshots
        left = set(snapshots.glob(".planning-*"))
        arguments = ["--all", "--dedicated-topic", f"{self.prefix}-{{connector}}", "--conflict", "take-source"]
        arguments += ["--plan-out", str(self.plan_file), "--snapshot-dir", str(snapshots)]
        kill_driver(self.cluster, arguments, lambda: bool(set(snapshots.glob(".planning-*")) - left), after_s=after_s)

    def grows(self) -> Callable[[], bool]:
        """Whether the topics that were there have new records, those of open transactions too."""
        consumer = Consumer({"bootstrap.servers": self.cluster.servers, "group.id": "test"})
        places = [TopicPartition(f"{self.prefix}-{c}", number) for c in OLD_TOPICS for number in range(PARTITIONS)]

        def end() -> int:
            return sum(consumer.get_watermark_offsets(place, timeout=PATIENCE_S)[1] for place in places)

        before = end()
        return lambda: end() > before


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    seed = time.time_ns() if request.config.getoption("--big") else 6
    print(f"seed {seed}")
    return random.Random(seed)  # noqa: S311 - no secrets


def test_killed_resumed_and_taken_back(
    cluster: Cluster, engine: Engine, rng: random.Random, tmp_path: Path, invoke: Invoke, request: pytest.FixtureRequest
) -> None:
    big = request.config.getoption("--big")
    cluster.create(cluster.name)
    cluster.write(cluster.name, source_lines())
    moves = (Move(cluster, engine, f"{cluster.name}-{number}") for number in range(1_000))
    undisturbed, move = next(moves), next(moves)
    before = undisturbed.state()
    undisturbed.plan()
    undisturbed.finish()
    after, took_s = undisturbed.state(), _durations_s(undisturbed.journal())

    for _ in range(10 if big else 0):
        move.kill_while_planning(after_s=rng.uniform(0, 8))
        assert move.state() == before
    move.plan()
    assert not list(engine.snapshots.glob(".planning-*"))

    _kill_at_the_first_records(move, tmp_path)
    for stage in took_s if big else (Stage.VERIFY,):
        kills = 0
        while kills < (10 if big else 1):
            if move.is_over(stage):
                _finish_and_take_back(move, before, after, invoke)
                move = next(moves)
                move.plan()
            after_s = rng.uniform(
                0, took_s[stage] if big else took_s[stage] / 4
            )  # later ones may miss it, and cost a round
            kills += move.kill_in(stage, after_s=after_s)
            now = move.state()
            assert all(value in (before.get(key, after[key]), after[key]) for key, value in now.items())
            print(f"{stage} after {after_s:.2f} s of {took_s[stage]:.2f} s, kill {kills}: {_parts(now, before, after)}")
    _finish_and_take_back(move, before, after, invoke)


def _durations_s(journal: list[Mapping[str, object]]) -> dict[Stage, float]:
    times = {(line["event"], line.get("stage")): int(str(line["time_ms"])) for line in journal}
    there = [stage for stage in Stage if ("started", stage.value) in times]  # there are no copies to delete
    return {stage: (times["done", stage.value] - times["started", stage.value]) / 1000 for stage in there}


def _kill_at_the_first_records(move: Move, folder: Path) -> None:
    """With an event log, which tells that --conf arrives."""
    events = folder / "events"
    events.mkdir()
    move.kill(move.grows(), "--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir={events.as_uri()}")
    assert not move.is_over(Stage.VERIFY)
    assert list(events.iterdir()), "--conf did not arrive"


def _parts(now: State, before: State, after: State) -> str:
    """How far the move is."""
    written = sum(value != before.get(key) for key, value in now.items())
    return f"{written} of {sum(value != before.get(key) for key, value in after.items())} written"


def _finish_and_take_back(move: Move, before: State, after: State, invoke: Invoke) -> None:
    assert "backup" in str(move.finish().data.skipped)
    assert move.state() == after
    backup = snapshot_folder(move.made) / "backup.parquet"
    flags = ("-b", move.cluster.servers, "--offset-topic", move.cluster.name)
    taken_back = invoke("offsets", "restore", str(backup), "--yes", "--force-running", *flags)
    assert taken_back.exit_code == 0, taken_back.stderr
    assert {key: value for key, value in move.state().items() if value is not None} == before
