"""Changes one setting in the text of a Java .properties file and leaves every other character as it is. Pure.

The file is taken as ISO-8859-1, as `java.util.Properties` reads it, so that every byte survives the round trip.
"""

from __future__ import annotations

import re

from eosctl.core.java.properties import parse_properties, settings_in, unescaped

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
