"""Codes of the checks of a whole group: its workers and topics, brokers, modes."""

from __future__ import annotations

from eosctl.codes import error, finding, warning

NOT_A_SOURCE = finding("not_a_source", "The connector is a sink: KIP-618 is about sources.")
WORKER_NOT_ANSWERING = error(
    "worker_not_answering",
    "A worker can be reached, but does not answer the question.",
    "The message has its answer; look at its log.",
)
CONFIG_TOPIC_UNREAD = warning(
    "config_topic_unread",
    "How far workers are behind the config topic is not known.",
    "Grant READ on it, or name it with --config-topic.",
)
CONNECTORS_AS_WRITTEN = warning(
    "connectors_as_written",
    "No worker can be asked, so connectors are judged by the group's config and status topics.",
    "See the workers' logs for what runs.",
)
GROUP_NOT_STABLE = warning(
    "group_not_stable",
    "The Connect group rebalances: who runs what is not known now.",
    "Run again when it is over.",
)
NO_SOURCE_TASKS = warning(
    "no_source_tasks",
    "No endpoint has metrics of a source task.",
    "Name the endpoint of every worker; an exporter's rules must let kafka.connect MBeans through.",
)
TIMEOUTS_UNKNOWN = warning(
    "timeouts_unknown",
    "The coordinators did not report the tasks' transaction timeouts.",
    "Grant DESCRIBE on their TransactionalIds, or see the message.",
)
LOOPBACK_URL = warning(
    "loopback_url",
    "A member advertises localhost, by which each machine means itself, and is connected from another address: "
    "other workers, and eosctl elsewhere, do not reach it there.",
    "Give the worker a name of its own (rest.advertised.host.name).",
)
SHARED_URL = warning(
    "shared_url",
    "Several members of the group are reached at one address, or a worker of another group is reached in place of one: "
    "REST reaches whichever answers, and proves none of them.",
    "Give each worker a name of its own (rest.advertised.host.name), or an address of its own in --connect-map or -u.",
)
UNSIGNED_PROTOCOL = warning(
    "unsigned_protocol",
    "The group's protocol is eager or compatible: workers do not sign requests, and anybody may fence by REST.",
    "Set connect.protocol=sessioned on every worker.",
)
WORKER_LEFT = finding(
    "worker_left",
    "A worker left the group without a word, so it was killed or cut off: a warning while work is said to be RUNNING "
    "on it still, and for an hour information after others took that over.",
    "See whether its process runs, and its log; start it, unless it is gone for good.",
)
SOURCE_WITHOUT_TASKS = finding(
    "source_without_tasks",
    "A source connector has been RUNNING without a task for a minute or more: it reads nothing. It found nothing to "
    "read, or its worker could not hand its task configs to the leader; an error where its tasks are in the config "
    "topic for five minutes, and no worker says anything of them.",
    "See the log of the connector's worker; `eosctl connectors restart C` once that is mended.",
)
EXACTLY_ONCE_NOT_USED = finding(
    "exactly_once_not_used",
    "No worker is enabled, so no task of the group is exactly-once.",
    "Nothing, if that is meant; `eosctl upgrade plan --to enabled`.",
)
KAFKA_UNREACHABLE = finding(
    "kafka_unreachable",
    "No broker answers, or the address is that of a controller: nothing could be checked.",
    "Check -b and the client's settings, and that the brokers run.",
)
BROKER_UNREACHABLE = finding(
    "broker_unreachable",
    "A broker that the cluster lists does not answer; what could not be looked at stands below the first of them.",
    "See whether it runs, and why not; or make the address that it advertises reachable from here.",
)
DEDICATED_MIRROR_MAKER = finding(
    "dedicated_mirror_maker",
    "The group's workers are those of a dedicated MirrorMaker, which have no REST interface.",
    "Nothing; their files and logs have what only a worker can report.",
)
ABORTED_CONFIGS_UNREAD = finding(
    "aborted_configs_unread",
    "Aborted config records would change connectors for a worker that is not enabled; all workers are enabled.",
    "Nothing, until a worker becomes anything else: `eosctl upgrade plan --to disabled --hard`.",
)
ABORTED_OFFSETS_UNREAD = finding(
    "aborted_offsets_unread",
    "Aborted offsets are the newest for a worker that is not enabled; all workers are enabled.",
    "Nothing, until a worker becomes anything else: `eosctl upgrade plan --to disabled --hard`.",
)
ACLS_NOT_CHECKED = finding(
    "acls_not_checked", "Who the principals are is not known, so rights were not checked.", "Give -w."
)
STATUS_NOT_COMPACT = finding(
    "status_not_compact",
    "The status topic is not compacted, or also deletes: no worker starts on it.",
    "Run the command of the fix, then start the workers again.",
)
TOO_FEW_REPLICAS = finding(
    "too_few_replicas",
    "A topic has fewer replicas than its min.insync.replicas: nothing can be written to it.",
    "Add replicas, or lower min.insync.replicas.",
)
NO_SPARE_REPLICA = finding(
    "no_spare_replica",
    "All replicas of a topic have to be in sync: one lost broker stops transactions.",
    "Add a replica, or lower min.insync.replicas by one.",
)
ONE_INSYNC_REPLICA = finding(
    "one_insync_replica",
    "One replica may take a write alone: a lost broker may lose what transactions there were.",
    "Set min.insync.replicas=2.",
)
PARTITION_WITHOUT_LEADER = finding(
    "partition_without_leader",
    "Partitions of a topic have no leader that answers: nothing can be read from or written to them, and ids whose "
    "coordinator they are can't be used.",
    "See why the brokers that have their replicas ended, or can't use the directory that they are in, before one is "
    "started: a full disk ends it again.",
)
BROKER_DOWN = finding(
    "broker_down",
    "Replicas of an internal topic are on a broker that the cluster does not have now.",
    "See why it ended before it is started: a full disk ends it again. If it is gone for good, move its replicas.",
)
LOG_DIR_FAILED = finding(
    "log_dir_failed",
    "A broker can't use one of its log directories: the disk failed or is full.",
    "See the broker's log. Free space on the disk or replace it, then restart the broker.",
)
LOG_DIR_FULL = finding(
    "log_dir_full",
    "The disk of a broker's log directory has less than 1 MiB left: a batch may not fit any more. A broker stops using "
    "a directory that it can't write to, and ends when it has no other.",
    "Free space, move replicas to other brokers, or lower retention.ms or retention.bytes of large topics; a start "
    "mends nothing.",
)
LOG_DIRS_UNREAD = finding(
    "log_dirs_unread",
    "How full the disks of brokers are is not known: one may not DESCRIBE the cluster, they did not answer, or they "
    "are older than Kafka 3.3 and do not report it.",
    "Grant DESCRIBE on the cluster; where brokers do not report it, see to their disks another way.",
)
LOG_DIR_NEARLY_FULL = finding(
    "log_dir_nearly_full",
    "Less than 5 percent of the disk of a broker's log directory is usable: a broker stops using a directory that it "
    "can't write to, and ends when it has no other. Brokers report that from Kafka 3.3 on, to those who may DESCRIBE "
    "the cluster.",
    "Free space, move replicas to other brokers, or lower retention.ms or retention.bytes of large topics.",
)
TRANSACTION_OPEN_LONG = finding(
    "transaction_open_long",
    "A RUNNING task has had a transaction open for more than half of its timeout; when that is over, brokers abort "
    "it and the task can't write any more.",
    "See the task's worker's log; fix brokers that can't be written, or let the task commit more often.",
)
DATA_TOPIC_HELD = finding(
    "data_topic_held",
    "Another application's transaction has been open for more than half of its timeout (30 s at least), or for two "
    "minutes, on a topic to which connectors of this group write: consumers with read_committed get nothing that "
    "came after it. A warning where only configs say that they may write there.",
    "`eosctl txn describe` shows who owns it; `eosctl fence` ends it, and its application fails. One of Flink's "
    "is for its job to end.",
)
BELOW_MIN_ISR = finding(
    "below_min_isr",
    "Partitions of an internal topic have fewer replicas in sync than its min.insync.replicas: tasks are RUNNING "
    "and commit nothing.",
    "See why the brokers that have their replicas ended or lag, before one is started: a full disk ends it again.",
)
TRANSACTION_TOPIC_UNSEEN = finding(
    "transaction_topic_unseen",
    "The topic __transaction_state can't be seen.",
    "Grant DESCRIBE on it; brokers make it with the first transaction.",
)
FEW_REPLICAS = finding("few_replicas", "An internal topic has fewer than three replicas.", "Add replicas.")
HANGING_TRANSACTION = finding(
    "hanging_transaction",
    "A transaction that no coordinator will end: readers of committed records wait behind it.",
    "`eosctl txn complete --as-decided` if its coordinator has committed it, else `eosctl txn abort`.",
)
ENABLED_BEFORE = finding(
    "enabled_before",
    "No worker is enabled, and the group's task-count records say that some were.",
    "`eosctl upgrade plan --to enabled`; or say what is meant, with --expect or expect.mode of the profile.",
)
MODE_NOT_EXPECTED = finding(
    "mode_not_expected",
    "A worker is not in the mode that --expect, or the profile, expects.",
    "`eosctl upgrade plan --to MODE`.",
)
MODE_NOT_PROVEN = finding(
    "mode_not_proven",
    "It is unknown whether a worker is in the expected mode: that can't be seen from outside.",
    "Give its file with -w.",
)
TWO_GROUPS = finding(
    "two_groups",
    "A task of another Connect group writes the offsets of a connector that runs here, under a transactional id of its "
    "own: both groups deliver every record, and none fences the other.",
    "Stop the workers of the group that is not meant, or give it config and offsets topics of its own.",
)
CLOCK_DIFFERS = finding(
    "clock_differs",
    "The clock of a worker, by the Date of its REST answer, or that of this machine is more than a minute off the "
    "others; brokers from 4.0 on refuse records that are dated more than an hour ahead.",
    "Set the clock that is wrong (NTP).",
)
FAILS_AGAIN = finding(
    "fails_again",
    "A task or connector failed and was restarted three times or more in the last ten minutes, by the status topic: "
    "another producer takes its transactional id each time, or somebody restarts it while its cause is still there.",
    "The message says which; a restart does not last while that is so.",
)
ID_USED_IN_TURN = finding(
    "id_used_in_turn",
    "A task is FAILED because another producer took its transactional id, which was initialised in the last ten "
    "minutes more often than starts of the task and fencing rounds explain, by the coordinators' log. A fence by hand "
    "counts as another producer.",
    "Find who else uses the id, and give it another one; a restart does not last while that is so.",
)
INITIALISED_OFTEN = finding(
    "initialised_often",
    "An id of an application was initialised five times or more in the last ten minutes, by the coordinators' log: its "
    "producer is recreated again and again, or two producers use the id in turn and fence each other. Each takes an "
    "epoch.",
    "The application's log says which: ProducerFencedException where two use it.",
)
INITIALISATIONS_UNREAD = finding(
    "initialisations_unread",
    "How often producers of an application were recreated is not known: the coordinators' log could not be read.",
    "Grant READ on __transaction_state, or read the application's log.",
)
CONFIG_WRITTEN_AGAIN = finding(
    "config_written_again",
    "The config of a connector was written ten times or more in the last ten minutes, by the config topic: each time "
    "its tasks may stop and start.",
    "Find who sends it (a script, an operator), and have it send a config only where it differs.",
)
TASKS_WRITTEN_AGAIN = finding(
    "tasks_written_again",
    "The tasks of a connector were configured ten times or more in the last ten minutes, by the config topic, though "
    "nobody changed its config or its state: the group rebalances again and again.",
    "The connector asks for it, or makes other task configs each time that it starts (with a time in them, say): see "
    "the leader's log, and its author. Some builds of Kafka also write unchanged ones at each rebalance, against "
    "KAFKA-17719: upgrade those.",
)
STATUSES_UNREAD = finding(
    "statuses_unread",
    "The group's status topic could not be read, so nobody knows what failed and was restarted, nor since when a state "
    "is as it is.",
    "Name the topic (status_topic of a profile, or -w), and grant READ on it.",
)
AT_REST = finding(
    "at_rest",
    "Connectors are PAUSED or STOPPED: none of their tasks runs.",
    "Nothing, if that is meant; `eosctl connectors resume C`.",
)
KNOWN_BUG = finding(
    "known_bug",
    "A known bug of Kafka that transactions run into, in a version that was seen; a patch release may have its fix.",
    "Upgrade to the release that the fix names, or do what it says until then.",
)
TRANSACTION_VERSION_BEHIND = finding(
    "transaction_version_behind",
    "The brokers can keep late writes and markers out of the next transaction (KIP-890), which is not in use.",
    "Raise the feature transaction.version with kafka-features.sh.",
)
BROKERS_WITHOUT_TRANSACTIONS = finding(
    "brokers_without_transactions",
    "Brokers lack an API that transactions need. An error where a worker is preparing or enabled, or with --for; "
    "else a note: the group can't be moved to exactly-once on these brokers.",
    "The finding names the brokers and what is known of their kind; where a vendor has no transactions, its newer "
    "brokers do not help.",
)
APPLICATION_NOT_SEEN = finding(
    "application_not_seen",
    "No transactional id of an application is known: it has not run for longer than brokers keep ids, writes under "
    "another name, or one may not DESCRIBE its ids.",
    "`eosctl txn applications` shows those that are known.",
)


RUNS_ON_TWO_CLUSTERS = finding(
    "runs_on_two_clusters",
    "A source connector runs in this group and, with the same config, in that of a profile (--with): both read one "
    "source, and each of its records is written by both.",
    "`eosctl connectors stop` one of them. If both are meant to run: `eosctl doctor --ignore "
    "runs_on_two_clusters:NAME`.",
)
MAY_RUN_ON_TWO_CLUSTERS = finding(
    "may_run_on_two_clusters",
    "Source connectors of this group and of that of a profile (--with) may read one source: they have the same name, "
    "config or source partitions; whether both run, or lead to the same source, is not certain.",
    "Compare their configs; stop one of them if they read one source.",
)
ON_TWO_CLUSTERS = finding(
    "on_two_clusters",
    "A source connector exists in this group and in that of a profile (--with), and runs in one of them, as after a "
    "move.",
    "Do not start it there again. After a move: `eosctl connectors move --connector NAME --delete`.",
)
OTHER_GROUP_UNSEEN = finding(
    "other_group_unseen",
    "The group of a profile (--with) could not be asked for its connectors.",
    "Look whether its workers answer, and at connect_url and group_id of the profile.",
)
