"""Explains findings of doctor by past eosctl commands on this machine: tasks fenced while they ran, offsets set.

Reads the audit log, and nothing else. If it can't be read, findings stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.findings import Finding
from eosctl.core.ids import task_transactional_id
from eosctl.core.records import Record
from eosctl.failures import codes as failure_codes
from eosctl.failures.failure import RESTART
from eosctl.foreign import arguments
from eosctl.state.audit import REFUSED
from eosctl.state.audit_file import AuditEntry, log_path, read_entries
from eosctl.state.touched import affected_names

_OF_FENCING = {failure_codes.TASK_FENCED, failure_codes.TASK_FENCED_OR_EXPIRED}
_CLOCKS_DIFFER_MS = 5_000
"""A worker that is asked to write offsets stamps them by its own clock."""
_AT_RUNNING_TASKS = ("live", "unknown_liveness")


def with_past_fences(app: App, findings: Iterable[Finding], cluster_id: str | None) -> list[Finding]:
    """Add, to findings about fenced tasks, the newest fence of their ids by eosctl while they ran."""
    found = list(findings)
    if app.target.group_id is None or not any(finding.code in _OF_FENCING for finding in found):
        return found
    try:
        entries = read_entries(log_path(app.target.audit_log, app.state_dir)).entries
    except OSError:
        return found
    fences = [entry for entry in entries if _is_fence(entry, cluster_id)]
    return [_explained(app.target.group_id, finding, fences) for finding in found]


def _is_fence(entry: AuditEntry, cluster_id: str | None) -> bool:
    """Decide whether the entry may have fenced ids of running tasks on this cluster."""
    target = entry.get("target")
    here = isinstance(target, Mapping) and target.get("kafka_cluster_id") == cluster_id
    return here and entry.get("outcome") != REFUSED and any(_waived(entry))


def _waived(entry: AuditEntry) -> Iterator[str]:
    overrides = entry.get("overrides")
    given = overrides if isinstance(overrides, Mapping) else {}
    yield from (f"--{name.replace('_', '-')}" for name in _AT_RUNNING_TASKS if given.get(name))


def _explained(group_id: str, finding: Finding, fences: Sequence[AuditEntry]) -> Finding:
    connector, _slash, task = finding.subject.rpartition("/")
    if finding.code not in _OF_FENCING or not connector or not task.isdecimal():
        return finding
    transactional_id = task_transactional_id(group_id, connector, int(task))
    for entry in reversed(fences):
        if transactional_id in affected_names(entry).get("transactional_ids", ()):
            command = " ".join(["eosctl", str(entry.get("command")), *_waived(entry)])
            who = f"{entry.get('user')} on {entry.get('host')}"
            message = f"{finding.subject} is FAILED: fenced by `{command}` at {entry.get('time')} ({who})"
            evidence = {"transactional_id": transactional_id, "command": command, "time": entry.get("time")}
            fix = RESTART.replace("{name}", arguments(connector))
            return replace(finding, message=message, fix=fix, evidence={**finding.evidence, "fenced_by": evidence})
    return finding


def offsets_set_on_purpose(app: App, cluster_id: str) -> Callable[[str, Record], bool]:
    """Return a predicate for offsets that an `eosctl offsets ...` command wrote for a connector, by their time."""
    try:
        entries = read_entries(log_path(app.target.audit_log, app.state_dir)).entries
    except OSError:
        entries = ()
    spans = [span for entry in entries if (span := _offsets_written(entry, cluster_id)) is not None]

    def is_meant(connector: str, record: Record) -> bool:
        return any(
            begin_ms <= record.timestamp_ms <= end_ms and (connectors is None or connector in connectors)
            for begin_ms, end_ms, connectors in spans
        )

    return is_meant


def _offsets_written(entry: AuditEntry, cluster_id: str) -> tuple[int, int, frozenset[str] | None] | None:
    """Return the start, end and connectors of a write of offsets; None for any other entry.

    The connectors are None if they are too many to be listed.
    """
    target = entry.get("target")
    here = isinstance(target, Mapping) and target.get("kafka_cluster_id") == cluster_id
    begun_ms, ended_ms = entry.get("time_ms"), entry.get("ended_ms")
    if not here or not str(entry.get("command")).startswith("offsets ") or not isinstance(begun_ms, int):
        return None
    if entry.get("outcome") == REFUSED:
        return None
    touched = affected_names(entry)
    connectors = None if touched.get("left_out") else frozenset(touched.get("connectors", ()))
    last_ms = ended_ms if isinstance(ended_ms, int) else begun_ms
    return begun_ms - _CLOCKS_DIFFER_MS, last_ms + _CLOCKS_DIFFER_MS, connectors
