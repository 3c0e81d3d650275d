"""Connectors and their tasks as the workers' REST interface tells them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eosctl.core.connector_entry import UNTOLD, read_entry
from eosctl.errors import DeadlineError, EosctlError, RefusedError
from eosctl.ops.app import App
from eosctl.ops.ports import ConnectWorker
from eosctl.ops.workers import discover_urls, in_turn, no_answer


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """One task as REST tells it: `state` is RUNNING, PAUSED, FAILED, UNASSIGNED, RESTARTING or DESTROYED.

    `trace` is the stack trace of a FAILED task, else empty.
    """

    task: int
    state: str
    worker_id: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """One connector as REST tells it: `state` is RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED, …, or unknown."""

    state: str
    tasks: tuple[TaskStatus, ...]


def running_tasks(app: App) -> Mapping[str, tuple[TaskStatus, ...]]:
    """Every connector's tasks; raises as `connector_statuses`."""
    return {name: status.tasks for name, status in connector_statuses(app).items()}


def connector_statuses(app: App) -> Mapping[str, ConnectorStatus]:
    """Every connector, from the first worker that answers; empty when the group has no member.

    A worker that died a moment ago may still be named as running a task, never the other way round for long: callers
    that must not hit a live task take every state but FAILED for live. Raises what `no_answer` makes when no worker
    answers, RefusedError when a given URL belongs to another Kafka cluster, and as `discover_urls`.
    """
    failures: list[EosctlError] = []
    for _url, worker in in_turn(app, discover_urls(app)):
        try:
            _check_cluster(app, worker)
            connectors = worker.connectors()
        except RefusedError:
            raise
        except EosctlError as exc:
            if isinstance(exc, DeadlineError) and app.deadline.expired():
                raise
            failures.append(exc)
        else:
            return {name: status_of(entry) for name, entry in sorted(connectors.items())}
    if failures:
        raise no_answer("no worker says which tasks run", failures)
    return {}


def _check_cluster(app: App, worker: ConnectWorker) -> None:
    """A URL that was given by hand may be of another installation, whose silence about a task proves nothing."""
    if app.target.client is None or not app.target.connect_urls:
        return
    theirs = worker.root().get("kafka_cluster_id")
    with app.transactions() as admin:
        ours = admin.cluster_id()
    if theirs != ours:
        raise RefusedError(
            f"the worker at {worker.url} uses Kafka cluster {theirs}, not {ours}",
            hint="Compare -u and -b; nothing was written.",
        )


def status_of(entry: Mapping[str, object]) -> ConnectorStatus:
    """One entry of `ConnectWorker.connectors`."""
    told = read_entry(entry)
    tasks = (TaskStatus(number, task.state, task.worker_id, task.trace) for number, task in sorted(told.tasks.items()))
    return ConnectorStatus(UNTOLD if told.itself is None else told.itself.state, tuple(tasks))
