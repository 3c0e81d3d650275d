"""The lines of a watch from what was collected, what changed between two looks, and whether that is calm. Pure.

Times are seconds of one clock that only goes forward; a line's age is that of its source's last look that succeeded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from shlex import quote
from typing import Literal

from eosctl.core.findings import ERROR, SEVERITIES, WARNING, Finding
from eosctl.core.frozen import frozen
from eosctl.offsets.lint.rules import BEFORE_RESTARTS
from eosctl.txn.codes import NOT_CHECKED

ChangeWord = Literal["appeared", "changed", "gone"]
State = Literal["calm", "finding", "unknown"]
GONE_FOR_S = 60.0
"""For so long a line that is gone stays on the screen: whoever repaired it sees that it worked."""
_NUMBER = re.compile(r"\d[\d.,]*")
_LOOKS_ONLY = frozenset({"describe", "list", "show", "get", "diff", "check", "verify", "lint", "log", "producers",
                         "hanging", "explain", "status", "trace", "generate", "doctor", "metrics"})  # fmt: skip
_QUOTED = re.compile(r"`([^`]+)`")
_COMMAND = re.compile(r"(?:eosctl|kafka-[a-z-]+\.sh|kubectl|systemctl|curl) \S")


@frozen
class SourceLook:
    """What a source says: the findings of its newest look that succeeded, which ended at `looked_s` (None: none yet).

    `error` is the code of what is wrong with the source now, and `message` says it; `is_stale`: what it says is too old
    to count. `owns` are codes of which it alone knows best: what another source says of them is older than it.
    `unchecked` are parts of it that could not be looked at, though the look as a whole succeeded.
    """

    name: str
    looked_s: float | None
    findings: Sequence[Finding] = ()
    error: str | None = None
    message: str = ""
    is_stale: bool = False
    owns: frozenset[str] = frozenset()
    unchecked: Sequence[str] = ()

    @property
    def is_known(self) -> bool:
        """Whether what it says is how things are now, as far as one looks."""
        return self.error is None and self.looked_s is not None and not self.is_stale and not self.unchecked


LineKey = tuple[str, str, int]


@frozen
class WatchLine:
    """A finding on the screen: since when it has been there, how old what it says is, and when it went."""

    key: LineKey
    source: str
    finding: Finding
    since_s: float
    looked_s: float | None
    gone_s: float | None = None

    @property
    def command(self) -> str:
        """What to run about it."""
        return command_of(self.finding.fix)


@frozen
class LineChange:
    """What happened to a line between two looks."""

    word: ChangeWord
    line: WatchLine


@frozen
class Watched:
    """All lines now, worst first; those that have just gone come last. `state` has lasted from `state_since_s` on."""

    looks: Sequence[SourceLook] = ()
    lines: Sequence[WatchLine] = ()
    gone: Sequence[WatchLine] = ()
    state: State = "unknown"
    state_since_s: float = 0.0
    _by_key: Mapping[LineKey, WatchLine] = field(default_factory=dict)


def command_of(fix: str) -> str:
    """The command in what a fix says: the first that changes something, else the first; all of it where none is."""
    if fix.startswith("Nothing"):
        return fix
    lines = [line.strip() for line in fix.splitlines()]
    found = [each for each in [*_QUOTED.findall(fix), *lines] if _COMMAND.match(each)]
    changing = [each for each in found if not _only_looks(each)]
    return next(iter([*changing, *found]), fix)


def _only_looks(command: str) -> bool:
    return not _LOOKS_ONLY.isdisjoint(command.split()[1:3])


def not_collected(source: str, error: str, message: str) -> Finding:
    """The line of a source that can't be looked at: as doctor has it, with the error's code."""
    return Finding(
        NOT_CHECKED, WARNING, source, f"{source} could not be collected: {error}: {message}",
        f"See `eosctl explain {quote(error)}`.", {"error": error}, certain=False,
    )  # fmt: skip


def watched(before: Watched, looks: Sequence[SourceLook], now_s: float, *, strict: bool) -> Watched:
    """The lines after another look at what is known."""
    lines = _lines(before, _without_superseded(looks), now_s)
    by_key = {line.key: line for line in lines}
    went = [replace(line, gone_s=now_s) for line in before.lines if line.key not in by_key]
    stay = [line for line in before.gone if now_s - (line.gone_s or 0) < GONE_FOR_S and line.key not in by_key]
    state = state_of(lines, looks, strict=strict)
    since_s = before.state_since_s if state == before.state and before.looks else now_s
    return Watched(tuple(looks), _worst_first(lines, looks), [*went, *stay], state, since_s, by_key)


def changes(before: Watched, after: Watched) -> list[LineChange]:
    """What appeared, changed and went, worst first; that a number in a sentence grows is no change."""
    found = []
    for line in after.lines:
        was = before._by_key.get(line.key)
        if was is None:
            found.append(LineChange("appeared", line))
        elif _gist(was.finding) != _gist(line.finding):
            found.append(LineChange("changed", line))
    return found + [LineChange("gone", line) for line in after.gone if line.key in before._by_key]


def state_of(lines: Iterable[WatchLine], looks: Sequence[SourceLook], *, strict: bool) -> State:
    """Calm is only what is known of every source, now: one that can't be looked at may hide anything."""
    bad = (ERROR, WARNING) if strict else (ERROR,)
    if any(line.finding.severity in bad for line in lines):
        return "finding"
    return "calm" if looks and all(look.is_known for look in looks) else "unknown"


def _lines(before: Watched, looks: Sequence[SourceLook], now_s: float) -> list[WatchLine]:
    lines: list[WatchLine] = []
    for look in looks:
        alike = Counter[tuple[str, str]]()
        for finding in look.findings:
            number = alike[finding.code, finding.subject]
            alike[finding.code, finding.subject] += 1
            key = (str(finding.code), finding.subject, number)
            was = before._by_key.get(key)
            lines.append(WatchLine(key, look.name, finding, was.since_s if was else now_s, look.looked_s))
    return lines


def _without_superseded(looks: Sequence[SourceLook]) -> list[SourceLook]:
    """Of a code that a source owns, no other's findings, unless they are newer: what was repaired is gone at once."""
    owners = {code: look for look in looks for code in look.owns if look.is_known}

    def is_newest(look: SourceLook, finding: Finding) -> bool:
        owner = owners.get(finding.code, look)
        return owner is look or (look.looked_s or 0) > (owner.looked_s or 0)

    return [replace(look, findings=[each for each in look.findings if is_newest(look, each)]) for look in looks]


def _worst_first(lines: Iterable[WatchLine], looks: Sequence[SourceLook]) -> list[WatchLine]:
    """As doctor: by severity, offsets that are lost before what restarts something, then the order of the checks."""
    order = {look.name: number for number, look in enumerate(looks)}
    return sorted(
        lines,
        key=lambda line: (
            SEVERITIES.index(line.finding.severity),
            line.finding.code not in BEFORE_RESTARTS,
            order[line.source],
        ),
    )


def _gist(finding: Finding) -> tuple[object, ...]:
    """What makes it another finding: not the times, sizes and offsets in its sentences, which grow with each look."""
    subjects = finding.evidence.get("subjects")
    who = tuple(map(str, subjects)) if isinstance(subjects, list) else ()
    return finding.severity, _NUMBER.sub("#", finding.message), _NUMBER.sub("#", finding.fix), who
