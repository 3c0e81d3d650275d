"""One small Spark session for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from eosctl.spark.session import SessionSettings, spark_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """local[1], two shuffle partitions, no adaptive replanning: quick, and the same every time."""
    conf = {"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"}
    work_dir = tmp_path_factory.mktemp("spark")
    settings = SessionSettings(work_dir, work_dir / "spark.log", master="local[1]", conf=conf)
    with spark_session(settings) as session:
        yield session
