"""Rehearsals on real brokers and workers: the source that is built in, and one that declares what it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Invoke
from tests.rehearse.rehearsing import documented, growing_table, rehearse, rows_of, table_plugin

pytestmark = pytest.mark.live


def left_behind(folder: Path) -> list[str]:
    """The processes that were started in a folder and still run, and sandboxes that are still there."""
    running = [
        path.name
        for path in Path("/proc").iterdir()
        if path.name.isdigit() and str(folder).encode() in _command_line(path)
    ]
    sandboxes = folder / "state" / "eosctl" / "sandbox"
    return running + [path.name for path in sandboxes.iterdir() if path.is_dir()]


def _command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def test_the_built_in_source_is_exactly_once(invoke: Invoke, tmp_path: Path) -> None:
    """Through the audit of all that it delivered; nothing of the sandbox is left."""
    page = tmp_path / "page.html"
    faults = ("--faults", "restart-tasks,stop-resume,switch-offsets", "--workers", "1")
    outcome = rehearse(invoke, tmp_path, *faults, "--report", str(page))
    rows = rows_of(outcome)
    assert {name: row["verdict"] for name, row in rows.items()} == dict.fromkeys(
        ("restart-tasks", "stop-resume", "switch-offsets"), "exactly_once"
    ), outcome.stdout
    assert (outcome.exit_code, outcome.json()["data"]["summary"]["verdict"]) == (0, "exactly_once")
    assert all(row["recovered_ms"] is not None for row in rows.values())
    assert "exactly once" in page.read_text()
    assert left_behind(tmp_path) == []


def test_a_source_that_declares_support_and_reads_twice_is_found_out(invoke: Invoke, tmp_path: Path) -> None:
    """It says SUPPORTED, and Connect believes it: every record is in a transaction, some of them are there twice."""
    connector = documented("orders", connection__url=f"jdbc:sqlite:{tmp_path / 'orders.db'}", forgets="true")
    plugins = table_plugin(tmp_path)
    with growing_table(tmp_path / "orders.db"):
        outcome = rehearse(
            invoke, tmp_path, "--plugin-path", str(plugins), "--faults", "restart-tasks", "--workers", "1",
            "--unique", "id", connector=connector,
        )  # fmt: skip
    row = rows_of(outcome)["restart-tasks"]
    assert (outcome.exit_code, row["verdict"]) == (3, "not_exactly_once"), outcome.stdout
    assert "duplicate" in {each["code"] for each in row["findings"]}
    assert left_behind(tmp_path) == []
