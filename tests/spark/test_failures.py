"""Spark's errors, two languages deep, come out as one line about the cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eosctl.core.migration import PlannedTopic
from eosctl.core.records import Bounds
from eosctl.errors import EosctlError
from eosctl.spark.failures import spark_error
from eosctl.spark.job import MigrationJob

PYTHON_IN_JAVA = """An error occurred while calling o61.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
RuntimeError: no records for 60 s, still to read: t-0 up to offset 5

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
RuntimeError: no records for 60 s, still to read: t-0 up to offset 5
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (PYTHON_IN_JAVA, "RuntimeError: no records for 60 s, still to read: t-0 up to offset 5"),
        (
            "x\nCaused by: java.io.IOException: No space left on device\n",
            "java.io.IOException: No space left on device",
        ),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited", "[JAVA_GATEWAY_EXITED] Java gateway process exited"),
        ("", "ValueError"),
    ],
)
def test_cause(text: str, cause: str) -> None:
    error = spark_error(ValueError(text), "reading")
    assert error.message == f"reading failed in Spark: {cause}"
    assert "Traceback" not in error.message


@pytest.mark.spark
def test_a_failing_task_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    topic = PlannedTopic("t", "id", 1, 1, (Bounds(0, 0, 1, 1),))
    job = MigrationJob(spark, {"bootstrap.servers": "127.0.0.1:1", "no.such.setting": "1"})
    with pytest.raises(EosctlError) as caught:
        job.snapshot([topic], tmp_path / "source")
    assert "no.such.setting" in caught.value.message
    assert "\n" not in caught.value.message
