"""A real pseudo-terminal: what fits it, which codes it gets, and what is asked for before anything could be parsed."""

from __future__ import annotations

import re

import pytest

from tests.terminals import on_a_terminal

LONG = "/data/" + "directory/" * 4 + "customers.txt"
PROGRAM = f"""
import importlib, sys
from msgspec.structs import replace
from eosctl.offsets.rows import OFFSETS_LIST, StoredRecord, Effective, ViewRow
from eosctl.output import render_report
from eosctl.output.cells import summary_lines
from eosctl.report import Report
session = importlib.import_module("eosctl.commands.frame.session").Session()
kind = OFFSETS_LIST.shown_as(replace(OFFSETS_LIST.text, lines=summary_lines))
cell = StoredRecord(
    topic="connect-offsets", partition=3, offset=17, timestamp=None, timestamp_ms=None, value={{"position": 292}}
)
row = ViewRow(
    connector="customers", source_partition={{"filename": {LONG!r}}}, key="k", flags=["not_seen"], age_ms=None,
    stores={{"global": cell, "dedicated": None}}, effective=Effective(documented={{"n": 292}}, runtime=None),
)
summary = {{"a sentence that goes on": " ".join(["word"] * 60)}}
report = Report(kind=kind, rows=[row, row], summary=summary, data={{"undo": "eosctl " + "x " * 60}})
render_report(report, output=sys.argv[1], stream=sys.stdout, color=session.color(sys.stdout))
"""
WORKING = """
import sys
from eosctl.deadline import Clock
from eosctl.deadline import Event
from eosctl.output.progress import ProgressMessages
now_s = iter([0.0, 5.0])
messages = ProgressMessages(sys.stderr, Clock(monotonic_s=lambda: next(now_s)), live=True)
messages(Event("reading connect-offsets", done=0, total=4000, unit="records"))
messages(Event("reading connect-offsets", done=1000, total=4000, unit="records"))
messages(Event("stopping [b]now[/b]"))
messages.close()
"""
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@pytest.mark.parametrize(
    ("columns", "output", "environ"),
    [
        *((columns, "text", {}) for columns in (80, 120, 200, 250)),
        *((columns, "wide", {}) for columns in (80, 120, 200)),
        *((columns, "text", {"NO_COLOR": "1"}) for columns in (80, 200)),
        *((columns, "text", {"TERM": "dumb"}) for columns in (80, 200)),
    ],
)
def test_text_fits_and_nothing_is_lost(columns: int, output: str, environ: dict[str, str]) -> None:
    """Without colours the table of a pipe was printed on a terminal too, however wide."""
    printed = on_a_terminal(["-c", PROGRAM, output], columns=columns, environ=environ)
    blocks = output == "wide" or columns < 150  # too narrow for these columns as a table
    assert bool(ANSI.search(printed)) == (not environ and not blocks)
    lines = ANSI.sub("", printed).splitlines()
    too_long = [line for line in lines if len(line.rstrip()) > min(columns, 200)]
    assert all(line.startswith("undo: ") or LONG in line for line in too_long), too_long
    everything = "".join(line.strip() for line in lines)
    assert printed.count("word") == 60
    assert "customers" in everything
    if blocks:
        assert f'SOURCE-PARTITION  {{"filename":"{LONG}"}}' in lines
    else:
        assert not [line for line in too_long if LONG in line]
        assert max(len(line.rstrip()) for line in lines if not line.startswith("undo: ")) > min(columns, 200) - 40


def test_a_real_command_on_a_narrow_terminal() -> None:
    printed = on_a_terminal(["-m", "eosctl", "sandbox", "status", "--name", "none"], columns=80)
    assert printed == "There is no sandbox none. `eosctl sandbox up --name none` starts it.\n"


def test_the_live_line_has_rate_and_time_left_and_fits() -> None:
    """A terminal saw `1000/4000` and no rate; a pipe saw both."""
    printed = ANSI.sub("", on_a_terminal(["-c", WORKING], columns=80))
    [line, *_again] = [line for line in re.split(r"[\r\n]+", printed) if "reading" in line]
    assert line.rstrip().endswith("1,000 of 4,000 records (200/s, 15 s left)")
    assert line.startswith("reading connect-offsets ")
    assert "stopping [b]now[/b]" in printed
