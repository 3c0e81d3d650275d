"""Java's .properties syntax, both ways; files and their bytes are the caller's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from eosctl.errors import InputFileError

_JOINED = r"\\(?:\r\n?|\n)[ \t\f]*+"  # a setting goes on in the next line
_SETTING = re.compile(  # possessive: time and memory are those of the text, however many lines a setting has
    r"(?:[ \t\f\r\n]|\\[\r\n]|[#!][^\r\n]*)*+"
    rf"(?P<key>(?:[^\\=: \t\f\r\n]|\\[^\r\n]|{_JOINED})*+)"
    rf"(?P<separator>(?:[ \t\f]|{_JOINED})*+[=:]?(?:[ \t\f]|{_JOINED})*+)"
    rf"(?P<value>(?:[^\\\r\n]|\\[^\r\n]|{_JOINED})*+)\\?"
)
_KEPT = re.compile(rf"(\\[^\r\n])|{_JOINED}")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
PROVIDER = re.compile(r"\$\{[^}:]+:[^}]*\}")
"""A reference that Connect's config providers resolve: `${file:/path:key}`."""
_TRIMMED = "".join(map(chr, range(0x21)))
_LINE_END = re.compile(r"\r\n?|\n")


class Properties(Struct, frozen=True):
    """The settings of one file, `source`, with the line each of them ends on; there are passwords among them."""

    source: str
    values: Mapping[str, str]
    lines: Mapping[str, int] = {}
    __repr__ = object.__repr__

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
    number, seen = 1, 0
    for setting in settings_in(text):
        end = setting.end("value")
        number, seen = number + len(_LINE_END.findall(text, seen, end)), end
        try:
            key, value = unescaped(setting["key"]), unescaped(setting["value"])
        except ValueError as error:
            raise InputFileError(f"{source}:{number}: {error}") from None
        values[key], lines[key] = value, number
    return Properties(source, values, lines)


def settings_in(text: str) -> Iterator[re.Match[str]]:
    """Yield the settings of a file in order, each as its `key`, `separator` and `value` as they are written."""
    return (setting for setting in _SETTING.finditer(text) if setting["key"] + setting["separator"] + setting["value"])


def unescaped(written: str) -> str:
    r"""Return a key or a value as Java reads it; raises ValueError for a malformed \u escape."""
    text = _ESCAPE.sub(_character, _KEPT.sub(lambda found: found[1] or "", written))
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")  # two escapes: a character


def _character(found: re.Match[str]) -> str:
    escaped = found[1]
    if escaped == "u":
        raise ValueError(r"malformed \u escape: four hex digits must follow")
    return chr(int(escaped[1:], 16)) if len(escaped) == 5 else _CONTROLS.get(escaped, escaped)


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
