"""`eosctl exporter` as it is run: a file once, a server until it is told to end, and a cluster that is down."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as read_plain

from eosctl.errors import EosctlError
from eosctl.exporter import server as serve
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.fakes.clock import PLENTY_S
from tests.fakes.config_topic import config_records, created
from tests.fakes.doctor_scene import W1, WHERE, cluster
from tests.sandbox_fixtures import wait_until

ROOT = Path(__file__).resolve().parents[2]


def test_once_writes_the_file(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "eosctl.prom"
    path.write_text("old")
    once = ("exporter", *WHERE, "-u", W1, "--once", "--textfile", str(path))
    document = envelope_of(invoke(*once, "-o", "json", **cluster().surroundings), "exporter", 0)
    assert [row["error"] for row in document["data"]["rows"]] == [None] * 7
    assert document["data"]["summary"] == {"sources": 7, "failed": 0}
    assert re.search(r"(?m)^eosctl_up 1\.0$", path.read_text())
    assert path.stat().st_mode & 0o777 == 0o644
    assert [each.name for each in tmp_path.iterdir() if "prom" in each.name] == ["eosctl.prom"]


def test_once_has_nothing_that_one_look_can_not_know(invoke: Invoke, tmp_path: Path) -> None:
    """A zero would be a false calm. A connector's own offsets topic is known in time for its offsets."""
    there, path = cluster(configs={"orders": {"offsets.storage.topic": "own"}}), tmp_path / "eosctl.prom"
    there.topics.add_topic("own", 1)
    there.topics.put("own", b'["orders",{"n":1}]', b"{}")
    invoke("exporter", *WHERE, "-u", W1, "--once", "--textfile", str(path), **there.surroundings)
    text = path.read_text()
    assert "eosctl_transactions_aborted_total" not in text
    assert "eosctl_topic_lso_stuck_seconds" not in text
    assert re.search(r'(?m)^eosctl_topic_lso_distance\{kind="offsets",topic="own"\} 0\.0$', text)
    assert re.search(r'(?m)^eosctl_source_offset_age_seconds\{connector="orders"\} ', text)


def test_once_a_source_that_fails_is_partial(invoke: Invoke, tmp_path: Path) -> None:
    """What could be seen is in the file, and so is what failed."""
    there = cluster()
    del there.topics.topics["connect-offsets"]
    there.connectors = {}
    there.brokers.fail_next("DescribeGroups", *[30] * 10_000)  # not tried again: no waits move the sources' one clock
    path = tmp_path / "eosctl.prom"
    outcome = invoke("exporter", *WHERE, "-u", W1, "--once", "--textfile", str(path), **there.surroundings)
    assert outcome.exit_code == 7, outcome
    text = path.read_text()
    assert re.search(r'(?m)^eosctl_collection_error\{code="[a-z_]+",source="group"\} 1\.0$', text)
    assert "eosctl_up 1.0" in text


def test_once_a_look_that_does_not_end_is_said(invoke: Invoke, tmp_path: Path) -> None:
    """It fails the command, and does not hold it up."""
    there, hang = cluster(), threading.Event()
    doors = {**there.doors(), "open_transactions": lambda *_args, **_more: hang.wait(PLENTY_S)}
    once = ("exporter", *WHERE, "-u", W1, "--once", "--textfile", str(tmp_path / "eosctl.prom"), "--timeout", "1s")
    outcome = invoke(*once, doors=doors)
    hang.set()
    assert outcome.exit_code == 4
    assert "warning: kafka: timed_out: the look has not ended in time" in outcome.stderr


def test_once_prints_the_metrics(invoke: Invoke) -> None:
    """It could only write a file."""
    once = ("exporter", *WHERE, "-u", W1, "--once")
    outcome = invoke(*once, **cluster().surroundings)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    names = {sample.name for family in read_plain(outcome.stdout) for sample in family.samples}
    assert names >= {"eosctl_up", "eosctl_workers", "eosctl_build_info"}
    document = envelope_of(invoke(*once, "-o", "json", **cluster().surroundings), "exporter", 0)
    assert re.search(r"(?m)^eosctl_up 1\.0$", document["data"]["metrics"])


def test_metrics_that_are_printed_steer_no_terminal(invoke: Invoke) -> None:
    """And are read by Prometheus all the same."""
    name = "a\x1b]0;owned\x07\u202eb\u2028c"
    there = cluster(records=config_records(*created(name, 1, record=1)), connectors={name: "source"})
    printed = invoke("exporter", *WHERE, "-u", W1, "--once", **there.surroundings).stdout
    assert printed.replace("\n", "").isprintable()
    labels = {
        sample.labels["connector"]
        for family in read_plain(printed)
        for sample in family.samples
        if sample.name == "eosctl_connector_tasks_running"
    }
    assert labels == {r"a\x1b]0;owned\x07\u202eb\u2028c"}


def test_a_textfile_needs_once(invoke: Invoke) -> None:
    outcome = invoke("exporter", *WHERE, "--textfile", "f.prom", **cluster().surroundings)
    assert (outcome.exit_code, "needs --once" in outcome.stderr) == (2, True)


def test_a_file_that_cannot_be_written(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "nosuch" / "eosctl.prom"
    outcome = invoke("exporter", *WHERE, "--once", "--textfile", str(path), **cluster().surroundings)
    assert (outcome.exit_code, f"cannot write {path}" in outcome.stderr) == (1, True)


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full leaves the old file, and no draft."""
    path = tmp_path / "eosctl.prom"
    path.write_text("old")

    def full(_draft: object, _path: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(EosctlError, match="No space left"):
        serve.write_textfile(path, b"new")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("eosctl.prom", "old")]


@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1:x"])
def test_an_address_that_is_none(invoke: Invoke, listen: str) -> None:
    outcome = invoke("exporter", *WHERE, "--listen", listen, **cluster().surroundings)
    assert (outcome.exit_code, "is no address to listen on" in outcome.stderr) == (2, True)


@contextmanager
def exporter(*words: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process of its own whose cluster is down, and its port."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("EOSCTL_")}
    command = [sys.executable, "-m", "eosctl", "exporter", "-b", "127.0.0.1:1", "-g", "g", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, *words], cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            told = re.search(r"listening on http://127\.0\.0\.1:(\d+)/metrics", process.stderr.readline())
            assert told is not None
            yield process, int(told[1])
        finally:
            process.kill()


def scrape(port: int, path: str = "/metrics") -> tuple[int, str]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PLENTY_S)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_cluster_that_is_down_is_a_metric_and_a_signal_ends_it(number: signal.Signals, code: int) -> None:
    with exporter("--interval", "1s") as (process, port):
        wait_until(lambda: scrape(port, "/readyz")[0] == 200, what="the first look at each source")
        status, text = scrape(port)
        assert (status, "eosctl_up 0.0" in text) == (200, True)
        assert 'eosctl_collection_error{code="unreachable",source="kafka"} 1.0' in text
        process.send_signal(number)
        out, err = process.communicate(timeout=PLENTY_S)
    assert process.returncode == code, err
    assert "Traceback" not in err
    assert ("kafka" in out) == (code == 0)
    assert len([line for line in err.splitlines() if "kafka: unreachable" in line]) <= 1
