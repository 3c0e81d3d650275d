"""`upgrade apply | status | verify` as command lines: plan, question, refusal, and the three outputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.rolling import RollWorld, world

WHERE = ["-b", "localhost:1", "-g", "g"]
APPLY = ["upgrade", "apply", "--to", "enabled", "--driver", "command", "--restart-command", "restart {host}"]
COMMAND = [*APPLY, "--set-config-command", "no-such-program {host} {mode}"]


@pytest.fixture
def there() -> RollWorld:
    return world(w1="disabled", w2="disabled")


def run(invoke: Any, there: RollWorld, *words: str, **how: Any) -> Any:
    return invoke(*words, *WHERE, **there.surroundings, **how)


def test_the_plan(invoke: Any, golden: Callable[[str, str], None], there: RollWorld) -> None:
    outcome = run(invoke, there, *COMMAND, "--dry-run")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    journal = next(line for line in outcome.stdout.splitlines() if line.startswith("journal: "))
    golden("upgrade/apply-plan.txt", outcome.stdout.replace(journal, "journal: PATH"))


def test_a_gate_that_fails_forbids_it(invoke: Any, there: RollWorld) -> None:
    there.connector.fail()
    for more in ("--yes", "--dry-run"):
        outcome = run(invoke, there, *COMMAND, more, "-o", "json")
        assert (outcome.exit_code, outcome.json()["kind"]) == (6, "upgrade-apply-plan")
        assert [error["code"] for error in outcome.json()["errors"]] == ["connectors_healthy"]
    assert there.starts == []
    [entry] = invoke("history", "-o", "json").json()["data"]["rows"]
    assert (entry["outcome"], entry["error"]["code"], entry["undo"]) == ("refused", "connectors_healthy", None)
    assert entry["touched"] == {"workers": ["http://w1:8083", "http://w2:8083"]}


def test_nothing_to_do(invoke: Any) -> None:
    outcome = run(invoke, world(w1="enabled"), "upgrade", "apply", "--to", "enabled", "--yes")
    assert (outcome.exit_code, outcome.stdout.splitlines()[0]) == (0, "No worker has to change.")


def test_a_driver_that_fails_is_told_with_the_way_on(invoke: Any, there: RollWorld) -> None:
    outcome = run(invoke, there, *COMMAND, "--yes", "-o", "json")
    document = outcome.json()
    assert (outcome.exit_code, document["kind"], document["status"]) == (7, "upgrade-apply-result", "partial")
    assert [row["outcome"] for row in document["data"]["rows"]] == ["failed", *["not_reached"] * 3]
    assert [error["code"] for error in document["errors"]] == ["not_found", "upgrade_unfinished"]
    assert "--resume" in document["errors"][1]["hint"]
    status = run(invoke, there, "upgrade", "status")
    assert status.exit_code == 0
    assert "under way to preparing" in status.stdout
    assert "it stopped: there is no program no-such-program" in status.stdout


def test_status_and_verify(invoke: Any, golden: Callable[[str, str], None], there: RollWorld) -> None:
    golden("upgrade/status.txt", run(invoke, there, "upgrade", "status").stdout)
    verified = run(invoke, there, "upgrade", "verify", "--to", "preparing")
    assert verified.exit_code == 3
    golden("upgrade/verify.txt", verified.stdout)
    unproven = run(invoke, there, "upgrade", "verify", "--to", "preparing", "-o", "json").json()
    assert {row["code"] for row in unproven["data"]["rows"]} == {"mode_unproven"}
    enabled = run(invoke, world(w1="enabled", w2="enabled"), "upgrade", "verify", "--to", "enabled", "-o", "json")
    assert (enabled.exit_code, enabled.json()["data"]["rows"]) == (0, [])


def test_a_mixed_fleet_is_found(invoke: Any) -> None:
    mixed = run(invoke, world(w1="enabled", w2="disabled"), "upgrade", "verify", "--to", "enabled", "-o", "json")
    assert mixed.exit_code == 3
    assert {row["code"] for row in mixed.json()["data"]["rows"]} >= {"wrong_mode", "no_mixed_modes"}


def test_a_gate_is_accepted_by_name_and_that_is_recorded(invoke: Any, there: RollWorld, tmp_path: Path) -> None:
    """A connector that failed weeks ago forbade every upgrade of its group."""
    there.connector.fail()
    unknown = run(invoke, there, *COMMAND, "--accept-gate", "connectors")
    assert (unknown.exit_code, "there is no gate connectors" in unknown.stderr) == (2, True)
    accepted = ["--accept-gate", "connectors_healthy", "--audit-log", str(tmp_path / "audit")]
    plan = run(invoke, there, *COMMAND, *accepted, "--dry-run")
    assert (plan.exit_code, "gate fail, accepted: connectors_healthy: a task 0 is FAILED" in plan.stdout) == (0, True)
    done = run(invoke, there, *COMMAND, *accepted, "--yes", "-o", "json")
    assert [(gate["id"], gate["accepted"]) for gate in done.json()["data"]["gates"]] == [("connectors_healthy", True)]
    (line,) = (tmp_path / "audit").read_text().splitlines()
    assert json.loads(line)["overrides"] == {"accept_gate": ["connectors_healthy"]}
    verify = ("upgrade", "verify", "--to", "disabled", "--accept-gate", "modes_proven", *accepted[:2])
    verified = run(invoke, there, *verify)
    assert (verified.exit_code, "it is accepted as it is (--accept-gate)" in verified.stderr) == (0, True)
    assert run(invoke, there, *verify[:-1], "connectors").exit_code == 2
