"""The Spark session that all tests share: a process has one at a time. And a JVM for sessions that follow another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One core, two shuffle partitions, no adaptive replanning: quick, and the same every time.

    A task may fail three times, as on a cluster.
    """
    from pyspark.sql import SparkSession

    from eosctl.spark.session import spark_context
    from tests.quick_spark import quick_settings

    conf = {"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"}
    with spark_context(quick_settings(tmp_path_factory.mktemp("spark"), master="local[1,4]", conf=conf)):
        yield SparkSession.builder.getOrCreate()


@pytest.fixture
def spark_jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A JVM that sessions of this process find running, as those of spark-submit do, and leave so."""
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    from eosctl.spark.session import _end_jvm, session_conf
    from tests.quick_spark import quick_settings

    settings = quick_settings(tmp_path / "jvm", master="local[1]")
    settings.work_dir.mkdir()
    monkeypatch.setenv("JAVA_HOME", str(settings.java_home))
    conf = SparkConf(loadDefaults=False).setAll(list(session_conf(settings).items()))
    with settings.log_file.open("wb") as log:
        gateway: Any = launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", str(gateway.gateway_parameters.port))
    monkeypatch.setenv("PYSPARK_GATEWAY_SECRET", gateway.gateway_parameters.auth_token)
    yield
    _end_jvm(gateway)
