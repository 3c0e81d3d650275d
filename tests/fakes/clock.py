"""A clock that only moves when somebody sleeps, so that patience costs a test nothing; and what happens meanwhile."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from eosctl.deadline import Clock
from eosctl.errors import EosctlError

T = TypeVar("T")
PLENTY_S = 300.0  # real seconds, for what must not end before its time on a slow machine; a right program needs none


def given_time(check: Callable[[float], T], *, first_s: float) -> T:
    """What `check` returns with so many real seconds, or with more where they were too few for a slow machine.

    It is for waits that only a real clock ends. A fault is one however much time there is.
    """
    for timeout_s in (first_s, 8 * first_s):
        with suppress(AssertionError, EosctlError, pytest.fail.Exception):
            return check(timeout_s)
    return check(64 * first_s)


@dataclass
class FakeTime:
    """`clock()` is what App takes; `slept` is how long each sleep was.

    What others do meanwhile (`later`) is done while somebody sleeps, in the order of time.
    """

    now_s: float = 0.0
    slept: list[float] = field(default_factory=list)
    _due: list[tuple[float, int, Callable[[], object]]] = field(default_factory=list, init=False, repr=False)
    _count: int = field(default=0, init=False, repr=False)

    def clock(self) -> Clock:
        return Clock(lambda: self.now_s, lambda: self.now_s, self.sleep)

    def sleep(self, wanted_s: float) -> None:
        self.slept.append(wanted_s)
        self.pass_until(self.now_s + wanted_s)

    def later(self, delay_s: float, happens: Callable[[], object]) -> None:
        """Lets `happens` run when so much time has passed."""
        self._count += 1
        heapq.heappush(self._due, (self.now_s + delay_s, self._count, happens))

    def due(self) -> list[tuple[float, int]]:
        """When something happens later, and the number of each."""
        return sorted((at_s, number) for at_s, number, _happens in self._due)

    def pass_until(self, at_s: float) -> None:
        """Moves to `at_s`, unless it is later already, and lets happen what is due by then."""
        while self._due and self._due[0][0] <= at_s:
            due_s, _number, happens = heapq.heappop(self._due)
            self.now_s = max(self.now_s, due_s)
            happens()
        self.now_s = max(self.now_s, at_s)
