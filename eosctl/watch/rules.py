"""Derives the lines of a watch from what was collected, the changes between two looks, and whether it is calm. Pure.

Times are seconds of one clock that only goes forward; a line's age is that of its source's last look that succeeded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from eosctl.collect.facts import unproven
from eosctl.core.findings import ERROR, SEVERITIES, WARNING, Finding
from eosctl.core.wording import COMMAND
from eosctl.foreign import arguments, lines_of
from eosctl.observation.connectors.commit_age import fold_alike
from eosctl.offsets.lint.rules import BEFORE_RESTARTS
from eosctl.txn.codes import NOT_CHECKED

ChangeWord = Literal["appeared", "changed", "gone"]
State = Literal["calm", "finding", "unknown"]
GONE_FOR_S = 60.0
"""The time for which a line that is gone stays on the screen, so that the success of a repair is visible."""
_NUMBER = re.compile(r"\d[\d.,]*")
_LOOKS_ONLY = frozenset({"describe", "list", "show", "get", "diff", "check", "verify", "lint", "log", "producers",
                         "hanging", "explain", "status", "trace", "generate", "doctor", "metrics",
                         "audit"})  # fmt: skip
_QUOTED = re.compile(r"`([^`]+)`")
_PLACEHOLDERS = frozenset({"NAME", "DIR", "VERSION", "FIELD"})


class SourceLook(Struct, frozen=True):
    """A source's findings, of its newest successful look, which ended at `looked_s` (None: none yet).

    `error` is the code of the source's current failure, and `message` explains it; `is_stale`: its findings are too old
    to count. `owns` are the codes for which it is authoritative: other sources' findings of them are older. `unseen`
    counts its parts that could not be looked at, although the look as a whole succeeded.
    """

    name: str
    looked_s: float | None
    findings: Sequence[Finding] = ()
    error: str | None = None
    message: str = ""
    is_stale: bool = False
    owns: frozenset[str] = frozenset()
    unseen: int = 0

    @property
    def is_known(self) -> bool:
        """Whether the findings are current, as far as one looks."""
        return self.error is None and self.looked_s is not None and not self.is_stale and not self.unseen


LineKey = tuple[str, str, int]


class WatchLine(Struct, frozen=True):
    """A finding: since when it has been there, how old its facts are, and when it went.

    `key` stays the same from look to look.
    """

    key: LineKey
    source: str
    finding: Finding
    since_s: float
    looked_s: float | None
    gone_s: float | None = None

    @property
    def command(self) -> str:
        """Return the command to run about it."""
        return command_of(self.finding.fix)


class LineChange(Struct, frozen=True):
    """The change of a line between two looks."""

    word: ChangeWord
    line: WatchLine


class WatchState(Struct, frozen=True):
    """The current findings, and those that have just gone; `state` has lasted since `state_since_s`.

    `lines` and `gone` are for people, worst first: many findings alike are one line. `found` and `went` have each one
    separately.
    """

    looks: Sequence[SourceLook] = ()
    lines: Sequence[WatchLine] = ()
    gone: Sequence[WatchLine] = ()
    state: State = "unknown"
    state_since_s: float = 0.0
    found: Mapping[LineKey, WatchLine] = {}
    went: Sequence[WatchLine] = ()


def command_of(fix: str) -> str:
    """Return the command in a fix: the first that changes something, else the first, else the whole fix.

    A command with a placeholder is none: pasted, it fails.
    """
    if fix.startswith("Nothing"):
        return fix
    lines = [line.strip() for line in lines_of(fix)]
    commands = [each for each in [*_QUOTED.findall(fix), *lines] if COMMAND.match(each)]
    found = [each for each in commands if _PLACEHOLDERS.isdisjoint(each.split())]
    changing = [each for each in found if not _only_looks(each)]
    return next(iter([*changing, *found]), fix)


def _only_looks(command: str) -> bool:
    return not _LOOKS_ONLY.isdisjoint(command.split()[1:3])


def not_collected(source: str, error: str, message: str) -> Finding:
    """Return the finding that a source can't be collected, like doctor's, with the error's code."""
    return Finding(
        NOT_CHECKED, WARNING, source, f"{source} could not be collected: {error}: {message}",
        f"See `eosctl explain {arguments(error)}`.", {"error": error}, certain=False,
    )  # fmt: skip


def next_state(before: WatchState, looks: Sequence[SourceLook], now_s: float, *, strict: bool) -> WatchState:
    """Return the lines after another look."""
    lines = _worst_first(_lines(before, _without_superseded(looks), now_s), looks)
    found = {line.key: line for line in lines}
    went = [replace(line, gone_s=now_s) for line in before.found.values() if line.key not in found]
    went += [line for line in before.went if now_s - (line.gone_s or 0) < GONE_FOR_S and line.key not in found]
    state = state_of(lines, looks, strict=strict)
    since_s = before.state_since_s if state == before.state and before.looks else now_s
    return WatchState(tuple(looks), _folded(lines), _folded(went), state, since_s, found, went)


def changes(before: WatchState, after: WatchState) -> list[LineChange]:
    """Return what appeared, changed and went, worst first; a growing number in a message is no change.

    Many findings alike that appear or go at once are one line.
    """
    was = before.found
    appeared = [line for key, line in after.found.items() if key not in was]
    changed = [
        line for key, line in after.found.items() if key in was and _gist(was[key].finding) != _gist(line.finding)
    ]
    found = [LineChange("appeared", line) for line in _folded(appeared)]
    found += [LineChange("changed", line) for line in _folded(changed)]
    found.sort(key=lambda each: SEVERITIES.index(each.line.finding.severity))
    return found + [LineChange("gone", line) for line in _folded([line for line in after.went if line.key in was])]


def state_of(lines: Iterable[WatchLine], looks: Sequence[SourceLook], *, strict: bool) -> State:
    """Return the state; it is calm only if every source is known now, as an unavailable one may hide anything.

    A finding that something could not be seen counts like that. A check that could not run counts with its source.
    """
    bad, findings = (ERROR, WARNING) if strict else (ERROR,), [line.finding for line in lines]
    if any(finding.severity in bad for finding in findings):
        return "finding"
    return "calm" if looks and not unproven(findings) and all(look.is_known for look in looks) else "unknown"


def _lines(before: WatchState, looks: Sequence[SourceLook], now_s: float) -> list[WatchLine]:
    """Match findings to existing lines; match several of one code and subject by their content, not their order."""
    was: dict[tuple[str, str], list[WatchLine]] = {}
    for line in before.found.values():
        was.setdefault(_about(line.finding), []).append(line)
    lines: list[WatchLine] = []
    for look in looks:
        alike: dict[tuple[str, str], list[Finding]] = {}
        for finding in look.findings:
            alike.setdefault(_about(finding), []).append(finding)
        for about, findings in alike.items():
            keys = _keys(about, findings, was.pop(about, []))
            for key, finding in zip(keys, findings, strict=True):
                before_it = before.found.get(key)
                since_s = before_it.since_s if before_it is not None else now_s
                lines.append(WatchLine(key, look.name, finding, since_s, look.looked_s))
    return lines


def _about(finding: Finding) -> tuple[str, str]:
    """Return code and subject; omit the subject of a folded finding, as it contains a number."""
    return str(finding.code), "" if "subjects" in finding.evidence else finding.subject


def _keys(about: tuple[str, str], findings: Sequence[Finding], was: list[WatchLine]) -> list[LineKey]:
    """Return the keys of findings with one code and subject: of lines with the same content, then of any others."""
    keys: dict[int, LineKey] = {}
    for is_same in (_says_the_same, lambda one, other: _gist(one) == _gist(other), lambda _one, _other: True):
        for number, finding in enumerate(findings):
            line = next((each for each in was if number not in keys and is_same(each.finding, finding)), None)
            if line is not None:
                keys[number] = line.key
                was.remove(line)
    taken = {key[2] for key in keys.values()}
    free = (number for number in count() if number not in taken)
    return [keys[number] if number in keys else (*about, next(free)) for number in range(len(findings))]


def _says_the_same(one: Finding, other: Finding) -> bool:
    return (one.message, one.fix) == (other.message, other.fix)


def _folded(lines: Sequence[WatchLine]) -> list[WatchLine]:
    """Fold many alike lines into one, as doctor does; it is as old as the first of them."""
    alone = {id(line.finding): line for line in lines}
    folded: list[WatchLine] = []
    for finding in fold_alike(line.finding for line in lines):
        line = alone.get(id(finding))
        folded.append(line or _line_of_many(finding, lines, len(folded)))
    return folded


def _line_of_many(finding: Finding, lines: Sequence[WatchLine], number: int) -> WatchLine:
    subjects = finding.evidence.get("subjects")
    names = subjects if isinstance(subjects, list) else []
    own = [line for line in lines if line.finding.code == finding.code and line.finding.subject in names]
    return WatchLine(
        (str(finding.code), "many", number),
        own[0].source,
        finding,
        min(line.since_s for line in own),
        min((line.looked_s for line in own if line.looked_s is not None), default=None),
        max((line.gone_s for line in own if line.gone_s is not None), default=None),
    )


def _without_superseded(looks: Sequence[SourceLook]) -> list[SourceLook]:
    """Drop other sources' older findings of codes that a source owns, so that a repaired fault disappears at once."""
    owners = {code: look for look in looks for code in look.owns if look.is_known}

    def is_newest(look: SourceLook, finding: Finding) -> bool:
        owner = owners.get(finding.code, look)
        return owner is look or (look.looked_s or 0) > (owner.looked_s or 0)

    return [replace(look, findings=[each for each in look.findings if is_newest(look, each)]) for look in looks]


def _worst_first(lines: Iterable[WatchLine], looks: Sequence[SourceLook]) -> list[WatchLine]:
    """Sort like doctor: by severity, lost offsets before restarts, then the order of the checks."""
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
    """Return the identity of a finding's content, without times, sizes and offsets, which grow with each look."""
    subjects = finding.evidence.get("subjects")
    who = tuple(map(str, subjects)) if isinstance(subjects, list) else ()
    return finding.severity, _NUMBER.sub("#", finding.message), _NUMBER.sub("#", finding.fix), who
