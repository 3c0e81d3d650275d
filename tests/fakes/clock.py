"""A clock that only moves when somebody sleeps, so that patience costs a test nothing; and what happens meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from eosctl.deadline import Clock


@dataclass
class FakeTime:
    """`clock()` is what App takes; `slept` is how long each sleep was; `later` lets something happen during one."""

    now_s: float = 0.0
    slept: list[float] = field(default_factory=list)
    _due: list[tuple[float, Callable[[], object]]] = field(default_factory=list)

    def clock(self) -> Clock:
        return Clock(lambda: self.now_s, lambda: self.now_s, self.sleep)

    def sleep(self, wanted_s: float) -> None:
        self.slept.append(wanted_s)
        self.now_s += wanted_s
        happening = [each for each in self._due if each[0] <= self.now_s]
        self._due = [each for each in self._due if each[0] > self.now_s]
        for _at_s, happens in happening:
            happens()

    def later(self, after_s: float, happens: Callable[[], object]) -> None:
        """Calls `happens` when so much time has passed."""
        self._due.append((self.now_s + after_s, happens))
