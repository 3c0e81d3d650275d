"""`eosctl history`: what the audit log says, filtered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eosctl.deadline import Clock
from tests.conftest import Invoke


def test_what_older_versions_recorded_is_told_by_its_arguments(invoke: Invoke, tmp_path: Path) -> None:
    old = json.loads(entry(1, "offsets set")) | {"arguments": {"connector": "orders", "yes": True}}
    many = json.loads(entry(2, "fence")) | {"arguments": {"transactional_ids": list("abcde")}}
    (tmp_path / "log").write_text(f"{json.dumps(old)}\n{json.dumps(many)}\n{entry(3, 'fence')}\n")
    shown = invoke("history", "--audit-log", str(tmp_path / "log"))
    assert shown.exit_code == 0, shown.stderr
    assert ("connector orders" in shown.stdout, "ids a, b, c and 2 more" in shown.stdout) == (True, True)


def entry(time_ms: int, command: str) -> str:
    return json.dumps({"id": f"{time_ms}", "time_ms": time_ms, "time": "t", "command": command, "outcome": "ok"})


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), ["fence", "offsets merge", "offsets set"]),
        (("--command", "offsets"), ["offsets merge", "offsets set"]),
        (("--command", "offsets set"), ["offsets set"]),
        (("--command", "off"), []),
        (("--since", "2h"), ["offsets merge", "offsets set"]),
        (("--since", "1970-01-02"), ["offsets set"]),
        (("--since", "1970-01-01T23:00:00+01:00"), ["offsets merge", "offsets set"]),
    ],
)
def test_history_is_filtered(tmp_path: Path, invoke: Invoke, args: tuple[str, ...], expected: list[str]) -> None:
    hour_ms = 3_600_000
    log = tmp_path / "log"
    rows = [entry(0, "fence"), entry(22 * hour_ms, "offsets merge"), entry(24 * hour_ms, "offsets set")]
    log.write_text("\n".join(rows) + "\n", encoding="utf-8")
    done = invoke("history", *args, "--audit-log", str(log), "-o", "json", clock=Clock(now_s=lambda: 24 * 3600.0))
    assert [row["command"] for row in done.json()["data"]["rows"]] == expected


def test_history_needs_no_secret_and_no_cluster(invoke: Invoke, tmp_path: Path) -> None:
    """It failed where the profile's password could not be fetched."""
    config = tmp_path / "config.yaml"
    profile = {"audit_log": str(tmp_path / "log"), "connect": {"username": "me", "password_env": "NOT_SET"}}
    config.write_text(json.dumps({"profiles": {"p": profile}, "current": "p"}), encoding="utf-8")
    assert invoke("history", "--config", str(config)).exit_code == 0
    failed = invoke("workers", "list", "--config", str(config))
    assert (failed.exit_code, "profile p: connect: password_env: the environment has no NOT_SET" in failed.stderr) == (
        2,
        True,
    )


@pytest.mark.parametrize(
    "members",
    [
        '"time_ms": "x"', '"time_ms": [1]', '"command": ["fence"]', '"target": "x"', '"outcome": {"x": 1}',
        '"arguments": 1', '"overrides": [1]', '"touched": 7', '"error": "x"',
    ],
)  # fmt: skip
@pytest.mark.parametrize("output", ["wide", "json", "yaml"])
def test_a_line_with_members_of_other_types_is_damaged(
    invoke: Invoke, tmp_path: Path, members: str, output: str
) -> None:
    """They used to end `history` with a TypeError or an AttributeError."""
    (tmp_path / "log").write_text(f'{{"id": "1", {members}}}\n{{"id": 7}}\n{entry(5, "fence")}\n')
    shown = invoke("history", "--audit-log", str(tmp_path / "log"), "--since", "1970-01-01", "-o", output)
    assert shown.exit_code == 0, shown.stderr
    assert "2 damaged lines" in shown.stderr
    assert "fence" in shown.stdout


@pytest.mark.parametrize(
    ("touched", "named"),
    [('{"connectors": [5, "c"], "left_out": 3}', "connectors 5, c"), ('{"connectors": 5, "topics": ["t"]}', "topic t")],
)
def test_what_a_write_touched_is_named_as_far_as_it_is_a_list(
    invoke: Invoke, tmp_path: Path, touched: str, named: str
) -> None:
    (tmp_path / "log").write_text(f'{{"id": "1", "touched": {touched}, "user": "\\ud800"}}\n')
    shown = invoke("history", "--audit-log", str(tmp_path / "log"))
    assert (shown.exit_code, named in shown.stdout) == (0, True), shown


def test_history_of_nothing_and_of_nonsense(invoke: Invoke, tmp_path: Path) -> None:
    assert invoke("history").stdout.startswith("Nothing was written so far.")
    assert invoke("history", "--since", "yesterday").exit_code == 2
    assert invoke("history", "--since", f"{'9' * 5000}d").exit_code == 2
    assert invoke("history", "--audit-log", str(tmp_path)).exit_code == 1
