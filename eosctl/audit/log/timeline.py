"""The number of transactions that ended over time, in a fixed number of steps. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

COMMITTED, ABORTED, OPEN, TORN = "committed", "aborted", "open", "torn"
_MOST_STEPS = 480


@dataclass(slots=True)
class Timeline:
    """Counts by state in steps of `step_ms`, which get longer as the time does; `step_ms` is a second or more."""

    step_ms: int = 1000
    _counts: dict[int, dict[str, int]] = field(default_factory=dict)

    def add(self, at_ms: int, state: str, count: int = 1) -> None:
        """Count one transaction; leave out a negative time."""
        if at_ms < 0:
            return
        step = self._counts.setdefault(at_ms // self.step_ms, {})
        step[state] = step.get(state, 0) + count
        while len(self._counts) > _MOST_STEPS:
            self._widen(self.step_ms * 2)

    def take(self, other: Timeline) -> None:
        """Add the counts of another timeline."""
        self._widen(max(self.step_ms, other.step_ms))
        for at_ms, state, count in other.steps():
            self.add(at_ms, state, count)

    def steps(self) -> Iterator[tuple[int, str, int]]:
        """Yield the beginning of a step (in ms), a state and its count, by time."""
        for number, counts in sorted(self._counts.items()):
            yield from ((number * self.step_ms, state, count) for state, count in sorted(counts.items()))

    def _widen(self, step_ms: int) -> None:
        if step_ms == self.step_ms:
            return
        steps, self._counts, self.step_ms = list(self.steps()), {}, step_ms
        for at_ms, state, count in steps:
            step = self._counts.setdefault(at_ms // step_ms, {})
            step[state] = step.get(state, 0) + count
