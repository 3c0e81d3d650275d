"""Java's .properties syntax, both ways; files and their bytes are the caller's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from eosctl.core.frozen import frozen
from eosctl.errors import InputFileError

_BLANK = " \t\f"
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")  # one character beyond U+FFFF, written as two \\u escapes
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
PROVIDER = re.compile(r"\$\{[^}:]+:[^}]*\}")
"""A reference that Connect's config providers resolve: `${file:/path:key}`."""
_TRIMMED = "".join(map(chr, range(0x21)))
_LINE_END = re.compile(r"\r\n|\r|\n")


@frozen
class Properties:
    """The settings of one file, `source`, with the line each of them ends on; there are passwords among them."""

    source: str
    values: Mapping[str, str] = field(repr=False)
    lines: Mapping[str, int] = field(default_factory=dict)

    def error(self, key: str, problem: str, *, hint: str | None = None) -> InputFileError:
        """The error that says what is wrong with `key`, and where."""
        return InputFileError(f"{self.place(key)}: {key}: {problem}", hint=hint)

    def place(self, key: str) -> str:
        """The file, and the line that `key` stands on where there are lines."""
        line = self.lines.get(key)
        return self.source if line is None else f"{self.source}:{line}"

    def resolved(self, key: str) -> str:
        """The value of `key`; raises InputFileError when only a Connect worker could fill it in."""
        value = self.values[key].strip()
        if PROVIDER.search(value):
            raise self.error(
                key, "the value comes from a config provider", hint="Give the value itself in a file: --command-config."
            )
        return value


def parse_properties(text: str, *, source: str) -> Properties:
    r"""Settings as `java.util.Properties.load` (Java 17) reads them; of two with one key the later wins.

    Raises InputFileError for a malformed \u escape.
    """
    values: dict[str, str] = {}
    lines: dict[str, int] = {}
    for line in logical_lines(text):
        number = line.last
        raw_key, raw_value = _split(line.text)
        for part in (raw_key, raw_value):
            if re.search(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})", part):
                raise InputFileError(f"{source}:{number}: malformed \\u escape: four hex digits must follow")
        key = _unescape(raw_key)
        values[key], lines[key] = _unescape(raw_value), number
    return Properties(source, values, lines)


@frozen
class LogicalLine:
    """A setting with its continuation lines joined; `first` and `last` are its physical lines, counted from 1.

    `open_ended`: the file ends in its backslash.
    """

    first: int
    last: int
    text: str
    open_ended: bool = False

    def key(self) -> str:
        """Its key as Java reads it."""
        return _unescape(_split(self.text)[0])


def logical_lines(text: str) -> Iterator[LogicalLine]:
    """The settings of a file in order; comments and empty lines are left out."""
    joined: str | None = None
    first = number = 0
    for number, physical in enumerate(_LINE_END.split(text), start=1):
        line = physical.lstrip(_BLANK)
        if joined is None and (not line or line[0] in "#!"):
            continue
        first = number if joined is None else first
        joined = (joined or "") + line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            joined = joined[:-1]
            continue
        yield LogicalLine(first, number, joined)
        joined = None
    if joined:
        yield LogicalLine(first, number, joined, open_ended=True)


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANK:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return line[:end], rest


def _unescape(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        escaped = match[1]
        return chr(int(escaped[1:], 16)) if len(escaped) == 5 else _CONTROLS.get(escaped, escaped)

    return _PAIR.sub(_joined, _ESCAPE.sub(replace, text))


def _joined(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def trimmed(value: str) -> str:
    """As `String.trim` does, and Kafka with every value that it parses: spaces and controls, and no other blanks."""
    return value.strip(_TRIMMED)


def is_reference(value: str) -> bool:
    """Whether only a Connect worker can resolve the value, or a part of it."""
    return PROVIDER.search(value) is not None


def properties_text(properties: Mapping[str, str]) -> str:
    """A .properties file in ASCII: Java reads such files as ISO-8859-1, so everything else is an escape."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in properties.items())


def _escaped(value: str) -> str:
    """A property's value as `java.util.Properties` reads it back: UTF-16 units, first space and backslash escaped."""
    units = value.encode("utf-16-be")
    codes = [int.from_bytes(units[index : index + 2], "big") for index in range(0, len(units), 2)]
    text = "".join(chr(code) if 0x20 <= code < 0x7F and code != ord("\\") else f"\\u{code:04x}" for code in codes)
    return f"\\{text}" if text.startswith(" ") else text
