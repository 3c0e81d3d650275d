"""The metrics of exactly-once source tasks: names and values from exporters, and findings about them. Pure.

Kafka keeps them in `kafka.connect:type=source-task-metrics,connector=…,task=…` (`ExactlyOnceWorkerSourceTask`, 3.3+):
records per committed transaction over about the last minute; an aborted transaction does not count, and a minute
without any gives NaN, which is None here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.core.wording import counted
from eosctl.core.workers import codes

MBEANS = "kafka.connect:type=source-task-metrics,*"
SIZES = ("transaction-size-min", "transaction-size-max", "transaction-size-avg")
ATTRIBUTES = (*SIZES, "source-record-poll-rate", "source-record-write-rate")
DEFAULT_TRANSACTION_TIMEOUT_MS = 60_000  # of every producer, unless the connector or the worker says otherwise
NEAR = 0.8  # the part of the timeout from which on a transaction is close to it
MANY_RECORDS = 10_000  # fewer in a minute are the mark of a quiet task, not of a wide boundary

# exporters choose the prefix; jmx_exporter's own is kafka_connect_source_task_metrics_
_SAMPLE = re.compile("(?:^|.*_)(" + "|".join(name.replace("-", "_") for name in ATTRIBUTES) + ")", re.IGNORECASE)
_PROPERTY = re.compile(r'([^,=:*?"]+)=("(?:[^"\\]|\\.)*"|[^,=:"*?]*)(?:,|$)', re.DOTALL)


class TaskMetrics(Struct, frozen=True):
    """The attributes of one task that an endpoint has.

    None is no number (NaN); an absent one was not reported at all.
    """

    connector: str
    task: int
    values: Mapping[str, float | None] = {}

    def value(self, name: str) -> float | None:
        """Return an attribute's number; None if it has none."""
        return self.values.get(name)


def attribute_of(sample_name: str) -> str | None:
    """Return the attribute of a Prometheus sample, whatever prefix its name has; None for any other sample."""
    match = _SAMPLE.fullmatch(sample_name)
    return match[1].lower().replace("_", "-") if match else None


def metrics_of_samples(samples: Iterable[tuple[str, Mapping[str, str], float]]) -> list[TaskMetrics]:
    """Collect the tasks that samples (name, labels, value) report.

    Samples without a connector and a task are left out.
    """
    tasks: dict[tuple[str, int], dict[str, float | None]] = {}
    for name, labels, value in samples:
        attribute = attribute_of(name)
        place = _place({key.lower(): label for key, label in labels.items()})
        if attribute is not None and place is not None:
            tasks.setdefault(place, {})[attribute] = _finite(value)
    return _sorted(tasks)


def metrics_of_mbeans(mbeans: Mapping[str, object]) -> list[TaskMetrics]:
    """Collect the tasks in Jolokia's answer to a read of MBEANS: MBean name -> attribute -> value."""
    tasks: dict[tuple[str, int], dict[str, float | None]] = {}
    for name, attributes in mbeans.items():
        place = _place(dict(_PROPERTY.findall(name.partition(":")[2])))
        if place is not None and isinstance(attributes, Mapping):
            tasks[place] = {each: _finite(attributes[each]) for each in ATTRIBUTES if each in attributes}
    return _sorted(tasks)


def _sorted(tasks: Mapping[tuple[str, int], Mapping[str, float | None]]) -> list[TaskMetrics]:
    return [TaskMetrics(connector, task, values) for (connector, task), values in sorted(tasks.items()) if values]


def _place(properties: Mapping[str, str]) -> tuple[str, int] | None:
    connector, task = _unquoted(properties.get("connector", "")), _unquoted(properties.get("task", ""))
    return (connector, int(task)) if connector and re.fullmatch("[0-9]{1,10}", task) else None


def _unquoted(value: str) -> str:
    """Remove the quotes of a value in an MBean's name (`ObjectName.unquote`): Kafka quotes unusual characters."""
    if len(value) < 2 or not (value.startswith('"') and value.endswith('"')):
        return value
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], value[1:-1], flags=re.DOTALL)


def _finite(value: object) -> float | None:
    """Return a finite number, else None.

    NaN, which some Jolokia versions write as text, is Kafka's value for "none".
    """
    try:
        number = float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:  # JSON knows longer integers than floats are
        return None
    return number if math.isfinite(number) else None


class TimeLimits(Struct, frozen=True):
    """The time limits of a task's transactions, as the coordinator reports them.

    They are their timeout, and how long the current one has been open.
    """

    timeout_ms: int | None = None
    open_ms: int | None = None


def longest_ms(metrics: TaskMetrics) -> int | None:
    """Return an upper bound of the time that the largest transaction was open; None if unknown.

    It is estimated from the rate at which records were written. The rate is a mean over the same minute, pauses
    included: the truth may be much less, never much more.
    """
    size, rate = metrics.value("transaction-size-max"), metrics.value("source-record-write-rate")
    return round(size / rate * 1000) if size and rate and math.isfinite(size / rate * 1000) else None


def task_findings(metrics: TaskMetrics, limits: TimeLimits, *, wide_records: int) -> list[Finding]:
    """Return the findings about the transactions of one task.

    `wide_records` is the size from which a transaction is too large.
    """
    subject = f"{metrics.connector}/{metrics.task}"
    found = [_unseen(metrics, subject), _open_long(limits, subject), _wide(metrics, subject, wide_records)]
    if found[1] is None:
        found.append(_may_be_long(metrics, limits, subject))
    return [each for each in found if each is not None]


def _unseen(metrics: TaskMetrics, subject: str) -> Finding | None:
    if any(name in metrics.values for name in SIZES):
        return None
    return Finding(
        codes.NO_TRANSACTION_SIZES, WARNING, subject,
        f"the endpoint has metrics of {subject}, but no transaction sizes",
        "Is the worker enabled (`eosctl workers probe`)? Or the exporter's rules leave transaction-size-* out.",
    )  # fmt: skip


def _open_long(limits: TimeLimits, subject: str) -> Finding | None:
    timeout_ms = limits.timeout_ms
    if limits.open_ms is None or timeout_ms is None or limits.open_ms < NEAR * timeout_ms:
        return None
    return Finding(
        codes.TRANSACTION_NEAR_TIMEOUT, ERROR, subject,
        f"{subject} has a transaction open for {limits.open_ms} ms, and brokers abort it at {timeout_ms} ms",
        "Commit more often (transaction.boundary, transaction.boundary.interval.ms), or raise "
        "producer.override.transaction.timeout.ms.",
        {"open_ms": limits.open_ms, "transaction_timeout_ms": timeout_ms},
    )  # fmt: skip


def _wide(metrics: TaskMetrics, subject: str, wide_records: int) -> Finding | None:
    size = metrics.value("transaction-size-max")
    if size is None or size < wide_records:
        return None
    return Finding(
        codes.BOUNDARY_TOO_WIDE, WARNING, subject,
        f"{subject} puts up to {counted(round(size), 'record')} into one transaction: read_committed consumers wait "
        "for all of it, and an abort throws all of it away",
        "Commit more often: transaction.boundary=poll, or a shorter transaction.boundary.interval.ms.",
        {"transaction_size_max": size, "wide_records": wide_records},
    )  # fmt: skip


def _may_be_long(metrics: TaskMetrics, limits: TimeLimits, subject: str) -> Finding | None:
    size, longest = metrics.value("transaction-size-max"), longest_ms(metrics)
    timeout_ms = limits.timeout_ms if limits.timeout_ms is not None else DEFAULT_TRANSACTION_TIMEOUT_MS
    if size is None or longest is None or size < MANY_RECORDS or longest < NEAR * timeout_ms:
        return None
    assumed = "" if limits.timeout_ms is not None else " (Kafka's default; -b and -g read the task's own)"
    return Finding(
        codes.TRANSACTION_MAY_NEAR_TIMEOUT, WARNING, subject,
        f"at the rate at which {subject} writes, its largest transaction took up to {longest} ms, and brokers abort "
        f"one at {timeout_ms} ms{assumed}; less, if the task had pauses",
        "Look again under load; then commit more often, or raise producer.override.transaction.timeout.ms.",
        {"longest_ms": longest, "transaction_timeout_ms": timeout_ms, "assumed": limits.timeout_ms is None},
    )  # fmt: skip
