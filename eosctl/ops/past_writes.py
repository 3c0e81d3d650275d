"""What eosctl did from this machine, where it explains what doctor finds: tasks that were fenced while they ran.

Reads the audit log, and nothing else. Where it can't be read, findings stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import quote
from typing import Any

from eosctl.core.failure_scenarios import RESTART
from eosctl.core.findings import Finding
from eosctl.core.ids import task_transactional_id
from eosctl.ops.app import App
from eosctl.ops.audit import REFUSED
from eosctl.ops.audit_file import log_path, read_entries
from eosctl.ops.touched import touched_in

_OF_FENCING = {"task_fenced", "task_fenced_or_expired"}
_AT_RUNNING_TASKS = ("live", "unknown_liveness")


def with_past_fences(app: App, findings: Iterable[Finding], cluster_id: str | None) -> list[Finding]:
    """Findings about tasks that died of a fence, with the newest one that eosctl did to their ids while they ran."""
    found = list(findings)
    if app.target.group_id is None or not any(finding.code in _OF_FENCING for finding in found):
        return found
    try:
        entries = read_entries(log_path(app.target.audit_log, app.state_dir)).entries
    except OSError:
        return found
    fences = [entry for entry in entries if _is_fence(entry, cluster_id)]
    return [_explained(app.target.group_id, finding, fences) for finding in found]


def _is_fence(entry: Mapping[str, Any], cluster_id: str | None) -> bool:
    """Whether it may have fenced ids of running tasks, on this cluster."""
    target = entry.get("target")
    here = isinstance(target, Mapping) and target.get("kafka_cluster_id") == cluster_id
    return here and entry.get("outcome") != REFUSED and any(_waived(entry))


def _waived(entry: Mapping[str, Any]) -> Iterator[str]:
    overrides = entry.get("overrides")
    given = overrides if isinstance(overrides, Mapping) else {}
    yield from (f"--{name.replace('_', '-')}" for name in _AT_RUNNING_TASKS if given.get(name))


def _explained(group_id: str, finding: Finding, fences: Sequence[Mapping[str, Any]]) -> Finding:
    connector, _slash, task = finding.subject.rpartition("/")
    if finding.code not in _OF_FENCING or not connector or not task.isdecimal():
        return finding
    transactional_id = task_transactional_id(group_id, connector, int(task))
    for entry in reversed(fences):
        if transactional_id in touched_in(entry).get("transactional_ids", ()):
            command = " ".join(["eosctl", str(entry.get("command")), *_waived(entry)])
            who = f"{entry.get('user')} on {entry.get('host')}"
            message = f"{finding.subject} is FAILED: fenced by `{command}` at {entry.get('time')} ({who})"
            evidence = {"transactional_id": transactional_id, "command": command, "time": entry.get("time")}
            fix = RESTART.replace("{name}", quote(connector))
            return replace(finding, message=message, fix=fix, evidence={**finding.evidence, "fenced_by": evidence})
    return finding
