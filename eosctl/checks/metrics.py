"""`metrics`: judges the size of source tasks' transactions, from their metrics. Reads only.

With a Kafka cluster and a group, the coordinators add what no metric has: each task's own transaction timeout, and how
long its present transaction has been open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from eosctl.app import App
from eosctl.checks import codes
from eosctl.checks.rows import METRICS, MetricsSummary, TaskMetricsRow
from eosctl.core.findings import WARNING, Finding, is_bad, severity_counts, worst_first
from eosctl.core.ids import task_transactional_id
from eosctl.core.transactions import TransactionDescription, TransactionState
from eosctl.core.workers.metrics import TaskMetrics, TimeLimits, longest_ms, task_findings
from eosctl.core.workers.url import parse_worker_url
from eosctl.errors import DeadlineError, EosctlError, ExitCode, NotFoundError, UsageError
from eosctl.output.parts import finding_row
from eosctl.report import Problem, Report

if TYPE_CHECKING:
    from eosctl.connect.metrics import MetricsClient

WIDE_RECORDS = 100_000


class MetricsRequest(Struct, frozen=True):
    """Endpoints to read, the connectors that are meant (none: all), and how many records are too many at once."""

    prometheus: tuple[str, ...] = ()
    jolokia: tuple[str, ...] = ()
    connectors: tuple[str, ...] = ()
    wide_records: int = WIDE_RECORDS


class _Seen(Struct, frozen=True):
    url: str
    metrics: TaskMetrics


def read_metrics(app: App, request: MetricsRequest, *, strict: bool = False) -> Report:
    """Report one row per task and endpoint; exits 3 on an error among the findings, with `strict` also on a warning.

    An endpoint that does not answer is a problem (exit 7); raises its error when none answers. Raises UsageError
    without an endpoint, NotFoundError for a connector of which no endpoint has metrics.
    """
    seen, failures = _read_all(app, _endpoints(request), request.connectors)
    limits, problems = _limits(app, seen)
    judged = [(each, _limits_of(app, each, limits)) for each in seen]
    findings = [task_findings(each.metrics, limit, wide_records=request.wide_records) for each, limit in judged]
    rows = [_row(each, limit, found) for (each, limit), found in zip(judged, findings, strict=True)]
    return _report(app, rows, [each for found in findings for each in found], [*failures, *problems], strict=strict)


def _endpoints(request: MetricsRequest) -> list[tuple[str, str]]:
    """Return the endpoints as (how, url), each once; raises UsageError."""
    given = [("prometheus", url) for url in request.prometheus] + [("jolokia", url) for url in request.jolokia]
    if not given:
        hint = "Give --prometheus http://HOST:9404/metrics (jmx_exporter) or --jolokia http://HOST:8778/jolokia."
        raise UsageError("no endpoint to read metrics from was named", hint=hint)
    return list(dict.fromkeys((how, _plain_url(url)) for how, url in given))


def _plain_url(given: str) -> str:
    url = parse_worker_url(given, what="a metrics endpoint", example="http://HOST:9404/metrics")
    if url.authorization is not None:
        raise UsageError(
            f"a password in the URL of {url.text} would be seen by everyone on this machine",
            hint="Metrics endpoints are read without credentials.",
        )
    return url.text


def _read_all(
    app: App, endpoints: Sequence[tuple[str, str]], connectors: Sequence[str]
) -> tuple[list[_Seen], list[Problem]]:
    from eosctl.connect.metrics import MetricsClient

    client = MetricsClient(app.deadline, app.target.connect)
    read: dict[str, Callable[[MetricsClient, str], list[TaskMetrics]]] = {
        "prometheus": MetricsClient.read_prometheus,
        "jolokia": MetricsClient.read_jolokia,
    }
    seen: list[_Seen] = []
    errors: list[EosctlError] = []
    for how, url in endpoints:
        try:
            seen += [_Seen(url, metrics) for metrics in read[how](client, url)]
        except DeadlineError:
            raise
        except EosctlError as error:
            errors.append(error)
    if len(errors) == len(endpoints):
        raise errors[0]
    missing = sorted(set(connectors) - {each.metrics.connector for each in seen})
    if missing and not errors:
        hint = "A task's metrics are at the worker that runs it: name the endpoint of each worker."
        raise NotFoundError(f"no endpoint has metrics of {', '.join(missing)}", hint=hint)
    wanted = [each for each in seen if not connectors or each.metrics.connector in connectors]
    order = sorted(wanted, key=lambda each: (each.metrics.connector, each.metrics.task, each.url))
    return order, [Problem.of(error) for error in errors]


def _limits(app: App, seen: Sequence[_Seen]) -> tuple[Mapping[str, TimeLimits], list[Problem]]:
    """Ask the coordinators for the limits of each transactional id; empty where no cluster or no group was named."""
    group_id = app.target.group_id
    if app.target.client is None or group_id is None or not seen:
        return {}, []
    ids = sorted({task_transactional_id(group_id, each.metrics.connector, each.metrics.task) for each in seen})
    try:
        with app.transactions() as admin:
            described = admin.describe_transactions(ids)
    except EosctlError as error:
        message = f"transaction timeouts are unknown: {error.message}"
        return {}, [Problem(codes.TIMEOUTS_UNKNOWN, message, error.hint)]
    known = {name: state for name, state in described.items() if isinstance(state, TransactionDescription)}
    return {name: _time_limits(state, app.clock.now_ms()) for name, state in known.items()}, []


def _time_limits(state: TransactionDescription, now_ms: int) -> TimeLimits:
    """Return the timeout and the age, which only an Ongoing one has: brokers report the start of ended ones, too
    (4.3.1).
    """
    is_open = state.state is TransactionState.ONGOING and state.started_ms is not None
    return TimeLimits(state.transaction_timeout_ms, max(0, now_ms - (state.started_ms or 0)) if is_open else None)


def _limits_of(app: App, each: _Seen, limits: Mapping[str, TimeLimits]) -> TimeLimits:
    if app.target.group_id is None:
        return TimeLimits()
    name = task_transactional_id(app.target.group_id, each.metrics.connector, each.metrics.task)
    return limits.get(name, TimeLimits())


def _row(each: _Seen, limits: TimeLimits, findings: Sequence[Finding]) -> TaskMetricsRow:
    metrics = each.metrics
    return TaskMetricsRow(
        connector=metrics.connector,
        task=metrics.task,
        url=each.url,
        transaction_size_min=metrics.value("transaction-size-min"),
        transaction_size_max=metrics.value("transaction-size-max"),
        transaction_size_avg=metrics.value("transaction-size-avg"),
        source_record_poll_rate=metrics.value("source-record-poll-rate"),
        source_record_write_rate=metrics.value("source-record-write-rate"),
        longest_ms=longest_ms(metrics),
        transaction_timeout_ms=limits.timeout_ms,
        open_ms=limits.open_ms,
        findings=[finding_row(finding) for finding in worst_first(findings)],
    )


def _report(
    app: App, rows: Sequence[TaskMetricsRow], findings: Sequence[Finding], problems: Sequence[Problem], *, strict: bool
) -> Report:
    failed = any(problem.severity != WARNING for problem in problems)
    if not rows and not failed:
        hint = "A worker without source tasks has none; or the exporter's rules leave kafka.connect MBeans out."
        problems = [
            *problems,
            Problem(codes.NO_SOURCE_TASKS, "no endpoint has metrics of a source task", hint),
        ]
    bad = is_bad(findings, strict=strict)
    return Report(
        kind=METRICS,
        rows=rows,
        summary=MetricsSummary(
            tasks=len({(row.connector, row.task) for row in rows}), counts=severity_counts(findings)
        ),
        target={"group_id": app.target.group_id},
        problems=problems,
        exit_code=ExitCode.FINDINGS if bad else ExitCode.PARTIAL if failed else ExitCode.OK,
    )
