"""Java's .properties syntax, both ways, and the lists and numbers in its values. Pure.

Callers read and write the files. Lists have commas between their items. Numbers are read from foreign texts: as Kafka
reads them in configurations (`ConfigDef.parseType`), and as plain digits. Python itself refuses texts of more than
4,300 digits with a ValueError, which callers do not expect of digits.

One setting can be changed in the text of a file, and every other character stays as it is. The file is taken as
ISO-8859-1, as `java.util.Properties` reads it, so that every byte survives the round trip.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from eosctl.errors import InputFileError


def split_list(text: str) -> tuple[str, ...]:
    """Split a comma-separated list into its items, without blanks around them."""
    return tuple(item.strip() for item in text.split(",") if item.strip())


_JOINED = r"\\(?:\r\n?|\n)[ \t\f]*+"  # a setting goes on in the next line
_SETTING = (  # possessive: time and memory are those of the text, however many lines a setting has
    r"(?:[ \t\f\r\n]|\\[\r\n]|[#!][^\r\n]*)*+"
    rf"(?P<key>(?:[^\\=: \t\f\r\n]|\\[^\r\n]|{_JOINED})*+)"
    rf"(?P<separator>(?:[ \t\f]|{_JOINED})*+[=:]?(?:[ \t\f]|{_JOINED})*+)"
    rf"(?P<value>(?:[^\\\r\n]|\\[^\r\n]|{_JOINED})*+)\\?"
)
_KEPT = re.compile(rf"(\\[^\r\n])|{_JOINED}")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
PROVIDER = re.compile(r"\$\{(?:[^}:$]|\$(?!\{))++:[^}]*+\}")
"""A reference that Connect's config providers resolve: `${file:/path:key}`. Search by the functions below."""
_TRIMMED = "".join(map(chr, range(0x21)))
_LINE_END = re.compile(r"\r\n?|\n")


class Properties(Struct, frozen=True):
    """The settings of one file, `source`, with the last line of each; there are passwords among them."""

    source: str
    values: Mapping[str, str]
    lines: Mapping[str, int] = {}
    __repr__ = object.__repr__

    def error(self, key: str, problem: str, *, hint: str | None = None) -> InputFileError:
        """Return an error that states the problem of `key`, and its place."""
        return InputFileError(f"{self.place(key)}: {key}: {problem}", hint=hint)

    def place(self, key: str) -> str:
        """Return the file, with the line number of `key` if lines are known."""
        line = self.lines.get(key)
        return self.source if line is None else f"{self.source}:{line}"


def parse_properties(text: str, *, source: str) -> Properties:
    r"""Parse settings as `java.util.Properties.load` (Java 17) does; if a key occurs twice, the later one wins.

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
    return (
        setting for setting in re.finditer(_SETTING, text) if setting["key"] + setting["separator"] + setting["value"]
    )


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
    """Strip spaces and control characters, but no other blanks.

    `String.trim` does so, and Kafka with every value that it parses.
    """
    return value.strip(_TRIMMED)


def is_reference(value: str) -> bool:
    """Return whether only a Connect worker can resolve the value, or a part of it."""
    return PROVIDER.search(value, 0, _last_end(value)) is not None


def references(value: str) -> list[str]:
    """Return the references in a value, in order."""
    return PROVIDER.findall(value, 0, _last_end(value))


def without_references(value: str, instead: str = "") -> str:
    """Return a value with `instead` for each reference."""
    end = _last_end(value)
    return PROVIDER.sub(lambda _found: instead, value[:end]) + value[end:]


def _last_end(value: str) -> int:
    """Return where the last reference can end: a search beyond it takes the square of the text's length."""
    return value.rfind("}") + 1


def properties_text(properties: Mapping[str, str]) -> str:
    """Format a .properties file in ASCII.

    Java reads such files as ISO-8859-1, so all other characters are escaped.
    """
    return "".join(f"{name}={_escaped(value)}\n" for name, value in properties.items())


def _escaped(value: str) -> str:
    """Escape a property's value for `java.util.Properties`.

    UTF-16 units outside ASCII, backslashes and a leading space are escaped.
    """
    units = value.encode("utf-16-be")
    codes = [int.from_bytes(units[index : index + 2], "big") for index in range(0, len(units), 2)]
    text = "".join(chr(code) if 0x20 <= code < 0x7F and code != ord("\\") else f"\\u{code:04x}" for code in codes)
    return f"\\{text}" if text.startswith(" ") else text


_NUMBER = re.compile(r"[+-]?\d+")
INT_BITS, LONG_BITS = 32, 64
MOST_PORT = 65_535
_MOST, _MOST_DIGITS = (1 << LONG_BITS - 1) - 1, 19


def whole_number(text: str, *, most: int = _MOST) -> int | None:
    """Return the number that ASCII digits spell; None for any other text, and for a number above `most`."""
    digits = text.lstrip("0") or text[-1:]
    if not (text.isascii() and text.isdecimal()) or len(digits) > _MOST_DIGITS:
        return None
    number = int(digits)
    return number if number <= most else None


def java_number(text: str, *, bits: int = INT_BITS) -> int | None:
    """Parse a number, signs included.

    None for what Kafka refuses, and for references that only a worker can resolve.
    """
    number = trimmed(text)
    if len(number) > 100 or not _NUMBER.fullmatch(number):
        return None
    value = int(number)
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None


ENCODING = "iso-8859-1"
_PLAIN = re.compile(r"[A-Za-z0-9._-]+")


def set_property(text: str, name: str, value: str) -> str:
    """Return `text` with `name` set to `value`; of several lines with that name the last, which Java uses, is changed.

    A missing name is added at the end. `name` and `value` must need no escaping: letters, digits, `.`, `_`, `-`. Raises
    ValueError if they do, InputFileError for a malformed file.
    """
    if not (_PLAIN.fullmatch(name) and _PLAIN.fullmatch(value)):
        raise ValueError(f"{name}={value} would need escapes")
    if parse_properties(text, source="the file").values.get(name) == value:
        return text
    found = [setting for setting in settings_in(text) if unescaped(setting["key"]) == name]
    if found:
        last = found[-1]
        return text[: last.start("value")] + ("" if last["separator"] else "=") + value + text[last.end() :]
    line_end = found_end[0] if (found_end := re.search(r"\r\n?|\n", text)) else "\n"
    return text + _gap(text) * line_end + f"{name}={value}{line_end}"


def _gap(text: str) -> int:
    """Return how many line ends a new line needs before it: the last may lack its own, or go on with a backslash."""
    last = text.removesuffix("\n").removesuffix("\r")
    return (text != "" and last == text) + (len(last) - len(last.rstrip("\\"))) % 2
