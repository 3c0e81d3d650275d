"""`eosctl watch` on a pseudo-terminal and in a pipe, over a group of fakes that has an incident and is healed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Invoke
from tests.fakes.clock import PLENTY_S
from tests.terminals import EmulatedTerminal, start

WATCH = """
import importlib, os, sys, time
from tests.fakes.doctor_scene import cluster
from tests.fakes.faults import EVERY
from eosctl.errors import UnreachableError

incident = sys.argv.pop(1)
there = cluster()
there.time.now_s = time.time()  # no clock is off

def look(_call):
    if os.path.exists(incident + ".down"):
        raise UnreachableError("no broker of localhost:1 answers")
    there.connect.connectors["orders"].tasks[0].state = "FAILED" if os.path.exists(incident) else "RUNNING"

there.connect.before(EVERY, look)
there.brokers.calls.before(EVERY, look)
session = importlib.import_module("eosctl.commands.frame.session").Session(doors=there.doors())
from eosctl import __main__
import click
frame = importlib.import_module("eosctl.commands.frame.root")
frame.root.main = __import__("functools").partial(frame.root.main, obj=session)
sys.argv[0] = "eosctl"
__main__.main()
"""
LINE = ["watch", "-b", "localhost:1", "-g", "g", "--interval", "500ms"]


@pytest.fixture
def incident(tmp_path: Path) -> Path:
    """While this file is there, the task of orders has FAILED; with `.down` behind it, no broker answers."""
    return tmp_path / "incident"


def argv(incident: Path, *more: str) -> list[str]:
    return ["-c", WATCH, str(incident), *LINE, *more]


def on_terminal(incident: Path, *more: str, columns: int = 100, rows: int = 24, **environ: str) -> EmulatedTerminal:
    surroundings = {"XDG_STATE_HOME": str(incident.parent), **environ}
    return EmulatedTerminal(argv(incident, *more), columns=columns, rows=rows, environ=surroundings)


def test_a_line_comes_and_goes_and_q_leaves_what_stood(incident: Path) -> None:
    with on_terminal(incident) as terminal:
        lines = terminal.wait_for_text("rights are not checked")
        assert lines[0].startswith("group g: 1 of 1 worker enabled; 1 source task, exactly-once")
        incident.touch()
        lines = terminal.wait_for_text("1 error")
        assert "orders" in lines[3], lines
        assert "error" in lines[3], "worst first"
        incident.unlink()
        terminal.wait_for(lambda lines: not lines[1].startswith("1 error") and any("  gone " in line for line in lines))
        terminal.press("q")
        assert terminal.end() == 0
        assert terminal.is_as_before()
        assert "acls_not_checked" in terminal.after()
        assert "state: calm" in terminal.after()


def test_sizes_and_a_resize(incident: Path) -> None:
    incident.touch()
    with on_terminal(incident, columns=30, rows=4) as terminal:
        terminal.wait_for(lambda lines: any("error" in line for line in lines))
        for columns, rows, header in (
            (80, 24, "FOR    AGE  WHAT"), (120, 30, "SUBJECT"), (200, 50, "COMMAND"), (80, 10, "FOR    AGE  WHAT"),
        ):  # fmt: skip
            terminal.resize(columns, rows)
            lines = terminal.wait_for(
                lambda lines, rows=rows, header=header: header in lines[2] and lines[rows - 1].startswith("j/k choose")  # type: ignore[misc]
            )
            assert lines[3].startswith("> error")
            assert len(lines) == rows
        terminal.press("q")
        assert terminal.end() == 0


def test_enter_explains_and_help_has_the_sources(incident: Path) -> None:
    incident.touch()
    with on_terminal(incident) as terminal:
        terminal.wait_for_text("1 error")
        terminal.press("\r")
        lines = terminal.wait_for_text("What it means")
        assert any(line == "Fix" for line in lines)
        terminal.press("\x1b")
        terminal.wait_for_text("j/k choose")
        terminal.press("\x1b[B")
        terminal.wait_for(lambda lines: any(line.startswith("> info") for line in lines))
        terminal.press("k?")
        lines = terminal.wait_for_text("Sources")
        assert any(line.startswith("hanging  collected ") for line in lines)
        terminal.press("q")
        assert terminal.end() == 0


def test_a_cluster_that_goes_away_and_comes_back(incident: Path) -> None:
    down = incident.with_suffix(".down")
    with on_terminal(incident) as terminal:
        terminal.wait_for_text("rights are not checked")
        down.touch()
        lines = terminal.wait_for_text("nothing can be collected without Kafka: no broker of localhost:1")
        assert lines[3].startswith("> error")
        assert any("rights are not checked" in line for line in lines), "what was known last stays"
        others = [line for line in terminal.lines() if "could not be collected" in line]
        assert all(line.startswith("  gone ") for line in others), "one cause is one line, once it is known"
        down.unlink()
        terminal.wait_for_text("  gone ")
        terminal.press("q")
        assert terminal.end() == 0


@pytest.mark.parametrize("how", ["ctrl-c", "SIGTERM"])
def test_every_way_out_leaves_the_terminal_as_it_was(incident: Path, how: str) -> None:
    with on_terminal(incident) as terminal:
        terminal.wait_for_text("rights are not checked")
        if how == "ctrl-c":
            terminal.press("\x03")
        else:
            terminal.started.send_signal(signal.Signals[how])
        assert terminal.end() == 130
        assert terminal.is_as_before()
        assert "error: interrupted" in terminal.after()
        assert "acls_not_checked" in terminal.after()


SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if not job:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
while os.WIFSTOPPED(status := os.waitpid(job, os.WUNTRACED)[1]):
    os.tcsetpgrp(0, os.getpid())
    print("stopped", flush=True)
    sys.stdin.readline()
    os.tcsetpgrp(0, job)
    os.killpg(job, signal.SIGCONT)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_ctrl_z_gives_the_terminal_back_and_fg_takes_it(incident: Path) -> None:
    """Under a parent that does what a shell does: without one the kernel stops nothing."""
    environ = {"XDG_STATE_HOME": str(incident.parent)}
    line = ["-c", SHELL, *argv(incident)]
    with EmulatedTerminal(line, columns=100, rows=24, environ=environ) as terminal:
        terminal.wait_for_text("rights are not checked")
        terminal.press("\x1a")
        terminal.wait_for_text("stopped")
        assert terminal.is_as_before()
        terminal.press("fg\n")
        terminal.wait_for(lambda _lines: terminal.printed.count("\x1b[?1049h") == 2)
        terminal.wait_for(lambda lines: lines[23].startswith("j/k choose") and "stopped" not in lines)
        terminal.wait_for_text("rights are not checked")
        terminal.press("q")
        assert terminal.end() == 0
        assert terminal.is_as_before()


def test_without_colours_only_what_changes_is_painted(incident: Path) -> None:
    """Over a few seconds ages and the clock change: the rest of the screen is left alone."""
    incident.touch()
    with on_terminal(incident, rows=50, NO_COLOR="1") as terminal:
        terminal.wait_for_text("1 error")
        before = len(terminal.printed)
        frames = terminal.printed.count("\x1b[?2026l")
        terminal.wait_for(lambda _lines: terminal.printed.count("\x1b[?2026l") > frames + 3)
        assert "Enter details" not in terminal.printed[before:]
        assert "\x1b[2J" not in terminal.printed[before:]
        terminal.press("q")
        assert terminal.end() == 0
        assert not re.search(r"\x1b\[[0-9;]*3[0-7][0-9;]*m", terminal.printed)
        assert "\x1b[7m" in terminal.printed, "the choice can be seen"


def test_a_dumb_terminal_gets_a_line_per_change(incident: Path) -> None:
    with on_terminal(incident, "--until", "calm", TERM="dumb", columns=300) as terminal:
        assert terminal.end() == 0
        assert "\x1b" not in terminal.printed
        assert "  appeared  info     acls_not_checked  acls: rights are not checked" in terminal.printed


def run(incident: Path, *more: str) -> subprocess.Popen[str]:
    environ = {**os.environ, "XDG_STATE_HOME": str(incident.parent)}
    return start(argv(incident, *more), environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _until(started: subprocess.Popen[str], code: str) -> dict[str, Any]:
    """The next row with that code."""
    assert started.stdout is not None
    for line in started.stdout:
        row = json.loads(line)
        if row["code"] == code:
            return dict(row)
    raise AssertionError(f"no row has the code {code}")


def test_a_pipe_gets_a_json_object_per_change(incident: Path) -> None:
    with run(incident, "-o", "ndjson") as started:
        first = _until(started, "acls_not_checked")
        assert (first["change"], first["severity"], first["source"]) == ("appeared", "info", "doctor")
        incident.touch()
        appeared = _until(started, "task_failed")
        assert (appeared["change"], appeared["severity"]) == ("appeared", "error")
        assert appeared["command"].startswith("eosctl ")
        incident.unlink()
        while _until(started, "task_failed")["change"] != "gone":
            pass
        assert started.stdout is not None
        started.stdout.close()
        assert started.wait(PLENTY_S) == 0, "nobody reads any more"


def waited(incident: Path, *more: str, exit_code: int) -> Any:
    """The data of the document with which a wait ends."""
    with run(incident, "-o", "json", *more) as started:
        out, _err = started.communicate(timeout=PLENTY_S)
        assert started.returncode == exit_code
    document = json.loads(out)
    assert (document["kind"], document["exit_code"]) == ("watch", exit_code)
    return document["data"]


def assert_calm(data: Any) -> None:
    assert data["summary"]["state"] == "calm"
    assert {row["change"] for row in data["rows"]} == {"stands"}
    assert "acls_not_checked" in {row["code"] for row in data["rows"]}


def test_a_wait_ends_with_a_document(incident: Path) -> None:
    assert_calm(waited(incident, "--until", "calm", "--for", "500ms", exit_code=0))


def test_a_wait_that_is_over_ends_with_a_document(incident: Path) -> None:
    """How the group is, is known when all has been looked at: a busy machine needs its time for that."""
    for timeout_s in (4, 16, 64, 256):
        more = ("--until", "finding", "--timeout", f"{timeout_s}s", "--interval", "2s")
        data = waited(incident, *more, exit_code=4)
        if data["summary"]["state"] != "unknown":
            break
    assert_calm(data)


def test_a_script_waits_for_a_group_to_become_calm(incident: Path) -> None:
    incident.touch()
    with run(incident, "--until", "calm", "--for", "300ms", "-o", "ndjson") as started:
        assert started.stdout is not None
        seen = ""
        while '"severity":"error"' not in seen.replace('": "', '":"'):
            seen += started.stdout.readline()
        incident.unlink()
        out, _err = started.communicate(timeout=PLENTY_S)
        assert started.returncode == 0
    assert '"gone"' in out


def test_a_finding_that_was_waited_for_is_exit_code_3(incident: Path) -> None:
    incident.touch()
    with run(incident, "--until", "finding") as started:
        out, _err = started.communicate(timeout=PLENTY_S)
        assert started.returncode == 3
    assert "fix: " in out


def test_a_connector_that_is_not_there_is_said_at_once(incident: Path) -> None:
    with run(incident, "--connector", "order", "--until", "calm") as started:
        _out, err = started.communicate(timeout=PLENTY_S)
        assert started.returncode == 1
    assert "there is no source connector 'order'\n" in err
    assert "Did you mean orders?" in err


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("-o", "json"), "without --until"),
        (("--for", "2s"), "--for needs --until"),
        (("--ignore", "nonsense"), "no finding has the code"),
        (("--interval", "0s"), "not a duration"),
    ],
)
def test_what_can_never_be_watched(invoke: Invoke, more: tuple[str, ...], says: str) -> None:
    done = invoke(*LINE[:5], *more)
    assert done.exit_code == 2
    assert says in done.stderr + done.stdout
