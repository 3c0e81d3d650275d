"""A session of commands and their outputs on a page: reads it, runs it in one shell, and writes the outputs anew."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from getpass import getuser
from pathlib import Path
from typing import NamedTuple

_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_AS_ROOT = re.compile(r"^Each user of this machine .*\n", re.MULTILINE)
_PATIENCE_S = 240.0


class Step(NamedTuple):
    """A command, with its prompts, and what it printed."""

    command: str
    output: str

    @property
    def script(self) -> str:
        """Return the command without prompts."""
        return re.sub(r"^[$>] ?", "", self.command, flags=re.MULTILINE)

    @property
    def pattern(self) -> str:
        """Return the output without what differs from run to run: numbers, durations, and the width of columns."""
        text = re.sub(r"\d+", "N", re.sub(r"\b\d+(?:\.\d+)?(?:ms|s|m|h)\b", "DURATION", self.output))
        return "\n".join(" ".join(line.split()) for line in text.splitlines())


def steps_of(page: str) -> list[Step]:
    """Return the steps of a page's console blocks."""
    return [step for block in _BLOCK.findall(page) for step in _steps(block)]


def _steps(block: str) -> Iterator[Step]:
    for each in re.findall(r"^\$ .*\n(?:> .*\n)*(?:(?!\$ ).*\n)*", block, re.MULTILINE):
        lines = each.splitlines(keepends=True)
        count = next((n for n, line in enumerate(lines[1:], start=1) if not line.startswith("> ")), len(lines))
        yield Step("".join(lines[:count]), "".join(lines[count:]))


def with_outputs(page: str, outputs: Sequence[str]) -> str:
    """Return the page with other outputs of its steps."""
    left = iter(outputs)

    def block(match: re.Match[str]) -> str:
        return "```console\n" + "".join(step.command + next(left) for step in _steps(match[1])) + "```"

    return _BLOCK.sub(block, page)


class Shell:
    """A bash that runs one script after another, with stdout and stderr in one pipe, as a terminal has them."""

    def __init__(self, environ: Mapping[str, str], home: Path) -> None:
        self._home = home
        self._process = subprocess.Popen(
            ["bash"], env=dict(environ), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._process.communicate("kill $(jobs -p) 2> /dev/null\n")  # what runs in the background

    def run(self, script: str) -> str:
        """Return what a script prints, with the usual state directory, and root as the user of `history`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        end = "-- end of step --"
        self._process.stdin.write(f"{script}\necho '{end}'\n")
        self._process.stdin.flush()
        lines = []
        until_s = time.monotonic() + _PATIENCE_S
        while (line := self._process.stdout.readline()) != f"{end}\n":
            assert line, "the shell has ended"
            assert time.monotonic() < until_s, script
            lines.append(line)
        printed = _AS_ROOT.sub("", "".join(lines)).replace(str(self._home), "~/.local/state")
        return re.sub(rf"(?<=Z  ){re.escape(getuser())}(?=  )", "root", printed)
