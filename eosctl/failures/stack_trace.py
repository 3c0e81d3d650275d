"""The chain of causes in a Java stack trace, as `Throwable.printStackTrace` prints it (Java 8 to 25).

It may come from a terminal or a ticket: without indentation, or folded at the width of a window.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from msgspec import Struct

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
_MOST_CAUSES, _MOST_LINES, _MOST_CHARACTERS = 64, 40, 8192
"""Limits for a trace and a message: an error in a loop may have causes without end."""


class Cause(Struct, frozen=True):
    """An exception of a trace: its `text` is what stands before its frames, `class: message`, in one line.

    `glued` is the same without blanks where it had several lines: a terminal breaks words.
    """

    text: str
    glued: str = ""

    def __str__(self) -> str:
        """Return the text with the class's simple name, as packages are of no interest."""
        name, colon, message = self.text.partition(":")
        found = _CLASS.fullmatch(name)
        return f"{found[1]}{colon}{message}" if found else self.text

    def class_name(self) -> str:
        """Return the class, if the text begins with one; else nothing, as other text may be a secret."""
        found = HEAD.match(self.text)
        return found[1] if found else ""

    def has(self, text: str) -> bool:
        """Check whether a literal is in the text, folded or not."""
        return text in self.text or text in self.glued


class Chain(Struct, frozen=True):
    """The exceptions of a trace, the outermost first; those that were suppressed beside them."""

    causes: tuple[Cause, ...] = ()
    suppressed: tuple[tuple[Cause, ...], ...] = ()


@dataclass(slots=True)
class ChainReader:
    """Takes the lines of one trace; holds no more than a bounded part of it."""

    chains: list[list[list[str]]] = field(default_factory=lambda: [[]])
    in_frames: bool = False
    _current: int = 0
    _suppressed_at: int = 0

    def take(self, line: str) -> None:
        """Read a line: the head of an exception, a frame, or a further line of a message."""
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if is_frame(text):
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
        return bool(causes) and len(causes[-1]) >= _MOST_LINES

    def announces(self) -> bool:
        """Check whether the message so far ends in a colon: then the next line belongs to it, of whatever form."""
        causes = self.chains[self._current]
        return not self.in_frames and bool(causes) and causes[-1][-1].endswith(":")

    def chain(self) -> Chain:
        """Return the chain that was read."""
        first, *others = self.chains
        return Chain(_causes(first), tuple(_causes(each) for each in others))

    def _begin(self, text: str) -> None:
        self.in_frames = False
        causes = self.chains[self._current]
        if len(causes) >= _MOST_CAUSES:
            del causes[_MOST_CAUSES // 2]
        causes.append([text.strip()[:_MOST_CHARACTERS]])

    def _add(self, text: str) -> None:
        lines = self.chains[self._current][-1]
        if len(lines) < _MOST_LINES:
            lines.append(text[:_MOST_CHARACTERS])


def is_frame(text: str) -> bool:
    """Check whether a stripped line is a stack frame."""
    return text.startswith(("at ", "... ")) and _FRAME.match(text) is not None


def _causes(found: list[list[str]]) -> tuple[Cause, ...]:
    return tuple(Cause(" ".join(lines), "".join(lines) if len(lines) > 1 else "") for lines in found)


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
