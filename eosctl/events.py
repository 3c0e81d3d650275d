"""Talk of a long operation: one callable takes events; the command layer decides what a person sees of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """Progress (`done` of `total`, counted in `unit`) or a sentence (`message` alone); `warning`: it must be seen."""

    message: str
    done: int | None = None
    total: int | None = None
    unit: str = ""
    warning: bool = False


OnEvent = Callable[[Event], None]


def ignore_events(_event: Event) -> None:
    """The listener of a caller that does not want to know."""
