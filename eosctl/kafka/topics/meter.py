"""Reports the progress of a read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from eosctl.deadline import Deadline, Event, OnEvent

_TELL_EVERY_S = 0.5


class OffsetMeter:
    """Reports how many offsets of `total` are read, twice a second at most, and at the end."""

    def __init__(self, doing: str, total: int, *, deadline: Deadline, on_event: OnEvent) -> None:
        self._event = partial(Event, doing, total=total, unit="records")
        self._on_event, self._clock = on_event, deadline.clock
        self._total, self._before = total, 0
        self._next_s = self._clock.monotonic_s() + _TELL_EVERY_S

    def tell(self, count: Callable[[], int], *, last: bool = False) -> None:
        """Report the progress if it is due.

        Of several readings, one after the other, `count` counts the current one, until its `last` call.
        """
        if last:
            self._before += count()
        is_over = last and self._before == self._total
        if is_over or self._clock.monotonic_s() >= self._next_s:
            self._next_s = self._clock.monotonic_s() + _TELL_EVERY_S
            self._on_event(self._event(done=self._before + (0 if last else count())))
