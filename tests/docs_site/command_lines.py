"""The command lines of eosctl on a page: those in blocks of code, and those in a sentence."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(eosctl [^`]+)`")
_PROMPT = re.compile(r"^\$ ", re.MULTILINE)
_ENDS = {"|", "||", "&", "&&", ";", ">", ">>", "<", ">&", "(", ")"}


class CommandLine(NamedTuple):
    """The words behind `eosctl`, and the page that has them."""

    page: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: {' '.join(self.words)}"


def pages() -> list[Path]:
    """Return the README and all pages below docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def typed(page: Path) -> Iterator[CommandLine]:
    """Yield what a reader types: lines of a console block behind the prompt, and whole lines of a block without."""
    for _indent, language, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        text = re.sub(r"\\\n(?:> ?)?\s*", " ", block)
        prompted = [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
        plain = (
            [line for line in text.splitlines() if line.startswith("eosctl ")] if language in ("", "bash", "sh") else []
        )
        for line in prompted or plain:
            yield from (CommandLine(str(page.relative_to(ROOT)), words) for words in _of_eosctl(line))


def mentioned(page: Path) -> Iterator[CommandLine]:
    """Yield what is named in a sentence; it may be the beginning of a command, and have words in place of names."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    for line in _INLINE.findall(text):
        yield CommandLine(str(page.relative_to(ROOT)), tuple(" ".join(line.split()).split(" ")[1:]))


def _of_eosctl(line: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of each eosctl in a line of a shell."""
    lexer = shlex.shlex(re.sub(r"(?<=\s)\d(?=>)", "", line), posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split, lexer.commenters = True, ""
    command: list[str] = []
    for word in [*lexer, ";"]:
        if word not in _ENDS:
            command.append(word)
            continue
        for start in (("eosctl",), ("python3", "-m", "eosctl")):
            if tuple(command[: len(start)]) == start:
                yield tuple(command[len(start) :])
        command = [] if word not in (">", ">>", "<", ">&") else ["redirected to"]
