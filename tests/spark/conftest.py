"""One small Spark session for the tests of this folder."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eosctl.java import require_java, spark_java_home
from eosctl.ops.migrate_run import Engine
from eosctl.sandbox.jars import cache_dir
from eosctl.spark.job import MigrationJob
from eosctl.spark.session import SessionSettings, spark_context
from tests.spark.cluster import Cluster


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One core, two shuffle partitions, no adaptive replanning: quick, and the same every time.

    A task may fail three times, as on a cluster.
    """
    conf = {"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"}
    work_dir = tmp_path_factory.mktemp("spark")
    settings = SessionSettings(
        work_dir,
        work_dir / "spark.log",
        master="local[1,4]",
        java_home=spark_java_home(require_java(os.environ), work_dir),
        conf=conf,
        cache=cache_dir(os.environ) / "spark",
    )
    with spark_context(settings):
        yield SparkSession.builder.getOrCreate()


@pytest.fixture
def cluster(stack: Any) -> Cluster:
    return Cluster(stack.bootstrap_servers, f"m{uuid.uuid4().hex[:8]}")


@pytest.fixture
def engine(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> Engine:
    """The real stages on the session of this folder's tests: a process has one Spark at a time."""

    @contextmanager
    def opened(_records: int) -> Iterator[Any]:
        yield MigrationJob(spark.sparkContext, {"bootstrap.servers": cluster.servers})

    return Engine(tmp_path / "migrations", open_stages=opened)
