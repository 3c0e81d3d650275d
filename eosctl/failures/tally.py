"""The failures of a text: how often, when, and which are only consequences. Memory does not grow with the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct

from eosctl.failures.failure import Failure, Family
from eosctl.failures.named_things import Thing, add_name, names_in
from eosctl.failures.reading import LogEvent, events_in
from eosctl.failures.rules import Match, matches_of, root_causes
from eosctl.failures.stack_trace import Cause
from eosctl.failures.table import FAILURES

Role = Literal["cause", "consequence", "suppressed"]
_ROLES: tuple[Role, ...] = ("cause", "consequence", "suppressed")
_TEXTS = tuple(dict.fromkeys(text for failure in FAILURES for sign in failure.signs for text in sign.texts))
_NO_CLASS = "?"
_MOST_UNKNOWN, _MOST_CACHED, _MOST_NAMED = 20, 4096, 100


@dataclass(slots=True)
class Found:
    """A failure in a text. `line` and the times are those of the first and the last event that has it."""

    match: Match
    roles: set[Role]
    line: int
    first_time: str
    count: int = 0
    last_line: int = 0
    last_time: str = ""
    names: dict[Thing, list[str]] = field(default_factory=dict)
    noticed_with: set[str] = field(default_factory=set)

    @property
    def failure(self) -> Failure:
        """The entry."""
        return self.match.failure


@dataclass(slots=True)
class Unknown:
    """Exceptions that no entry fits: the classes of the outermost and of the deepest one, as far as they name one."""

    outermost: str
    deepest: str
    line: int
    count: int = 1


@dataclass(slots=True)
class FailureTally:
    """The failures found in a text so far."""

    lines: int = 0
    traces: int = 0
    found: dict[str, Found] = field(default_factory=dict)
    unknown: dict[tuple[str, str], Unknown] = field(default_factory=dict)
    more_unknown: int = 0
    _known: dict[tuple[Family | None, str], list[Match]] = field(default_factory=dict)

    def take(self, event: LogEvent, family: Family | None = None) -> None:
        """Count an event."""
        self.traces += event.has_trace
        family = event.family or family
        main = self._matches(event.chain.causes, family)
        for number, match in enumerate(main):
            self._count(match, "consequence" if number else "cause", event)
            self.found[match.failure.code].noticed_with.update(each.failure.code for each in main[:number])
        for chain in event.chain.suppressed:
            for match in self._matches(chain, family):
                if match.failure.code not in {each.failure.code for each in main}:
                    self._count(match, "suppressed", event)
        if event.has_trace and not main:
            self._count_unknown(event)

    def _matches(self, causes: tuple[Cause, ...], family: Family | None) -> list[Match]:
        text = "\n".join([cause.text for cause in causes])
        known = self._known.get((family, text))
        if known is None:
            glued = text + "\n".join([cause.glued for cause in causes])
            known = matches_of(causes, family) if _may_fit(glued) else []
            if len(self._known) >= _MOST_CACHED:
                self._known.clear()
            self._known[family, text] = known
        return known

    def _count(self, match: Match, role: Role, event: LogEvent) -> None:
        code = match.failure.code
        found = self.found.setdefault(code, Found(match, set(), event.line, event.time))
        found.roles.add(role)
        found.count += 1
        found.last_line, found.last_time = event.line, event.time or found.last_time
        found.first_time = found.first_time or event.time
        if found.count <= _MOST_NAMED:
            for thing, names in names_in(cause.text for cause in event.chain.causes).items():
                for name in names:
                    add_name(found.names, thing, name)

    def _count_unknown(self, event: LogEvent) -> None:
        classes = [name for cause in event.chain.causes if (name := cause.class_name())] or [_NO_CLASS]
        key = classes[0], classes[-1]
        if key in self.unknown:
            self.unknown[key].count += 1
        elif len(self.unknown) < _MOST_UNKNOWN:
            self.unknown[key] = Unknown(*key, event.line)
        else:
            self.more_unknown += 1


class Judged(Struct, frozen=True):
    """A failure of a text, and what it is there: the codes that explain it, where it is only their consequence."""

    found: Found
    role: Role
    explained_by: tuple[str, ...]


def judged(tally: FailureTally) -> list[Judged]:
    """Order the failures of a text, the most likely cause first: those that explain others, then the frequent ones."""
    explained = root_causes(tally.found)
    made: list[Judged] = []
    for code, found in tally.found.items():
        by = tuple(sorted(explained[code] | (found.noticed_with if "cause" not in found.roles else set())))
        role = next(each for each in _ROLES if each in found.roles)
        made.append(Judged(found, "consequence" if by and role == "cause" else role, by))
    explains = {code for each in made for code in each.explained_by}
    made.sort(key=lambda each: (_ROLES.index(each.role), each.found.failure.code not in explains, *_weight(each)))
    return made


def _weight(each: Judged) -> tuple[bool, int, int]:
    return each.found.failure.is_wrapper, -each.found.count, each.found.line


def read_all(lines: Iterable[str]) -> FailureTally:
    """Count the failures in a text of any length."""
    tally = FailureTally()
    for event in events_in(_counted(lines, tally)):
        tally.take(event)
    return tally


def _may_fit(message: str) -> bool:
    """Check whether the text has any entry's words, as few lines of a log have."""
    for text in _TEXTS:  # noqa: SIM110 - any() takes twice as long, and a log has a million lines
        if text in message:
            return True
    return False


def _counted(lines: Iterable[str], tally: FailureTally) -> Iterator[str]:
    for line in lines:
        tally.lines += 1
        yield line
