"""The Spark session that tests share, as a process has one at a time, and the JVM that commands share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.migrate.spark.warm_jvm import WarmJvm


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One core, two shuffle partitions, no adaptive replanning: quick, and the same every time.

    A task may fail three times, as on a cluster.
    """
    from pyspark.sql import SparkSession

    from eosctl.migrate.spark.session import spark_context
    from tests.quick_spark import quick_settings

    conf = {"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"}
    with spark_context(quick_settings(tmp_path_factory.mktemp("spark"), master="local[1,4]", conf=conf)):
        yield SparkSession.builder.getOrCreate()


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmJvm]:
    """What a test starts that is about something else than the start of Spark: a start costs more than most jobs."""
    from tests.migrate.spark.warm_jvm import warm_jvm

    with warm_jvm(tmp_path_factory.mktemp("jvm")) as jvm:
        yield jvm
