"""The overview of what is known now: each source's newest facts, their age, and the last failure, if any. Pure.

A source is one question to the cluster, with how often it is asked and how long it may take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from msgspec import Struct

from eosctl.app import App
from eosctl.collect.codes import STALE

Facts = TypeVar("Facts")

STALE_AFTER = 3
"""Facts of a failing source are shown for so many of its intervals, and not longer."""


class Collected(Struct, frozen=True):
    """The state of one source.

    `facts` are those of the newest look that succeeded, `facts_ms` is the time of its end; both None before there is
    one. `error` is the code of the last look's failure, None where it succeeded, and `message` its text.
    `looking_since_ms` is the start of the running look. `deadline_s` is how long a look may take. `last`: its first
    look waits for those of the others.
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
        """Return the age of the facts; None where there are none."""
        return None if self.facts_ms is None else max(0, now_ms - self.facts_ms) / 1000

    def overdue(self, now_ms: int) -> bool:
        """Check whether the running look takes longer than it may, so that something below ignores its deadline."""
        return self.looking_since_ms is not None and now_ms - self.looking_since_ms > self.deadline_s * 1000 + 5_000

    def error_at(self, now_ms: int) -> str | None:
        """Return the code of the source's present fault; `timed_out` while a look is overdue.

        Facts that are too old are a failure also where the last look succeeded, as no look has followed.
        """
        if self.overdue(now_ms):
            return "timed_out"
        return self.error or (str(STALE) if self.is_stale(now_ms) else None)

    def message_at(self, now_ms: int) -> str:
        """Explain `error_at`; empty where nothing is wrong."""
        error = self.error_at(now_ms)
        if error is None or error == self.error:
            return self.message
        return STALE.meaning if error == STALE else "the look takes longer than it may"

    def is_stale(self, now_ms: int) -> bool:
        """Check whether the facts are too old to be shown."""
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
        """Return the facts of this class; None where there are none yet, or they are stale."""
        for each in self.collected.values():
            if isinstance(each.facts, kind):
                return None if each.is_stale(self.taken_ms) else each.facts
        return None

    def newest(self, kind: type[Facts]) -> Facts | None:
        """Return the newest facts of this class, however old, for what does not change with time, and for counters."""
        return next((each.facts for each in self.collected.values() if isinstance(each.facts, kind)), None)

    def error(self, source: str) -> str | None:
        """Return the code of the source's present fault; None where there is none, or no such source."""
        found = self.collected.get(source)
        return None if found is None else found.error_at(self.taken_ms)

    def awaited(self) -> list[str]:
        """Return the sources that have not been looked at yet."""
        return [each.source for each in self.collected.values() if not each.looks]

    def is_ready(self) -> bool:
        """Check whether each source but the last was looked at, or an interval has passed: a slow one is a metric."""
        interval_s = min((each.interval_s for each in self.collected.values()), default=0.0)
        is_late = self.taken_ms - self.started_ms >= interval_s * 1000
        return is_late or all(each.looks or each.last for each in self.collected.values())


Look = Callable[[App, Overview], object]
"""Looks once: the App has a deadline of its own, the overview is what other sources know. Returns one class of facts;
raises EosctlError. It may remember what it saw: no two looks of a source are ever under way together."""


class FactSource(Struct, frozen=True):
    """A source of facts: `name` labels its metrics; a look every `every` intervals may take `deadline_s`.

    One that is `last` begins after the first looks of the others, or an interval of theirs later, so that the looks
    that take most memory do not coincide. One that is `after` uses the facts of others from the overview: when each is
    looked at only once, its turn comes after theirs.
    """

    name: str
    look: Look
    every: int = 1
    deadline_s: float = 20.0
    last: bool = False
    after: bool = False
