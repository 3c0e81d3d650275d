"""What a test does to the calls of a fake: let them fail, kill the process there, or let others act in between.

One mechanism for every fake. tests/contract/test_faults.py says how the parts go together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple

EVERY = "*"


class KilledError(BaseException):
    """The process is gone: nothing may catch this."""


class Call(NamedTuple):
    """One call of a fake: the method's name, and what it was asked with."""

    method: str
    what: tuple[object, ...] = ()


Callback = Callable[[Call], object]


@dataclass
class Fault:
    """An error that a method raises once, after `skip` calls; `done` lets the call do its work and loses the answer."""

    error: BaseException
    skip: int = 0
    done: bool = False


@dataclass
class Faults:
    """The knobs that every fake has; its methods do their work within `with self.call("method", …)`."""

    _faults: dict[str, list[Fault]] = field(default_factory=dict, init=False, repr=False)
    _before: dict[str, list[Callback]] = field(default_factory=dict, init=False, repr=False)
    _after: dict[str, list[Callback]] = field(default_factory=dict, init=False, repr=False)

    def fail_next(self, method: str, error: BaseException, *, skip: int = 0, done: bool = False) -> None:
        """The next call of `method` raises `error`, after `skip` others; `done` lets it do its work first."""
        self._faults.setdefault(method, []).append(Fault(error, skip, done))

    def fail_always(self, method: str, error: BaseException) -> Callable[[], None]:
        """Every call of `method` raises `error`, until what is returned is called."""

        def refuse(_call: Call) -> None:
            raise error

        self.before(method, refuse)
        return lambda: self._before[method].remove(refuse)

    def before(self, method: str, callback: Callback) -> None:
        """Runs `callback` at the beginning of each call of `method`, `*` for every method."""
        self._before.setdefault(method, []).append(callback)

    def after(self, method: str, callback: Callback) -> None:
        """Runs `callback` at the end of each call of `method` that was not refused."""
        self._after.setdefault(method, []).append(callback)

    def call(self, method: str, *what: object) -> AbstractContextManager[None]:
        """Around what a method of the fake does."""
        return _Around(self, Call(method, what))

    @contextmanager
    def event(self, name: str, *what: object) -> Iterator[None]:
        """Around what happens in the fake without a call from outside, which `*` does not mean."""
        made = Call(name, what)
        for callback in self._before.get(name, ()):
            callback(made)
        yield
        for callback in self._after.get(name, ()):
            callback(made)

    def begin(self, made: Call) -> Fault | None:
        """What goes before a call; the error that it has to raise in the end, if any."""
        if self._before:
            for callback in [*self._before.get(EVERY, ()), *self._before.get(made.method, ())]:
                callback(made)
        fault = self._due(made.method) if self._faults else None
        if fault is not None and not fault.done:
            raise fault.error
        return fault

    def end(self, made: Call, fault: Fault | None) -> None:
        """What comes after a call that was not refused."""
        if self._after:
            for callback in [*self._after.get(made.method, ()), *self._after.get(EVERY, ())]:
                callback(made)
        if fault is not None:
            raise fault.error

    def _due(self, method: str) -> Fault | None:
        waiting = self._faults.get(method, [])
        if not waiting:
            return None
        if waiting[0].skip:
            waiting[0].skip -= 1
            return None
        return waiting.pop(0)


class _Around:
    """The block of `Faults.call`; a class, as a generator costs more than most of what fakes do in it."""

    __slots__ = ("_fault", "_faults", "_made")

    def __init__(self, faults: Faults, made: Call) -> None:
        self._faults, self._made = faults, made
        self._fault: Fault | None = None

    def __enter__(self) -> None:
        self._fault = self._faults.begin(self._made)

    def __exit__(self, kind: type[BaseException] | None, _exc: BaseException | None, _at: TracebackType | None) -> None:
        if kind is None:
            self._faults.end(self._made, self._fault)


@dataclass
class Kill:
    """Counts what `tick` is called for, and kills the process at the `at`-th: `fake.before("*", kill.tick)`.

    `look` is called at each.
    """

    at: int | None = None
    error: Callable[[], BaseException] = KilledError
    ticks: int = field(default=0, repr=False)
    look: Callable[[], object] | None = field(default=None, repr=False)

    def tick(self, _call: Call | None = None) -> None:
        """One call from outside."""
        self.ticks += 1
        if self.look is not None:
            self.look()
        if self.ticks == self.at:
            raise self.error()


def once(happens: Callable[[], object]) -> Callable[[Call], None]:
    """What a fake calls, and does only the first time."""
    done: list[Call] = []

    def callback(call: Call) -> None:
        if not done:
            done.append(call)
            happens()

    return callback


def worth_a_kill(kill: Kill, run: Callable[[], object], left: Callable[[], object]) -> list[int]:
    """The ticks of an undisturbed `run` since whose predecessor something has changed of what is `left`.

    A kill runs no code of the process that ends: at any other tick it leaves what it leaves at the one before, so
    that a later run finds the same, and does the same.
    """
    found: list[int] = []
    before: list[object] = [None]

    def look() -> None:
        now = left()
        if before != [now]:
            found.append(kill.ticks)
        before[:] = [now]

    kill.ticks, kill.look = 0, look
    run()
    kill.look = None
    return found
