"""The live table of a roll: a line per worker, and below it the current wait and its duration.

A rehearsal has a line for each fault.

Finished lines stay, in the table while it is live and on the terminal afterwards. It decides nothing: the content of
the lines comes with the events.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any

from msgspec import Struct

from eosctl.deadline import Clock, Event
from eosctl.foreign import printable
from eosctl.output.cells import duration

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

_REDRAWN_PER_S = 4
_MOST_WAIT_LINES = 3
_OTHER_LINES = 3  # the header, how many lines are hidden, the cursor's own
_OVER = ("done", "failed")
_STYLES = {"done": "green", "failed": "red"}
_INDENT = "  "


class _Line(Struct, frozen=True):
    step: str
    state: str
    since: str


class Board:
    """One table, from its first event to `close`; rich redraws it in a thread, so that times stay current."""

    def __init__(self, stream: IO[str], clock: Clock) -> None:
        from rich.console import Console
        from rich.live import Live

        self._clock = clock
        self._lines: dict[str, _Line] = {}
        self._waiting, self._waiting_since_s = "", clock.monotonic_s()
        self._heading = ""
        self._console = Console(file=stream)
        self._live: Any = Live(
            self, console=self._console, refresh_per_second=_REDRAWN_PER_S, redirect_stdout=False,
            vertical_overflow="crop",
        )  # fmt: skip

    def continues(self, event: Event) -> bool:
        """Decide whether `event` is about the steps of this table; if not, a new table is needed."""
        return {line.step for line in self._lines.values()} == {each.step for each in event.standings}

    def show(self, event: Event) -> None:
        """Update the lines; the event's message is the current wait from now on."""
        at = datetime.fromtimestamp(self._clock.now_s(), tz=UTC).strftime("%H:%M:%SZ")
        lines = dict(self._lines)  # the redrawing thread reads the old one meanwhile
        for each in event.standings:
            before = lines.get(each.subject)
            if before is None or (before.step, before.state) != (each.step, each.state):
                lines[each.subject] = _Line(each.step, each.state, at)
        self._lines, self._heading = lines, event.heading
        self.wait(event.message)
        if not self._live.is_started:
            self._live.start()
        self._live.refresh()

    def wait(self, words: str) -> None:
        """Set the current wait below the table; its duration restarts if the text changes."""
        if words != self._waiting:
            self._waiting, self._waiting_since_s = words, self._clock.monotonic_s()

    def say(self, text: str) -> None:
        """Print a message above the table, where it stays."""
        self._console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        """Leave the whole table, without the current wait, and move the cursor below it."""
        self._waiting = ""
        self._live.stop()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from rich.text import Text

        wait = self._wait_lines(console, options.max_width)
        is_last = not self._live.is_started  # rich notices it itself: a redraw in between would go above the screen
        room = len(self._lines) if is_last else max(1, console.size.height - len(wait) - _OTHER_LINES)
        first, last = _window([line.state for line in self._lines.values()], room)
        yield self._table(first, last)
        hidden = len(self._lines) - (last - first)
        if hidden:
            yield Text(f"{_INDENT}… {hidden} more", style="dim")
        yield from wait

    def _table(self, first: int, last: int) -> RenderableType:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
        table.add_column(self._heading, overflow="fold")
        for name, width in (("STEP", 9), ("STATE", 10), ("SINCE", 9)):  # as wide as the words, so that nothing jumps
            table.add_column(name, no_wrap=True, min_width=width)
        for subject, line in list(self._lines.items())[first:last]:
            style = _STYLES.get(line.state, "")
            table.add_row(
                Text(printable(subject)),
                Text(printable(line.step)),
                Text(printable(line.state), style=style),
                Text(line.since),
            )
        return table

    def _wait_lines(self, console: Console, width: int) -> list[RenderableType]:
        """Return the lines of the current wait, its duration first: the text may be cut, the duration may not."""
        from rich.text import Text

        if not self._waiting:
            return []
        for_s = self._clock.monotonic_s() - self._waiting_since_s
        text = Text(f"{duration(int(for_s * 1000))}  {printable(self._waiting)}")
        lines = list(text.wrap(console, max(20, width - len(_INDENT)), overflow="fold"))
        if len(lines) > _MOST_WAIT_LINES:
            lines = [*lines[:_MOST_WAIT_LINES], Text("…")]
        return [Text(_INDENT) + line for line in lines]


def _window(states: list[str], room: int) -> tuple[int, int]:
    """Select the lines that fit a terminal with `room` for them: the first unfinished one and those around it."""
    now = next((at for at, state in enumerate(states) if state not in _OVER), len(states))
    first = max(0, min(now - room // 2, len(states) - room))
    return first, min(len(states), first + room)
