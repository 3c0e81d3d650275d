"""How many live parts run side by side: they wait more than they work, and how much more depends on the machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

LOOK_S = 5.0
_SPARE = 0.2
_STAT = Path("/proc/stat")
_IDLE, _IO_WAIT, _ALL = 3, 4, 8
"""Among the numbers of its first line: what is not used, of so many; the others count some of these twice."""


class Room:
    """`least` parts, and one more, up to `most`, whenever a fifth of the processors' time since the last look was left.

    While units fill what live parts leave, nothing is.
    """

    def __init__(
        self,
        least: int,
        most: int,
        *,
        times: Callable[[], tuple[int, int]] | None = None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`times` are what was left so far, and all there was, of the processors' time in any unit."""
        self._least, self._most = least, most
        self._now, self._clock_s, self._times = least, clock_s, times or _processor_times
        self._seen, self._looked_s = self._times(), clock_s()

    def for_parts(self, there: int) -> int:
        """How many there may be, told how many there are."""
        if self._most > self._least and self._clock_s() - self._looked_s >= LOOK_S:
            (left, whole), self._looked_s = self._times(), self._clock_s()
            (left_before, whole_before), self._seen = self._seen, (left, whole)
            has_room = left - left_before > _SPARE * (whole - whole_before)
            if not has_room:
                self._now = max(self._least, min(self._now, there))
            elif there >= self._now:
                self._now = min(self._most, self._now + 1)
        return self._now


def _processor_times() -> tuple[int, int]:
    """Of Linux; elsewhere nothing is ever left."""
    with suppress(OSError):
        numbers = [int(number) for number in _STAT.read_text().split("\n", 1)[0].split()[1 : 1 + _ALL]]
        return numbers[_IDLE] + numbers[_IO_WAIT], sum(numbers)
    return 0, 0
