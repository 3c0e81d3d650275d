"""The two displays of a watch: the screen of a terminal, and a stream with a line per change.

Keys change the chosen line, the shown screen, and the scroll position; their effect is pure.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from typing import IO

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.wording import rfc3339
from eosctl.deadline import Clock
from eosctl.output import screen
from eosctl.output.screen import LiveTerminal, ScreenRow
from eosctl.watch.layout import Heading, Size, help_screen, line_screen, table_screen
from eosctl.watch.rows import WatchRow, watch_row
from eosctl.watch.rules import LineChange, LineKey, WatchLine, WatchState

_STEPS = {
    screen.UP: -1,
    screen.DOWN: 1,
    screen.PAGE_UP: -10,
    screen.PAGE_DOWN: 10,
    screen.FIRST: -1_000_000,
    screen.LAST: 1_000_000,
}


class WatchView(Struct, frozen=True):
    """The view of the user: the table, a line or the help.

    `chosen` is a line that stays chosen while others come and go. `line` is shown in its last state, even if it is
    gone.
    """

    chosen: LineKey | None = None
    position: int = 0
    line: WatchLine | None = None
    helps: bool = False
    scrolled: int = 0
    quits: bool = False


def lines_of(watch: WatchState) -> Sequence[WatchLine]:
    """Return every line that can be chosen."""
    return [*watch.lines, *watch.gone]


def follow_lines(view: WatchView, watch: WatchState) -> WatchView:
    """Update the view after a change of the lines: the choice follows a moved line, and stays in place otherwise."""
    lines = lines_of(watch)
    found = {line.key: number for number, line in enumerate(lines)}
    at = found.get(view.chosen, min(view.position, max(len(lines) - 1, 0))) if view.chosen else 0
    line = view.line
    if line is not None and line.key in found:
        line = lines[found[line.key]]
    return replace(view, position=at, line=line)


def press_key(view: WatchView, key: str, watch: WatchState) -> WatchView:
    """Return the view after a key."""
    if key == screen.QUIT:
        return replace(view, quits=True)
    if key == screen.HELP:
        return replace(view, helps=not view.helps, scrolled=0)
    if view.helps or view.line is not None:
        if key in (screen.BACK, screen.CHOOSE):
            return replace(view, helps=False, line=None, scrolled=0)
        return replace(view, scrolled=max(0, view.scrolled + _STEPS.get(key, 0)))
    return _in_the_table(view, key, lines_of(watch))


def _in_the_table(view: WatchView, key: str, lines: Sequence[WatchLine]) -> WatchView:
    if not lines:
        return view
    if key == screen.CHOOSE:
        return replace(view, line=lines[view.position], chosen=lines[view.position].key, scrolled=0)
    at = max(0, min(view.position + _STEPS.get(key, 0), len(lines) - 1))
    return replace(view, position=at, chosen=lines[at].key if key in _STEPS else view.chosen)


def render(
    view: WatchView, watch: WatchState, heading: Heading, *, size: Size, now_s: float
) -> tuple[WatchView, list[ScreenRow]]:
    """Return the rows to show, and the view with its scroll position limited."""
    if view.helps:
        rows, most = help_screen(watch, scrolled=view.scrolled, size=size, now_s=now_s)
    elif view.line is not None:
        rows, most = line_screen(view.line, scrolled=view.scrolled, size=size, now_s=now_s)
    else:
        return view, table_screen(watch, heading, chosen=view.position, size=size, now_s=now_s)
    return replace(view, scrolled=min(view.scrolled, most)), rows


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
