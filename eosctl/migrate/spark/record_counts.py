"""The number of records that the tasks of a stage have handled, which Spark does not report while Python tasks run.

Each task keeps its number in a file of its own, in a folder that driver and executors both see, as they see the
snapshot. Runs on executors. The numbers are only for people to look at: nothing depends on them, and losing one is no
error.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from msgspec import Struct

_TELL_EVERY_S = 0.5


class RecordCounts(Struct, frozen=True):
    """The counts of one stage, in `folder` for as long as the block lasts; `total` is where they end."""

    folder: Path
    total: int

    def __enter__(self) -> Self:
        shutil.rmtree(self.folder, ignore_errors=True)  # left by a killed run
        self.folder.mkdir(parents=True)
        return self

    def __exit__(self, *_exc: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def of_task(self, task: int) -> TaskProgress:
        """Return the meter of one task; a second attempt replaces the first one's number."""
        return TaskProgress(self.folder / str(task))

    def done(self) -> int:
        """Sum up the tasks' last numbers; never more than `total`."""
        return min(self.total, sum(_number(file) for file in self.folder.glob("*")))


class TaskProgress:
    """The meter of one task, written twice a second at most."""

    def __init__(self, file: Path) -> None:
        self._file, self._next_s = file, 0.0

    def tell(self, count: Callable[[], int], *, last: bool = False) -> None:
        """Write the result of `count`, which is called only when it is time to, or for the `last` time."""
        now_s = time.monotonic()
        if last or now_s >= self._next_s:
            self._next_s = now_s + _TELL_EVERY_S
            with suppress(OSError):
                self._file.write_text(str(count()))


def _number(file: Path) -> int:
    """Read a file's number; 0 while it is being written, or if it is gone."""
    with suppress(OSError, ValueError):
        return int(file.read_text())
    return 0
