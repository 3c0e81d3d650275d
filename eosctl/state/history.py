"""The operation `eosctl history`: the audit log as rows. It adds the lines of killed writes, and changes nothing else.

Shows what each write affected, also for entries of older versions.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from eosctl.core.java.numbers import whole_number
from eosctl.deadline import Clock
from eosctl.errors import EosctlError, UsageError
from eosctl.report import Problem, Report
from eosctl.state import codes
from eosctl.state.audit import REFUSED, AuditLog
from eosctl.state.audit_file import AuditEntry, read_entries
from eosctl.state.rows import HISTORY, Entry, HistoryData, HistorySummary, is_entry
from eosctl.state.touched import affected_names

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
