"""The rehearsed migration: its errors are nobody's, so that one which breaks off at once would go unseen."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eosctl.engine.files import part_file, read_table
from eosctl.migrate.spark.job import MigrationJob
from eosctl.migrate.spark.start import rehearse

pytestmark = pytest.mark.spark


def test_every_stage_without_kafka_is_gone_through(spark: SparkSession, tmp_path: Path) -> None:
    stages = list[str]()
    of_another = tmp_path / "verify-target" / "read"
    of_another.mkdir(parents=True)
    job = MigrationJob(spark.sparkContext, None, on_progress=lambda doing, *_counts: stages.append(doing))
    rehearse(job, tmp_path)
    assert part_file(tmp_path / "stale", 0).exists()
    assert read_table(part_file(tmp_path / "decisions", 0))["action"].to_pylist() == ["write"]
    assert stages[-1] == "comparing the target", "the last comparison was not come to"
    assert of_another.is_dir(), "a verification took away what another one was reading"
    assert not list(tmp_path.glob(".verify-*")), "what was read to be compared was left"
