"""`eosctl offsets switch` as typed: whole output, exit codes, the question."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from eosctl.errors import ConnectError
from tests.conftest import Outcome
from tests.fakes.switching import SwitchWorld

Run = Callable[..., Outcome]


@pytest.fixture
def run(run: Run) -> Run:
    return partial(run, "switch", "--connector", "c")


def without_paths(text: str) -> str:
    """`text` without the line that names the journal, which lies in a private directory."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("journal: "))


def test_a_dry_run_shows_every_step_and_does_none(
    run: Run, world: SwitchWorld, golden: Callable[[str, str], None]
) -> None:
    done = run("--to", "own", "--dry-run")
    assert (done.exit_code, done.stderr, world.calls) == (0, "", [])
    golden("offsets-switch-plan.txt", without_paths(done.stdout))


def test_the_result_as_json(run: Run, world: SwitchWorld) -> None:
    done = run("--to", "own", "--yes", "-o", "json").json()
    assert (done["kind"], done["status"], done["exit_code"]) == ("offsets-switch-result", "ok", 0)
    assert set(done["data"]["rows"][0]) == {"step", "action", "before", "after", "outcome", "detail"}
    config = {"property": "offsets.storage.topic", "before": None, "after": "own"}
    assert done["data"]["config"] == config
    [write] = done["data"]["writes"]
    assert (write["action"], write["after"], write["outcome"]) == ("write", {"position": 3}, "written")
    assert done["data"]["creates"] == [{"topic": "own", "partitions": 5, "replication_factor": 1}]
    assert done["data"]["undo"] == "eosctl offsets switch --connector c --to global"
    assert world.delivered == world.lines


def test_a_step_that_fails_is_exit_7_and_says_both_ways_on(
    run: Run, world: SwitchWorld, golden: Callable[[str, str], None]
) -> None:
    world.connect.fail_next("put_connector_config", ConnectError("PUT answered 500: try again"))
    done = run("--to", "own", "--yes")
    assert done.exit_code == 7
    golden("offsets-switch-failed.txt", _without_backup(without_paths(done.stdout)))
    assert "Run it again to go on: eosctl offsets switch --connector c --to own" in done.stderr
    assert "Go back: eosctl offsets switch --connector c --to global" in done.stderr
    assert run("--to", "own", "--yes").exit_code == 0
    assert world.delivered == world.lines


def _without_backup(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("backup: "))


def test_there_already(run: Run, world: SwitchWorld) -> None:
    """Neither a question nor --yes: a job may say it each time."""
    done = run("--to", "global")
    assert (done.exit_code, done.stderr, world.calls) == (0, "", [])
    assert done.stdout == "Connector c keeps its offsets in the global offsets topic already.\n"
    assert run("--to", "own", "--yes").exit_code == 0
    again = run("--to", "own")
    assert again.stdout == "Connector c keeps its offsets in topic own already.\n"


def test_a_target_is_needed(run: Run) -> None:
    assert run().exit_code == 2
