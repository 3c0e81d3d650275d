"""A clock that only moves when somebody sleeps, so that patience costs a test nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from eosctl.deadline import Clock


@dataclass
class FakeTime:
    """`clock()` is what App takes; `slept` is how long each sleep was."""

    now_s: float = 0.0
    slept: list[float] = field(default_factory=list)

    def clock(self) -> Clock:
        return Clock(lambda: self.now_s, lambda: self.now_s, self.sleep)

    def sleep(self, wanted_s: float) -> None:
        self.slept.append(wanted_s)
        self.now_s += wanted_s
