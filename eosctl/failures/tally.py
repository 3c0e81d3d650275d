"""`eosctl explain` of a stack trace or a log: its failures, how often and when, and which are only consequences.

Memory does not grow with the text.

A command needs names that a trace has: transactional ids, tasks and partitions. Only text at the places where Kafka
prints a name is taken; nothing else of a foreign text is printed again. Taking them is pure.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Literal

from msgspec import Struct

from eosctl.core.wording import counted
from eosctl.errors import ExitCode
from eosctl.failures import codes
from eosctl.failures.failure import Failure, Family
from eosctl.failures.reading import Cause, LogEvent, events_in
from eosctl.failures.rows import FAILURES as FAILURES_KIND
from eosctl.failures.rows import FailureRow, FailuresData, FailuresSummary, UnknownPart, entry_part
from eosctl.failures.rules import FAILURES, Match, matches_of, root_causes
from eosctl.report import Problem, Report

NameKind = Literal["transactional_id", "task", "topic_partition"]
_ID = r"[\w.:-]{1,249}"
_PATTERNS: tuple[tuple[NameKind, re.Pattern[str]], ...] = (
    ("transactional_id", re.compile(rf"transactionalId(?: ['`]|=')({_ID})['`]")),
    ("transactional_id", re.compile(rf"transactionalId(?:=| (?!'))({_ID})(?=[,\])]| due to)")),
    ("task", re.compile(rf"Worker(?:Source|Sink)Task\{{id=({_ID}-\d{{1,6}})\}}")),
    ("task", re.compile(rf"for task ({_ID}-\d{{1,6}})\b")),
    ("task", re.compile(rf"[Tt]he task ({_ID}-\d{{1,6}}) was unable to finish")),
    ("topic_partition", re.compile(r"topic-partition ([\w.-]{1,249}-\d{1,6})\b")),
    ("topic_partition", re.compile(r"in partition ([\w.-]{1,249}-\d{1,6})\b")),
    ("topic_partition", re.compile(r"record\(s\) for ([\w.-]{1,249}-\d{1,6})\b")),
)
MOST_NAMES = 5
"""So many of a kind are kept."""


def names_in(texts: Iterable[str]) -> dict[NameKind, list[str]]:
    """Return the names of each kind, in the order of the texts."""
    found: dict[NameKind, list[str]] = {}
    for text in texts:
        for kind, pattern in _PATTERNS:
            for name in pattern.findall(text):
                add_name(found, kind, name.rstrip("."))
    return found


def add_name(found: dict[NameKind, list[str]], kind: NameKind, name: str) -> None:
    """Add a name once, and only the first few."""
    names = found.setdefault(kind, [])
    if name not in names and len(names) < MOST_NAMES:
        names.append(name)


def for_commands(found: Mapping[NameKind, list[str]]) -> dict[str, str]:
    """Return the values for {name}, {c}, {id} and {topic} in a command: the first of each kind."""
    ids, tasks, partitions = (found.get(kind, []) for kind in ("transactional_id", "task", "topic_partition"))
    connector = tasks[0].rpartition("-")[0] if tasks else ""
    topic = partitions[0].rpartition("-")[0] if partitions else ""
    return {"name": connector, "c": connector, "id": ids[0] if ids else "", "topic": topic}


Role = Literal["cause", "consequence", "suppressed"]
_ROLES: tuple[Role, ...] = ("cause", "consequence", "suppressed")
_TEXTS = tuple(dict.fromkeys(text for failure in FAILURES for sign in failure.signs for text in sign.texts))
_NO_CLASS = "?"
_MOST_UNKNOWN, _MOST_CACHED, _MOST_NAMED = 20, 4096, 100


@dataclass(slots=True)
class Found:
    """A failure in a text. `line` and the times are those of the first and the last event that has it."""

    match: Match
    roles: set[Role]
    line: int
    first_time: str
    count: int = 0
    last_line: int = 0
    last_time: str = ""
    names: dict[NameKind, list[str]] = field(default_factory=dict)
    noticed_with: set[str] = field(default_factory=set)

    @property
    def failure(self) -> Failure:
        """The entry."""
        return self.match.failure


@dataclass(slots=True)
class Unknown:
    """Exceptions that no entry fits: the classes of the outermost and of the deepest one, as far as they name one."""

    outermost: str
    deepest: str
    line: int
    count: int = 1


@dataclass(slots=True)
class FailureTally:
    """The failures found in a text so far."""

    lines: int = 0
    traces: int = 0
    found: dict[str, Found] = field(default_factory=dict)
    unknown: dict[tuple[str, str], Unknown] = field(default_factory=dict)
    more_unknown: int = 0
    _known: dict[tuple[Family | None, str], list[Match]] = field(default_factory=dict)

    def take(self, event: LogEvent, family: Family | None = None) -> None:
        """Count an event."""
        self.traces += event.has_trace
        family = event.family or family
        main = self._matches(event.chain.causes, family)
        for number, match in enumerate(main):
            self._count(match, "consequence" if number else "cause", event)
            self.found[match.failure.code].noticed_with.update(each.failure.code for each in main[:number])
        for chain in event.chain.suppressed:
            for match in self._matches(chain, family):
                if match.failure.code not in {each.failure.code for each in main}:
                    self._count(match, "suppressed", event)
        if event.has_trace and not main:
            self._count_unknown(event)

    def _matches(self, causes: tuple[Cause, ...], family: Family | None) -> list[Match]:
        text = "\n".join([cause.text for cause in causes])
        known = self._known.get((family, text))
        if known is None:
            glued = text + "\n".join([cause.glued for cause in causes])
            known = matches_of(causes, family) if _may_fit(glued) else []
            if len(self._known) >= _MOST_CACHED:
                self._known.clear()
            self._known[family, text] = known
        return known

    def _count(self, match: Match, role: Role, event: LogEvent) -> None:
        code = match.failure.code
        found = self.found.setdefault(code, Found(match, set(), event.line, event.time))
        found.roles.add(role)
        found.count += 1
        found.last_line, found.last_time = event.line, event.time or found.last_time
        found.first_time = found.first_time or event.time
        if found.count <= _MOST_NAMED:
            for thing, names in names_in(cause.text for cause in event.chain.causes).items():
                for name in names:
                    add_name(found.names, thing, name)

    def _count_unknown(self, event: LogEvent) -> None:
        classes = [name for cause in event.chain.causes if (name := cause.class_name())] or [_NO_CLASS]
        key = classes[0], classes[-1]
        if key in self.unknown:
            self.unknown[key].count += 1
        elif len(self.unknown) < _MOST_UNKNOWN:
            self.unknown[key] = Unknown(*key, event.line)
        else:
            self.more_unknown += 1


class Judged(Struct, frozen=True):
    """A failure of a text, and what it is there: the codes that explain it, where it is only their consequence."""

    found: Found
    role: Role
    explained_by: tuple[str, ...]


def judged(tally: FailureTally) -> list[Judged]:
    """Order the failures of a text, the most likely cause first: those that explain others, then the frequent ones."""
    explained = root_causes(tally.found)
    made: list[Judged] = []
    for code, found in tally.found.items():
        by = tuple(sorted(explained[code] | (found.noticed_with if "cause" not in found.roles else set())))
        role = next(each for each in _ROLES if each in found.roles)
        made.append(Judged(found, "consequence" if by and role == "cause" else role, by))
    explains = {code for each in made for code in each.explained_by}
    made.sort(key=lambda each: (_ROLES.index(each.role), each.found.failure.code not in explains, *_weight(each)))
    return made


def _weight(each: Judged) -> tuple[bool, int, int]:
    return each.found.failure.is_wrapper, -each.found.count, each.found.line


def read_all(lines: Iterable[str]) -> FailureTally:
    """Count the failures in a text of any length."""
    tally = FailureTally()
    for event in events_in(_counted(lines, tally)):
        tally.take(event)
    return tally


def _may_fit(message: str) -> bool:
    """Check whether the text has any entry's words, as few lines of a log have."""
    for text in _TEXTS:  # noqa: SIM110 - any() takes twice as long, and a log has a million lines
        if text in message:
            return True
    return False


def _counted(lines: Iterable[str], tally: FailureTally) -> Iterator[str]:
    for line in lines:
        tally.lines += 1
        yield line


_LONGEST_LINE = 1 << 20
"""In bytes: a longer line is read in parts."""
_PART = 1 << 16


def recognise(lines: Iterable[str], *, source: str) -> Report:
    """Report the failures in a text; exit code 1 where it has no known one."""
    tally = read_all(lines)
    rows = [_row(each) for each in judged(tally)]
    return Report(
        kind=FAILURES_KIND,
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
