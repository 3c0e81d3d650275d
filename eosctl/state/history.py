"""The operation `eosctl history`: the audit log as rows, with what each write affected.

It adds the lines of killed writes, and changes nothing else. The rows are the entries of the log, also those of an
older eosctl with fewer members, whose affected names are shown too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from eosctl.core.java.properties import whole_number
from eosctl.core.kept.plan_file import WrongMemberError, typed
from eosctl.deadline import Clock
from eosctl.errors import EosctlError, UsageError
from eosctl.output.rows import Counts, Header, Kind, Members, Printed, Text, Time
from eosctl.report import Problem, Report
from eosctl.state import codes
from eosctl.state.audit import REFUSED, AuditLog, affected_names
from eosctl.state.audit_file import AuditEntry, read_entries

_MOST_NAMED = 3
_NOUNS = {
    "connectors": ("connector", "connectors"),
    "transactional_ids": ("id", "ids"),
    "topics": ("topic", "topics"),
    "workers": ("worker", "workers"),
    "principals": ("principal", "principals"),
}


class Entry(dict[str, object]):
    """An entry of the log, unchanged: a member that this eosctl does not know stays."""

    @Header("TOUCHED")
    def touched_by_name(self) -> str | None:
        """Return the connectors, ids, topics, workers and principals that the write affects, the first few of each."""
        touched = self["touched"]
        found = [_named(kind, touched[kind]) for kind in _NOUNS if kind in touched] if isinstance(touched, dict) else []
        return "; ".join(found) or None

    @Header("OVERRIDES")
    def names_of_overrides(self) -> list[str] | None:
        """Return the options that waive a check."""
        overrides = self.get("overrides")
        return list(overrides) if isinstance(overrides, Mapping) else None


def _named(kind: str, names: Sequence[str]) -> str:
    one, many = _NOUNS[kind]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{one if len(names) == 1 else many} {', '.join(names[:_MOST_NAMED])}{more}"


class HistorySummary(Printed):
    """The number of writes, in total and per outcome."""

    writes: Annotated[int, "How many writes there were; refused ones are none."]
    outcomes: Annotated[Counts, "How many entries have each outcome."]
    damaged: Annotated[int, "How many lines of the log are damaged."]


class HistoryData(Printed):
    """The file of the log."""

    log: Annotated[str, "The file that the entries are in."]


class WrittenTo(Printed):
    """The cluster, the group and the addresses of a write."""

    kafka_cluster_id: Annotated[str | None, "The id of the Kafka cluster."] | UnsetType = UNSET
    group_id: Annotated[str | None, "The Connect group.", Header("GROUP")] | UnsetType = UNSET
    bootstrap_servers: Annotated[list[str], "The brokers that were named."] | UnsetType = UNSET
    connect_urls: Annotated[list[str], "The workers that were named."] | UnsetType = UNSET


class RecordedError(Printed):
    """The reason why a command failed."""

    code: Annotated[str, "The code of the error."]
    message: Annotated[str, "Why the command failed.", Header("ERROR")]


_MEMBERS: dict[str, object] = {
    "id": Annotated[str, "The id of the entry."],
    "time": Annotated[Time, "When the command began to write."],
    "time_ms": Annotated[int, "The same in milliseconds since 1970."],
    "ended": Annotated[Time | None, "When it ended."],
    "ended_ms": Annotated[int | None, "The same in milliseconds since 1970."],
    "user": Annotated[str, "Who ran the command."],
    "sudo_user": Annotated[str | None, "Who ran it through sudo."],
    "host": Annotated[str, "The machine it ran on."],
    "pid": Annotated[int, "The id of its process."],
    "command": Annotated[str, "The command."],
    "arguments": Annotated[dict[str, object], "Its arguments and options."],
    "touched": Annotated[dict[str, object], "What the write was about: names, by what they name."],
    "overrides": Annotated[dict[str, object], "The options that set a check aside."],
    "target": Annotated[WrittenTo, "The cluster, the group and the addresses of the write."],
    "plan_digest": Annotated[str, "The digest of the plan."],
    "before_digest": Annotated[str | None, "The digest of the former values."],
    "after_digest": Annotated[str | None, "The digest of the values afterwards."],
    "outcome": Annotated[str | None, "What came of the write: a status, `interrupted`, `refused` or `killed`."],
    "exit_code": Annotated[int | None, "The exit code of the command.", Header("EXIT")],
    "summary": Annotated[dict[str, object], "The summary of its report."],
    "backup": Annotated[object, "The file that the values from before are in."],
    "undo": Annotated[object, "The command that takes the write back."],
    "error": Annotated[RecordedError | None, "Why the command failed."],
}


def is_entry(found: Mapping[str, object]) -> bool:
    """Decide whether a line's content is an entry: none of its members has another type than in `Entry`."""
    try:
        typed(found, _line())
    except WrongMemberError:
        return False
    return True


@cache
def _line() -> type[object]:
    members = [(name, each | UnsetType, UNSET) for name, each in _MEMBERS.items()]
    return msgspec.defstruct("Line", members)


HISTORY = Kind(
    "history",
    "Entries of the audit log.",
    row=Annotated[Entry, Members({name: each | UnsetType for name, each in _MEMBERS.items()})],
    summary=HistorySummary,
    data=HistoryData,
    text=Text(
        columns=(
            *("time", "user", "command", "target.group_id", "touched_by_name", "names_of_overrides?", "outcome"),
            *("exit_code", "undo?"),
        ),
        wide=("error.message",),
        empty="Nothing was written so far.",
    ),
)


_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def read_history(log: AuditLog, *, since_ms: int | None = None, command: str | None = None) -> Report:
    """Report the entries of `log`, oldest first, that began at `since_ms` or later, of `command` or its subcommands.

    Lines that are no entries are counted and reported. Raises EosctlError if the log can't be read.
    """
    try:
        problems = _add_killed(log)
        found = read_entries(log.path)
    except OSError as exc:
        raise EosctlError(
            f"cannot read {log.path}: {exc.strerror or exc}", hint="Check the path and its rights."
        ) from exc
    words = (command or "").split()
    entries = [each for each in found.entries if is_entry(each)]
    rows = [Entry({**each, "touched": affected_names(each)}) for each in entries if _is_wanted(each, since_ms, words)]
    damaged = found.damaged + len(found.entries) - len(entries)
    if damaged:
        message = f"{log.path}: {damaged} damaged lines are left out"
        hint = "A crash or a full disk cut them off, or somebody changed them."
        problems.append(Problem(codes.DAMAGED_HISTORY, message, hint))
    outcomes = Counter(str(row.get("outcome")) for row in rows)
    writes = len(rows) - outcomes[REFUSED]
    summary = HistorySummary(writes=writes, outcomes=dict(sorted(outcomes.items())), damaged=damaged)
    return Report(HISTORY, rows, summary, data=HistoryData(log=str(log.path)), problems=problems)


def _add_killed(log: AuditLog) -> list[Problem]:
    """Add the lines of killed writes; if that fails (a read-only disk), return a problem instead."""
    try:
        others = log.add_killed()
    except OSError as exc:
        message = f"a write that was killed can't be added to {log.path}: {exc.strerror or exc}"
        return [Problem(codes.AUDIT_FAILED, message).as_warning()]
    return [Problem(codes.PENDING_NOT_OURS, f"{each.strerror}; it is left out", hint=each.hint) for each in others]


def _is_wanted(entry: AuditEntry, since_ms: int | None, command: list[str]) -> bool:
    if since_ms is not None and entry.get("time_ms", 0) < since_ms:
        return False
    return str(entry.get("command", "")).split()[: len(command)] == command


def since_ms(text: str, clock: Clock) -> int:
    """Parse a time as ms since the epoch: RFC 3339 (UTC by default), a date, or an age like 90m, 12h, 7d.

    Raises UsageError.
    """
    age = whole_number(text[:-1])
    if age is not None and text[-1] in _UNITS_S:
        return clock.now_ms() - age * _UNITS_S[text[-1]] * 1000
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as exc:
        raise UsageError(
            f"{text!r} is no point in time", hint="Write 2026-11-21T08:00:00Z, 2026-11-21, or an age: 90m, 12h, 7d."
        ) from exc
    since_epoch = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime.fromtimestamp(0, UTC)
    return since_epoch // timedelta(milliseconds=1)  # through a float some milliseconds come out one less
