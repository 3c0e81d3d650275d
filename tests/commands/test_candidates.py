"""Tab: what it offers, and that it never hangs, never prints an error, and asks nobody who was not named."""

from __future__ import annotations

import importlib
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import BashComplete, ShellComplete

from tests.conftest import Invoke
from tests.fakes.broker import FakeCluster
from tests.fakes.clock import PLENTY_S
from tests.fakes.connect import FakeConnect
from tests.fakes.faults import Call

ROOT = importlib.import_module("eosctl.commands.frame.root").root
Session = importlib.import_module("eosctl.commands.frame.session").Session
CANDIDATES = importlib.import_module("eosctl.commands.frame.candidates")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine may take longer than a shell should wait for names, and than they are kept."""
    for name in ("_PATIENCE_S", "_FRESH_S"):
        monkeypatch.setattr(CANDIDATES, name, PLENTY_S)


class _Cluster:
    """What completion asks: a cluster with transactions and topics, and a worker; `asked` counts how often."""

    def __init__(self) -> None:
        self.brokers, self.connect = FakeCluster(), FakeConnect({"http://w:1": "enabled"})
        for name in ("g-orders-0", "g-orders-1", "x"):
            self.brokers.state.init_producer_id(name, 60_000)
        for topic, partitions in (("orders", 1), ("payments", 2)):
            self.brokers.state.add_topic(topic, partitions)
        for name in ("orders-source", "payments-source"):
            self.connect.add(name)
        self.asked = 0
        self.brokers.calls.before("open", self._count)
        self.connect.before("*", self._count)

    def _count(self, _call: Call) -> None:
        self.asked += 1

    def doors(self) -> dict[str, Any]:
        return {"open_transactions": self.brokers.open_transactions, "open_worker": self.connect.open_worker}


def _session(tmp_path: Path, cluster: _Cluster | None = None, **environ: str) -> Any:
    surroundings = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_CONFIG_HOME": str(tmp_path / "config"), **environ}
    return Session(environ=surroundings, doors=cluster.doors() if cluster else {})


def _offered(session: Any, *words: str) -> list[str]:
    """What click's own completion offers for the last word."""
    completion: ShellComplete = BashComplete(ROOT, {"obj": session}, "eosctl", "_EOSCTL_COMPLETE")
    return [item.value for item in completion.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("fence", "-b", "k:1", "g-orders-"), ["g-orders-0", "g-orders-1"]),
        (("txn", "describe", "-b", "k:1", "x", "g"), ["g-orders-0", "g-orders-1"]),
        (("fence", "-b", "k:1", "-u", "http://w:1", "--connector", "ord"), ["orders-source"]),
        (("-u", "http://w:1", "offsets", "list", "--connector", ""), ["orders-source", "payments-source"]),
        (("-u", "http://w:1", "task-counts", "show", "p"), ["payments-source"]),
        (("txn", "producers", "-b", "k:1", "--topic", "pay"), ["payments"]),
        (("txn", "list", "-b", "k:1", "--config-topic", ""), ["orders", "payments"]),
        (("schema", "workers-"), ["workers-list", "workers-probe"]),
        (("explain", "double_"), ["double_spelling"]),
        (("doctor", "--ignore", "few_"), ["few_replicas"]),
        (("upgrade", "apply", "--accept-gate", "no_ab"), ["no_aborted_offsets", "no_aborted_records"]),
    ],
)
def test_names(tmp_path: Path, words: tuple[str, ...], expected: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert _offered(_session(tmp_path, _Cluster()), *words) == expected
    assert capfd.readouterr() == ("", "")


def test_the_environment_names_a_cluster_too(tmp_path: Path) -> None:
    session = _session(tmp_path, _Cluster(), EOSCTL_BOOTSTRAP_SERVER="k:1")
    assert _offered(session, "txn", "producers", "--topic", "o") == ["orders"]


def test_profiles_come_from_the_config_file(tmp_path: Path) -> None:
    path = tmp_path / "config" / "eosctl" / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("profiles:\n  prod: {bootstrap_server: 'k:1'}\n  test: {}\n")
    assert _offered(_session(tmp_path), "txn", "list", "-p", "") == ["prod", "test"]
    assert _offered(_session(tmp_path), "-p", "t") == ["test"]


@pytest.mark.parametrize("words", [("fence", ""), ("offsets", "list", "--connector", ""), ("txn", "list", "-p", "")])
def test_nobody_is_asked_who_was_not_named(tmp_path: Path, words: tuple[str, ...]) -> None:
    cluster = _Cluster()
    assert _offered(_session(tmp_path, cluster), *words) == []
    assert cluster.asked == 0


def test_answers_are_kept_for_some_seconds(tmp_path: Path) -> None:
    cluster = _Cluster()
    for _ in range(3):
        assert _offered(_session(tmp_path, cluster), "fence", "-b", "k:1", "x") == ["x"]
    assert cluster.asked == 1
    assert _offered(_session(tmp_path, cluster), "fence", "-b", "other:1", "x") == ["x"]
    assert cluster.asked == 2
    for path in (tmp_path / "cache").rglob("*.json"):
        os.utime(path, (0, 0))
    assert _offered(_session(tmp_path, cluster), "fence", "-b", "k:1", "x") == ["x"]
    assert cluster.asked == 3


def test_a_broken_cache_and_a_full_disk_are_no_matter(tmp_path: Path) -> None:
    cluster = _Cluster()
    (tmp_path / "cache").write_text("a file where a directory should be")
    assert _offered(_session(tmp_path, cluster), "fence", "-b", "k:1", "x") == ["x"]


@pytest.mark.parametrize(
    "words",
    [
        ("fence", "-b", "127.0.0.1:1", ""),
        ("fence", "-b", "no port", ""),
        ("offsets", "list", "-u", "http://127.0.0.1:1", "--connector", ""),
        ("fence", "-b", "k:1", "--command-config", "/nonexistent", ""),
        ("txn", "list", "--config", "/nonexistent", "-p", ""),
    ],
)
def test_failures_offer_nothing_and_say_nothing(
    tmp_path: Path, words: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    assert _offered(_session(tmp_path), *words) == []
    assert capfd.readouterr() == ("", "")


def test_a_broker_that_never_answers_does_not_hang_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The listener takes connections and says nothing: without a limit this would never return."""
    monkeypatch.setattr(CANDIDATES, "_PATIENCE_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert _offered(_session(tmp_path), "fence", "-b", f"127.0.0.1:{silent.getsockname()[1]}", "") == []


@pytest.mark.live
def test_names_of_a_real_cluster(invoke: Invoke, target_flags: list[str], stopped: Any, tmp_path: Path) -> None:
    assert invoke("txn", "list", *target_flags).exit_code == 0
    bootstrap, url = target_flags[1], target_flags[3]
    assert _offered(_session(tmp_path), "-b", bootstrap, "txn", "producers", "--topic", stopped.topic) == [
        stopped.topic
    ]
    assert _offered(_session(tmp_path), "-u", url, "offsets", "list", "--connector", stopped.name) == [stopped.name]
