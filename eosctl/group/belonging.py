"""Whether a worker is of the command's Kafka cluster and Connect group, which is asked before it is believed.

A worker that was named may be of another cluster or group, and something else may be at the address of a member.
"""

from __future__ import annotations

from collections.abc import Mapping

from eosctl.app import App
from eosctl.codes import Code
from eosctl.core.workers.connector_entry import ConnectorEntry, TaskStatus
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, RefusedError, UnauthorizedError
from eosctl.group import codes
from eosctl.group.gather import JOIN_PATIENCE_S, assigned_connectors, read_group, worker_id_of
from eosctl.group.members import DEAD, EMPTY, STABLE
from eosctl.group.modes import cluster_id_of
from eosctl.group.protocol import CONNECTOR_ITSELF
from eosctl.group.topics import read_statuses
from eosctl.ports import ConnectWorker

_POLL_S = 0.25
_MOST_NAMED = 3
_WITH_AN_OWNER = frozenset({"RUNNING", "PAUSED", "STOPPED", "FAILED"})
"""The states that a member reports of what it owns; the others stay behind when their worker is gone."""


class OtherWorkerError(RefusedError):
    """The worker is of another Kafka cluster or group, which `what` says."""

    def __init__(self, message: str, *, what: Code) -> None:
        super().__init__(message, hint=f"{what.next} Nothing was written.")
        self.what = what


def check_cluster(app: App, worker: ConnectWorker, ours: str | None = None) -> None:
    """Raise OtherWorkerError for a worker of another Kafka cluster than `ours`, else than the command's, if it names
    one.

    Connectors of the same names may be there. Raises, too, what asking raises.
    """
    if app.target.client is None:
        return
    theirs = cluster_id_of(app, worker)
    if ours is None:
        with app.transactions() as admin:
            ours = admin.cluster_id()
    if theirs != ours:
        message = f"the worker at {worker.url} uses Kafka cluster {theirs}, not {ours}"
        raise OtherWorkerError(message, what=codes.OTHER_KAFKA_CLUSTER)


def connectors_of(app: App, worker: ConnectWorker, ours: str | None = None) -> Mapping[str, ConnectorEntry]:
    """Return the connectors of a worker of the command's cluster and group; raise OtherWorkerError for another one.

    It is of another group where it has none of the members' connectors, or none of its own is at a member, also after
    a moment in which the members report what they have just been assigned; but not where it shows what the group's
    status topic has: a worker that was killed is said to run its tasks until others take them. Where the members can't
    be seen, that topic alone shows it, and RefusedError is raised if it doesn't. Nothing is known where no group was
    named, or where neither the group nor that topic may be looked at. Raises, too, what asking raises.
    """
    check_cluster(app, worker, ours)
    patience = Deadline.after(min(JOIN_PATIENCE_S, app.deadline.remaining_s() / 2), app.clock)
    for _ in patience.rounds(_POLL_S):
        connectors = worker.connectors()
        doubt = _doubt_about(app, connectors)
        if doubt is None:
            return connectors
        if isinstance(doubt, UnauthorizedError):
            break
    try:
        if _is_as_recorded(app, connectors):
            return connectors
        unlike = f"topic {app.target.status_topic} has none of its connectors at the same worker"
    except EosctlError as exc:
        if isinstance(doubt, UnauthorizedError):
            return connectors
        unlike = exc.message
    group_id = app.target.group_id
    if isinstance(doubt, EosctlError):
        raise RefusedError(
            f"whether the worker at {worker.url} is of group {group_id} is not known: {doubt.message}, and {unlike}",
            hint="Run again when `eosctl workers list` shows the group stable, or name its status topic (-w, or "
            "status_topic of a profile). Nothing was written.",
        )
    raise OtherWorkerError(
        f"the worker at {worker.url} is of another group than {group_id}: {doubt}", what=codes.OTHER_GROUP
    )


def _doubt_about(app: App, connectors: Mapping[str, ConnectorEntry]) -> str | EosctlError | None:
    """Return how these connectors differ from those of the group's members, or the error where these can't be seen;
    None if they don't differ, or no group was named.
    """
    if app.target.client is None or app.target.group_id is None:
        return None
    try:
        group, _cluster_id = read_group(app, gone_ok=True, wait=False)
    except EosctlError as exc:
        return exc
    if group.state not in (STABLE, EMPTY, DEAD):
        return EosctlError(f"the group is in a rebalance ({group.state})")
    members, assigned = {worker_id_of(each) for each in group.members if each.has_rest}, assigned_connectors(group)
    if not members:
        return "it has no member that answers requests"
    parts = [part for entry in connectors.values() for part in entry.parts()]
    owners = {part.worker_id for part in parts if part.worker_id and part.state in _WITH_AN_OWNER}
    if owners and owners.isdisjoint(members):
        return f"its connectors are at {', '.join(sorted(owners))}, and the members are {', '.join(sorted(members))}"
    if assigned and assigned.isdisjoint(connectors):
        return f"it knows none of the members' connectors ({', '.join(sorted(assigned)[:_MOST_NAMED])})"
    return None


def _is_as_recorded(app: App, connectors: Mapping[str, ConnectorEntry]) -> bool:
    """Check whether a part is at the worker that the group's status topic has; raise EosctlError if that is not known.

    Groups may have equal connectors, but a part is recorded at a worker of its own group.
    """
    topic = app.target.status_topic
    with app.topics() as topics:
        if topic not in topics.describe([topic]):
            raise EosctlError(f"there is no topic {topic}")
        recorded = read_statuses(topics.read(topic, newest_per_key=True).records)
    shown = {
        (name, part.task if isinstance(part, TaskStatus) else CONNECTOR_ITSELF): part.worker_id
        for name, entry in connectors.items()
        for part in entry.parts()
    }
    return any(owner and recorded.get(work, {}).get("worker_id") == owner for work, owner in shown.items())
