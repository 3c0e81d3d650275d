"""Where the Python processes of tasks find pyspark."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from eosctl.migrate.spark.daemon import without_zips
from eosctl.migrate.spark.session import SessionSettings, session_conf
from eosctl.migrate.spark.snapshots import run_tasks


def test_only_sparks_own_zips_go() -> None:
    path = ["", "/spark/python/lib/pyspark.zip", "/spark/python/lib/py4j-0.10.9.9-src.zip", "/usr/lib/python311.zip"]
    assert without_zips([*path, "/scratch/eosctl.zip"]) == ["", "/usr/lib/python311.zip", "/scratch/eosctl.zip"]


@pytest.mark.parametrize(
    ("master", "conf", "installed"),
    [
        ("local[*]", {}, True),
        ("local-cluster[2,1,1024]", {}, False),
        ("spark://here:7077", {}, False),
        ("local[2]", {"spark.pyspark.python": "/other/python"}, False),
    ],
)
def test_a_package_is_shipped_to_those_who_may_not_have_it(
    tmp_path: Path, master: str, conf: Mapping[str, str], installed: bool
) -> None:
    made = session_conf(SessionSettings(tmp_path, tmp_path / "log", master=master, conf=conf))
    assert ("spark.python.daemon.module" in made, "spark.submit.pyFiles" in made) == (installed, not installed)


@pytest.mark.spark
def test_tasks_run_the_installed_pyspark(spark: SparkSession) -> None:
    """Spark's own copy is a zip: the first task took a second longer to start."""

    def where(_number: int) -> tuple[str, str]:
        import pyspark

        return pyspark.__file__, sys.executable

    assert run_tasks(spark.sparkContext, 1, where) == [(pyspark.__file__, sys.executable)]


@pytest.mark.spark
def test_tasks_begin_with_what_they_need(spark: SparkSession) -> None:
    """Each of the processes loaded it for itself: half a second, and memory of its own for each."""

    def loaded(_number: int) -> set[str]:
        return {"confluent_kafka", "pyarrow.compute", "eosctl.engine.write"} - set(sys.modules)

    assert run_tasks(spark.sparkContext, 1, loaded) == [set()]


@pytest.mark.spark
def test_tasks_give_memory_back_when_it_is_free(spark: SparkSession) -> None:
    """Arrow's own allocator kept it: 200 MiB more in all processes of a migration."""

    def allocator(_number: int) -> str:
        import pyarrow

        return str(pyarrow.default_memory_pool().backend_name)

    assert run_tasks(spark.sparkContext, 1, allocator) == ["system"]
