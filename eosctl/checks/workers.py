"""`workers list`, `workers probe` and `metrics`: the observed workers and the sizes of their transactions. Reads only.

`workers list` and `workers probe` report the observed group as rows, and its problems.

`metrics` judges the size of source tasks' transactions, from their metrics. With a Kafka cluster and a group, the
coordinators add what no metric has: each task's own transaction timeout, and how long its present transaction has been
open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks import codes
from eosctl.checks.rows import METRICS, MetricsSummary, TaskMetricsRow
from eosctl.core.configs.fold import behind_findings
from eosctl.core.findings import WARNING, Finding, is_bad, severity_counts, worst_first
from eosctl.core.ids import task_transactional_id
from eosctl.core.records import TopicRead
from eosctl.core.transactions import TransactionDescription, TransactionState
from eosctl.core.workers.metrics import TaskMetrics, TimeLimits, longest_ms, task_findings
from eosctl.core.workers.url import NOT_REACHED_HINT, is_loopback_url, is_this_machine, parse_worker_url
from eosctl.errors import DeadlineError, EosctlError, ExitCode, NotFoundError, UnreachableError, UsageError
from eosctl.foreign import shell_word
from eosctl.group import codes as group_codes
from eosctl.group.absent import read_config_topic
from eosctl.group.addresses import THEMSELVES
from eosctl.group.gather import observe_workers
from eosctl.group.members import DEAD, EMPTY, STABLE, UNSIGNED_PROTOCOLS
from eosctl.group.observed import GroupObservation, WorkerObservation
from eosctl.group.rows import WORKERS_LIST, WORKERS_PROBE, GroupData, GroupPart, WorkersSummary
from eosctl.output.rows import Kind, finding_row
from eosctl.report import Problem, Report

if TYPE_CHECKING:
    from eosctl.connect.metrics import MetricsClient


SILENT_CODES = frozenset({group_codes.WORKER_UNREACHABLE, codes.WORKER_NOT_ANSWERING})


def list_workers(app: App) -> Report:
    """Report the workers (`eosctl workers list`); exits 7 when some do not answer, else as the first of them failed.

    Raises NotFoundError, UsageError, and what Kafka's connection raises.
    """
    return _report(WORKERS_LIST, *_with_lag(app, observe_workers(app)))


def probe_workers(app: App) -> Report:
    """Report the workers in detail (`eosctl workers probe`); exits and raises as `list_workers`."""
    return _report(WORKERS_PROBE, *_with_lag(app, observe_workers(app)))


def group_problems(app: App, group: GroupObservation, configs: TopicRead | None = None) -> list[Problem]:
    """Return the problems of an observed group and its config topic, except those of silent workers."""
    return list(_problems(*_with_lag(app, group, configs)))


def workers_behind(app: App, group: GroupObservation) -> list[Finding]:
    """Find members that lag behind the config topic, read only if one reported its offset. Raises EosctlError."""
    behind = [
        (member.url or str(member.member_id), (member.config_offset, member.wanted_offset))
        for member in group.members
        if member.config_offset is not None and member.wanted_offset is not None
    ]
    if not behind:
        return []
    with app.topics() as store:
        topic = read_config_topic(app, store)
    now_ms = app.clock.now_ms()
    return [
        finding
        for worker, offsets in behind
        for finding in behind_findings(worker, offsets, read=topic.read, state=topic.state, now_ms=now_ms)
    ]


def _with_lag(
    app: App, group: GroupObservation, configs: TopicRead | None = None
) -> tuple[GroupObservation, list[Problem]]:
    """Add how many records of the config topic came after the offset that each member reported at the last rebalance.

    The topic is read unless `configs` was read since then.
    """
    if app.target.client is None or all(member.config_offset is None for member in group.members):
        return group, []
    try:
        if configs is None:
            with app.topics() as store:
                configs = read_config_topic(app, store).read
    except EosctlError as exc:
        message = f"how far the workers are behind the config topic is not known: {exc.message}"
        return group, [Problem(codes.CONFIG_TOPIC_UNREAD, message, exc.hint, unseen=True)]

    offsets = [record.offset for record in configs.records]

    def lag(member: WorkerObservation) -> int | None:
        told = member.config_offset
        return None if told is None else sum(offset >= told for offset in offsets)

    return replace(group, members=tuple(replace(member, config_lag=lag(member)) for member in group.members)), []


def _report(kind: Kind, group: GroupObservation, problems: Sequence[Problem]) -> Report:
    modes = Counter(member.mode.value for member in group.members)
    return Report(
        kind=kind,
        rows=[member.as_row() for member in (*group.members, *group.proxies)],
        summary=WorkersSummary(workers=len(group.members), modes=dict(sorted(modes.items()))),
        data=GroupData(
            group=GroupPart(
                state=group.state,
                protocol=group.protocol,
                leader_member_id=group.leader_member_id,
                leader_url=group.leader_url,
            )
        ),
        target={"kafka_cluster_id": group.kafka_cluster_id, "group_id": group.group_id},
        problems=[
            *_problems(group, problems),
            *(_with_proxy(group, member, silent_problem(member.failure)) for member in group.members if member.failure),
        ],
        exit_code=_exit_code(group.members),
    )


def _problems(group: GroupObservation, before: Sequence[Problem]) -> Iterator[Problem]:
    yield from before
    if group.state not in (None, STABLE, EMPTY, DEAD):
        message = f"the group {group.group_id} is not stable but {group.state}; who runs what is not known now"
        yield Problem(codes.GROUP_NOT_STABLE, message, "Run again when the rebalance is over.", unseen=True)
    yield from _of_the_group(group)
    for member in group.members:
        yield from member.problems


def _of_the_group(group: GroupObservation) -> Iterator[Problem]:
    """Yield warnings of members that REST can't distinguish, and of a protocol under which REST is not signed."""
    hint = "Give each worker a name of its own: rest.advertised.host.name, or the address of its pod or container."
    members = [member for member in group.members if member.member_id is not None]
    urls = Counter(member.url for member in members)
    for doubt in dict.fromkeys(member.doubt for member in members if member.doubt and not member.problems):
        yield Problem(
            codes.SHARED_URL,
            doubt,
            _own_routes([each for each in members if each.doubt == doubt], hint),
            unseen=True,
        )
    for member in members:
        if urls[member.url] > 1 or not is_loopback_url(member.url or "") or is_this_machine(member.client_host or ""):
            continue
        message = (
            f"the member that is connected to Kafka from {member.client_host} advertises {member.url}, {THEMSELVES}: "
            "other workers, and eosctl elsewhere, do not reach it there"
        )
        yield Problem(codes.LOOPBACK_URL, message, hint)
    if group.protocol in UNSIGNED_PROTOCOLS:
        message = f"the group's protocol is {group.protocol}: PUT /connectors/C/fence needs no signature of a worker"
        hint = "Set connect.protocol=sessioned, the default since Kafka 2.4 (KIP-507), on every worker."
        yield Problem(codes.UNSIGNED_PROTOCOL, message, hint)


def _own_routes(members: Sequence[WorkerObservation], otherwise: str) -> str:
    """Return a hint to distinguish members that share a route: -u with the address of each, if each has one."""
    places = {f"{member.client_host}": urlsplit(member.url or "") for member in members}
    if len(places) < len(members) or any(is_this_machine(host) for host in places):
        return f"{otherwise} --connect-map can name an address or a port for each."
    urls = [f"{url.scheme}://{f'[{host}]' if ':' in host else host}:{url.port}" for host, url in sorted(places.items())]
    return f"Where these are reached from here: {' '.join(f'-u {url}' for url in urls)}. {otherwise}"


def silent_problem(failure: EosctlError) -> Problem:
    """Make the problem of a worker that does not answer, or not as a Connect worker does."""
    if isinstance(failure, UnreachableError | DeadlineError):
        return Problem(group_codes.WORKER_UNREACHABLE, failure.message, failure.hint or NOT_REACHED_HINT)
    return Problem(codes.WORKER_NOT_ANSWERING, failure.message, failure.hint)


def _with_proxy(group: GroupObservation, member: WorkerObservation, problem: Problem) -> Problem:
    """Add to the problem of a silent member the given URL that must lead to it, if there is one."""
    if not group.proxies or member.url is None:
        return problem
    proxy = group.proxies[0].url
    if len(group.members) > 1:
        hint = (
            f"{proxy} leads to one of the members; --connect-map ADVERTISED=REACHABLE says how each is reached, which "
            "takes an address or a port for each."
        )
        return replace(problem, hint=hint)
    return replace(problem, hint=f"{proxy} leads to it: --connect-map {shell_word(f'{member.url}={proxy}')}")


def _exit_code(workers: Sequence[WorkerObservation]) -> ExitCode:
    failures = [worker.failure for worker in workers if worker.failure is not None]
    if not failures:
        return ExitCode.OK
    return failures[0].exit_code if len(failures) == len(workers) else ExitCode.PARTIAL


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
    return _report_metrics(
        app, rows, [each for found in findings for each in found], [*failures, *problems], strict=strict
    )


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


def _report_metrics(
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
