"""What is known now: the newest facts of each source, their age, and why the last look failed, if it did. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct

from eosctl.collect.codes import STALE

Facts = TypeVar("Facts")

STALE_AFTER = 3
"""Facts of a source that fails are shown for so many of its intervals, and then no more."""


class Collected(Struct, frozen=True):
    """How one source stands.

    `facts` are those of the newest look that succeeded, `facts_ms` is when it ended; both None before there is one.
    `error` is the code of the last look's failure, None where it succeeded, and `message` says why. `looking_since_ms`
    is when the look began that is under way. `deadline_s` is how long a look may take. `last`: its first look waits
    for those of the others.
    """

    source: str
    interval_s: float
    deadline_s: float
    facts: object | None = None
    facts_ms: int | None = None
    duration_s: float | None = None
    error: str | None = None
    message: str = ""
    looks: int = 0
    failures: Mapping[str, int] = {}
    looking_since_ms: int | None = None
    last: bool = False

    def age_s(self, now_ms: int) -> float | None:
        """How old the facts are; None where there are none."""
        return None if self.facts_ms is None else max(0, now_ms - self.facts_ms) / 1000

    def overdue(self, now_ms: int) -> bool:
        """Whether the look that is under way takes longer than it may: something below does not keep its deadline."""
        return self.looking_since_ms is not None and now_ms - self.looking_since_ms > self.deadline_s * 1000 + 5_000

    def error_at(self, now_ms: int) -> str | None:
        """The code of what is wrong with the source now; `timed_out` while a look is overdue.

        Facts that are too old are a failure also where the last look succeeded: nobody looks any more.
        """
        if self.overdue(now_ms):
            return "timed_out"
        return self.error or (str(STALE) if self.is_stale(now_ms) else None)

    def message_at(self, now_ms: int) -> str:
        """What `error_at` means; empty where nothing is wrong."""
        error = self.error_at(now_ms)
        if error is None or error == self.error:
            return self.message
        return STALE.meaning if error == STALE else "the look takes longer than it may"

    def is_stale(self, now_ms: int) -> bool:
        """Whether the facts are too old to be shown."""
        age_s = self.age_s(now_ms)
        return age_s is not None and age_s > STALE_AFTER * self.interval_s + 2 * self.deadline_s


class Overview(Struct, frozen=True):
    """Everything that is known at `taken_ms` of the group `group_id`; `version` rises with each look that ends."""

    taken_ms: int
    started_ms: int
    version: int = 0
    collected: Mapping[str, Collected] = {}
    group_id: str = ""

    def facts(self, kind: type[Facts]) -> Facts | None:
        """The facts of this class; None where there are none yet, or they are stale."""
        for each in self.collected.values():
            if isinstance(each.facts, kind):
                return None if each.is_stale(self.taken_ms) else each.facts
        return None

    def newest(self, kind: type[Facts]) -> Facts | None:
        """The newest facts of this class, however old: for what does not change with time, and for counters."""
        return next((each.facts for each in self.collected.values() if isinstance(each.facts, kind)), None)

    def error(self, source: str) -> str | None:
        """Why the source's last look failed; None where it did not, or there was none."""
        found = self.collected.get(source)
        return None if found is None else found.error_at(self.taken_ms)

    def awaited(self) -> list[str]:
        """The sources that were not looked at yet."""
        return [each.source for each in self.collected.values() if not each.looks]

    def is_ready(self) -> bool:
        """Whether each source but the last was looked at once, or an interval has passed: a slow one is a metric."""
        interval_s = min((each.interval_s for each in self.collected.values()), default=0.0)
        is_late = self.taken_ms - self.started_ms >= interval_s * 1000
        return is_late or all(each.looks or each.last for each in self.collected.values())
