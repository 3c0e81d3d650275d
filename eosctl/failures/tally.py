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

NameKind = Literal[
    "transactional_id", "task", "topic_partition", "topic", "group", "connector", "setting", "plugin_class",
    "needed_by", "jar",
]  # fmt: skip
_ID = r"[\w.:-]{1,249}"
_TOPIC = r"[\w.-]{1,249}"
_CLASS = r"[a-z][\w$]{0,63}(?:[./][\w$]{1,128}){1,24}"
_PATTERNS: tuple[tuple[NameKind, re.Pattern[str]], ...] = (
    ("transactional_id", re.compile(rf"transactionalId(?: ['`]|=')({_ID})['`]")),
    ("transactional_id", re.compile(rf"transactionalId(?:=| (?!'))({_ID})(?=[,\])]| due to)")),
    ("transactional_id", re.compile(rf"TransactionalId:? ({_ID}?)(?=: |'s state )")),
    ("transactional_id", re.compile(rf"transaction markers for ({_ID}),")),
    ("task", re.compile(rf"Worker(?:Source|Sink)Task\{{id=({_ID}-\d{{1,6}})\}}")),
    ("task", re.compile(rf"(?:for|of|in) task ({_ID}-\d{{1,6}})\b")),
    ("task", re.compile(rf"[Tt]he task ({_ID}-\d{{1,6}}) was unable to finish")),
    ("task", re.compile(r"^.{0,80}?\[([\w.-]{1,240})\|task-(\d{1,6})(?=[|\]])")),
    ("topic_partition", re.compile(r"topic-partition ([\w.-]{1,249}-\d{1,6})\b")),
    ("topic_partition", re.compile(r"in partition ([\w.-]{1,249}-\d{1,6})\b")),
    ("topic_partition", re.compile(r"record\(s\) for ([\w.-]{1,249}-\d{1,6})\b")),
    ("topic_partition", re.compile(r"for partitions Set\(([\w.-]{1,249}-\d{1,6}(?:, [\w.-]{1,249}-\d{1,6}){0,4})")),
    ("topic", re.compile(r"access topics: \[([\w.-]{1,249}(?:, [\w.-]{1,249}){0,4})")),
    ("topic", re.compile(rf"[Tt]opic(?:\(s\)|s)? '({_TOPIC}(?:', '{_TOPIC}){{0,4}})'")),
    ("topic", re.compile(rf"Topic ({_TOPIC}) not present in metadata")),
    ("topic", re.compile(rf"(?:of|from|data for) topic ({_TOPIC})(?= ?:| to Avro)")),
    ("topic", re.compile(rf"failed to send record to ({_TOPIC}):")),
    ("group", re.compile(r"groupId=([^\s,\]'=]{1,249})[,\]]")),
    ("group", re.compile(r"Not authorized to access group: ([^\s,\]'=]{1,249})")),
    ("connector", re.compile(rf"(?:^|: ?\"?|\t)Connector ({_TOPIC}) (?:not found|already exists)")),
    ("connector", re.compile(rf"Unknown connector:? ({_TOPIC})(?=$|\")")),
    ("connector", re.compile(rf"/connectors/({_TOPIC})(?=[/?'\s])")),
    ("connector", re.compile(rf"connector's tasks \(({_TOPIC})\)")),
    ("connector", re.compile(rf"(?:for|start|of) connector(?:: | ')({_TOPIC})(?=['\s]|$)")),
    ("connector", re.compile(rf"(?:offsets for|[Ss]top of) connector ({_TOPIC}) (?:because|failed)")),
    ("setting", re.compile(r"(?:supplied|specified) via the '([a-z][\w.]{1,128})' property")),
    ("setting", re.compile(r"required configuration \"([a-z][\w.]{1,128})\"")),
    ("setting", re.compile(r"for configuration ([a-z][\w.]{1,128})(?=[:\s])")),
    ("plugin_class", re.compile(rf"NoClassDefFoundError: (?:Could not initialize class )?({_CLASS})(?=\s|$)")),
    ("plugin_class", re.compile(rf"ClassNotFoundException: ({_CLASS})(?=\s|$)")),
    ("plugin_class", re.compile(rf"NoSuch(?:Method|Field)Error: '?(?:[\w.$\[\]]{{1,200}} )?({_CLASS})")),
    ("plugin_class", re.compile(rf"which name matches ({_CLASS})")),
    ("plugin_class", re.compile(rf"Class ({_CLASS}) could not be found")),
    ("plugin_class", re.compile(rf"with class '({_CLASS})'")),
)
_LINKAGE = re.compile(r"\b(?:NoClassDefFound|NoSuchMethod|NoSuchField|AbstractMethod|IncompatibleClassChange)Error\b")
_NEEDED_BY = re.compile(
    r"at (?:[\w.@-]{1,64}/)?(?!java\.|jdk\.|org\.apache\.kafka\.connect\.runtime)([\w.$]{1,256})\.[\w$<>]{1,128}\("
)
_JAR = re.compile(r"([\w.-]{1,128}\.jar)\b")
MOST_NAMES = 5
"""So many of a kind are kept."""


def names_in(causes: Iterable[Cause]) -> dict[NameKind, list[str]]:
    """Return the names of each kind, in the order of the texts.

    Where a class is not there, or is another one, the first frame tells who needs it.
    """
    found: dict[NameKind, list[str]] = {}
    for cause in causes:
        for kind, pattern in _PATTERNS:
            for name in pattern.findall(cause.text):
                for part in ["-".join(name)] if isinstance(name, tuple) else re.split("', '|, ", name):
                    add_name(found, kind, part.rstrip(".").replace("/", "."))
        if cause.frame and _LINKAGE.search(cause.text) and (needed_by := _NEEDED_BY.match(cause.frame)):
            add_name(found, "needed_by", needed_by[1])
            for jar in _JAR.findall(cause.frame):
                add_name(found, "jar", jar)
    return found


def add_name(found: dict[NameKind, list[str]], kind: NameKind, name: str) -> None:
    """Add a name once, and only the first few."""
    names = found.setdefault(kind, [])
    if name not in names and len(names) < MOST_NAMES:
        names.append(name)


def for_commands(found: Mapping[NameKind, list[str]]) -> dict[str, str]:
    """Return the values for {name}, {c}, {id} and {topic} in a command: the first of each kind."""
    ids = found.get("transactional_id", [])
    connectors = [task.rpartition("-")[0] for task in found.get("task", [])] or found.get("connector", [])
    topics = [each.rpartition("-")[0] for each in found.get("topic_partition", [])] or found.get("topic", [])
    connector = connectors[0] if connectors else ""
    return {"name": connector, "c": connector, "id": ids[0] if ids else "", "topic": topics[0] if topics else ""}


Role = Literal["cause", "consequence", "suppressed"]
_ROLES: tuple[Role, ...] = ("cause", "consequence", "suppressed")
_TEXTS = tuple(dict.fromkeys(max(sign.texts, key=len) for failure in FAILURES for sign in failure.signs))
"""The longest text of each sign: without it the sign is not there."""
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
        if event.has_trace and all(match.failure.is_wrapper for match in main):
            deepest = len(event.chain.causes) - 1
            if all(match.depth < deepest for match in main):
                self._count_unknown(event)

    def _matches(self, causes: tuple[Cause, ...], family: Family | None) -> list[Match]:
        text = "\n".join([cause.text for cause in causes])
        known = self._known.get((family, text))
        if known is None:
            glued = "".join([cause.glued for cause in causes])
            known = matches_of(causes, family) if (_has_any(text + glued) if glued else _may_fit(text)) else []
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
            for thing, names in names_in(event.chain.causes).items():
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


_WORD = re.compile(r"\w+")


def _by_word() -> tuple[Mapping[str, tuple[str, ...]], tuple[str, ...]]:
    """Group the entries' texts by a whole word of theirs; those without one are the second part.

    A word at the edge of a text may be part of a longer one in a log. The names of classes and errors are none there.
    """
    by_word: dict[str, tuple[str, ...]] = {}
    others: list[str] = []
    for text in _TEXTS:
        is_name = _NAME.fullmatch(text) is not None
        words = [found[0] for found in _WORD.finditer(text) if is_name or 0 < found.start() <= found.end() < len(text)]
        if words:
            word = max(words, key=len)
            by_word[word] = (*by_word.get(word, ()), text)
        else:
            others.append(text)
    return by_word, tuple(others)


_NAME = re.compile(r"\w*(?:Exception|Error)|[A-Z]+(?:_[A-Z]+)+")
_BY_WORD, _OTHERS = _by_word()


def _may_fit(message: str) -> bool:
    """Check whether the text has any entry's words, as few lines of a log have.

    A log has a million lines, and the dictionary hundreds of texts: only those are compared that share a word.
    """
    for word in _BY_WORD.keys() & _WORD.findall(message):
        for text in _BY_WORD[word]:
            if text in message:
                return True
    return any(text in message for text in _OTHERS)


def _has_any(message: str) -> bool:
    return any(text in message for text in _TEXTS)


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
        topics=names.get("topic", []),
        groups=names.get("group", []),
        connectors=names.get("connector", []),
        settings=names.get("setting", []),
        classes=names.get("plugin_class", []),
        needed_by=names.get("needed_by", []),
        jars=names.get("jar", []),
        entry=entry_part(found.failure, for_commands(names), fix=found.match.fix, causes=found.match.causes),
    )


def _sentence(clause: str) -> str:
    """Make a clause a sentence; empty where it is empty."""
    return f"{clause[:1].upper()}{clause[1:]}." if clause else ""


def _nothing(tally: FailureTally, source: str) -> Problem:
    looked = f"{counted(tally.lines, 'line')} of {source}, {counted(tally.traces, 'stack trace')}"
    return Problem(codes.FAILURE_NOT_KNOWN, f"no failure is known in {looked}", _next_step(tally))


def _next_step(tally: FailureTally) -> str:
    """Say where to look: at the last cause, where the text has one."""
    deepest = next((each.deepest for each in tally.unknown.values() if each.deepest != _NO_CLASS), "")
    if not deepest:
        return "Give a stack trace, down to the last `Caused by`. `eosctl explain` lists all that is known."
    if deepest.startswith("org.apache.kafka."):
        return f"The last cause is {deepest}: read its message. `eosctl explain` lists all that is known."
    return (
        f"The last cause is {deepest}, no class of Kafka's, and nothing in the text speaks of a transaction that "
        "failed: see to the connector or application, and what it works with."
    )
