"""`eosctl explain` of a stack trace or a log: its failures, as a report."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from eosctl.core.wording import counted
from eosctl.errors import ExitCode
from eosctl.failures import codes
from eosctl.failures.named_things import for_commands
from eosctl.failures.rows import FAILURES, FailureRow, FailuresData, FailuresSummary, UnknownPart, entry_part
from eosctl.failures.tally import FailureTally, Judged, judged, read_all
from eosctl.report import Problem, Report

_LONGEST_LINE = 1 << 20
"""In bytes: a longer line is read in parts."""
_PART = 1 << 16


def recognise(lines: Iterable[str], *, source: str) -> Report:
    """Report the failures in a text; exit code 1 where it has no known one."""
    tally = read_all(lines)
    rows = [_row(each) for each in judged(tally)]
    return Report(
        kind=FAILURES,
        rows=rows,
        summary=FailuresSummary(failures=len(rows), lines=tally.lines, traces=tally.traces),
        data=FailuresData(
            source=source,
            unknown=[
                UnknownPart(outermost=each.outermost, deepest=each.deepest, count=each.count, line=each.line)
                for each in tally.unknown.values()
            ],
            more_unknown=tally.more_unknown,
        ),
        problems=[] if rows else [_nothing(tally, source)],
        exit_code=ExitCode.OK if rows else ExitCode.FAILED,
    )


def lines_of(stream: BinaryIO) -> Iterator[str]:
    """Read the lines of a file or stdin one by one, replacing what is not UTF-8; a byte order mark shows UTF-16."""
    first = stream.readline(_LONGEST_LINE)
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # what PowerShell redirects
        yield from _lines_of_utf16(first, stream)
        return
    line = first.removeprefix(codecs.BOM_UTF8)
    while line:
        yield line.decode("utf-8", errors="replace")
        line = stream.readline(_LONGEST_LINE)


def _lines_of_utf16(first: bytes, stream: BinaryIO) -> Iterator[str]:
    """Read in parts: a line end is two bytes, one of which may be part of other characters, too."""
    decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
    part, rest = first, ""
    while part:
        *whole, rest = (rest + decoder.decode(part)).split("\n")
        yield from whole
        if len(rest) > _LONGEST_LINE:
            yield rest
            rest = ""
        part = stream.read(_PART)
    if rest := rest + decoder.decode(b"", final=True):
        yield rest


def _row(each: Judged) -> FailureRow:
    found = each.found
    names = found.names
    return FailureRow(
        code=found.failure.code,
        role=each.role,
        explained_by=list(each.explained_by),
        meaning=_sentence(found.match.sign.means) or found.failure.code.meaning,
        count=found.count,
        first_line=found.line,
        last_line=found.last_line,
        first_time=found.first_time or None,
        last_time=found.last_time or None,
        transactional_ids=names.get("transactional_id", []),
        tasks=names.get("task", []),
        topic_partitions=names.get("topic_partition", []),
        entry=entry_part(found.failure, for_commands(names), fix=found.match.fix),
    )


def _sentence(clause: str) -> str:
    """Make a clause a sentence; empty where it is empty."""
    return f"{clause[:1].upper()}{clause[1:]}." if clause else ""


def _nothing(tally: FailureTally, source: str) -> Problem:
    looked = f"{counted(tally.lines, 'line')} of {source}, {counted(tally.traces, 'stack trace')}"
    return Problem(
        codes.FAILURE_NOT_KNOWN,
        f"no failure is known in {looked}",
        "Give the whole trace, down to the last `Caused by`. `eosctl explain` lists all that is known.",
    )
