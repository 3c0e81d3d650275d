"""Connectors and their tasks as the workers' REST interface reports them."""

from __future__ import annotations

from collections.abc import Mapping

from eosctl.app import App
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.errors import DeadlineError, EosctlError, RefusedError
from eosctl.group.gather import discover_urls, in_turn, no_answer
from eosctl.ports import ConnectWorker


def connector_statuses(app: App) -> Mapping[str, ConnectorEntry]:
    """Return every connector, from the first worker that answers; empty when the group has no member.

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
            return dict(sorted(connectors.items()))
    if failures:
        raise no_answer("no worker says which tasks run", failures)
    return {}


def _check_cluster(app: App, worker: ConnectWorker) -> None:
    """Check the cluster of a URL given by hand: another installation's silence about a task proves nothing."""
    if app.target.client is None or not app.target.connect_urls:
        return
    theirs = worker.root().get("kafka_cluster_id")
    with app.transactions() as admin:
        refuse_other_cluster(worker, theirs, admin.cluster_id())


def refuse_other_cluster(worker: ConnectWorker, theirs: str | None, ours: str | None) -> None:
    """Raise RefusedError where a worker uses another Kafka cluster; any is right where none is known."""
    if ours is not None and theirs != ours:
        raise RefusedError(
            f"the worker at {worker.url} uses Kafka cluster {theirs}, not {ours}",
            hint="Compare -u and -b; nothing was written.",
        )
