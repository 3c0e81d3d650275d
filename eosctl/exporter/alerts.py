"""The one table of alerts: the condition, the meaning, and the command that checks or fixes it.

Expressions name metrics of `exporter/metrics.py` only, through `Series`: a renamed metric, or a label that it lacks, is
an error when the rules are made. They select the exporter's scrape job, never the cluster: metrics of several exporters
are matched by `job` and `instance`.

`eosctl exporter rules` makes a Prometheus rule file of the table, which is pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import UNSET, Struct

from eosctl.checks.cluster import NEARLY_FULL
from eosctl.collect.codes import STALE
from eosctl.errors import UsageError
from eosctl.exporter.metrics import metric
from eosctl.exporter.rows import EXPORTER_RULES, PROMETHEUS_RULE, AlertRow, AlertsSummary, RuleFile
from eosctl.report import Report

Severity = Literal["critical", "warning"]
EXPORTERS = "job, instance"
"""The labels that distinguish exporters."""
LSO_STUCK_S = 600
"""Compared with the value, not by Prometheus' `for`: of many partitions, one always waits for a short transaction."""


class Series(Struct, frozen=True):
    """Selects metrics of one scrape job."""

    job: str
    offsets_still_s: int

    def __call__(self, name: str, **matchers: str) -> str:
        """Return `name{job="…",label="value"}`; a value that begins with ! or ~ has its operator. Raises KeyError."""
        unknown = matchers.keys() - set(metric(name).labels)
        if unknown:
            raise KeyError(f"{name} has no label {min(unknown)}")
        return f"{name}{{{','.join([self.of_job(), *(_matcher(*each) for each in matchers.items())])}}}"

    def of_job(self) -> str:
        """Return the matcher of the scrape job."""
        return f'job="{_escaped(self.job)}"'


class Alert(Struct, frozen=True):
    """`hold_s`: for how long `expr` must hold. Texts may have Prometheus' templates; `runbook` is a command."""

    name: str
    expr: Callable[[Series], str]
    hold_s: int
    severity: Severity
    summary: str
    description: str
    runbook: str


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _matcher(label: str, value: str) -> str:
    operator = next((each for each in ("!~", "=~", "!=") if value.startswith(each)), "")
    return f'{label}{operator or "="}"{_escaped(value.removeprefix(operator))}"'


def quoted_label(name: str) -> str:
    """Return a template that gives the label's value as one word of a shell on one line, whatever a name has.

    A control character or a mark of direction is a `?` there: such a name is not found.
    """
    on_one_line = f'(reReplaceAll "[\\\\p{{C}}\\\\p{{Zl}}\\\\p{{Zp}}]" "?" $labels.{name})'
    return f"""'{{{{ reReplaceAll "'" "'\\\\''" {on_one_line} }}}}'"""


def _near_timeout(series: Series) -> str:
    """Compare the timeout with the transaction's age when it was last seen, as it may have ended since."""
    seen = f"{series('eosctl_transaction_open_seconds')} - on ({EXPORTERS}) group_left "
    seen += series("eosctl_collection_age_seconds", source="transactions")
    return f"({seen}) / {series('eosctl_transaction_timeout_seconds')} > 0.8"


def _aborted(series: Series) -> str:
    """Count aborts by `increase`. The exporter has a 0 for each connector, so that the first abort counts, too."""
    total = series("eosctl_transactions_aborted_total", connector="!=other")
    return f"increase({total}[15m]) > 2"


def _fencing(series: Series) -> str:
    """Compare with the limit of a follower, which gives up first; a single worker has the leader's limit."""
    due_s = series("eosctl_fencing_round_seconds")
    over = {
        wait: f"{due_s} > on ({EXPORTERS}) group_left {series('eosctl_fencing_limit_seconds', wait=wait)}"
        for wait in ("round", "forward")
    }
    several = f"sum by ({EXPORTERS}) ({series('eosctl_workers')}) > 1"
    return f"({over['round']}) or (({over['forward']}) and on ({EXPORTERS}) ({several}))"


def _mixed_modes(series: Series) -> str:
    known = series("eosctl_workers", mode="=~enabled|preparing|disabled")
    enabled, not_enabled = (series("eosctl_workers", mode=mode) for mode in ("enabled", "not_enabled"))
    both = f"count by ({EXPORTERS}) ({enabled} > 0) + count by ({EXPORTERS}) ({not_enabled} > 0)"
    return f"count by ({EXPORTERS}) ({known} > 0) > 1 or {both}"


def _offsets_still(series: Series) -> str:
    still = f"{series('eosctl_source_offset_age_seconds')} > {series.offsets_still_s}"
    return f"{still} and on ({EXPORTERS}, connector) {series('eosctl_connector_tasks_running')} > 0"


def _exporter_down(series: Series) -> str:
    return f"up{{{series.of_job()}}} == 0 or absent(up{{{series.of_job()}}})"


def _nearly_full(series: Series) -> str:
    return f"{series('eosctl_log_dir_usable_bytes')} / {series('eosctl_log_dir_total_bytes')} < {NEARLY_FULL}"


def _no_worker(series: Series) -> str:
    """Match a group that was looked at and has no series of workers: former members have none."""
    looked_at = f"max by ({EXPORTERS}) ({series('eosctl_collection_success', source='group')}) == 1"
    return f"{looked_at} unless on ({EXPORTERS}) {series('eosctl_workers')}"


def _stale(series: Series) -> str:
    """Match old facts, also where no look follows any more, which the exporter reports as the error `stale`."""
    age_s, interval_s = (series(f"eosctl_collection_{what}_seconds") for what in ("age", "interval"))
    fails = series("eosctl_collection_error", code=f"!={STALE}")
    return f"{age_s} > 5 * {interval_s} + 60 unless ignoring (code) {fails}"


_OF_CONNECTOR = f"eosctl connectors check --connector {quoted_label('connector')}"

ALERTS: tuple[Alert, ...] = (
    Alert(
        "EosctlHangingTransaction", lambda series: f"{series('eosctl_transaction_hanging_seconds')} > 0",
        300, "critical",
        "A transaction hangs on {{ $labels.topic }}-{{ $labels.partition }}",
        "No coordinator knows the open transaction of producer id {{ $labels.producer_id }}, so that no timeout ends "
        "it (KIP-664). Consumers with read_committed stop before it. It wrote last {{ $value | humanizeDuration }} "
        "ago. `eosctl txn hanging` lists it; the command of the runbook shows a plan, asks, and ends it.",
        "eosctl txn abort --hanging",
    ),
    Alert(
        "EosctlTransactionNotEnded", lambda series: f"{series('eosctl_transaction_ending_seconds')} > 60",
        0, "critical",
        "The transaction of {{ $labels.transactional_id }} is not ended",
        "Its coordinator has decided the end and has not written it for {{ $value | humanizeDuration }}: a partition "
        "may have no leader or too few replicas in sync, or refuse the marker. The id can't be used, nor fenced, and "
        "consumers with read_committed wait. The command of the runbook says what is in the way.",
        "eosctl txn hanging",
    ),
    Alert(
        "EosctlLastStableOffsetStuck", lambda series: f"{series('eosctl_topic_lso_stuck_seconds')} > {LSO_STUCK_S}",
        0, "warning",
        "The last stable offset of {{ $labels.topic }} stands still",
        "An open transaction has held it for {{ $value | humanizeDuration }}. Consumers with read_committed get "
        "nothing that was written later. If the topic's kind is config or offsets, starting workers and tasks "
        "wait, too.",
        "eosctl txn list --state Ongoing --client-side --open-longer-than 5m",
    ),
    Alert(
        "EosctlTaskWithoutTransaction", lambda series: f"{series('eosctl_task_without_transaction_seconds')} >= 0",
        300, "critical",
        "Task {{ $labels.connector }}/{{ $labels.task }} runs without transactions",
        "REST reports it as RUNNING, other workers are enabled, and no coordinator knows its transactional id: the "
        "task is not exactly-once. Its worker may not be enabled.",
        _OF_CONNECTOR,
    ),
    Alert(
        "EosctlFencingTooLong", _fencing, 0, "critical",
        "Connect can't fence {{ $labels.connector }} in time",
        "The next fencing round takes {{ $value | humanizeDuration }}. At the next reconfiguration, rebalance or "
        "restart its tasks fail before the round ends. Set the shorter retry.backoff.ms that the command "
        "names before that.",
        _OF_CONNECTOR,
    ),
    Alert(
        "EosctlMixedModes", _mixed_modes, 1800, "warning",
        "The workers of a group are in different modes",
        "Workers differ in exactly.once.source.support. During an upgrade this is normal for a while; otherwise tasks "
        "that run on some workers are not exactly-once.",
        "eosctl upgrade status",
    ),
    Alert(
        "EosctlTransactionNearTimeout", _near_timeout, 0, "warning",
        "A transaction of {{ $labels.transactional_id }} is near its timeout",
        "It had used {{ $value | humanizePercentage }} of its timeout when it was last seen. At the timeout its "
        "coordinator aborts it and fences its producer: a source task then fails.",
        "eosctl txn list --state Ongoing --client-side",
    ),
    Alert(
        "EosctlTransactionsAborted", _aborted, 0, "warning",
        "Transactions of {{ $labels.connector }} are aborted again and again",
        "{{ $value | humanize }} were seen aborted within 15 minutes. Each means a task that failed, was fenced, or "
        "took longer than its transaction timeout; its records are written again.",
        _OF_CONNECTOR,
    ),
    Alert(
        "EosctlOffsetsNotMoving", _offsets_still, 900, "warning",
        "{{ $labels.connector }} runs, and its source offsets stand still",
        "Its newest source offset was written {{ $value | humanizeDuration }} ago while tasks are RUNNING. A source "
        "that has nothing new looks the same.",
        _OF_CONNECTOR,
    ),
    Alert(
        "EosctlExporterDown", _exporter_down, 300, "critical",
        "The eosctl exporter can't be scraped",
        "Prometheus gets no metrics from it: none of the other alerts can fire. Check its process, its address and "
        "the scrape job.",
        "eosctl doctor",
    ),
    Alert(
        "EosctlKafkaUnreachable", lambda series: f"{series('eosctl_up')} == 0",
        300, "critical",
        "The Kafka cluster does not answer {{ $labels.instance }}",
        "The exporter is up, and Kafka did not answer when it was asked last.",
        "eosctl doctor",
    ),
    Alert(
        "EosctlDiskNearlyFull", _nearly_full, 300, "warning",
        "The disk of log directory {{ $labels.log_dir }} of broker {{ $labels.broker }} is nearly full",
        "{{ $value | humanizePercentage }} of it is left. A broker that can't write to a log directory stops using it, "
        "and ends when it has no other; a start mends nothing then. Free space, move replicas to other brokers, or "
        "lower the retention of large topics.",
        "eosctl doctor",
    ),
    Alert(
        "EosctlLogDirFailed", lambda series: f"{series('eosctl_log_dir_failed')} == 1",
        0, "critical",
        "Broker {{ $labels.broker }} can't use its log directory {{ $labels.log_dir }}",
        "The disk failed or is full (KAFKA_STORAGE_ERROR): the broker's log says which. The replicas in it are offline "
        "until the disk has room or is replaced and the broker is restarted then.",
        "eosctl doctor",
    ),
    Alert(
        "EosctlCollectionFailing", lambda series: f"{series('eosctl_collection_success')} == 0",
        900, "warning",
        "The exporter can't collect {{ $labels.source }}",
        "Each look at it fails, so that alerts about it can't fire. `eosctl_collection_error` has the code as a label, "
        "`eosctl explain CODE` says what it means, and the exporter's log has the message.",
        "eosctl doctor",
    ),
    Alert(
        "EosctlCollectionStale", _stale, 300, "warning",
        "What the exporter knows of {{ $labels.source }} is old",
        "The last look that succeeded ended {{ $value | humanizeDuration }} ago, more than five intervals. The cluster "
        "or the machine may be too slow for the exporter's --interval.",
        "eosctl doctor",
    ),
    Alert(
        "EosctlCollectionIncomplete", lambda series: f"{series('eosctl_collection_unseen')} > 0",
        900, "warning",
        "The exporter can't see all of {{ $labels.source }}",
        "Nothing is known of {{ $value }} parts of it, so that alerts about them can't fire: a right may be missing, "
        "or a broker or a worker may not answer. For doctor, `eosctl_checks_not_run` names the checks, and the command "
        "of the runbook has the findings that say what is not known.",
        "eosctl doctor",
    ),
    Alert(
        "EosctlNoWorker", _no_worker, 300, "critical",
        "The Connect group has no worker",
        "Its coordinator knows no member: no connector of it runs. Start the workers, and read the log of one that "
        "ends by itself.",
        "eosctl workers list",
    ),
    Alert(
        "EosctlWorkerDown", lambda series: f"{series('eosctl_worker_up')} == 0",
        300, "warning",
        "Worker {{ $labels.worker }} does not answer",
        "It is expected in the group, and its REST interface does not answer. Its tasks move to other workers when its "
        "session ends, and its open transactions are held until those tasks start.",
        "eosctl workers list",
    ),
    Alert(
        "EosctlFindings", lambda series: f"{series('eosctl_findings', severity='error')} > 0",
        300, "warning",
        "eosctl doctor finds {{ $labels.code }}",
        "{{ $value }} findings of `eosctl doctor` have this code, and are errors. Each is printed with its fix.",
        "eosctl doctor",
    ),
)  # fmt: skip


DEFAULT_JOB = "eosctl"
DEFAULT_OFFSETS_STILL_S = 3600.0
_RESERVED = ("alertname", "severity")


class RulesRequest(Struct, frozen=True):
    """`job` is the scrape job of the exporters; `labels` are added to every alert, as NAME=VALUE.

    `as_resource`: show the rules as a resource for Prometheus' operator.
    """

    job: str = DEFAULT_JOB
    offsets_still_s: float = DEFAULT_OFFSETS_STILL_S
    labels: Sequence[str] = ()
    as_resource: bool = False


def make_rules(request: RulesRequest) -> Report:
    """Make the rule file; raises UsageError for an invalid label."""
    more = dict(map(_label, request.labels))
    series = Series(request.job, max(1, round(request.offsets_still_s)))
    rows = [_row(alert, series) for alert in ALERTS]
    rules = [rule_of(alert, series, more) for alert in ALERTS]
    document: dict[str, object] = {"groups": [{"name": "eosctl", "rules": rules}]}
    resource: dict[str, object] = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "eosctl"},
        "spec": document,
    }
    return Report(
        kind=PROMETHEUS_RULE if request.as_resource else EXPORTER_RULES,
        rows=rows,
        summary=AlertsSummary(alerts=len(rows)),
        data=RuleFile(rules=document, resource=resource if request.as_resource else UNSET),
    )


def rule_of(alert: Alert, series: Series, labels: Mapping[str, str]) -> dict[str, object]:
    """Return one rule as Prometheus reads it."""
    return {
        "alert": alert.name,
        "expr": alert.expr(series),
        **({"for": f"{alert.hold_s}s"} if alert.hold_s else {}),
        "labels": {**labels, "severity": alert.severity},
        "annotations": {"summary": alert.summary, "description": alert.description, "runbook": alert.runbook},
    }


def _row(alert: Alert, series: Series) -> AlertRow:
    return AlertRow(
        alert=alert.name,
        severity=alert.severity,
        for_s=alert.hold_s,
        expr=alert.expr(series),
        summary=alert.summary,
        description=alert.description,
        runbook=alert.runbook,
    )


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    is_name = name.isascii() and name.replace("_", "a").isalnum() and not name[:1].isdigit()
    if not equals or not is_name or name in _RESERVED:
        raise UsageError(
            f"--label {text}: not a label of an alert",
            hint=f"Say NAME=VALUE; NAME has letters, digits and _, and is none of {', '.join(_RESERVED)}.",
        )
    return name, value
