"""`--log-file`: what stderr says, with the time, whatever became of the command."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

import pytest

from eosctl.deadline import Clock, Event
from tests.conftest import Invoke

CLOCK = Clock(now_s=lambda: 1_795_000_000.0)
STAMP = "2026-11-18T11:06:40.000Z "


def broken(app: Any) -> Any:
    app.on_event(Event("asking the cluster"))
    raise RuntimeError("it broke")


@pytest.mark.parametrize("by", ["option", "environment"])
def test_talk_errors_tracebacks_and_exit_codes(invoke: Invoke, tmp_path: Path, by: str) -> None:
    log = tmp_path / "log"
    args = ["--log-file", str(log)] if by == "option" else []
    environ = {"EOSCTL_LOG_FILE": str(log)} if by == "environment" else {}
    doors = {"open_topics": broken, "open_transactions": broken}
    for _ in range(2):
        done = invoke("offsets", "list", "-b", "h:1", *args, environ=environ, doors=doors, clock=CLOCK)
        assert done.exit_code == 1
        assert "Traceback" not in done.stderr
    lines = log.read_text().splitlines()
    assert all(line.startswith(STAMP) for line in lines)
    text = "\n".join(line.removeprefix(STAMP) for line in lines)
    assert text.count("asking the cluster\n| Traceback") == 2
    assert len(re.findall(r"error: unexpected RuntimeError\n  Run .*\nerror: exit code 1", text)) == 2
    assert "RuntimeError: it broke" not in text  # the text of an exception may hold a secret, or lines of others
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_good_command_leaves_its_exit_code(invoke: Invoke, tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert invoke("profile", "list", "--log-file", str(log), clock=CLOCK).exit_code == 0
    assert log.read_text() == f"{STAMP}profile-list: exit code 0\n"


def test_a_log_file_that_cannot_be_opened_ends_the_command_before_it_begins(invoke: Invoke, tmp_path: Path) -> None:
    opened: list[object] = []
    done = invoke("offsets", "list", "-b", "h:1", "--log-file", str(tmp_path), doors={"open_topics": opened.append})
    assert (done.exit_code, opened) == (1, [])
    assert f"cannot write {tmp_path}" in done.stderr
