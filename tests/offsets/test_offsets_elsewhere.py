"""`eosctl offsets … TOPIC@PROFILE`: stores of another cluster, found by a profile; both clusters are in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eosctl.app import App
from tests.conftest import Invoke, Outcome
from tests.fakes.offset_topics import OffsetWorld
from tests.fakes.topics import FakeTopicStore

GLOBAL = "connect-offsets"
A, B, C = (f'["c",{{"f":"{name}"}}]'.encode() for name in "abc")
PROFILES = """\
profiles:
  old: {bootstrap_server: "old:9092", group_id: old-connect, offset_topic: old-offsets}
  same: {bootstrap_server: "memory:9092"}
"""
Run = Callable[..., Outcome]


@pytest.fixture
def world() -> OffsetWorld:
    """Connector c, STOPPED, on the command's own cluster."""
    world = OffsetWorld()
    world.topics.add_topic(GLOBAL, 5, {"cleanup.policy": "compact"})
    world.topics.put(GLOBAL, A, b'{"n":1}')
    world.topics.put(GLOBAL, B, b'{"n":2}')
    world.connect.add("c", state="STOPPED")
    return world


@pytest.fixture
def old() -> FakeTopicStore:
    """The cluster that profile `old` names."""
    topics = FakeTopicStore(cluster_id="old-cluster")
    topics.add_topic("old-offsets", 3, {"cleanup.policy": "compact"})
    topics.put("old-offsets", A, b'{"n":1}')
    topics.put("old-offsets", B, b'{"n":9}')
    topics.put("old-offsets", C, b'{"n":3}')
    return topics


@pytest.fixture
def run(world: OffsetWorld, old: FakeTopicStore, invoke: Invoke, tmp_path: Path) -> Run:
    config = tmp_path / "config.yaml"
    config.write_text(PROFILES)

    def open_topics(app: App) -> FakeTopicStore:
        return old if app.target.require_client().bootstrap_servers == ("old:9092",) else world.topics

    doors: dict[str, Any] = {**world.doors(), "open_topics": open_topics}
    where = [*world.flags, "--config", str(config)]
    environ = {"EOSCTL_BOOTSTRAP_SERVER": "memory:9092", "EOSCTL_OFFSET_TOPIC": GLOBAL}
    return lambda *words, **more: invoke(
        *where, "offsets", *words, doors=doors, environ=environ, clock=world.clock(), **more
    )


@pytest.mark.parametrize("store", ["old-offsets@old", "global@old"])
def test_list_shows_what_another_cluster_has_beside_what_is_here(run: Run, store: str) -> None:
    rows = run("list", "--store", store, "-o", "json").json()["data"]["rows"]
    cells = {row["key"]: (row["stores"]["global"], row["stores"][store]) for row in rows}
    values = {key: tuple(cell and cell["value"] for cell in pair) for key, pair in cells.items()}
    assert values == {
        A.decode(): ({"n": 1}, {"n": 1}),
        B.decode(): ({"n": 2}, {"n": 9}),
        C.decode(): (None, {"n": 3}),
    }
    assert rows[2]["effective"]["documented"] is None, "no task here is given it"


def test_diff_across_clusters_says_which_they_are(run: Run) -> None:
    done = run("diff", "--connector", "c", "old-offsets@old", "global", "-o", "json").json()
    assert (done["exit_code"], done["data"]["summary"]["counts"]["differs"]) == (3, 1)
    assert done["data"]["clusters"] == {"old-offsets@old": "old-cluster", "global": "memory-cluster"}


def test_two_names_of_one_topic_are_told_by_the_cluster_id(run: Run, world: OffsetWorld) -> None:
    done = run("diff", "--connector", "c", "global", f"{GLOBAL}@same")
    assert (done.exit_code, "are one topic, connect-offsets on cluster memory-cluster" in done.stderr) == (2, True)
    merged = run("merge", "--connector", "c", "--from", f"{GLOBAL}@same", "--into", "global", "--yes")
    assert (merged.exit_code, world.topics.writes) == (2, 0)


@pytest.mark.parametrize("which", [["--connector", "c"], ["--all"]])
def test_merge_from_another_cluster_completes_what_is_here(
    run: Run, world: OffsetWorld, old: FakeTopicStore, which: list[str]
) -> None:
    words = ("merge", *which, "--from", "old-offsets@old", "--into", "global", "-o", "json")
    shown = run(*words, "--dry-run").json()
    assert [error["code"] for error in shown["errors"]] == ["source_not_checked"], "no worker is known there"
    done = run(*words, "--yes").json()
    assert done["exit_code"] == 0, done["errors"]
    assert world.topics.newest(GLOBAL) == {A: b'{"n":1}', B: b'{"n":2}', C: b'{"n":3}'}, "the target's values stay"
    assert old.writes == 0


def test_a_merge_from_another_cluster_goes_stale_when_that_moves(
    run: Run, world: OffsetWorld, old: FakeTopicStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = old.read

    def read_and_move(topic: str, **how: Any) -> Any:
        found = read(topic, **how)
        old.put(topic, C, b'{"n":4}')
        return found

    monkeypatch.setattr(old, "read", read_and_move)
    done = run("merge", "--connector", "c", "--from", "old-offsets@old", "--into", "global", "--yes")
    assert (done.exit_code, world.topics.writes) == (6, 0)
    assert "changed since the plan was made" in done.stderr


@pytest.mark.parametrize(
    ("words", "exit_code", "complaint"),
    [
        (["list", "--store", "connect-offsets@nosuch"], 2, "no profile nosuch"),
        (["list", "--store", "nosuch@old"], 1, "there is no topic nosuch"),
        (["list", "--store", "dedicated@old"], 2, "which topics are dedicated on another cluster"),
        (["lint", "--store", "global", "--store", "global@old"], 2, "several clusters"),
        (["merge", "--all", "--from", "global", "--into", "global"], 2, "is also the --into store"),
        (["merge", "--all", "--from", "x@old", "--into", "global", "--prefer", "dedicated"], 2, "neither of the two"),
    ],
)
def test_what_makes_no_sense(run: Run, words: list[str], exit_code: int, complaint: str) -> None:
    done = run(*words)
    assert (done.exit_code, complaint in done.stderr) == (exit_code, True), done.stderr


def test_lint_looks_there(run: Run, old: FakeTopicStore) -> None:
    old.put("old-offsets", b"junk", b"1")
    done = run("lint", "--store", "global@old", "-o", "json").json()
    assert (done["exit_code"], done["target"]) == (3, {"kafka_cluster_id": "old-cluster", "group_id": "old-connect"})
    assert done["data"]["summary"]["codes"]["key_not_json"] == 1
    assert "-p old" in done["errors"][0]["message"]


def test_an_export_of_one_cluster_is_imported_on_the_other(run: Run, old: FakeTopicStore, tmp_path: Path) -> None:
    path = str(tmp_path / "offsets.ndjson")
    done = run("export", "--store", "old-offsets@old", path, "-o", "json").json()
    assert (done["target"]["kafka_cluster_id"], done["data"]["summary"]["records"]) == ("old-cluster", 3)
    back = run("import", path, "--store", "copy@old", "--force-running", "--yes", "-o", "json").json()
    assert (back["exit_code"], back["target"]["kafka_cluster_id"]) == (0, "old-cluster"), back["errors"]
    assert old.newest("copy") == old.newest("old-offsets")
    backup = [json.loads(line) for line in Path(back["data"]["backup"]).read_text().splitlines()]
    assert {line["cluster_id"] for line in backup} == {"old-cluster"}
    refused = run("restore", back["data"]["backup"], "--yes")
    assert (refused.exit_code, "name the profile of that cluster with -p" in refused.stderr) == (6, True)
