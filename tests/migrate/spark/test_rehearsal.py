"""The rehearsed migration: its errors are nobody's, so that one which breaks off at once would go unseen."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eosctl.migrate.spark.job import MigrationJob
from eosctl.migrate.spark.rehearsal import rehearse

pytestmark = pytest.mark.spark


def test_every_stage_without_kafka_is_gone_through(spark: SparkSession, tmp_path: Path) -> None:
    rehearse(MigrationJob(spark.sparkContext, {}), tmp_path)
    assert (tmp_path / "stale" / "_SUCCESS").exists()
    assert [row.action for row in spark.read.parquet(str(tmp_path / "decisions")).collect()] == ["write"]
    assert (tmp_path / "verify-target").is_dir(), "the last comparison was not come to"
