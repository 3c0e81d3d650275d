"""The codes of faults of a connector's config, and of its tasks."""

from __future__ import annotations

from eosctl.codes import finding

_NOT_SEEN = "Grant the right that the message names, or give -b, -g and -u, and run again."
SUPPORT_UNKNOWN = finding(
    "support_unknown",
    "The connector was not validated, so its exactly-once support is not known.",
    "See whether a worker can be reached and has its plugin.",
)
SUPPORT_UNDECLARED = finding(
    "support_undeclared",
    "The connector does not declare whether it supports exactly-once.",
    "Read its documentation; required is refused, requested taken on trust.",
)
NOT_SUPPORTED = finding(
    "not_supported",
    "The connector does not support exactly-once with this config.",
    "Change the config as its documentation says (MirrorMaker 2: consumer.isolation.level=read_committed).",
)
BOUNDARY_REFUSED = finding(
    "boundary_refused",
    "The connector does not take the transaction boundary that its config asks for.",
    "Set transaction.boundary=poll or interval.",
)
INTERVAL_EXCEEDS_TIMEOUT = finding(
    "interval_exceeds_timeout",
    "Transactions time out before they are committed by the clock.",
    "Raise producer.override.transaction.timeout.ms above transaction.boundary.interval.ms.",
)
TIMEOUT_ABOVE_BROKER = finding(
    "timeout_above_broker",
    "The transaction timeout is above what brokers allow: tasks fail at their start.",
    "Lower producer.override.transaction.timeout.ms, or raise transaction.max.timeout.ms.",
)
CLIENTS_DISAGREE = finding(
    "clients_disagree",
    "The connector's producer goes to other Kafka brokers than its consumer or admin client: exactly-once tasks "
    "then commit offsets on one cluster and look for them, or are fenced, on another.",
    "Give producer.override, consumer.override and admin.override the same bootstrap.servers.",
)
OFFSETS_MOVE = finding(
    "offsets_move",
    "With exactly-once the connector's offsets are on the Kafka cluster that it writes to, in a topic that lacks "
    "them: its source would be read again.",
    "Copy them first: `eosctl offsets switch --connector C --to TOPIC`.",
)
OFFSETS_MOVE_UNKNOWN = finding(
    "offsets_move_unknown",
    "With exactly-once the connector's offsets are on the Kafka cluster that it writes to; whether they are there "
    "is not known.",
    _NOT_SEEN,
)
BROKER_MAXIMUM_UNKNOWN = finding(
    "broker_maximum_unknown", "Whether brokers accept the transaction timeout is not known.", _NOT_SEEN
)
VALUE_UNKNOWN = finding(
    "value_unknown",
    "A setting that matters here is no number, or refers to what only a worker can resolve: it was not judged.",
    "Put the value itself into the config; it is no secret.",
)
OFFSETS_TOPIC_UNKNOWN = finding(
    "offsets_topic_unknown", "The connector's own offsets topic could not be looked at.", _NOT_SEEN
)
IDLE_PROPERTY = finding(
    "idle_property",
    "A property that does nothing: the name of a KIP draft, or mistyped.",
    "Rename it as the message says.",
)
ID_COLLISION_POSSIBLE = finding(
    "id_collision_possible",
    "A transactional id of this connector may also be another group's.",
    "Rename the connector or the group, if both run.",
)
ID_COLLISION_UNKNOWN = finding(
    "id_collision_unknown", "Whether another group has the same ids is not known.", _NOT_SEEN
)
NOTHING_COMMITTED = finding(
    "nothing_committed",
    "A RUNNING task, or a connector, has committed nothing for five minutes or more: its source is idle, or it "
    "can't get at it.",
    "If the source is not idle, see the worker's log.",
)
ABORTED_AT_TIMEOUT = finding(
    "aborted_at_timeout",
    "A RUNNING task's coordinator aborted its newest transaction at its timeout, and the task was not started since: "
    "nothing that it writes is taken any more, though it may stay RUNNING for ever. A warning where the coordinators' "
    "log does not tell when the transaction was aborted.",
    "`eosctl connectors restart C`; let the task commit more often (transaction.boundary), or raise its "
    "transaction.timeout.ms.",
)
WORKER_COMMITS_NOTHING = finding(
    "worker_commits_nothing",
    "None of the tasks that are RUNNING on a worker has committed anything for five minutes or more: they stopped "
    "within a minute, and tasks of the same connectors on other workers go on.",
    "See the worker's log; if it hangs, end its process.",
)
TASK_NOT_EXACTLY_ONCE = finding(
    "task_not_exactly_once",
    "A task on a worker that is not enabled, or a RUNNING one whose transactional id no coordinator knows: it writes "
    "without transactions.",
    "`eosctl workers probe` shows the modes, `eosctl upgrade plan --to enabled` the way to exactly-once.",
)
OFFSETS_TOPIC_REDEFINED = finding(
    "offsets_topic_redefined",
    "A connector has an offsets.storage.topic of its own, which Connect takes for the topic of its offsets.",
    "See what the connector means by it.",
)
WRITES_OWN_OFFSETS = finding(
    "writes_own_offsets",
    "A connector writes to the topic of its own offsets, which exactly-once tasks may not.",
    "Give it another topic for one of the two.",
)
TASK_AUDIT_UNKNOWN = finding(
    "task_audit_unknown",
    "Whether the tasks are exactly-once is not known: the mode of their worker, or their ids.",
    _NOT_SEEN,
)
RECORDS_DROPPED = finding(
    "records_dropped",
    "A setting has a source connector leave out records at which something fails, such as errors.tolerance=all; the "
    "offsets behind them are committed, and sources have no dead letter queue.",
    "Set errors.tolerance=none (Debezium's settings: fail), with which the task fails instead. Where the loss is "
    "meant, `eosctl audit --connector NAME --sequence FIELD` finds what is missing.",
)
RETRIABLE_DROPPED = finding(
    "retriable_dropped",
    "Workers before Kafka 4.0 drop a record at which a converter or transformation throws a RetriableException, and "
    "commit the offset behind it, whatever errors.tolerance is (KAFKA-18073). A warning where one is known to throw "
    "it, as those that ask a schema registry; of others it is not known, and information. With errors.retry.timeout=-1 "
    "only a task that is stopped while it repeats drops the record.",
    "Set errors.retry.timeout=-1 in the connector's config (before Kafka 3.4: longer than the longest outage), or "
    "upgrade the workers to 4.0, where the task fails instead. `eosctl audit --connector NAME --sequence FIELD` finds "
    "what is missing.",
)
RECORDS_FILTERED = finding(
    "records_filtered",
    "Transformations or settings leave out records by design, or may: a consumer does not get all that the source has.",
    "Nothing, if that is meant.",
)
SNAPSHOT_REPEATS = finding(
    "snapshot_repeats",
    "A snapshot of Debezium's is under way, or may be: exactly-once begins with the changes after it. A task that "
    "starts meanwhile takes the snapshot from the beginning, and delivers its rows again.",
    "Let it end before connectors or workers are restarted, changed or added; its rows have op=r.",
)
