"""Messages on stderr: text at once; progress as a live line on a terminal, else as one line every ten seconds.

If many subjects go through the same steps, a terminal shows a live table of them (board.py) instead of messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import RLock
from typing import IO, TYPE_CHECKING, Any

from eosctl.deadline import Clock, Event, MessageStyle
from eosctl.foreign import lines_of, printable
from eosctl.output.cells import duration

if TYPE_CHECKING:
    from eosctl.output.board import Board

_QUIET_S = 2.0
_LINE_EVERY_S = 10.0
_STYLES = {"heading": "\x1b[1m", "command": "\x1b[36m", "good": "\x1b[32m", "bad": "\x1b[31m"}
_BAR_WIDTH = 20  # characters: name, bar and counts fit 80 columns


@dataclass(slots=True)
class _Job:
    """One operation in progress: its start and first count, and the time of the last message about it."""

    started_s: float
    started_at: int
    spoken_s: float
    bar: Any = None


class ProgressMessages:
    """The listener that the command line gives to every operation; `live` allows a display that redraws itself.

    Work that is over within two seconds is not reported.
    """

    def __init__(self, stream: IO[str], clock: Clock, *, live: bool, verbose: bool = False) -> None:
        self._stream, self._clock, self._live, self._verbose = stream, clock, live, verbose
        self._display: Any = None
        self._board: Board | None = None
        self._jobs: dict[str, _Job] = {}
        self._one_at_a_time = RLock()  # parallel threads report here

    def __call__(self, event: Event) -> None:
        with self._one_at_a_time:
            self._hear(event)

    def _hear(self, event: Event) -> None:
        if event.standings and self._live:
            self._show_board(event)
        elif event.done is not None:
            self._progress(event, event.done)
        elif event.message:
            self._say("warning: " + event.message if event.warning else event.message, event.style)

    def close(self) -> None:
        """Remove bars from the terminal, and leave a table there in its last state; safe to call twice."""
        with self._one_at_a_time:
            if self._display is not None:
                self._display.stop()
                self._display = None
            if self._board is not None:
                self._board.close()
                self._board = None
            self._jobs.clear()

    def _show_board(self, event: Event) -> None:
        """Show the table, alone: two displays that redraw themselves would overwrite each other."""
        if self._board is None or not self._board.continues(event):
            self.close()
            from eosctl.output.board import Board  # most commands have none

            self._board = Board(self._stream, self._clock)
        self._board.show(event)

    def _say(self, text: str, style: MessageStyle = "") -> None:
        clean = "\n".join(lines_of(text))
        if style and self._live and self._display is None and self._board is None:
            self._stream.write(f"{_STYLES[style]}{clean}\x1b[0m\n")
            self._stream.flush()
            return
        if self._board is not None:
            self._board.say(clean)
            return
        if self._display is not None:
            self._display.console.print(clean, markup=False, highlight=False)
            return
        self._stream.write(clean + "\n")
        self._stream.flush()

    def _progress(self, event: Event, done: int) -> None:
        now_s = self._clock.monotonic_s()
        job = self._jobs.setdefault(event.message, _Job(now_s, done, now_s))
        if event.total is not None and done >= event.total:
            self._remove_bar(self._jobs.pop(event.message))
            return
        if now_s - job.started_s < _QUIET_S and not self._verbose:
            return
        heard_for_s = now_s - job.started_s
        how_far = _progress_text(event, done, (done - job.started_at) / heard_for_s if heard_for_s > 0 else 0.0)
        if self._board is not None:
            self._board.wait(f"{event.message}: {how_far}")
        elif self._live:
            self._show(event, job, how_far)
        elif now_s - job.spoken_s >= _LINE_EVERY_S:
            job.spoken_s = now_s
            self._say(f"{event.message}: {how_far}")

    def _show(self, event: Event, job: _Job, how_far: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        if self._display is None:
            name, counted = (TextColumn(f"{{task.{field}}}", markup=False) for field in ("description", "fields[far]"))
            bar = BarColumn(bar_width=_BAR_WIDTH)
            self._display = Progress(name, bar, counted, console=Console(file=self._stream), transient=True)
            self._display.start()
        if job.bar is None:
            job.bar = self._display.add_task(printable(event.message), total=event.total, far=how_far)
        self._display.update(job.bar, completed=event.done, total=event.total, far=how_far)

    def _remove_bar(self, job: _Job) -> None:
        """Remove the bar of a finished job, and with the last bar the display."""
        if self._board is not None:
            self._board.wait("")
        if self._display is not None and job.bar is not None:
            self._display.remove_task(job.bar)
            if not self._display.tasks:
                self._display.stop()
                self._display = None


def _progress_text(event: Event, done: int, rate: float) -> str:
    """Format progress as `1,000 of 4,000 records (100/s, 30 s left)`, without the time if the total is unknown."""
    per_s = f"{rate:,.0f}" if rate >= 10 or rate == round(rate) else f"{rate:.1f}"
    of = f" of {event.total:,}" if event.total else ""
    left = f", {_time(max(event.total - done, 0) / rate)} left" if event.total and rate > 0 else ""
    return f"{done:,}{of} {event.unit} ({per_s}/s{left})"


def _time(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds < 120 else duration(int(seconds * 1000))
