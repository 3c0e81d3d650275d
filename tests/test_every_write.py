"""Every command that writes: one line of the audit log per result, and nothing on a cluster that is not expected."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.deadline import Clock
from tests.command_lines import WITHOUT_LINE, WRITES, Line, prepare, run_line
from tests.command_tree import writing_leaves
from tests.conftest import Invoke, Outcome
from tests.fakes.canaries import CLUSTER, URL, World, canary_world
from tests.fakes.migration import Scene as Migrating
from tests.synced_files import SyncedFiles


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with canary_world(tmp_path) as built:
        yield built


def expecting(world: World, **expect: str) -> list[str]:
    """A profile that says nothing but what it expects."""
    return ["--config", world.private("expecting.yaml", json.dumps({"profiles": {"p": {"expect": expect}}})), "-p", "p"]


def run_write(invoke: Invoke, world: World, tmp_path: Path, line: Line, *more: str) -> tuple[Outcome, list[Any]]:
    """What a writing command answered, and what the audit log got from it."""
    return run_line(invoke, world, line, *more), audited(tmp_path)


def audited(tmp_path: Path) -> list[Any]:
    """The entries of the audit log."""
    log = tmp_path / "state" / "eosctl" / "audit.jsonl"
    return [json.loads(each) for each in log.read_text().splitlines()] if log.exists() else []


def test_every_writing_command_has_a_line() -> None:
    assert writing_leaves() - {line.leaf for line in WRITES} == writing_leaves() & set(WITHOUT_LINE)
    assert {line.leaf for line in WRITES} <= writing_leaves()


@pytest.mark.parametrize("line", WRITES, ids=str)
def test_a_result_is_one_line_of_the_audit_log(invoke: Invoke, world: World, tmp_path: Path, line: Line) -> None:
    """Only six of sixteen writes came to a result; what the others would have recorded nobody looked at."""
    prepare(invoke, world, line)
    before = world.everything_written()
    outcome, entries = run_write(invoke, world, tmp_path, line)
    document = outcome.json()
    assert (outcome.exit_code, document["status"], document["kind"][-7:]) == (0, "ok", "-result"), outcome.stderr
    [entry] = entries
    assert entry["command"] == line.leaf
    assert (entry["exit_code"], entry["outcome"]) == (0, "ok")
    assert entry["summary"] == document["data"]["summary"]
    assert entry["target"]["kafka_cluster_id"] == CLUSTER
    assert any(entry["touched"].values()), "nobody could say later what it was about"
    assert world.everything_written() != before, "a write that can't be seen makes the next test one of nothing"


class _Slow(io.BytesIO):
    """Somebody who reads a plan for an hour, and then says yes."""

    def __init__(self) -> None:
        super().__init__(b"y\n")
        self.thought_s = 0.0

    def read1(self, size: int | None = -1, /) -> bytes:
        self.thought_s = 3600.0
        return super().read1(size)


@pytest.mark.parametrize("line", WRITES, ids=str)
def test_the_time_at_the_question_is_not_taken_from_the_timeout(invoke: Invoke, world: World, line: Line) -> None:
    """Whoever read the plan for a minute and said yes got exit code 4, and nothing was written."""
    prepare(invoke, world, line)
    somebody = _Slow()
    usual: Clock = world.surroundings.get("clock", Clock())
    clock = replace(usual, monotonic_s=lambda: usual.monotonic_s() + somebody.thought_s)
    told = Line(line.text.replace(" --yes", ""), document=line.document)
    outcome = run_line(invoke, world, told, clock=clock, input=somebody, can_ask=True)
    assert (outcome.exit_code, somebody.thought_s) == (0, 3600.0), outcome.stderr


@pytest.mark.parametrize("answer", [None, b"n\n", b"\n", b""], ids=["no terminal", "n", "enter", "end of input"])
@pytest.mark.parametrize("line", WRITES, ids=str)
def test_without_a_yes_nothing_is_written(invoke: Invoke, world: World, line: Line, answer: bytes | None) -> None:
    prepare(invoke, world, line)
    before = world.everything_written()
    told = Line(line.text.replace(" --yes", ""), document=line.document)
    typed = io.BytesIO(b"y\n" if answer is None else answer)
    outcome = run_line(invoke, world, told, input=typed, can_ask=answer is not None)
    assert outcome.exit_code == 6, outcome.stderr
    assert answer is not None or "--yes" in outcome.stderr
    assert world.everything_written() == before


@pytest.mark.parametrize("line", WRITES, ids=str)
def test_what_a_write_is_undone_and_gone_on_with_is_on_the_disk_before_it(
    invoke: Invoke, world: World, tmp_path: Path, synced: SyncedFiles, line: Line
) -> None:
    """Nothing noticed that a backup, a journal or the audit log was written and not synced."""
    prepare(invoke, world, line)
    before, state = world.everything_written(), tmp_path / "state" / "eosctl"
    synced.moment = world.everything_written
    _outcome, [entry] = run_write(invoke, world, tmp_path, line)
    for backup in state.glob("backups/*"):
        then = synced.kept(backup)[backup.read_bytes()]
        assert isinstance(then, dict)
        assert then["records"] == before["records"]
    journals = {journal: synced.kept(journal) for journal in state.glob("journals/*")}
    begun = [next(iter(kept.values())) for kept in journals.values()]
    assert not begun or before in begun, "a write had begun, and nothing told of it"
    assert all(journal.read_bytes() in kept for journal, kept in journals.items())
    assert (state / "audit.jsonl").read_bytes() in synced.kept(state / "audit.jsonl")
    announced = [each for each in synced.seen if entry["id"] in str(each.content)]
    assert [each.moment for each in announced[:2]] == [before, before], "the line of a killed write, and its name"


@pytest.mark.parametrize("line", WRITES, ids=str)
def test_no_write_reaches_a_cluster_that_is_not_expected(
    invoke: Invoke, world: World, tmp_path: Path, line: Line
) -> None:
    prepare(invoke, world, line)
    before = world.everything_written()
    expect = expecting(world, kafka_cluster_id="another")
    outcome, entries = run_write(invoke, world, tmp_path, line, *expect)
    assert (outcome.exit_code, outcome.json()["status"]) == (6, "refused")
    assert "is fake-cluster-id, and the profile expects another" in outcome.stderr
    assert [(entry["command"], entry["outcome"]) for entry in entries] == [(line.leaf, "refused")]
    assert world.everything_written() == before


@pytest.mark.parametrize(("expected", "begun"), [("another", 0), ("cluster", 1)])
def test_no_migration_begins_on_a_cluster_that_is_not_expected(
    invoke: Invoke, world: World, tmp_path: Path, expected: str, begun: int
) -> None:
    """Without Spark: a migration that may begin ends where nobody tells whether tasks run, and is in the audit log."""
    scene = Migrating(tmp_path)
    scene.put_all(["a"])
    plan_file = str(scene.prepared().report().datum("plan_file"))
    where = ["-b", "127.0.0.1:1", *expecting(world, kafka_cluster_id=expected)]
    outcome = invoke("offsets", "migrate", "--plan", plan_file, "--yes", *where)
    assert outcome.exit_code == 6
    assert ("is cluster, and the profile expects another" in outcome.stderr) == (not begun), outcome.stderr
    [entry] = audited(tmp_path)
    assert (entry["command"], entry["outcome"]) == ("offsets migrate", "refused")
    assert ("the profile expects another" in entry["error"]["message"]) == (not begun)


@pytest.mark.parametrize(
    ("here", "there", "exit_code"), [("another", CLUSTER, 0), ("another", "another", 6), (CLUSTER, "another", 6)]
)
def test_a_store_of_another_profile_has_that_profiles_expectations(
    invoke: Invoke, world: World, here: str, there: str, exit_code: int
) -> None:
    where = {"bootstrap_server": ",".join(world.brokers.bootstrap_servers), "group_id": "g", "connect_url": URL}
    profiles = {
        name: {**where, "expect": {"kafka_cluster_id": expected}} for name, expected in (("p", here), ("q", there))
    }
    config = world.private("two.yaml", json.dumps({"profiles": profiles, "current": "p"}))
    record = {"topic": "x", "partition": 0, "key": world.key.decode(), "value": '{"n":5}'}
    file = world.private("offsets.ndjson", json.dumps(record) + "\n")
    line = ["offsets", "import", file, "--store", "connect-offsets@q", "--yes", "--force-running"]
    outcome = invoke(*line, "--config", config, **world.surroundings)
    assert outcome.exit_code == exit_code, outcome.stderr
    assert world.topics.writes == (1 if exit_code == 0 else 0)


@pytest.mark.parametrize("line", WRITES, ids=str)
def test_a_plan_fits_a_screen_before_the_question(invoke: Invoke, world: World, line: Line) -> None:
    """That of `acls apply` took two screens: rows, and the commands that take them away again."""
    prepare(invoke, world, line)
    asked = run_line(invoke, world, dataclasses.replace(line, text=line.text.replace(" --yes", "")), output="text")
    assert (asked.exit_code, asked.stdout) == (6, "")
    plan, _error = asked.stderr.split("error: ")
    assert len([each for each in plan.splitlines() if "has no effect here" not in each]) <= 24, plan


@pytest.mark.parametrize("line", WRITES, ids=str)
def test_a_warning_of_the_plan_is_not_said_again_with_the_result(invoke: Invoke, world: World, line: Line) -> None:
    prepare(invoke, world, line)
    done = run_line(invoke, world, line, output="text")
    warnings = [each for each in done.stderr.splitlines() if each.startswith("warning: ")]
    assert sorted(warnings) == sorted(set(warnings))
