"""The chain of causes in a Java stack trace, as `Throwable.printStackTrace` prints it (Java 8 to 25)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CAUSED_BY = "Caused by: "
_FRAME = re.compile(r"\s+(at .+|\.\.\. \d+ (more|common frames omitted)|Suppressed: .*)\s*")
_CLASS = re.compile(r"(?:[\w$]+\.)*([\w$]+)")


@dataclass(frozen=True, slots=True)
class Cause:
    """An exception of a trace: its `text` is what stands before its frames, `class: message`, in one line."""

    text: str

    def __str__(self) -> str:
        """The same with the class's simple name: packages tell nobody anything."""
        name, colon, message = self.text.partition(":")
        found = _CLASS.fullmatch(name)
        return f"{found[1]}{colon}{message}" if found else self.text


def causes_of(trace: str) -> tuple[Cause, ...]:
    """The exceptions of a trace, the outermost first; none of a text that is empty.

    A message may have several lines; frames and suppressed exceptions are left out.
    """
    found: list[list[str]] = []
    in_frames = True
    for line in trace.strip().splitlines():
        begins = line.startswith(_CAUSED_BY)
        if begins or not found:
            found.append([line.removeprefix(_CAUSED_BY).strip()])
            in_frames = False
        elif _FRAME.fullmatch(line):
            in_frames = True
        elif not in_frames and line.strip():
            found[-1].append(line.strip())
    return tuple(Cause(" ".join(lines)) for lines in found)
