"""Recognises the failure of a FAILED connector or task: its trace against the dictionary of failures.

Connect restarts none of them by itself. A failure that the dictionary lacks is shown by its outermost and its deepest
cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from eosctl.connectors import codes
from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.core.workers.connector_entry import TaskStatus
from eosctl.failures import codes as failure_codes
from eosctl.failures import rules
from eosctl.failures.failure import RESTART, Family
from eosctl.failures.rules import Match
from eosctl.failures.stack_trace import causes_of
from eosctl.foreign import arguments, shell_words
from eosctl.group.observation.rules import ObservedConnector

FAILED, UNASSIGNED, RESTARTING = "FAILED", "UNASSIGNED", "RESTARTING"
_DENIED = re.compile(r"Not authorized to access topics: \[([^\]]+)\]")


def failure_findings(connectors: Iterable[ObservedConnector]) -> list[Finding]:
    """Return one finding per connector or task that is FAILED, or has no worker as far as is known."""
    return [
        finding
        for connector in connectors
        for part, state in connector.states.items()
        for finding in _judge(connector, part, state)
    ]


def failures_of(connector: ObservedConnector) -> dict[str, Finding]:
    """Return the failure of each FAILED part, by part."""
    return {part: finding for part in connector.failed() for finding in _judge(connector, part, FAILED)}


def _judge(connector: ObservedConnector, part: str, state: str) -> Iterable[Finding]:
    subject = connector.name if part == "connector" else f"{connector.name}/{part.removeprefix('task ')}"
    worker = connector.worker_of(part)
    evidence = {"state": state} if worker is None else {"state": state, "worker": worker}
    if state == UNASSIGNED and part not in (connector.holders or ()):
        is_known = connector.holders is not None
        yield Finding(
            codes.UNASSIGNED, WARNING, subject,
            f"{subject} {'has no worker' if is_known else 'has no worker by its status'}: the group is rebalancing, or "
            "lost one and waits for scheduled.rebalance.max.delay.ms (5 min)",
            "`eosctl workers list` shows the members; check again after the rebalance.",
            {**evidence, "assigned": False if is_known else None},
        )  # fmt: skip
    elif state == FAILED:
        trace = connector.traces.get(part, "")
        causes = causes_of(trace)
        known, denied = known_failure(trace), _topics_in(trace)
        of_check = shell_words(connector.name, *(word for each in denied for word in ("--output-topic", each)))
        fix = remedy(known) if known else "`eosctl connectors trace -o json {name}` has the whole trace."
        yield Finding(
            known.failure.code if known else codes.TASK_FAILED, ERROR, subject,
            f"{subject} is FAILED: {what_it_died_of(trace)}{_there_alone(connector, part, known)}",
            fix.replace("{c}", of_check).replace("{name}", arguments(connector.name)),
            {**evidence, "trace": causes[0].text if causes else "no trace", "causes": [each.text for each in causes]},
        )  # fmt: skip


def _there_alone(connector: ObservedConnector, part: str, known: Match | None) -> str:
    """Name the only worker where it fails, for a fault of a worker: others run parts of the connector."""
    worker = connector.workers.get(part)
    if known is None or not known.failure.of_worker or worker is None:
        return ""
    states = [(connector.workers.get(other), state) for other, state in connector.states.items()]
    fails_there = all(state == FAILED for at, state in states if at == worker)
    runs_elsewhere = any(state == "RUNNING" for at, state in states if at not in (worker, None))
    return f" (on {worker}; what it has on other workers runs)" if fails_there and runs_elsewhere else ""


def known_failure(trace: str) -> Match | None:
    """Recognise the failure of a task or connector, if the dictionary has it."""
    return rules.known_failure(causes_of(trace), Family.CONNECT)


def remedy(known: Match) -> str:
    """Return the remedy of a failure; a FAILED part also has to be restarted by the user."""
    of_connect = known.failure.family is Family.CONNECT
    return known.fix if of_connect or RESTART in known.fix else f"{known.fix}; then {RESTART}"


def failed_in_fencing(task: TaskStatus) -> bool:
    """Check whether the task is FAILED for want of a finished fencing round."""
    if task.state != FAILED:
        return False
    found = rules.matches_of(causes_of(task.trace), Family.CONNECT)
    if not found or found[0].failure.family is Family.CONNECT:
        return any(each.failure.fencing for each in found[:1])
    return any(each.failure.fencing for each in found)


def denied_topics(trace: str) -> tuple[str, ...]:
    """Return the topics that a trace reports as not authorized."""
    return tuple(dict.fromkeys(name for found in _DENIED.findall(trace) for name in found.split(", ")))


def _topics_in(trace: str) -> tuple[str, ...]:
    """Return the topics that the task's principal lacks rights on, if that made the task fail."""
    known = known_failure(trace)
    return denied_topics(trace) if known is not None and known.failure.code == failure_codes.TASK_NOT_AUTHORIZED else ()


def what_it_died_of(trace: str) -> str:
    """Describe the cause: the meaning of a known failure, else the outermost and the deepest cause."""
    known, causes, denied = known_failure(trace), causes_of(trace), _topics_in(trace)
    if known is not None:
        return f"{known.means}: topic {', '.join(denied)}" if denied else known.means
    if not causes:
        return "no trace"
    return causes[0].text if len(causes) == 1 else f"{causes[0].text}; caused by {causes[-1]}"
