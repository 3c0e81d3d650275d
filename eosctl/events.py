"""Progress of a long operation: one callable takes events; the command layer decides what a person sees of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct


class Standing(Struct, frozen=True):
    """Where one of many stands in a long operation: a worker, the step it takes, and how far that is."""

    subject: str
    step: str
    state: str


class Event(Struct, frozen=True):
    """Progress (`done` of `total`, counted in `unit`) or a sentence (`message` alone); `warning`: it must be seen.

    What is in progress has the same `message` from event to event, and is over once `done` is `total`.

    `standings` are lines of a table, which a terminal shows in place of the sentence; with them it may be empty.
    `heading` is that of the table's first column.
    `backup` is the path of a copy that was made of what is changed next.
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
    """Return a listener that drops an event which can't be passed on: whoever reads stderr may be gone, or a disk full.

    For what runs on without its reader.
    """

    def listen(event: Event) -> None:
        with suppress(Exception):
            on_event(event)

    return listen


def ignore_events(_event: Event) -> None:
    """The listener of a caller that does not want to know."""
