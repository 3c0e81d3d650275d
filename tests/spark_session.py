"""The Spark session that all tests share: a process has one at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One core, two shuffle partitions, no adaptive replanning: quick, and the same every time.

    A task may fail three times, as on a cluster.
    """
    from pyspark.sql import SparkSession

    from eosctl.java import require_java, spark_java_home
    from eosctl.sandbox.jars import cache_dir
    from eosctl.spark.session import SessionSettings, spark_context

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
