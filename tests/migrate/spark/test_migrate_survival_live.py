"""Tasks that die and a broker that is killed in the middle of a migration: the target ends as if nothing had happened.

The faults come in by real doors: what a task that reads tells of how far it is, librdkafka's statistics, which it hands
to Python inside the task that writes, and a stage of Spark's behind the one that wrote.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.configs.records import Selection
from eosctl.core.offsets.migration import MigrationPlan, Snapshot, read_plan
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.views import Policy
from eosctl.deadline import Clock
from eosctl.errors import ExitCode
from eosctl.kafka.topics.bulk import Counts
from eosctl.migrate.journal import Stage, migration_journal, read_earlier_runs
from eosctl.migrate.plan import MigrationRequest, snapshot_folder
from eosctl.migrate.rows import MigratedSummary
from eosctl.migrate.run import Engine, migration_from_file, prepared_migration
from eosctl.migrate.spark.job import MigrationJob
from eosctl.migrate.spark.snapshots import RecordCounts
from eosctl.report import Report
from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack
from tests.migrate.spark.cluster import DOWN, PARTITIONS, Cluster, app

pytestmark = [pytest.mark.live, pytest.mark.spark]

TASKS = 2
SOURCE = {b'["c",{"file":"f%d"}]' % number: b'{"position":%d}' % number for number in range(750)}
THERE = {b'["c",{"file":"f7"}]': b'{"position":-7}', b'["other",{"file":"f"}]': b'{"position":1}'}
EXPECTED = {(partition_for(key, PARTITIONS), key): value for key, value in {**THERE, **SOURCE}.items()}

QUEUE = 20
SLOW = {"queue.buffering.max.messages": str(QUEUE), "statistics.interval.ms": "5"}
"""A producer with so short a queue polls, and so tells of itself, many times within one transaction. When it has sent
more than the queue holds, the broker has confirmed some of it."""


class ClumsyJob(MigrationJob, frozen=True):
    """A MigrationJob whose write tasks go through `returning` after they committed; `on_read` is told by those that
    read how many offsets are behind them."""

    returning: Callable[[Counts], Counts] | None = None
    on_read: Callable[[int], None] | None = None

    def least_parts(self, records: int) -> int:
        return TASKS

    def _land(self, *arguments: Any, **more: Any) -> Snapshot:
        *others, counts = arguments
        told = counts if self.on_read is None else _told(counts, self.on_read)
        land: Any = MigrationJob._land
        return cast(Snapshot, land(self, *others, told, **more))

    def _writer(self, *arguments: Any) -> Callable[[int], Counts]:
        write, returning = MigrationJob._writer(self, *arguments), self.returning
        return write if returning is None else lambda number: returning(write(number))


def _told(counts: RecordCounts, on_read: Callable[[int], None]) -> Any:
    """`counts` whose tasks tell `on_read`, too; classes of a function travel to tasks with it."""

    class Progress:
        def __init__(self, task: int) -> None:
            self._counts = counts.of_task(task)

        def tell(self, count: Callable[[], int], *, last: bool = False) -> None:
            on_read(count())
            self._counts.tell(count, last=last)

    class Counts:
        of_task = staticmethod(Progress)

    return Counts


@dataclass
class Scene:
    """One plan on a broker, and jobs of our choice to make and apply it."""

    context: SparkContext
    cluster: Cluster
    folder: Path
    target: str = field(init=False)

    def __post_init__(self) -> None:
        self.target = f"{self.cluster.name}-c"
        self.cluster.create(self.cluster.name, self.target)
        self.cluster.write(self.cluster.name, SOURCE.items(), **{"batch.num.messages": 10})
        self.cluster.write(self.target, THERE.items())

    def job(self, faults: dict[str, Any], **more: Any) -> ClumsyJob:
        client = ClientSettings((self.cluster.servers,), extra={**SLOW, **faults})
        return ClumsyJob(self.context, client, **more)

    def engine(self, job: ClumsyJob) -> Engine:
        @contextmanager
        def opened() -> Iterator[Any]:
            yield job

        return Engine(self.folder / "migrations", open_stages=opened)

    def plan(self, job: ClumsyJob) -> MigrationPlan:
        wanted = MigrationRequest(
            target=self.target, selection=Selection(all_connectors=True), policy=Policy.TAKE_SOURCE
        )
        path = self.folder / "plan.json"
        with prepared_migration(
            app(self.cluster, self.folder), wanted, self.engine(job), allowances=DOWN, plan_out=path
        ):
            return read_plan(path.read_text(), path=str(path))

    def apply(self, plan: MigrationPlan, job: ClumsyJob, *, resume: bool = False) -> Report:
        prepared = migration_from_file(
            app(self.cluster, self.folder), plan, self.engine(job), allowances=DOWN,
            plan_file=self.folder / "plan.json", resume=resume,
        )  # fmt: skip
        assert prepared.apply is not None
        return prepared.apply()

    def open_partitions(self) -> list[int]:
        """The target's partitions that an open transaction hides."""
        with app(self.cluster, self.folder).topics() as topics:
            return [bounds.partition for bounds in topics.bounds(self.target) if bounds.lso < bounds.end]

    def records(self, isolation_level: str) -> int:
        """How many records the target's log holds: `read_uncommitted` counts those of aborted transactions too."""
        return sum(1 for _ in self.cluster.messages(self.target, isolation_level))


@pytest.fixture
def scene(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> Scene:
    return Scene(spark.sparkContext, cluster, tmp_path)


def test_tasks_that_die_three_times(scene: Scene) -> None:
    """Each task that reads is killed in its first attempt; each that writes at the start of its first, in the middle of
    the second one's transaction, and after the third one's commit.
    """

    def attempt() -> int:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        return context.attemptNumber()

    def returning(counts: Counts) -> Counts:
        if attempt() == 2:
            os.kill(os.getpid(), 9)
        return counts

    def read(_passed: int) -> None:
        if attempt() == 0:
            os.kill(os.getpid(), 9)

    def told(statistics: str) -> None:
        told = json.loads(statistics)
        if attempt() == 0 or (attempt() == 1 and told["txmsgs"] > QUEUE):
            os.kill(os.getpid(), 9)

    plan = scene.plan(scene.job({}, on_read=read))
    assert len(plan.parts) == TASKS
    result = scene.apply(plan, scene.job({"stats_cb": told}, returning=returning, on_read=read))
    assert (result.exit_code, result.problems) == (ExitCode.OK, ())
    summary = result.summary_of(MigratedSummary)
    assert (summary.sent, summary.transactions, summary.verified) == (len(SOURCE), TASKS, len(SOURCE))
    assert scene.cluster.per_partition(scene.target) == EXPECTED
    committed = scene.records("read_committed")
    assert committed == 2 * len(SOURCE) + len(THERE), "the third attempt did not commit"
    assert scene.records("read_uncommitted") >= committed + TASKS, "the second attempt did not begin"


def test_a_task_that_dies_every_time(scene: Scene) -> None:
    """The run fails, says why and how to go on, and hides nothing from others; `resume` sends what is not there."""

    def told(statistics: str) -> None:
        from pyspark import TaskContext

        told, context = json.loads(statistics), TaskContext.get()
        if told["type"] == "producer" and told["txmsgs"] > QUEUE and context is not None and context.partitionId() == 1:
            os.kill(os.getpid(), 9)

    plan = scene.plan(scene.job({}))
    failed = scene.apply(plan, scene.job({"stats_cb": told}))
    died = "the Python process of a task died, killed or for want of memory (task 1, tried 4 times)"
    assert (failed.exit_code, failed.problems[0].message) == (ExitCode.FAILED, f"writing failed in Spark: {died}")
    assert "--resume" in str(failed.problems[0].hint)
    assert scene.open_partitions() == []
    past = read_earlier_runs(migration_journal(snapshot_folder(plan), Clock()))
    assert (Stage.WRITE in past.started, Stage.WRITE in past.done, past.write_tasks) == (True, False, TASKS)
    result = scene.apply(plan, scene.job({}), resume=True)
    assert (result.exit_code, result.problems) == (ExitCode.OK, ())
    summary = result.summary_of(MigratedSummary)
    assert summary.sent
    assert summary.already_written > 0
    assert summary.sent + summary.already_written == len(SOURCE)
    assert scene.cluster.per_partition(scene.target) == EXPECTED


@pytest.fixture
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A broker that may be killed: nobody else is on it."""
    stack = Stack.up(
        StackSpec(groups=()), tmp_path_factory.mktemp("mortal") / "stack", name="mortal", environ=os.environ
    )
    try:
        yield stack
    finally:
        stack.down()


@contextmanager
def revived(stack: Stack) -> Iterator[list[int]]:
    """Whenever the broker is dead it is started again; yields the pids of those that died."""
    died: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            node = stack.node("broker-1")
            if not node.process.alive():
                died.append(node.pid)
                stack.start_node(node.name)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield died
    finally:
        over.set()
        thread.join()


def test_a_broker_that_is_killed_while_it_is_read_and_written(
    spark: SparkSession, mortal: Stack, tmp_path: Path
) -> None:
    """The tasks themselves kill it, so that it is surely in the middle; they go on when it is back."""
    scene = Scene(spark.sparkContext, Cluster(mortal.bootstrap_servers, "m"), tmp_path)

    def killer() -> Callable[[int], None]:
        pid = mortal.node("broker-1").pid

        def kill(passed: int) -> None:
            if QUEUE < passed < len(SOURCE) // TASKS:
                with suppress(ProcessLookupError):
                    os.killpg(pid, 9)

        return kill

    def killer_of_writers() -> Callable[[str], None]:
        kill = killer()

        def told(statistics: str) -> None:
            kill(json.loads(statistics)["txmsgs"])

        return told

    soon = {"reconnect.backoff.max.ms": "500"}
    tiny = {"fetch.max.bytes": "1000", "max.partition.fetch.bytes": "1000"}
    with revived(mortal) as died:
        plan = scene.plan(scene.job(tiny, on_read=killer()))
        assert len(died) == 1
        assert plan.tally.keys == len(SOURCE)
        result = scene.apply(plan, scene.job({"stats_cb": killer_of_writers(), **soon}))
        assert len(died) == 2
    assert (result.exit_code, result.problems) == (ExitCode.OK, ())
    assert (result.summary.sent, result.summary.verified) == (len(SOURCE), len(SOURCE))
    assert scene.cluster.per_partition(scene.target) == EXPECTED
