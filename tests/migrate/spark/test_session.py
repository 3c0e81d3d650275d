"""What a session takes from, and leaves to, those who run Spark elsewhere."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from eosctl.migrate.spark.session import SessionSettings, _end_jvm, session_conf


def test_the_jvm_of_spark_submit_is_not_ended_by_us() -> None:
    """Under spark-submit the gateway has no process, and ending it failed with an AttributeError."""
    shut: list[int] = []
    _end_jvm(SimpleNamespace(proc=None, shutdown=lambda: shut.append(1)))
    assert shut == []


def test_calls_to_the_jvm_load_neither_pandas_nor_what_pyspark_tests_with() -> None:
    """Starting Spark took a second longer where pandas was installed: py4j asked for arrays of numpy in arguments."""
    calls = """
import sys
from py4j.protocol import INPUT_CONVERTER
from eosctl.migrate.spark.session import _without_numpy
_without_numpy()
can = [each.can_convert("word") for each in INPUT_CONVERTER]
print(can.count(True), *sorted({"pandas", "pyspark.testing"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", calls], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"


def test_what_the_user_sets_wins(tmp_path: Path) -> None:
    own = {"spark.driver.memory": "3g", "spark.foo": "bar"}
    conf = session_conf(SessionSettings(tmp_path, tmp_path / "log", conf=own))
    assert own.items() <= conf.items()
    assert conf["spark.speculation"] == "false"


def test_no_second_copies_of_tasks_even_if_asked_for(tmp_path: Path) -> None:
    """`--conf spark.speculation=true` won, and a second copy of a task that writes fences the first one."""
    settings = SessionSettings(tmp_path, tmp_path / "log", conf={"spark.speculation": "true"})
    assert session_conf(settings)["spark.speculation"] == "false"


def test_tasks_talk_through_sockets_if_the_name_of_the_folder_is_short_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over TCP each task waited 40 ms. The path of a Unix socket has 103 bytes at most."""
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    long = tmp_path / ("long" * 25)
    long.mkdir()
    name = "spark.python.unix.domain.socket.enabled"
    assert name not in session_conf(SessionSettings(long, tmp_path / "log"))
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        assert session_conf(SessionSettings(Path(short), tmp_path / "log"))[name] == "true"


def test_a_jvm_that_others_started_gets_no_folder_for_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps that of its first context: the second command in it failed with `No such file or directory`."""
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        conf = session_conf(SessionSettings(Path(short), Path(short) / "log"))
    assert not [name for name in conf if name.startswith("spark.python.unix.domain.socket")]


def test_the_users_own_master_decides_whether_tasks_run_here(tmp_path: Path) -> None:
    own = {"spark.master": "spark://host:7077"}
    conf = session_conf(SessionSettings(tmp_path, tmp_path / "log", conf=own))
    here_alone = {"spark.python.daemon.module", "spark.python.unix.domain.socket.enabled", "spark.driver.bindAddress"}
    assert not here_alone & set(conf)
    assert conf["spark.submit.pyFiles"] == str(tmp_path / "eosctl.zip")
