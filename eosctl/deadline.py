"""One overall deadline per command, the clock that measures it, and the progress of long operations.

Deadline and clock are arguments, never globals. Progress goes to one callable that takes events; the command layer
decides which of them a person sees.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from eosctl.errors import DeadlineError


class Clock(Struct, frozen=True):
    """Wall time, monotonic time and sleep; tests pass their own."""

    now_s: Callable[[], float] = time.time
    monotonic_s: Callable[[], float] = time.monotonic
    sleep_s: Callable[[float], None] = time.sleep

    def now_ms(self) -> int:
        """Return milliseconds since the epoch, as Kafka counts them."""
        return int(self.now_s() * 1000)


class Stopwatch:
    """A clock that can be stopped: time that passes meanwhile counts against no deadline measured with it."""

    def __init__(self, clock: Clock) -> None:
        self._real, self._stopped_s = clock, 0.0
        self.clock = replace(clock, monotonic_s=lambda: self._real.monotonic_s() - self._stopped_s)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the clock while a block runs that may take any time."""
        since_s = self._real.monotonic_s()
        try:
            yield
        finally:
            self._stopped_s += self._real.monotonic_s() - since_s


class Deadline(Struct, frozen=True):
    """A point in monotonic time (`at_s`) that every wait of a command respects."""

    at_s: float
    timeout_s: float
    clock: Clock = field(default_factory=Clock)

    @classmethod
    def after(cls, timeout_s: float, clock: Clock | None = None) -> Deadline:
        """Return the deadline `timeout_s` seconds from now."""
        clock = clock or Clock()
        return cls(at_s=clock.monotonic_s() + timeout_s, timeout_s=timeout_s, clock=clock)

    def half(self, *, at_most_s: float = math.inf) -> Deadline:
        """Return a deadline after half of the remaining time.

        It is for one of several tasks, so that the others keep their share.
        """
        share_s = min(self.remaining_s() / 2, at_most_s)
        return Deadline(self.clock.monotonic_s() + share_s, timeout_s=round(share_s, 1), clock=self.clock)

    def remaining_s(self) -> float:
        """Return the seconds left, never negative."""
        return max(0.0, self.at_s - self.clock.monotonic_s())

    def expired(self) -> bool:
        """Return whether no time is left."""
        return self.remaining_s() <= 0.0

    def check(self, doing: str) -> None:
        """Raise DeadlineError if no time is left; `doing` ends the sentence "timed out after N s while …"."""
        if self.expired():
            raise self.passed(doing)

    def passed(self, doing: str) -> DeadlineError:
        """Return the error for a deadline that has passed."""
        return DeadlineError(
            f"timed out after {self.timeout_s:g} s while {doing}",
            hint="Give it more time with --timeout, or see which broker or worker does not answer.",
        )

    def rounds(self, pause_s: float, *, least_s: float = 0.0) -> Iterator[None]:
        """Yield once now, and once after each pause; stop when no more than `least_s` is left.

        Without `least_s` the last round comes when the time is over. An observation that runs out of time fails by
        itself, with an error that says less about the awaited state: for those `least_s` is the time that an
        observation takes.
        """
        yield
        while self.remaining_s() > least_s:
            self.sleep(pause_s)
            yield

    def sleep(self, wanted_s: float) -> None:
        """Sleep `wanted_s`, or until the deadline if that comes first."""
        self.clock.sleep_s(min(wanted_s, self.remaining_s()))


class Standing(Struct, frozen=True):
    """The progress of one subject of a long operation: a worker, the step it takes, and the state of that step."""

    subject: str
    step: str
    state: str


MessageStyle = Literal["", "heading", "command", "good", "bad"]
"""What a sentence is in a narration; a terminal with colours shows it."""


class Event(Struct, frozen=True):
    """Progress (`done` of `total`, counted in `unit`) or a sentence (`message` alone); `warning`: it must be seen.

    The events of one operation have the same `message`; it is over once `done` is `total`.

    `standings` are lines of a table, which a terminal shows instead of the sentence; with them it may be empty.
    `heading` is that of the table's first column. `backup` is the path of a copy of the data that is changed next.
    """

    message: str
    done: int | None = None
    total: int | None = None
    unit: str = ""
    warning: bool = False
    standings: tuple[Standing, ...] = ()
    heading: str = "WORKER"
    backup: str | None = None
    style: MessageStyle = ""


OnEvent = Callable[[Event], None]


def unfailing(on_event: OnEvent) -> OnEvent:
    """Return a listener that drops events that can't be passed on: the reader of stderr may be gone, or a disk full.

    For operations that run on without their reader.
    """

    def listen(event: Event) -> None:
        with suppress(Exception):
            on_event(event)

    return listen


def ignore_events(_event: Event) -> None:
    """Discard an event; for callers without a listener."""
