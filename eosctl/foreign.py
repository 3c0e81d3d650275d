"""Escapes text of others for the place where it is printed: a function for each place.

Names, ids, messages, traces and contents of files are chosen by whoever may write them. Their line breaks would begin
lines that look like eosctl's own, control characters and marks of direction would steer the terminal, and a name may be
shell code. `printable` is for a line of a terminal or a log; only `Lines` has several.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from shlex import quote
from typing import Self

_BEYOND_ASCII = re.compile(r"[^\x00-\x7e]+")
_PLAIN_WORD = re.compile(r"[\w+./:@][\w+./:@=-]*")
_NO_ARGUMENT = re.compile("[\x00\ud800-\udfff]")  # characters that no argument of a program can hold


def printable(text: str) -> str:
    r"""Return `text` on one line, with unprintable characters escaped: `\x1b`, `\n`, `\u202e`."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")


class Lines(str):
    """Text of eosctl's own that has several lines. Line breaks of any other text are escaped where it is printed."""

    __slots__ = ()

    @classmethod
    def of(cls, *parts: str) -> Self:
        """Join the parts, each of which is one line, or Lines itself."""
        return cls("\n".join(line for part in parts for line in lines_of(part) or [""]))

    def __add__(self, more: str) -> Lines:
        return Lines(str.__add__(self, printable(more)))

    def __radd__(self, before: str) -> Lines:
        return Lines(str.__add__(printable(before), self))


def lines_of(text: str) -> list[str]:
    """Return the lines to print of `text`: none where it is empty, else one, except of Lines."""
    parts = text.split("\n") if isinstance(text, Lines) else [text]
    return [printable(part) for part in parts] if text else []


def shell_word(text: str) -> str:
    """Return `text` as one word of a shell, on one line and without a backtick: hints have commands between those.

    What is not printable stands between `$'` and `'` (bash, zsh, ksh). What no argument can hold is replaced, so that
    the command finds nothing instead of something else.
    """
    text = _NO_ARGUMENT.sub("\ufffd", text)
    is_plain = text.isprintable() and "`" not in text
    return quote(text) if is_plain else "$'" + "".join(map(_in_ansi_c, text)) + "'"


def _in_ansi_c(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    return char if char.isprintable() and char != "`" else "".join(f"\\x{byte:02x}" for byte in char.encode())


def shell_words(*words: str) -> str:
    """Return words of a shell, each quoted."""
    return " ".join(map(shell_word, words))


def arguments(*names: str) -> str:
    """Return the names as the last words of a command: behind `--` where one would be read as an option."""
    return ("-- " if any(name.startswith("-") for name in names) else "") + shell_words(*names)


def is_plain_word(name: str) -> bool:
    """Return whether each shell takes `name` for itself, unquoted, and each program takes it for no option."""
    return _PLAIN_WORD.fullmatch(name) is not None


def html_text(text: str) -> str:
    """Return `text` as it stands in HTML, between tags or in a quoted attribute."""
    from html import escape  # for pages only

    return escape(printable(text))


def json_text(encoded: str) -> str:
    """Return the same JSON, in which no C1 control and no mark of direction stands as it is."""
    return _with_escapes(encoded, _json_escape)


def yaml_text_of(encoded: str) -> str:
    """Return the same YAML with its unprintable characters escaped; they can only be in double quotes."""
    return _with_escapes(encoded, _yaml_escape)


def _with_escapes(encoded: str, escape: Callable[[str], str]) -> str:
    if encoded.isascii() and "\x7f" not in encoded:  # most texts are, of which there may be gigabytes
        return encoded
    return _BEYOND_ASCII.sub(
        lambda run: "".join(char if char.isprintable() else escape(char) for char in run[0]), encoded
    )


def _json_escape(char: str) -> str:
    code = ord(char)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _yaml_escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"
