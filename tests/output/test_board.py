"""The live table of `upgrade apply`: what a terminal shows meanwhile and is left with, and what a pipe gets instead."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from eosctl.deadline import Clock, Event, Standing
from eosctl.output.board import Board
from eosctl.output.progress import ProgressMessages
from tests.fakes.clock import FakeTime
from tests.terminals import on_a_terminal, screen_after

ROLL = """
import sys
from msgspec.structs import replace
from pathlib import Path
from eosctl.core.workers.modes import Mode
from eosctl.upgrade.roll.prepare import RollRequest, prepare_roll
from eosctl.upgrade.roll.roll import apply_roll
from eosctl.output.progress import ProgressMessages
from tests.fakes.clock import FakeTime
from tests.fakes.rolling import FakeDriver, world

there = world(**{f"w{number}": "disabled" for number in range(1, int(sys.argv[2]) + 1)})
held = []
there.after_start.append(lambda _url: held.append(there.hold_task("UNASSIGNED")))
shown = FakeTime()

def sleep(wanted_s):  # a group settles in no time; what a step waits for comes when it was waited for
    there.settle()
    if wanted_s == 0.5:
        shown.now_s += 10
        messages._board._live.refresh()
        while held:
            held.pop()()

clock = replace(shown.clock(), sleep_s=sleep)
messages = ProgressMessages(sys.stderr, clock, live=True)
app = replace(there.app(Path(sys.argv[1])), on_event=messages, clock=clock)
if len(sys.argv) > 3:
    there.crashes.add(sys.argv[3])
report = apply_roll(app, prepare_roll(app, RollRequest(Mode.ENABLED, settle_timeout_s=60.0), FakeDriver(there)))
messages.close()
print(f"exit code {int(report.exit_code)}")
"""
COMMAND = """
import importlib, sys
from tests.fakes.rolling import world
doors = world(w1="disabled", w2="disabled").doors()
session = importlib.import_module("eosctl.commands.frame.session").Session(doors=doors)
importlib.import_module("eosctl.commands.frame.root").root(sys.argv[1:], obj=session)
"""
APPLY = ["upgrade", "apply", "-b", "localhost:1", "-g", "g", "--to", "preparing", "--driver", "command", "--yes"]
APPLY += ["--set-config-command", "true"]
REDRAW = re.compile(r"\r\x1b\[2K(?:\x1b\[1A\x1b\[2K)*")
THE_WAY_ON = "Go on: eosctl upgrade apply --resume --driver command --set-config-command true --restart-command"


def frames(printed: str) -> list[str]:
    """What stood on the terminal at each redrawing, codes and all."""
    return [printed[: match.start()] + "\x1b[?25h" for match in REDRAW.finditer(printed)]


def test_both_passes_stay_on_the_terminal_and_each_wait_has_its_time(tmp_path: Path) -> None:
    printed = on_a_terminal(["-c", ROLL, str(tmp_path), "2"], columns=80)
    assert screen_after(printed) == [
        "WORKER          STEP       STATE       SINCE",
        "http://w2:8083  preparing  done        00:00:10Z",
        "http://w1:8083  preparing  done        00:00:20Z",
        "WORKER          STEP       STATE       SINCE",
        "http://w1:8083  enabled    done        00:00:30Z",
        "http://w2:8083  enabled    done        00:00:40Z",
        "exit code 0",
        "",
    ]
    seen = ["\n".join(screen_after(frame)) for frame in frames(printed)]
    waiting = (
        "http://w2:8083  preparing  settling    00:00:00Z\n"
        "http://w1:8083  preparing  to come     00:00:00Z\n"
        "  {}  http://w2:8083: waiting: a/0 is UNASSIGNED"
    )
    assert any(waiting.format("0s") in screen for screen in seen), seen
    assert any(waiting.format("10s") in screen for screen in seen), seen


def test_a_worker_that_fails_is_told_in_its_line(tmp_path: Path) -> None:
    printed = on_a_terminal(["-c", ROLL, str(tmp_path), "2", "http://w1:8083"], columns=80)
    assert screen_after(printed)[1:] == [
        "http://w2:8083  preparing  done        00:00:10Z",
        "http://w1:8083  preparing  failed      00:00:10Z",
        "exit code 7",
        "",
    ]


@pytest.mark.parametrize("rows", [14, 8])
def test_more_workers_than_lines(tmp_path: Path, rows: int) -> None:
    """Meanwhile those around the one at work; all of them at the end."""
    printed = on_a_terminal(["-c", ROLL, str(tmp_path), "11"], columns=80, rows=rows)
    assert max(match[0].count("\x1b[1A") for match in REDRAW.finditer(printed)) < rows, "the cursor can't go above it"
    left = screen_after(printed)
    assert sum(" preparing  done " in line for line in left) == 11
    assert sum(" enabled    done " in line for line in left) == 11
    screen = screen_after(next(frame for frame in frames(printed) if "http://w9:8083: waiting" in frame))
    assert any(re.match(r"http://w9:8083 +preparing +(restarting|settling)", line) for line in screen), screen
    assert any(re.match(r"  … \d+ more", line) for line in screen), screen


def test_ctrl_c_leaves_the_table_the_rows_so_far_the_cursor_and_the_way_on(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    slow = f"sh -c 'touch {begun}; exec sleep 60' {{host}}"
    printed = on_a_terminal(
        ["-c", COMMAND, *APPLY, "--restart-command", slow], columns=80, environ={"XDG_STATE_HOME": str(tmp_path)},
        interrupt_when=begun.exists, expected_status=130,
    )  # fmt: skip
    left = screen_after(printed)
    at = next(number for number, line in enumerate(left) if line.startswith("WORKER          STEP       STATE "))
    assert [line.split()[:3] for line in left[at + 1 : at + 3]] == [
        ["http://w2:8083", "preparing", "restarting"],
        ["http://w1:8083", "preparing", "to"],
    ]
    rest = "\n".join(left[at + 3 :])
    assert re.findall(r"OUTCOME +(\w+)", rest) == ["failed", "not_reached"], "a row per worker: they were lost"
    assert "error: interrupted\n" in rest
    assert THE_WAY_ON in rest
    assert "0s" not in rest, "the wait is over"


@pytest.mark.parametrize("environ", [{"TERM": "dumb"}, {"NO_COLOR": "1"}])
def test_a_terminal_that_may_not_be_steered_gets_the_lines_of_a_pipe(tmp_path: Path, environ: dict[str, str]) -> None:
    printed = on_a_terminal(
        ["-c", COMMAND, *APPLY, "--restart-command", "false {host}"], columns=80,
        environ={"XDG_STATE_HOME": str(tmp_path), **environ}, expected_status=7,
    )  # fmt: skip
    assert "\x1b" not in printed
    assert "pass preparing: 2 workers\nhttp://w2:8083: restarting as preparing\n" in printed


def messages_on(live: bool) -> tuple[ProgressMessages, io.StringIO, FakeTime]:
    out, time = io.StringIO(), FakeTime()
    return ProgressMessages(out, time.clock(), live=live), out, time


def test_a_pipe_gets_the_sentences_and_nothing_for_an_empty_one() -> None:
    messages, out, _time = messages_on(live=False)
    messages(Event("pass x: 1 worker", standings=(Standing("w", "x", "to come"),)))
    messages(Event("", standings=(Standing("w", "x", "failed"),)))
    messages.close()
    assert out.getvalue() == "pass x: 1 worker\n"


def test_sentences_stay_whole_beside_it_and_names_cannot_steer_the_terminal() -> None:
    messages, out, _time = messages_on(live=True)
    messages(Event("restarting \x1b[2J", standings=(Standing("w\x1b[2J [b]x[/b]", "preparing", "restarting"),)))
    messages(Event("NOW: set [b]it[/b] and restart"))
    messages.close()
    assert out.getvalue().startswith("NOW: set [b]it[/b] and restart\n")
    assert "w\\x1b[2J [b]x[/b]" in out.getvalue()
    assert "\x1b[2J" not in out.getvalue()


def test_the_first_column_says_what_its_lines_are() -> None:
    """Every table used to be one of workers."""
    stream = io.StringIO()
    board = Board(stream, Clock())
    board.show(Event("", standings=(Standing("kill-worker", "round 1", "done"),), heading="FAULT"))
    board.close()
    assert stream.getvalue().split()[:2] == ["FAULT", "STEP"]
