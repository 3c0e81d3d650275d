"""Changes one setting in the text of a Java .properties file and leaves every other character as it is. Pure.

The file is taken as ISO-8859-1, as `java.util.Properties` reads it, so that every byte survives the round trip.
"""

from __future__ import annotations

import re

from eosctl.core.java.properties import logical_lines, parse_properties

ENCODING = "iso-8859-1"
_PHYSICAL = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_PLAIN = re.compile(r"[A-Za-z0-9._-]+")
_BEFORE_VALUE = re.compile(r"[ \t\f]*(?:[^\\=: \t\f]|\\.)+(?:[ \t\f]*[=:][ \t\f]*|[ \t\f]+)")


def set_property(text: str, name: str, value: str) -> str:
    """`text` with `name` set to `value`; of several lines with that name the last is changed, which Java goes by.

    A name that is not there is added at the end. `name` and `value` need no escaping: letters, digits, `.`, `_`, `-`.
    Raises ValueError where they do, InputFileError for a malformed file.
    """
    if not (_PLAIN.fullmatch(name) and _PLAIN.fullmatch(value)):
        raise ValueError(f"{name}={value} would need escapes")
    if parse_properties(text, source="the file").values.get(name) == value:
        return text
    found = [line for line in logical_lines(text) if line.key() == name]
    physical = _PHYSICAL.findall(text)
    if not found:
        return text + _gap(text, physical) + f"{name}={value}{_line_end(text)}"
    first, last = found[-1].first - 1, found[-1].last - 1
    ending = physical[last][len(physical[last].rstrip("\r\n")) :]
    changed = _before_value(physical[first], name) + value + ending
    return "".join([*physical[:first], changed, *physical[last + 1 :]])


def _before_value(physical: str, name: str) -> str:
    """Indentation, key and separator as they are; a key that itself runs over two lines is written anew."""
    match = _BEFORE_VALUE.match(physical.rstrip("\r\n"))
    kept = match[0] if match else ""
    whole = next(iter(logical_lines(kept)), None)
    return kept if whole is not None and whole.key() == name else f"{name}="


def _gap(text: str, physical: list[str]) -> str:
    """What has to stand between the text and a new line: a last line may lack its end, or go on with a backslash."""
    lines = [line for line in physical if line]
    if not lines:
        return ""
    open_line = any(line.open_ended or line.last > len(lines) for line in logical_lines(text))
    ended = lines[-1].endswith(("\r", "\n"))
    return _line_end(text) * ((not ended) + open_line)


def _line_end(text: str) -> str:
    found = re.search(r"\r\n|\r|\n", text)
    return found[0] if found else "\n"
