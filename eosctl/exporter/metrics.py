"""The one table of metrics: name, type, unit, help, labels, and how values follow from an overview. Pure.

The exposition, docs/metrics.md and the dashboard are made from it. Names follow Prometheus' conventions: base units,
`_seconds`, `_bytes`, `_total`, `_info`. A series exists as long as its subject does; an unknown value has none.

prometheus_client makes the text: Prometheus' own format, or OpenMetrics on request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from eosctl.collect.overview import Overview
from eosctl.exporter import samples
from eosctl.exporter.samples import Sample, Samples

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family


MetricType = Literal["gauge", "counter", "info"]


class Metric(Struct, frozen=True):
    """One metric. `name` is the exposed one, with `_total` and `_info`; `unit` is seconds, bytes, or empty for a count.

    `read` gives the samples of an overview; of a bounded metric, at most `top` are separate, and the rest is `other`. A
    metric that is `over_time` needs several looks to compare: a single look does not have it.
    """

    name: str
    type: MetricType
    unit: str
    help: str
    labels: tuple[str, ...]
    read: Callable[[Overview, int], samples.Samples]
    over_time: bool = False


TRANSACTION_LABELS = ("owner", "connector", "task", "transactional_id")

METRICS: tuple[Metric, ...] = (
    Metric("eosctl_up", "gauge", "", "Whether the Kafka cluster answered the last time it was asked (1 or 0).",
           (), samples.up),
    Metric("eosctl_cluster_info", "info", "", "The Kafka cluster and the Connect group that are looked at.",
           ("kafka_cluster_id", "group"), samples.cluster),
    Metric("eosctl_brokers_silent", "gauge", "", "Brokers that the cluster lists and that do not answer.",
           (), samples.silent_brokers),
    Metric("eosctl_log_dir_usable_bytes", "gauge", "bytes",
           "Room left on the volume of a broker's log directory (Kafka 3.3, KIP-827); of the fullest ones.",
           ("broker", "log_dir"), samples.disk_room),
    Metric("eosctl_log_dir_total_bytes", "gauge", "bytes", "Size of the volume of the same log directories.",
           ("broker", "log_dir"), samples.disk_size),
    Metric("eosctl_log_dir_failed", "gauge", "",
           "1 for a log directory that its broker can't use any more (KAFKA_STORAGE_ERROR), else 0; of the same.",
           ("broker", "log_dir"), samples.failed_log_dirs),
    Metric("eosctl_collection_success", "gauge", "",
           "Whether the last look at this source succeeded (1 or 0); absent before the first one ended.",
           ("source",), samples.success),
    Metric("eosctl_collection_error", "gauge", "",
           "1 while the last look at this source failed with this code (`eosctl explain CODE`).",
           ("source", "code"), samples.errors),
    Metric("eosctl_collection_unseen", "gauge", "",
           "Of how many parts of what this source looks at nothing is known, though its last look succeeded: brokers, "
           "their disks, coordinators, transactions, partitions, topics, parts of the group, checks and uncertain "
           "findings of doctor.",
           ("source",), samples.unseen),
    Metric("eosctl_collection_age_seconds", "gauge", "seconds",
           "Age of the facts of this source: time since the last look that succeeded.", ("source",), samples.ages),
    Metric("eosctl_collection_duration_seconds", "gauge", "seconds", "How long the last look at this source took.",
           ("source",), samples.durations),
    Metric("eosctl_collection_interval_seconds", "gauge", "seconds", "How often this source is looked at.",
           ("source",), samples.intervals),
    Metric("eosctl_collections_total", "counter", "", "Looks at this source that have ended.",
           ("source",), samples.looks),
    Metric("eosctl_collection_failures_total", "counter", "", "Looks at this source that failed, by code.",
           ("source", "code"), samples.failures),
    Metric("eosctl_transaction_open_seconds", "gauge", "seconds",
           "How long a transaction has been open; those nearest to their timeout, and the oldest of all others as "
           "`other`. The group's own are by id; of others' ids that share a prefix the one nearest to its timeout "
           "stands for all, as `PREFIX*`.",
           TRANSACTION_LABELS, samples.open_seconds),
    Metric("eosctl_transaction_timeout_seconds", "gauge", "seconds",
           "The timeout at which its coordinator aborts it, of the same transactions.",
           TRANSACTION_LABELS, samples.timeouts),
    Metric("eosctl_transaction_ending_seconds", "gauge", "seconds",
           "For how long the collector has seen that a transaction's end is decided (PrepareCommit, PrepareAbort) and "
           "not written: its id can't be used, nor fenced, until it is. The longest ones, then `other`.",
           TRANSACTION_LABELS, samples.ending_seconds, over_time=True),
    Metric("eosctl_transactions_open", "gauge", "",
           "Open transactions, by what owns their ids: task, leader, eosctl, other, ambiguous.",
           ("owner",), samples.open_counts),
    Metric("eosctl_transaction_hanging_seconds", "gauge", "seconds",
           "Time since a hanging transaction wrote last; `eosctl txn abort` ends it. The oldest ones, then `other`.",
           ("topic", "partition", "producer_id"), samples.hanging_seconds),
    Metric("eosctl_transactions_hanging", "gauge", "",
           "Open transactions of partitions that no coordinator accounts for (KIP-664).", (), samples.hanging_count),
    Metric("eosctl_transactions_aborted_total", "counter", "",
           "Transactions that were seen aborted, by connector, 0 before the first one; `other` for everybody else's "
           "and those of more than 1,000 connectors. One whose id began the next one between two looks is not counted.",
           ("connector",), samples.aborted, over_time=True),
    Metric("eosctl_topic_lso_distance", "gauge", "",
           "Offsets between the last stable offset and the end of a topic's partitions, summed; `kind` is config, "
           "offsets or output.", ("topic", "kind"), samples.lso_distance),
    Metric("eosctl_topic_lso_stuck_seconds", "gauge", "seconds",
           "For how long the last stable offset of a partition has stood still behind its end; 0 where all move.",
           ("topic", "kind"), samples.lso_stuck, over_time=True),
    Metric("eosctl_workers", "gauge", "", "Workers of the group, by mode of exactly.once.source.support.",
           ("mode",), samples.workers),
    Metric("eosctl_worker_up", "gauge", "", "Whether the worker answers its REST interface (1 or 0).",
           ("worker",), samples.worker_up),
    Metric("eosctl_worker_info", "info", "", "Mode, version and health of each worker, and whether it leads.",
           ("worker", "mode", "version", "health", "leader"), samples.worker_info),
    Metric("eosctl_tasks", "gauge", "", "Tasks of source connectors, by state.", ("state",), samples.tasks),
    Metric("eosctl_connector_tasks_running", "gauge", "",
           "RUNNING tasks of a source connector; of the same connectors as "
           "eosctl_source_offset_age_seconds, then `other`.",
           ("connector",), samples.running),
    Metric("eosctl_tasks_without_transaction", "gauge", "",
           "RUNNING source tasks that should be exactly-once and whose transactional id no coordinator knows.",
           (), samples.without_transaction),
    Metric("eosctl_task_without_transaction_seconds", "gauge", "seconds",
           "For how long such a task has been seen; the longest ones, then `other`.",
           ("connector", "task"), samples.without_transaction_seconds),
    Metric("eosctl_task_commit_age_seconds", "gauge", "seconds",
           "Time since the last transaction of a RUNNING task began; the oldest ones, then `other`.",
           ("connector", "task"), samples.commit_age),
    Metric("eosctl_fencing_due", "gauge", "",
           "Source connectors whose tasks wait until the former ones are fenced.", (), samples.fencing_due),
    Metric("eosctl_fencing_pending", "gauge", "", "1 while tasks of this connector wait for a fencing round.",
           ("connector",), samples.fencing_pending),
    Metric("eosctl_fencing_round_seconds", "gauge", "seconds",
           "How long the connector's next fencing round takes; Connect gives up after eosctl_fencing_limit_seconds. "
           "The longest ones, then `other`.", ("connector",), samples.fencing_seconds),
    Metric("eosctl_fencing_limit_seconds", "gauge", "seconds",
           "How long Connect waits for a fencing round: `forward` is the patience of a follower's task, `round` "
           "that of the leader.", ("wait",), samples.fencing_limits),
    Metric("eosctl_source_offset_age_seconds", "gauge", "seconds",
           "Time since the newest source offset of a connector was written; the oldest of connectors that run, then "
           "of the others, then `other`.",
           ("connector",), samples.offset_age),
    Metric("eosctl_offset_records_total", "counter", "", "Records of offsets topics that were read.",
           (), samples.offset_records),
    Metric("eosctl_offset_topic_restarts_total", "counter", "",
           "How often an offsets topic was read from its beginning again: it was recreated, or truncated.",
           (), samples.offset_restarts),
    Metric("eosctl_findings", "gauge", "", "Findings of `eosctl doctor`, by code.",
           ("code", "severity"), samples.findings),
    Metric("eosctl_checks_not_run", "gauge", "", "Checks of `eosctl doctor` that could not run, by the error's code.",
           ("check", "code"), samples.not_checked),
)  # fmt: skip


def metric(name: str) -> Metric:
    """Return the metric of that name; raises KeyError."""
    return _BY_NAME[name]


_BY_NAME: Mapping[str, Metric] = {each.name: each for each in METRICS}


DEFAULT_TOP = 50


class OverviewCollector:
    """A registry for prometheus_client: each `collect` is one overview."""

    def __init__(self, overview: Callable[[], Overview], *, top: int = DEFAULT_TOP, once: bool = False) -> None:
        self._overview, self._top = overview, top
        self._metrics = [each for each in METRICS if not (once and each.over_time)]

    def collect(self) -> Iterator[Family]:
        """Yield one family per metric that has a sample."""
        overview = self._overview()
        yield _build_info()
        for metric in self._metrics:
            family = _family(metric)
            for labels, value in _each_once(metric.read(overview, self._top)):
                values = map(_label_value, labels)
                family.add_sample(metric.name, dict(zip(metric.labels, values, strict=True)), value)
            if family.samples:
                yield family


def expose(
    overview: Callable[[], Overview], accept: str, *, top: int = DEFAULT_TOP, once: bool = False
) -> tuple[bytes, str]:
    """Return the document in the format of `accept` (the HTTP header), and its content type; `once`: of one look."""
    from prometheus_client.exposition import choose_encoder

    encode, content_type = choose_encoder(accept)
    return encode(OverviewCollector(overview, top=top, once=once)), content_type


def _each_once(samples: Samples) -> Iterable[Sample]:
    """Return one sample per set of labels, the greatest: a connector may be called `other`, too."""
    found: dict[tuple[str, ...], float] = {}
    for labels, value in samples:
        found[tuple(labels)] = max(value, found.get(tuple(labels), value))
    return found.items()


def _label_value(text: str) -> str:
    """Escape what UTF-8 has no bytes for: any client may write half of a surrogate pair into a key."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _family(metric: Metric) -> Family:
    from prometheus_client.core import Metric as Family

    suffix = {"counter": "_total", "info": "_info"}.get(metric.type, "")
    return Family(metric.name.removesuffix(suffix), metric.help, metric.type, metric.unit)


def _build_info() -> Family:
    from importlib.metadata import version

    from prometheus_client.core import InfoMetricFamily

    return InfoMetricFamily("eosctl_build", "The version of eosctl.", {"version": version("eosctl")})
