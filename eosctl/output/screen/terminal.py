"""The terminal, taken over by one screen from `with` on; every exit restores it.

Signals only wake the waiting thread, which does all work: nothing is painted from a handler. As elsewhere in the
program, Ctrl-C and SIGTERM raise KeyboardInterrupt.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from types import FrameType, TracebackType
from typing import IO, Any

from eosctl.output.screen.keys import QUIT, keys_of
from eosctl.output.screen.painter import ENTER, LEAVE, Painter
from eosctl.output.screen.rows import ScreenRow

_USUAL = (80, 24)
_WOKEN_BY = (signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)
_ENDS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class LiveTerminal:
    """The alternate screen of the terminal `out`; keys come from `keyboard`, if that is a terminal."""

    def __init__(self, out: IO[str], *, keyboard: IO[Any] | None = None, color: bool) -> None:
        self._out, self._keyboard = out, sys.stdin if keyboard is None else keyboard
        self._painter = Painter(self._put, color=color)
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        self._before: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._wakeup_before = -1

    def __enter__(self) -> LiveTerminal:
        for end in (self._wake_read, self._wake_write):
            os.set_blocking(end, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        if self._keyboard.isatty():
            self._selector.register(self._keyboard.fileno(), selectors.EVENT_READ)
        self._wakeup_before = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._handlers = {each: signal.signal(each, _ignore_signal) for each in _WOKEN_BY}
        try:
            self._take()
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Restore the terminal; pressed keys that were not read go to the shell."""
        self._release()

    def size(self) -> tuple[int, int]:
        """Return the current number of columns and rows."""
        try:
            found = os.get_terminal_size(self._out.fileno())
        except OSError:
            return _USUAL
        return found.columns or _USUAL[0], found.lines or _USUAL[1]

    def show(self, rows: Sequence[ScreenRow]) -> None:
        """Paint the rows that changed."""
        width, height = self.size()
        self._painter.paint(rows, width=width, height=height)

    def wake(self) -> None:
        """End a wait, from any thread."""
        with contextlib.suppress(OSError):  # full: it wakes anyway; closed: there is no waiter
            os.write(self._wake_write, b"\0")

    def wait(self, seconds: float) -> list[str]:
        """Wait for keys, a signal, a `wake` or the timeout; return the pressed keys.

        Ctrl-Z stops the process in here, with the terminal as it was, until it goes on.
        """
        pressed: list[str] = []
        for key, _events in self._selector.select(max(seconds, 0)):
            pressed += self._signalled() if key.fd == self._wake_read else self._read_keys(key.fd)
        return pressed

    def _read_keys(self, keyboard: int) -> list[str]:
        try:
            data = os.read(keyboard, 4096)
        except OSError:  # in the background of a terminal that is gone
            data = b""
        if not data:  # no key can be pressed any more
            self._selector.unregister(keyboard)
            return [QUIT]
        return keys_of(data.decode("utf-8", "replace"))

    def _signalled(self) -> list[str]:
        numbers = b""
        with contextlib.suppress(BlockingIOError):
            numbers = os.read(self._wake_read, 4096)
        if signal.SIGTSTP in numbers:
            self._stop()
        elif signal.SIGWINCH in numbers or signal.SIGCONT in numbers:
            self._painter.forget()
        return []

    def _stop(self) -> None:
        """Suspend the process like one without a screen: the shell has the terminal until `fg`."""
        self._restore()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, _ignore_signal)
        self._take()

    def _take(self) -> None:
        if self._keyboard.isatty():
            descriptor = self._keyboard.fileno()
            self._before = termios.tcgetattr(descriptor)
            tty.setcbreak(descriptor)
        self._painter.forget()
        self._put(ENTER)

    def _restore(self) -> None:
        """Restore the terminal; ignore errors, as it may be gone."""
        with contextlib.suppress(OSError, ValueError):
            self._put(LEAVE)
        if self._before is not None:
            with contextlib.suppress(OSError, ValueError, termios.error):
                termios.tcsetattr(self._keyboard.fileno(), termios.TCSADRAIN, self._before)
            self._before = None

    def _release(self) -> None:
        with _blocked_signals():
            self._restore()
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._wakeup_before)
            self._selector.close()
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _put(self, codes: str) -> None:
        self._out.write(codes)
        self._out.flush()


def _ignore_signal(_signal: int, _frame: FrameType | None) -> None:
    """Ignore the signal: its number is in the pipe, but only if Python has a handler."""


@contextlib.contextmanager
def _blocked_signals() -> Iterator[None]:
    """Block a second Ctrl-C while the terminal changes state; it takes effect afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
