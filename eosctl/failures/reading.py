"""Reads a text event by event: a log record with its stack trace, a trace alone, a line alone.

The text may have any length: only one event is in memory at a time, and only a bounded part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from msgspec import Struct

from eosctl.failures.failure import Family
from eosctl.failures.log_lines import TextLine, log_lines
from eosctl.failures.stack_trace import HEAD, Chain, ChainReader, is_frame

_LEVEL = re.compile(r".{0,80}?\b(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|SEVERE)\b")
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
    level = _LEVEL.match(text)
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
