"""What a session takes from, and leaves to, those who run Spark elsewhere."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from eosctl.migrate.spark.session import INTERPRETED_RECORDS, SessionSettings, _end_jvm, session_conf


def test_the_jvm_of_spark_submit_is_not_ended_by_us() -> None:
    """Under spark-submit the gateway has no process, and ending it failed with an AttributeError."""
    shut: list[int] = []
    _end_jvm(SimpleNamespace(proc=None, shutdown=lambda: shut.append(1)))
    assert shut == []


@pytest.mark.parametrize(
    ("records", "own", "expected"),
    [
        (INTERPRETED_RECORDS, {}, "false"),
        (INTERPRETED_RECORDS + 1, {}, None),
        (1, {"spark.sql.codegen.wholeStage": "true"}, "true"),
    ],
)
def test_a_small_query_is_not_compiled(tmp_path: Path, records: int, own: dict[str, str], expected: str | None) -> None:
    conf = session_conf(SessionSettings(tmp_path, tmp_path / "log", expected_records=records, conf=own))
    assert conf.get("spark.sql.codegen.wholeStage") == expected
