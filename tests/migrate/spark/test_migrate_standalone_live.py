"""`offsets migrate` on a Spark cluster of several processes: plan, records and results pass between them.

docs/migrate-on-a-cluster.md describes it; of what it says, the environment that travels as an archive is not run here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eosctl.__main__
from eosctl.core.offsets.murmur2 import partition_for
from tests.migrate.spark.cluster import PARTITIONS, Cluster
from tests.migrate.spark.standalone import BIN, Standalone, standalone

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
}
Run = Callable[..., subprocess.CompletedProcess[str]]


def _conf(spark: Standalone) -> dict[str, str]:
    return {**SPARK_CONF, "spark.executor.extraJavaOptions": spark.quick}


@pytest.fixture
def run(cluster: Cluster, tmp_path: Path) -> Run:
    """Runs `START… offsets WORDS…` on that Spark as a process of its own."""

    def done(spark: Standalone, start: list[str], *words: str) -> subprocess.CompletedProcess[str]:
        conf = [word for name, value in _conf(spark).items() for word in ("--conf", f"{name}={value}")]
        where = ["--master", spark.master, *conf, "-b", cluster.servers, "--offset-topic", cluster.name]
        line = [*start, "offsets", *words, *where, "--timeout", "500s", "-o", "json"]
        environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "PYSPARK_PYTHON": sys.executable}
        return subprocess.run(line, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=550)

    return done


def test_a_master_and_two_workers_by_python_and_by_spark_submit(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    """The first writes without a shuffle, a task per worker; the second compares with one.

    Under spark-submit each run used to spend a while on keeping classes that it never kept.
    """
    cluster.create(cluster.name)
    cluster.write(cluster.name, KEYS.items())
    with standalone(tmp_path) as spark:
        python = [sys.executable, "-m", "eosctl"]
        pattern = f"{cluster.name}-{{connector}}"
        migrated = run(spark, python, "migrate", "--all", "--dedicated-topic", pattern, "--force-running", "--yes")
        assert migrated.returncode == 0, migrated.stderr
        data: Any = json.loads(migrated.stdout)["data"]
        assert (data["summary"]["sent"], data["summary"]["verified"]) == (len(KEYS), len(KEYS))
        assert data["summary"]["transactions"] == 2
        for connector in ("c0", "c1"):
            mine = {key: value for key, value in KEYS.items() if f'"{connector}"'.encode() in key}
            placed = {key: (partition_for(key, PARTITIONS), value) for key, value in mine.items()}
            assert cluster.committed(f"{cluster.name}-{connector}") == placed
        assert spark.workers_at_work() == ["worker-1", "worker-2"]

        _nobody_comes(spark, tmp_path)
        plan = str(Path(data["snapshot"]) / "plan.json")
        submit = [str(BIN / "spark-submit"), "--master", spark.master, "--driver-java-options", spark.quick]
        submit += [word for name, value in _conf(spark).items() for word in ("--conf", f"{name}={value}")]
        verified = run(spark, [*submit, str(eosctl.__main__.__file__)], "verify", plan)
        assert verified.returncode == 0, verified.stdout + verified.stderr
        messages, brace, document = verified.stdout.partition(
            "{\n"
        )  # spark-submit prints the driver's stderr there, too
        summary = json.loads(brace + document)["data"]["summary"]
        assert (summary["source_compared"], summary["target_compared"]) == (len(KEYS), len(KEYS))
        assert "keeping Spark's classes" not in messages


_ALONE = """
import sys
from pathlib import Path
from eosctl.core.offsets.migration import PlannedTopic
from eosctl.core.records import Bounds
from eosctl.errors import DeadlineError
from eosctl.migrate.spark.job import MigrationJob
from eosctl.migrate.spark.session import spark_context
from tests.quick_spark import quick_settings

master, folder = sys.argv[1], Path(sys.argv[2])
conf = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "900g"}
with spark_context(quick_settings(folder, master=master, conf=conf)) as context:
    job = MigrationJob(context, {}, executor_patience_s=3)
    try:
        job.snapshot([PlannedTopic("t", "id", 1, 1, (Bounds(0, 0, 1, 1),))], folder / "source")
    except DeadlineError as exc:
        print(exc.message)
"""


def _nobody_comes(spark: Standalone, folder: Path) -> None:
    """A cluster that has no room for an executor was waited for without end."""
    (folder / "alone").mkdir()
    line = [sys.executable, "-c", _ALONE, spark.master, str(folder / "alone")]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300)
    assert done.stdout == f"reading the source: no executor came to Spark master {spark.master} within 3 s\n", (
        done.stderr
    )
