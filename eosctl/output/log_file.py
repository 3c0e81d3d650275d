"""The `--log-file` option: appends all messages on stderr to a file, each line with its time."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from eosctl.core.wording import rfc3339
from eosctl.deadline import Clock, Event, OnEvent
from eosctl.errors import EosctlError
from eosctl.foreign import printable
from eosctl.machine.files import open_own


class LogFile(io.TextIOWrapper):
    """A text stream for messages and problems; only its owner can read the file."""

    def __init__(self, path: Path, clock: Clock) -> None:
        """Open the file for appending; raise EosctlError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        try:
            is_device = path.exists() and not path.is_file()  # /dev/stderr, or a pipe: create no file
            descriptor = os.open(path, flags) if is_device else open_own(path, flags)
        except OSError as exc:
            hint = getattr(exc, "hint", "--log-file needs a file in a directory that exists.")
            raise EosctlError(f"cannot write {path}: {exc.strerror or exc}", hint=hint) from exc
        super().__init__(io.FileIO(descriptor, "a"), encoding="utf-8", errors="backslashreplace", write_through=True)
        self._clock = clock

    def write(self, text: str) -> int:
        """Write whole lines, each with the time in front; ignore a full disk, which must not end the operation."""
        stamp = rfc3339(self._clock.now_ms())
        with suppress(OSError):
            super().write("".join(f"{stamp} {printable(line)}\n" for line in text.removesuffix("\n").split("\n")))
        return len(text)


class Both:
    """Two listeners as one."""

    def __init__(self, first: OnEvent, second: OnEvent) -> None:
        self._listeners: tuple[Callable[[Event], None], ...] = (first, second)

    def __call__(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)

    def close(self) -> None:
        """Remove a live display from the terminal."""
        for listener in self._listeners:
            close = getattr(listener, "close", None)
            if close is not None:
                close()
