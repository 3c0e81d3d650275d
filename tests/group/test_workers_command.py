"""`eosctl workers`, whole output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.records import OutRecord
from tests.conftest import Invoke
from tests.fakes.world import CONFIGS, World

W0, W1 = "http://w0:8083", "http://w1:8083"
FLAGS = ("-b", "kafka:9092", "-g", "g")


@pytest.fixture
def doors() -> dict[str, Any]:
    world = World({W0: "enabled", W1: "preparing"}, cluster_id="cluster-1")
    world.connect.add("c", {"tasks.max": "2"})
    world.topics.add_topic(CONFIGS)
    world.topics.write([OutRecord(CONFIGS, b"connector-%d" % number, None) for number in range(8)])
    return world.doors()


@pytest.mark.parametrize("command", ["list", "probe"])
@pytest.mark.parametrize("output", ["text", "json"])
def test_output(
    invoke: Invoke, golden: Callable[[str, str], None], doors: dict[str, Any], command: str, output: str
) -> None:
    outcome = invoke("workers", command, *FLAGS, "-o", output, doors=doors)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    golden(f"workers/{command}.{'txt' if output == 'text' else 'json'}", outcome.stdout)


def test_worker_files_refine_the_mode(invoke: Invoke, doors: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "w1.properties"
    path.write_text(
        "group.id=g\nbootstrap.servers=kafka:9092\nexactly.once.source.support=preparing\nlisteners=http://w1:8083\n",
        encoding="utf-8",
    )
    outcome = invoke("workers", "probe", "-w", str(path), "-o", "json", doors=doors)
    assert [row["mode"] for row in outcome.json()["data"]["rows"]] == ["enabled", "preparing"]


@pytest.mark.parametrize("command", ["list", "probe"])
def test_without_any_target_it_is_a_usage_error(invoke: Invoke, command: str) -> None:
    outcome = invoke("workers", command)
    assert outcome.exit_code == 2
    assert outcome.stdout == ""
    assert "no Connect group was named" in outcome.stderr


def test_an_unusable_url_is_a_usage_error(invoke: Invoke) -> None:
    outcome = invoke("workers", "list", "-u", "ftp://me:secret@w1", "-o", "json")
    assert outcome.exit_code == 2
    assert outcome.json()["errors"][0]["code"] == "usage"
    assert "secret" not in outcome.stdout + outcome.stderr


def test_a_worker_that_is_down_is_a_row_and_exit_4(invoke: Invoke) -> None:
    """A closed port, without a fake in between."""
    outcome = invoke("workers", "probe", "-u", "127.0.0.1:1", "-o", "json")
    assert outcome.exit_code == 4
    assert "http://127.0.0.1:1 can't be reached" in outcome.stderr
    (row,) = outcome.json()["data"]["rows"]
    assert (row["url"], row["health"], row["mode"]) == ("http://127.0.0.1:1", "unreachable", "unknown")


@pytest.mark.live
def test_a_group_that_does_not_exist(invoke: Invoke, stack: Any) -> None:
    outcome = invoke("workers", "list", "-b", stack.bootstrap_servers, "-g", "nobody", "-o", "json")
    assert outcome.exit_code == 1
    assert outcome.json()["errors"][0]["code"] == "not_found"


@pytest.mark.live
def test_the_real_group(invoke: Invoke, target_flags: list[str]) -> None:
    outcome = invoke("workers", "probe", *target_flags, "-o", "json")
    assert outcome.exit_code == 0, outcome.stdout
    (row,) = outcome.json()["data"]["rows"]
    assert (outcome.exit_code, row["leader"], row["mode"], row["health"]) == (0, True, "enabled", "healthy")
    mapped = invoke("workers", "probe", *target_flags, "--connect-map", "127.0.0.1:*=http://localhost:*", "-o", "json")
    (same,) = mapped.json()["data"]["rows"]
    assert (same["url"], same["mode"]) == (row["url"], "enabled"), "it is called as it calls itself"
    lost = invoke("workers", "probe", *target_flags, "--connect-map", "*=http://127.0.0.1:1", "-o", "json").json()
    assert lost["errors"][0]["message"].startswith("the Connect worker at http://127.0.0.1:1 can't be reached")
