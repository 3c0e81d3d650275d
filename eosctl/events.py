"""Progress of a long operation: one callable takes events; the command layer decides which of them a person sees."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct


class Standing(Struct, frozen=True):
    """The progress of one subject of a long operation: a worker, the step it takes, and the state of that step."""

    subject: str
    step: str
    state: str


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
