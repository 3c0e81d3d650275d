"""Evidence of the group and its config topic about FAILED parts, beyond the words of their traces.

A trace has one text for several causes, and the repair of one harms another. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from eosctl.connectors import codes as connector_codes
from eosctl.core.findings import Finding
from eosctl.core.ids import WorkerId
from eosctl.core.workers.connector_entry import TaskStatus
from eosctl.failures import codes
from eosctl.failures.failure import RESTART
from eosctl.foreign import arguments, shell_word
from eosctl.group.observation.rules import Observation, ObservedConnector
from eosctl.rescue.rules import RescueVerdict, diagnose, stopped_instead

_RESCUED = (codes.FENCING_FORWARD_TIMEOUT, codes.FENCING_TIMED_OUT, codes.FENCING_FAILED)
_ACCEPTED = (RescueVerdict.FENCE, RescueVerdict.RESTART)


def with_proofs(findings: Sequence[Finding], seen: Observation) -> list[Finding]:
    """Return the findings; those with several causes or remedies with the one that was seen to be right."""
    return [_of_rescue(_of_ghost(each, seen), seen) for each in findings]


def _name(finding: Finding) -> str:
    """Return the connector of a finding about it, or about one of its tasks."""
    return finding.subject.rpartition("/")[0] or finding.subject


def _of_ghost(finding: Finding, seen: Observation) -> Finding:
    """Name a connector that only an aborted record of the config topic has: nothing else is ended by a DELETE."""
    if finding.code != codes.CONNECTOR_TYPE_UNKNOWN or seen.config_state is None:
        return finding
    name = _name(finding)
    committed = seen.config_state.connectors.get(name)
    if (committed is not None and committed.config is not None) or name not in (seen.differing_connectors or ()):
        return finding
    return replace(
        finding, code=connector_codes.CONNECTOR_IS_A_GHOST,
        message=f"{finding.subject} is FAILED: {seen.config_topic} has no committed config of {name}, only an aborted "
        "one, which workers that are not enabled read",
        fix=f"`eosctl task-counts replay --topic` shows the record. Then create a connector {shell_word(name)} with "
        "initial_state STOPPED, and DELETE it, which leaves tombstones.",
    )  # fmt: skip


def _of_rescue(finding: Finding, seen: Observation) -> Finding:
    """Print `rescue` only where it does not refuse; where a fencing round is due, a stop takes its place."""
    name = _name(finding)
    state = seen.config_state.connectors.get(name) if seen.config_state is not None else None
    connector = next((each for each in seen.connectors or () if each.name == name), None)
    if finding.code not in _RESCUED or "eosctl rescue" not in finding.fix or state is None or connector is None:
        return finding
    if diagnose(state, _tasks(connector)).verdict in _ACCEPTED:
        return finding
    if not state.pending_fencing or state.target_state != "STARTED":
        return replace(
            finding, fix=f"See what its other tasks died of; then {RESTART.replace('{name}', arguments(name))}."
        )
    return replace(
        finding,
        fix="A fencing round may still go on, and tasks that wait for it are called RUNNING: look again when all have "
        f"failed, and rescue heals it. Or now: {stopped_instead(name)}.",
    )  # fmt: skip


def _tasks(connector: ObservedConnector) -> list[TaskStatus]:
    return [
        TaskStatus(
            number, state, WorkerId(connector.workers.get(part, "")), connector.traces.get(part, "")
        )
        for number, state in sorted(connector.tasks().items())
        if (part := f"task {number}")
    ]  # fmt: skip
