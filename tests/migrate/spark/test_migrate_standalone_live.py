"""`offsets migrate` on a Spark cluster of several processes: plan, records and results pass between them, and some die.

docs/how-to/migrate-on-a-cluster.md describes it; of what it says, the environment that travels as an archive is not
run here.
"""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

import eosctl.__main__
from eosctl.core.offsets.names import partition_for
from eosctl.errors import ExitCode
from tests.migrate.spark.cluster import PARTITIONS, Cluster
from tests.migrate.spark.driver import kill_driver
from tests.migrate.spark.event_log import at_each_stage, logged_in, lost_tasks, speculative_tasks, stages
from tests.migrate.spark.standalone import BIN, Standalone, standalone, tasks_of
from tests.migrate.spark.warm_jvm import WarmJvm
from tests.sandbox_fixtures import wait_until

pytestmark = [pytest.mark.live, pytest.mark.spark]

# as many as two tasks are worth, so that both workers have one
KEYS = {b'["c%d",{"file":"f%d"}]' % (number % 2, number): b'{"position":%d}' % number for number in range(10_000)}
SPARK_CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    # no task before both executors are there, or the first one would do the work of both
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    # compiled, as queries over millions of records are
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.python.worker.reuse": "false",  # whoever has Python processes is at work
}
DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.executorIdleTimeout": "5s",
    "spark.executor.cores": "1",
    "spark.scheduler.minRegisteredResourcesRatio": "0.0",
}
SPECULATIVE = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "10ms",
}
WRITING = "eosctl writing"
PYTHON = [sys.executable, "-m", "eosctl"]
Run = Callable[..., subprocess.CompletedProcess[str]]


# what docs/how-to/migrate-on-a-cluster.md asks of an executor
ON_EXECUTORS = {"confluent-kafka", "msgspec", "numpy", "pyarrow"}
HIDING = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in {modules!r}:
            raise ModuleNotFoundError("not on executors: " + name, name=name)

sys.meta_path.insert(0, Hidden())
"""


def _conf(spark: Standalone) -> dict[str, str]:
    """Executors find none of what eosctl needs but on the driver."""
    bare = spark.folder / "bare"
    if not bare.exists():
        bare.mkdir()
        (bare / "sitecustomize.py").write_text(HIDING.format(modules=_only_on_the_driver()))
    executors = {"spark.executorEnv.PYTHONPATH": str(bare), "spark.executor.extraJavaOptions": spark.quick}
    return SPARK_CONF | executors


def _only_on_the_driver() -> set[str]:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[>=<\[]", each)[0] for each in project["dependencies"]}
    assert needed > ON_EXECUTORS
    owners = packages_distributions().items()
    return {module for module, found in owners if {each.lower() for each in found} & (needed - ON_EXECUTORS)}


def _flags(conf: Mapping[str, str]) -> list[str]:
    return [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]


def _environ(folder: Path, jvm: WarmJvm | None = None) -> dict[str, str]:
    there = os.environ if jvm is None else jvm.environ
    return {**there, "XDG_STATE_HOME": str(folder / "state"), "PYSPARK_PYTHON": sys.executable}


@pytest.fixture(scope="module")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("standalone")) as spark:
        yield spark


@pytest.fixture
def run(cluster: Cluster, tmp_path: Path) -> Run:
    """Runs `START… offsets WORDS…` on that Spark as a process of its own; `more` are settings of Spark.

    With `jvm` its driver is in there.
    """

    def done(
        spark: Standalone, start: list[str], *words: str, more: Mapping[str, str] | None = None,
        jvm: WarmJvm | None = None,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        conf = _flags({**_conf(spark), **(more or {})})
        where = ["--master", spark.master, *conf, "-b", cluster.servers, "--offset-topic", cluster.name]
        line = [*start, "offsets", *words, *where, "--timeout", "500s", "-o", "json"]
        environ = _environ(tmp_path, jvm)
        return subprocess.run(line, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=550)

    return done


def test_a_master_and_two_workers_by_python_and_by_spark_submit(
    cluster: Cluster, spark_cluster: Standalone, run: Run, warm: WarmJvm, tmp_path: Path
) -> None:
    """Each worker has a task. Those that read needed msgspec, which nobody had told to install on executors.

    Under spark-submit each run used to spend a while on keeping classes that it never kept.
    """
    spark = spark_cluster
    cluster.create(cluster.name)
    cluster.write(cluster.name, KEYS.items())
    data = _as_undisturbed(cluster, run(spark, PYTHON, "migrate", *_everything(cluster)))
    assert data["summary"]["transactions"] == 2
    assert spark.workers_at_work() == ["worker-1", "worker-2"]

    _nobody_comes(spark, warm, tmp_path)
    plan = str(Path(data["snapshot"]) / "plan.json")
    submit = ["env", f"JAVA_HOME={spark.java_home}", str(BIN / "spark-submit"), "--master", spark.master]
    submit += ["--driver-java-options", spark.quick, *_flags(_conf(spark))]
    verified = run(spark, [*submit, str(eosctl.__main__.__file__)], "verify", plan)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    messages, brace, document = verified.stdout.partition("{\n")  # spark-submit prints the driver's stderr there, too
    summary = json.loads(brace + document)["data"]["summary"]
    assert (summary["source_compared"], summary["target_compared"]) == (len(KEYS), len(KEYS))
    assert "keeping Spark's classes" not in messages


def test_a_snapshot_folder_that_one_worker_does_not_share(
    cluster: Cluster, spark_cluster: Standalone, run: Run, warm: WarmJvm
) -> None:
    """The second worker has a folder of that name, and another one lies there: refused before anything is read."""
    cluster.create(cluster.name)
    cluster.write(cluster.name, KEYS.items())
    apart = spark_cluster.apart / "snapshots"
    refused = run(spark_cluster, PYTHON, "migrate", *_everything(cluster), "--snapshot-dir", str(apart), jvm=warm)
    assert refused.returncode == ExitCode.USAGE, refused.stderr
    [error] = json.loads(refused.stdout)["errors"]
    here = f"{apart} is not the same folder on {platform.node()}, where executors run; nothing was read"
    assert (error["message"], "share" in error["hint"]) == (here, True)
    assert [path.name for path in apart.iterdir()] == ["spark.log"]


@pytest.mark.slow
def test_an_executor_dies_in_every_stage(cluster: Cluster, spark_cluster: Standalone, run: Run, tmp_path: Path) -> None:
    """Each time another executor comes, and the task that was lost is tried again."""
    cluster.create(cluster.name)
    cluster.write(cluster.name, KEYS.items())
    killed: list[str] = []

    def kill(stage: str) -> None:
        executor = wait_until(lambda: _busy(spark_cluster), what=f"an executor at work: {stage}")[0]
        os.kill(executor, signal.SIGKILL)
        killed.append(stage)

    with at_each_stage(tmp_path / "events", kill) as settings:
        migrated = run(spark_cluster, PYTHON, "migrate", *_everything(cluster), more=settings)
    _as_undisturbed(cluster, migrated)
    assert lost_tasks(tmp_path / "events") == dict.fromkeys(killed, 1)
    assert WRITING in killed


def test_a_killed_driver_resumed_with_dynamic_allocation_and_speculation(
    cluster: Cluster, spark_cluster: Standalone, run: Run, warm: WarmJvm, tmp_path: Path
) -> None:
    """Executors end with their driver, and --resume ends in the same state.

    With speculation Spark started second copies of tasks that write, and each fences the one before.
    """
    cluster.create(cluster.name)
    cluster.write(cluster.name, KEYS.items())
    snapshots, events = tmp_path / "snapshots", tmp_path / "events"
    conf = _flags({**_conf(spark_cluster), **logged_in(events)})
    killed = kill_driver(
        cluster, [*_everything(cluster), "--snapshot-dir", str(snapshots), *conf],
        lambda: WRITING in stages(events), environ=_environ(tmp_path), master=spark_cluster.master,
    )  # fmt: skip
    assert killed
    wait_until(lambda: not spark_cluster.executors(), what="the executors to end")
    [plan] = snapshots.glob("*/plan.json")
    flags = ["--plan", str(plan), "--yes", "--resume", "--force-running"]
    with at_each_stage(tmp_path / "more-events", partial(_hold_up_a_writer, spark_cluster)) as settings:
        more = {**settings, **DYNAMIC, **SPECULATIVE}
        resumed = run(spark_cluster, PYTHON, "migrate", *flags, more=more, jvm=warm)
    assert "backup" in _as_undisturbed(cluster, resumed)["skipped"]
    for connector in ("c0", "c1"):
        records = sum(1 for _ in cluster.messages(f"{cluster.name}-{connector}"))
        assert records == len(KEYS) // 2, "a record is there twice"
    assert speculative_tasks(tmp_path / "more-events") == 0
    assert "spark.speculation stays off" in resumed.stderr


def _hold_up_a_writer(spark: Standalone, stage: str) -> None:
    """Long enough for Spark to start a second copy of its task, if it would, where the other executor is idle again."""
    if stage != WRITING:
        return
    # a task may be short: the driver that was killed had written much of it
    first = wait_until(lambda: _busy(spark), what=f"an executor at work: {stage}", poll_s=0.01)[0]
    tasks = tasks_of(first)
    for task in tasks:
        os.kill(task, signal.SIGSTOP)
    try:
        wait_until(lambda: [each for each in spark.executors() if each != first], what="the other executor")
        time.sleep(3.0)
    finally:
        for task in tasks:
            with suppress(ProcessLookupError):
                os.kill(task, signal.SIGCONT)


def _everything(cluster: Cluster) -> list[str]:
    return ["--all", "--dedicated-topic", f"{cluster.name}-{{connector}}", "--force-running", "--yes"]


def _busy(spark: Standalone) -> list[int]:
    """The executors that run tasks."""
    return [executor for executor in spark.executors() if tasks_of(executor)]


def _as_undisturbed(cluster: Cluster, migrated: subprocess.CompletedProcess[str]) -> Any:
    """The document's data of a run that has moved all KEYS."""
    assert migrated.returncode == 0, migrated.stderr
    data: Any = json.loads(migrated.stdout)["data"]
    summary = data["summary"]
    assert (summary["sent"] + summary["already_written"], summary["verified"]) == (len(KEYS), len(KEYS))
    for connector in ("c0", "c1"):
        mine = {key: value for key, value in KEYS.items() if f'"{connector}"'.encode() in key}
        placed = {key: (partition_for(key, PARTITIONS), value) for key, value in mine.items()}
        assert cluster.committed(f"{cluster.name}-{connector}") == placed
    return data


_ALONE = """
import sys
from pathlib import Path
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.offsets.migration import PlannedTopic
from eosctl.core.records import Bounds
from eosctl.errors import DeadlineError
from eosctl.migrate.spark.job import MigrationJob
from eosctl.migrate.spark.session import spark_context
from tests.quick_spark import quick_settings

master, folder = sys.argv[1], Path(sys.argv[2])
conf = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "900g"}
with spark_context(quick_settings(folder, master=master, conf=conf)) as context:
    job = MigrationJob(context, ClientSettings(("127.0.0.1:1",)), executor_patience_s=3)
    try:
        job.snapshot([PlannedTopic("t", "id", 1, 1, (Bounds(0, 0, 1, 1),))], folder / "source")
    except DeadlineError as exc:
        print(exc.message)
"""


def _nobody_comes(spark: Standalone, jvm: WarmJvm, folder: Path) -> None:
    """A cluster that has no room for an executor was waited for without end."""
    (folder / "alone").mkdir()
    line = [sys.executable, "-c", _ALONE, spark.master, str(folder / "alone")]
    done = subprocess.run(line, env=jvm.environ, capture_output=True, text=True, timeout=300)
    assert done.stdout == f"reading the source: no executor came to Spark master {spark.master} within 3 s\n", (
        done.stderr
    )
