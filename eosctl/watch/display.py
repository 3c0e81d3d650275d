"""The two displays of a watch: the screen of a terminal, and a stream with a line per change."""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from typing import IO

from eosctl.core.wording import rfc3339
from eosctl.deadline import Clock
from eosctl.output.screen.terminal import LiveTerminal
from eosctl.watch.layout import Heading, Size
from eosctl.watch.rows import WatchRow, watch_row
from eosctl.watch.rules import LineChange, WatchState
from eosctl.watch.screen import WatchView, follow_lines, press_key, render


class WatchScreen:
    """The lines on a terminal's alternate screen, and the pressed keys."""

    def __init__(self, terminal: LiveTerminal) -> None:
        self._terminal = terminal
        self._view, self._watched = WatchView(), WatchState()
        self._heading, self._now_s = Heading("", ""), 0.0

    def __enter__(self) -> WatchScreen:
        self._terminal.__enter__()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._terminal.close()

    def show(
        self, watch: WatchState, _changed: Sequence[LineChange], *, heading: str, waiting: str, now_ms: int
    ) -> None:
        """Paint what changed; update ages, too."""
        self._watched, self._now_s = watch, now_ms / 1000
        self._heading = Heading(heading, f"{(rfc3339(now_ms) or '')[11:19]}Z", waiting)
        self._view = follow_lines(self._view, watch)
        self._paint()

    def wait(self, seconds: float) -> bool:
        """Wait for a key, a resize or the timeout; return True after `q`."""
        for key in self._terminal.wait(seconds):
            self._view = press_key(self._view, key, self._watched)
        self._paint()
        return self._view.quits

    def _paint(self) -> None:
        size = Size(*self._terminal.size())
        self._view, rows = render(self._view, self._watched, self._heading, size=size, now_s=self._now_s)
        self._terminal.show(rows)


class ChangeStream:
    """A row per change, for `print_row`; it ends when the reader of `out` is gone."""

    def __init__(self, out: IO[str], print_row: Callable[[WatchRow], None], clock: Clock) -> None:
        self._out, self._print_row, self._clock = out, print_row, clock
        self._is_over = False

    def __enter__(self) -> ChangeStream:
        return self

    def __exit__(self, *_exc: object) -> None:
        """Do nothing, as nothing was set up."""

    def show(
        self, _watch: WatchState, changed: Sequence[LineChange], *, heading: str, waiting: str, now_ms: int
    ) -> None:
        """Print each change once."""
        del heading, waiting
        try:
            for each in changed:
                self._print_row(watch_row(each.word, each.line, now_s=now_ms / 1000, now_ms=now_ms))
        except BrokenPipeError:
            self._is_over = True

    def wait(self, seconds: float) -> bool:
        """Sleep; return True if the reader is gone."""
        if self._is_over or _has_no_reader(self._out):
            return True
        self._clock.sleep_s(seconds)
        return False


def _has_no_reader(out: IO[str]) -> bool:
    """Decide whether the other end of a pipe is closed, as there may be nothing to print for hours."""
    try:
        watched = select.poll()
        watched.register(out.fileno(), 0)
        return any(event & select.POLLERR for _fd, event in watched.poll(0))
    except (OSError, ValueError):  # no descriptor, as in a test
        return False
