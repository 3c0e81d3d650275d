"""What a session takes from, and leaves to, those who run Spark elsewhere."""

from __future__ import annotations

from types import SimpleNamespace

from eosctl.spark.session import _end_jvm


def test_the_jvm_of_spark_submit_is_not_ended_by_us() -> None:
    """Under spark-submit the gateway has no process, and ending it failed with an AttributeError."""
    shut: list[int] = []
    _end_jvm(SimpleNamespace(proc=None, shutdown=lambda: shut.append(1)))
    assert shut == []
