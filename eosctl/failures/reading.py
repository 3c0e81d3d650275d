"""Reads a text event by event: a log record with its stack trace, a trace alone, a line alone. Pure.

The text may have any length: only one event is in memory at a time, and only a bounded part of it.

A Java stack trace gives a chain of causes, as `Throwable.printStackTrace` prints it (Java 8 to 25). It may come from a
terminal or a ticket: without indentation, or folded at the width of a window.

Lines of logs and terminals are stripped of colours, prefixes of containers, JSON and escaped line ends. Known are
log4j, logback, java.util.logging, JSON loggers, kubectl, docker, journald, Flink and Streams. Every pattern is anchored
and bounded, so that the time is linear in the length of a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from msgspec import Struct

from eosctl.failures.failure import Family

_CAUSED_BY = ("Caused by: ", "caused by: ")  # the latter is `connectors trace`'s own
_SUPPRESSED = "Suppressed: "
_FRAME = re.compile(r"at [^\s()]{1,400}(?:\s?\(|$)|\.\.\. \d{1,9} (?:more|common frames omitted)")
_CLASS = re.compile(r"(?:[\w$]+\.)*([\w$]+)")
HEAD = re.compile(
    r"(?:Exception in thread \"[^\"]{0,256}\" )?"
    r"((?:[a-z][a-z0-9_$-]{0,63}[./]){2,24}(?:[A-Z][\w$]{0,127}\.)?[A-Z][\w$]{0,127}|\w{1,128}(?:Exception|Error))"
    r"(?! = )(?=[: ]|$)"
)
"""The head of an exception: its class, with packages in small letters, or with a name that ends in Exception or Error.

A setting, which a blank and a `=` follow, is none, nor is a token, which has no packages.
"""
_OF_A_FUTURE = ("ExecutionException", "CompletionException")
_MOST_CAUSES, _MOST_LINES, _MOST_CHARACTERS = 64, 40, 8192
_LONGEST_FRAME = 512
"""Limits for a trace and a message: an error in a loop may have causes without end."""


class Cause(Struct, frozen=True):
    """An exception of a trace: its `text` is what stands before its frames, `class: message`, in one line.

    `glued` is the same without blanks where it had several lines: a terminal breaks words. `frame` is its first frame.
    """

    text: str
    glued: str = ""
    frame: str = ""

    def __str__(self) -> str:
        """Return the text with the class's simple name, as packages are of no interest."""
        name, colon, message = self.text.partition(":")
        found = _CLASS.fullmatch(name)
        return f"{found[1]}{colon}{message}" if found else self.text

    def class_name(self) -> str:
        """Return the class, if the text begins with one; else nothing, as other text may be a secret.

        A future's exception has the class of what failed in its message: that is the one.
        """
        found = HEAD.match(self.text)
        if found is None:
            return ""
        inner = HEAD.match(self.text, found.end() + 2) if found[1].endswith(_OF_A_FUTURE) else None
        return inner[1] if inner else found[1]

    def has(self, text: str) -> bool:
        """Check whether a literal is in the text, folded or not."""
        return text in self.text or text in self.glued


class Chain(Struct, frozen=True):
    """The exceptions of a trace, the outermost first; those that were suppressed beside them."""

    causes: tuple[Cause, ...] = ()
    suppressed: tuple[tuple[Cause, ...], ...] = ()


@dataclass(slots=True)
class _Exception:
    """An exception that is being read: the lines of its message, and its first frame."""

    lines: list[str]
    frame: str = ""


@dataclass(slots=True)
class ChainReader:
    """Takes the lines of one trace; holds no more than a bounded part of it."""

    chains: list[list[_Exception]] = field(default_factory=lambda: [[]])
    in_frames: bool = False
    _current: int = 0
    _suppressed_at: int = 0

    def take(self, line: str) -> None:
        """Read a line: the head of an exception, a frame, or a further line of a message."""
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if is_frame(text):
            causes = self.chains[self._current]
            if causes and not self.in_frames:
                causes[-1].frame = text[:_LONGEST_FRAME]
            self.in_frames = True
        elif text.startswith(_CAUSED_BY):
            if self._current and indent < self._suppressed_at:
                self._current = 0
            self._begin(text[len(_CAUSED_BY[0]) :])
        elif text.startswith(_SUPPRESSED) and self.chains[0]:
            if len(self.chains) < _MOST_CAUSES:
                self.chains.append([])
            self._current, self._suppressed_at = len(self.chains) - 1, indent
            self._begin(text[len(_SUPPRESSED) :])
        elif not self.chains[0]:
            self._begin(text)
        elif not self.in_frames and text:
            self._add(text)

    def begin(self, text: str) -> None:
        """Begin with an exception's head that no words announce, below a log's message about it."""
        self._current = 0
        self._begin(text)

    def is_full(self) -> bool:
        """Check whether no further line of this message would be kept."""
        causes = self.chains[self._current]
        return bool(causes) and len(causes[-1].lines) >= _MOST_LINES

    def announces(self) -> bool:
        """Check whether the message so far ends in a colon: then the next line belongs to it, of whatever form."""
        causes = self.chains[self._current]
        return not self.in_frames and bool(causes) and causes[-1].lines[-1].endswith(":")

    def chain(self) -> Chain:
        """Return the chain that was read."""
        first, *others = self.chains
        return Chain(_causes(first), tuple(_causes(each) for each in others))

    def _begin(self, text: str) -> None:
        self.in_frames = False
        causes = self.chains[self._current]
        if len(causes) >= _MOST_CAUSES:
            del causes[_MOST_CAUSES // 2]
        causes.append(_Exception([text.strip()[:_MOST_CHARACTERS]]))

    def _add(self, text: str) -> None:
        lines = self.chains[self._current][-1].lines
        if len(lines) < _MOST_LINES:
            lines.append(text[:_MOST_CHARACTERS])


def is_frame(text: str) -> bool:
    """Check whether a stripped line is a stack frame."""
    return text.startswith(("at ", "... ")) and _FRAME.match(text) is not None


def _causes(found: list[_Exception]) -> tuple[Cause, ...]:
    return tuple(
        Cause(" ".join(each.lines), "".join(each.lines) if len(each.lines) > 1 else "", each.frame) for each in found
    )


def causes_of(trace: str) -> tuple[Cause, ...]:
    """Return the exceptions of a trace, the outermost first; none for an empty text.

    A message may have several lines; frames and suppressed exceptions are left out.
    """
    reader = ChainReader()
    for line in _lines(trace.strip()):
        reader.take(line)
    return reader.chain().causes


def _lines(text: str) -> Iterator[str]:
    return islice(text.splitlines(), 1_000_000)


_ANSI = re.compile(r"\x1b(?:\[[0-9;:?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)?|[@-Z\\^_])")
_CONTAINERS = re.compile(
    r"\[pod/[^\]\s]{1,256}\] ?|"  # kubectl logs --prefix
    r"\[Worker-[0-9a-f]{8,32}\] ?|"  # MSK Connect
    r" {0,32}[Tt]race: {1,8}[\"'|]?|"  # kubectl describe, and YAML, of a KafkaConnector
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) (?:stdout|stderr) [FP] |"  # CRI
    r"[\w./-]{1,80}+ {1,40}+\| ?|"  # docker compose
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,128}+ [\w./@-]{1,128}+(?:\[\d{1,9}\])?: "  # journald, syslog
)
_CLOCK = (
    r"\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?[AaPp]\.?[Mm]\.?)?(?:Z| ?[+-]\d\d:?\d\d| (?!INFO|WARN)[A-Z]{3,4}(?= ))?"
)
_MONTH = r"[^\W\d_]{3,9}\.?"
_DATE = (
    rf"(?:\d{{4}}[-/.]\d\d[-/.]\d\d[T ]|\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{2,4}},? |"
    rf"(?:[^\W\d_]{{2,3}}\.?,? )?(?:{_MONTH} \d{{1,2}},? (?:\d{{4}},? )?|\d{{1,2}}\.? {_MONTH} \d{{4}},? ))"
)
_TIME = re.compile(rf"[\[(]?((?:{_DATE})?{_CLOCK})[\])]?[ ,:|-]{{0,3}}")
_LIBRDKAFKA = re.compile(r"%[0-7]\|(\d{10}\.\d{3})\|")
_LEVEL = re.compile(r".{0,80}?\b(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|SEVERE)\b")
_TIME_KEYS = ("@timestamp", "timestamp", "time", "ts", "datetime", "instant")
_MESSAGE_KEYS = ("message", "msg", "event", "text")
_LONGEST_JSON = 1 << 20


class TextLine(Struct, frozen=True):
    """A line: its text with its indentation; `begins` for the first one of a logger's record.

    `time` is the text of its time; empty where it has none.
    """

    text: str
    time: str = ""
    begins: bool = False


def log_lines(line: str) -> Iterator[TextLine]:
    """Yield the lines that one line of a file has: several where they are escaped, as in JSON and REST answers."""
    line = line.rstrip("\r\n")
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    for _ in range(2):  # compose around a CRI log
        prefix = _CONTAINERS.match(line)
        if prefix is None:
            break
        line = line[prefix.end() :]
    if line.startswith("{") and (parsed := _json(line)) is not None:
        yield from parsed
    elif "\\n" in line:
        yield from _unescaped(line)
    else:
        yield _plain(line)


def _plain(line: str) -> TextLine:
    found = _TIME.match(line) or _LIBRDKAFKA.match(line)
    if found is not None:
        return TextLine(line[found.end() :], found[1], begins=True)
    return TextLine(line, begins=_LEVEL.match(line) is not None)


def _unescaped(line: str) -> Iterator[TextLine]:
    """Yield the lines within a JSON text: `"trace": "…\\n\\tat …"`, escaped once or twice."""
    text = line.replace("\\\\n", "\\n").replace("\\\\t", "\\t").replace("\\r", "").replace("\\t", "\t")
    first, *more = text.replace('\\"', '"').split("\\n")
    before, quote, rest = first.rpartition('": "')
    if not quote:
        before, quote, rest = first.rpartition('":"')
    yield _plain(before if quote else first)
    if quote:
        yield TextLine(rest, begins=True)
    yield from map(TextLine, more)


def _json(line: str) -> list[TextLine] | None:
    """Parse a record of a JSON logger, or a line that docker keeps in one; None for anything else."""
    if len(line) > _LONGEST_JSON:
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    except RecursionError:
        return []
    kept = record.get("log")
    if isinstance(kept, str):
        return [each for part in kept.splitlines() for each in log_lines(part)]
    time = next((str(record[key]) for key in _TIME_KEYS if isinstance(record.get(key), str)), "")
    found = _TIME.match(time)
    texts = list(_texts(record, 0))
    texts.sort(key=lambda pair: pair[0] not in _MESSAGE_KEYS)
    lines = [part for _key, text in texts for part in text.splitlines()]
    return [
        TextLine(part, found[1] if found and not number else "", begins=not number) for number, part in enumerate(lines)
    ]


def _texts(record: dict[str, object], depth: int) -> Iterator[tuple[str, str]]:
    """Yield the sentences in a record; single words are levels, threads and loggers."""
    for key, value in record.items():
        if (
            isinstance(value, str)
            and key not in _TIME_KEYS
            and (" " in value or "Exception" in value or (key in _MESSAGE_KEYS and "/" in value))
        ):
            yield key, value
        elif isinstance(value, list) and depth < 4:
            yield from (pair for each in value if isinstance(each, dict) for pair in _texts(each, depth + 1))
        elif isinstance(value, dict) and depth < 4:
            yield from _texts(value, depth + 1)


_EVENT_LEVEL = re.compile(r".{0,80}?\b(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|SEVERE)\b")
_QUIET = ("TRACE", "DEBUG", "INFO")
_FAMILIES = (
    ("flink", Family.FLINK),
    ("kafka.streams", Family.STREAMS),
    ("stream-thread [", Family.STREAMS),
    ("kafka.connect", Family.CONNECT),
    ("WorkerSourceTask", Family.CONNECT),
    ("WorkerSinkTask", Family.CONNECT),
    ("zombie fencing", Family.CONNECT),
)
_REST = re.compile(r'\\?"(?:worker_id|error_code)\\?"')
_JSON_STARTS = ("{", "}", "[{", "]", '"', '\\"')
_CONTINUES = ("Caused by: ", "caused by: ", "Suppressed: ")


class LogEvent(Struct, frozen=True):
    """One event of a log. `line` counts from 1; `has_trace` if there are exceptions beside a logger's words.

    A message at INFO or below has one only with stack frames.
    """

    chain: Chain
    line: int
    time: str
    family: Family | None
    has_trace: bool


@dataclass(slots=True)
class _Open:
    """The event that is being read."""

    line: int
    time: str = ""
    is_record: bool = False
    is_quiet: bool = False
    reader: ChainReader = field(default_factory=ChainReader)
    family: Family | None = None
    has_trace: bool = False
    has_frames: bool = False

    def event(self) -> LogEvent:
        has_trace = self.has_trace and (self.has_frames or not self.is_quiet)
        return LogEvent(self.reader.chain(), self.line, self.time, self.family, has_trace)


def events_in(lines: Iterable[str]) -> Iterator[LogEvent]:
    """Yield the events of a text, in its order."""
    now: _Open | None = None
    is_rest = False
    for number, raw in enumerate(lines, 1):
        is_rest = _is_of_rest(raw, before=is_rest)
        for line in log_lines(raw):
            text = line.text.strip()
            if not text:
                continue
            if now is None or _is_new(now, line, text):
                if now is not None:
                    yield now.event()
                now = _Open(number, line.time, line.begins, line.begins and _is_quiet(text))
            _take(now, line.text, text)
            if is_rest and now.family is None:
                now.family = Family.CONNECT
    if now is not None:
        yield now.event()


def _is_quiet(text: str) -> bool:
    """Check whether the level of a logger's first line means that nothing is wrong."""
    level = _EVENT_LEVEL.match(text)
    return level is not None and level[1] in _QUIET


def _is_of_rest(raw: str, *, before: bool) -> bool:
    """Check whether the line belongs to an answer of Connect's REST, in one line or in several."""
    text = raw.strip()
    if not text.startswith(_JSON_STARTS):
        return False
    return _REST.search(text) is not None or (before and not text.startswith('{"'))


def _is_new(now: _Open, line: TextLine, text: str) -> bool:
    """Check whether the line begins another event; frames continue one even if each line has a prefix."""
    if text.startswith(_CONTINUES) or is_frame(text) or _is_rest_of_a_frame(now, line, text):
        return False
    if HEAD.match(text) is not None:
        return now.has_trace and not now.reader.announces() and (now.has_frames or not now.is_record)
    return line.begins or now.reader.in_frames or (not now.has_trace and now.reader.is_full())


def _is_rest_of_a_frame(now: _Open, line: TextLine, text: str) -> bool:
    """Check whether it is the rest of a frame broken by a terminal: no blank, and no exception begins with it."""
    return now.reader.in_frames and not line.begins and " " not in text and not text.endswith(("Exception", "Error"))


def _take(now: _Open, line: str, text: str) -> None:
    is_head = HEAD.match(text) is not None and not now.reader.in_frames
    if is_head and not now.has_trace and now.reader.chains[0]:
        now.reader.begin(text)
    else:
        now.reader.take(line)
    now.has_trace = now.has_trace or is_head or text.startswith(_CONTINUES)
    now.has_frames = now.has_frames or now.reader.in_frames
    if now.family is None or now.family is Family.CONNECT:
        now.family = next((family for word, family in _FAMILIES if word in text), now.family)
