"""The rehearsed migration: its errors are nobody's, so that one which breaks off at once would go unseen."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eosctl.engine.files import part_file, read_table
from eosctl.migrate.spark.job import MigrationJob
from eosctl.migrate.spark.rehearsal import rehearse

pytestmark = pytest.mark.spark


def test_every_stage_without_kafka_is_gone_through(spark: SparkSession, tmp_path: Path) -> None:
    rehearse(MigrationJob(spark.sparkContext, {}), tmp_path)
    assert part_file(tmp_path / "stale", 0).exists()
    assert read_table(part_file(tmp_path / "decisions", 0))["action"].to_pylist() == ["write"]
    assert (tmp_path / "verify-target").is_dir(), "the last comparison was not come to"
