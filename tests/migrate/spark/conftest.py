"""A broker to read and write by other means than eosctl's, and the real stages on the tests' Spark session."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eosctl.core.clients.settings import ClientSettings
from eosctl.migrate.run import Engine
from eosctl.migrate.spark.job import MigrationJob
from tests.migrate.spark.cluster import Cluster


@pytest.fixture
def cluster(stack: Any) -> Cluster:
    return Cluster(stack.bootstrap_servers, f"m{uuid.uuid4().hex[:8]}")


@pytest.fixture
def engine(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> Engine:
    """The real stages on the session of all tests: a process has one Spark at a time."""

    @contextmanager
    def opened() -> Iterator[Any]:
        yield MigrationJob(spark.sparkContext, ClientSettings((cluster.servers,)))

    return Engine(tmp_path / "migrations", open_stages=opened)
