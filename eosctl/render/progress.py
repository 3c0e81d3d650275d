"""Talk on stderr: sentences at once, progress as a live line on a terminal, else one line every ten seconds."""

from __future__ import annotations

from typing import IO, Any

from eosctl.deadline import Clock
from eosctl.events import Event

_QUIET_S = 2.0
_LINE_EVERY_S = 10.0


class Talk:
    """The listener that the command line gives to every operation."""

    def __init__(self, stream: IO[str], clock: Clock, *, verbose: bool = False) -> None:
        self._stream, self._clock, self._verbose = stream, clock, verbose
        self._started_s = self._last_line_s = clock.monotonic_s()
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}

    def __call__(self, event: Event) -> None:
        if event.done is None:
            prefix = "warning: " if event.warning else ""
            self._stream.write(f"{prefix}{event.message}\n")
            self._stream.flush()
            return
        now_s = self._clock.monotonic_s()
        if now_s - self._started_s < _QUIET_S and not self._verbose:
            return
        if self._stream.isatty():
            self._update_bar(event)
        elif now_s - self._last_line_s >= _LINE_EVERY_S:
            self._last_line_s = now_s
            self._stream.write(self._line(event, now_s) + "\n")
            self._stream.flush()

    def close(self) -> None:
        """Takes the live line off the terminal; safe to call twice."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
            self._tasks.clear()

    def _line(self, event: Event, now_s: float) -> str:
        done = event.done or 0
        of = f" of {event.total:,}" if event.total else ""
        rate = done / max(now_s - self._started_s, 0.001)
        left = f", {(event.total - done) / rate:,.0f} s left" if event.total and rate > 0 else ""
        return f"{event.message}: {done:,}{of} {event.unit} ({rate:,.0f}/s{left})"

    def _update_bar(self, event: Event) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        if self._bar is None:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(file=self._stream), transient=True)
            self._bar.start()
        if event.message not in self._tasks:
            self._tasks[event.message] = self._bar.add_task(event.message, total=event.total)
        self._bar.update(self._tasks[event.message], completed=event.done, total=event.total)
