"""Renders a Report as text, JSON, YAML or NDJSON, from the same rows. The only importer of rich."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from eosctl.foreign import lines_of
from eosctl.output.documents import write_json, write_ndjson, write_yaml
from eosctl.output.text import fold, terminal_width, write_text
from eosctl.report import Problem, Report

_FOR_PROGRAMS = {"json": write_json, "yaml": write_yaml, "ndjson": write_ndjson}


def render_report(report: Report, *, output: str, stream: IO[str], color: bool, most_rows: int | None = None) -> None:
    """Write `report` to `stream`; `output`: text, wide, json, yaml or ndjson; `color`: a terminal with colours.

    Text stops after `most_rows` rows, with a note; the other formats always have all of them.
    """
    write = _FOR_PROGRAMS.get(output)
    if write is not None:
        write(report, stream)
    elif report.kind != "error":  # an error has its problems only, which go to stderr
        write_text(report, stream, color=color, wide=output == "wide", most_rows=most_rows)


def render_problems(report: Report, *, stream: IO[str], without: Sequence[Problem] = ()) -> None:
    """Write errors and warnings once, one line each, with their hints; of those in `without` the errors alone.

    A terminal gets them folded.
    """
    width = terminal_width(stream)
    for problem in dict.fromkeys(report.problems):
        if problem in without and problem.severity == "warning":
            continue
        message = lines_of(f"{problem.severity}: " + problem.message)
        for line in [*message, *(f"  {each}" for each in lines_of(problem.hint or ""))]:
            stream.writelines(f"{part}\n" for part in fold(line, width))
