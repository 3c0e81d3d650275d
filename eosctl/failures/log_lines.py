"""Strips lines of logs and terminals: colours, prefixes of containers, JSON, escaped line ends.

It knows log4j, logback, java.util.logging, JSON loggers, kubectl, docker, journald, Flink and Streams. Pure; every
pattern is anchored and bounded, so that the time is linear in the length of a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from msgspec import Struct

_ANSI = re.compile(r"\x1b(?:\[[0-9;:?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)?|[@-Z\\^_])")
_CONTAINERS = re.compile(
    r"\[pod/[^\]\s]{1,256}\] ?|"  # kubectl logs --prefix
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) (?:stdout|stderr) [FP] |"  # CRI
    r"[\w./-]{1,80}+ {1,40}+\| ?|"  # docker compose
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,128}+ [\w./@-]{1,128}+(?:\[\d{1,9}\])?: "  # journald, syslog
)
_CLOCK = r"\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?[AaPp]\.?[Mm]\.?)?(?:Z| ?[+-]\d\d:?\d\d| [A-Z]{3,4}(?= ))?"
_MONTH = r"[^\W\d_]{3,9}\.?"
_DATE = (
    rf"(?:\d{{4}}[-/.]\d\d[-/.]\d\d[T ]|\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{2,4}},? |"
    rf"(?:[^\W\d_]{{2,3}}\.?,? )?(?:{_MONTH} \d{{1,2}},? (?:\d{{4}},? )?|\d{{1,2}}\.? {_MONTH} \d{{4}},? ))"
)
_TIME = re.compile(rf"[\[(]?((?:{_DATE})?{_CLOCK})[\])]?[ ,:|-]{{0,3}}")
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
    found = _TIME.match(line)
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
        if isinstance(value, str) and key not in _TIME_KEYS and (" " in value or "Exception" in value):
            yield key, value
        elif isinstance(value, list) and depth < 4:
            yield from (pair for each in value if isinstance(each, dict) for pair in _texts(each, depth + 1))
        elif isinstance(value, dict) and depth < 4:
            yield from _texts(value, depth + 1)
