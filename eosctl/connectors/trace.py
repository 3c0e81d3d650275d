"""`connectors trace`: the failure of each FAILED part of a connector. Reads only."""

from __future__ import annotations

from eosctl.app import App
from eosctl.connectors.failures import failures_of
from eosctl.connectors.look import look_at, named_cluster_id, reach_worker
from eosctl.connectors.rows import CONNECTORS_TRACE, TraceRow, TraceSummary
from eosctl.failures.stack_trace import causes_of
from eosctl.report import Report


def show_traces(app: App, connector: str) -> Report:
    """Report the chain of causes of each FAILED part, and its trace as the worker has it.

    Raises NotFoundError for an unknown connector, what `no_answer` makes where no worker answers, and RefusedError for
    a worker of another Kafka cluster.
    """
    url, root = reach_worker(app, named_cluster_id(app))
    now = look_at(app, connector, url)
    parts = now.parts
    rows = [
        TraceRow(
            connector=connector,
            part=part,
            worker=parts.workers.get(part),
            code=str(finding.code),
            message=finding.message,
            causes=[cause.text for cause in causes_of(parts.traces.get(part, ""))],
            fix=finding.fix,
            trace=parts.traces.get(part),
        )
        for part, finding in failures_of(parts).items()
    ]
    return Report(
        kind=CONNECTORS_TRACE,
        rows=rows,
        summary=TraceSummary(connector=connector, state=now.state, tasks=len(now.tasks), failed=len(rows)),
        target={"kafka_cluster_id": root["kafka_cluster_id"], "group_id": app.target.group_id},
    )
