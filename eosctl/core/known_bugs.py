"""Known bugs of Kafka that transactions and Connect run into, by the releases of brokers and workers. Pure.

Versions, symptoms and remedies are data, and each row says where its versions come from. Those of "jars" were seen in
the classes of these releases, by javap; in between, nothing was looked at.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from msgspec import Struct

from eosctl.core.versions import Version

Part = Literal["broker", "worker"]
NEWEST_SEEN = "4.4.0"
"""The newest release in whose classes the bugs without a fix were looked for."""


class KnownBug(Struct, frozen=True):
    """A bug of releases from `since` on, up to but without `until`; `fixed_in` names patch releases, too.

    `until` is None, and `fixed_in` empty, where no release has the fix. `source` is how the versions are known.
    `of_streams`: only Kafka Streams runs into it. `judged_by` is what has to be seen for another check to report where
    the bug can strike, or has: `connectors` or `config topic`.
    """

    number: str
    part: Part
    since: Version
    until: Version | None
    fixed_in: str
    symptom: str
    remedy: str
    source: str
    of_streams: bool = False
    judged_by: str = ""

    def has(self, version: Version) -> bool:
        """Return whether a release has it, or had it before a patch release."""
        return self.since <= version and (self.until is None or version < self.until)

    @property
    def cure(self) -> str:
        """Return which release to upgrade to, and what to do until then, in sentences."""
        if self.fixed_in:
            return f"Upgrade to {self.fixed_in}. Until then: {self.remedy}."
        return f"No release up to {NEWEST_SEEN} has a fix. Until one has: {self.remedy}."


_LOOKED_UP = (
    "its commit and the tags that contain it, or its pull request and the branches that it was picked to, in Kafka's "
    "repository"
)
CONNECTORS, CONFIG_TOPIC = "connectors", "config topic"

KNOWN_BUGS: tuple[KnownBug, ...] = (
    KnownBug(
        "KAFKA-14402", "broker", (0, 11), (3, 6), "3.6.0 (KIP-890, part 1)",
        "a write that comes after its transaction has ended begins one that no coordinator knows: it hangs, and "
        "readers of committed records wait behind it for ever",
        "`eosctl txn hanging` finds them; each is ended on all of its partitions, with `eosctl txn complete` where its "
        "coordinator has committed it, else with `eosctl txn abort`",
        _LOOKED_UP,
    ),
    KnownBug(
        "KAFKA-15653", "broker", (3, 6), (3, 7), "3.6.1",
        "transactional writes of compressed records fail with InvalidRecordException or UnknownServerException, when "
        "the broker checks them with their coordinator",
        "set transaction.partition.verification.enable=false until then",
        _LOOKED_UP,
    ),
    KnownBug(
        "KAFKA-16386", "broker", (3, 6), (3, 8), "3.7.1 and 3.8.0",
        "producers fail with NetworkException while a coordinator does not take connections: older clients do not "
        "retry it",
        "restart the producers that failed",
        _LOOKED_UP,
    ),
    KnownBug(
        "KAFKA-19690", "broker", (3, 6), (4, 2), "4.2.0, 3.9.2, and the newest patch release of 4.1",
        "a Streams thread that stalled for longer than its transaction.timeout.ms dies of InvalidTxnStateException, "
        "where InvalidProducerEpochException would have let it go on",
        "restart the thread, or raise transaction.timeout.ms above the longest pause",
        "pull request; the fix in the jars of 3.9.2",
        of_streams=True,
    ),
    KnownBug(
        "KAFKA-19367", "broker", (4, 0), (4, 1), "4.0.1",
        "with transaction.version 2 fencing an open transaction raises the epoch twice: at the highest epoch the "
        "coordinator throws, and the id can't be used",
        "fence an id no more often than needed: each time spends epochs",
        _LOOKED_UP,
    ),
    KnownBug(
        "KAFKA-20090", "broker", (4, 0), (4, 3), "4.3.1 or newer",
        "with transaction.version 2 a transaction that times out at the highest epoch stays Ongoing for ever",
        "`eosctl txn list --state Ongoing` shows it; a new transactional id goes on",
        "pull requests #21469 and #21506 (February 2026) name no release: the fix in the jars of 4.3.1, and 4.3 is the "
        "first branch that was made after them",
    ),
    KnownBug(
        "KAFKA-20785", "broker", (4, 0), None, "",
        "with transaction.version 2 a commit that was on its way while the coordinator aborted the transaction at its "
        "timeout gets INVALID_TXN_STATE, where PRODUCER_FENCED would have let a Streams thread go on: it dies",
        "replace the thread (REPLACE_THREAD), and raise transaction.timeout.ms above the longest pause",
        "pull request #23204 (August 2026); jars: TransactionCoordinator.endTransaction answers PRODUCER_FENCED in the "
        "same places in 4.0.0, 4.3.1 and 4.4.0",
        of_streams=True,
    ),
    KnownBug(
        "KAFKA-15059", "worker", (3, 3), (3, 6), "3.6.0",
        "tasks FAIL with \"Failed to perform zombie fencing\" while a rebalance is pending",
        "restart the failed tasks: `eosctl connectors restart C`",
        _LOOKED_UP,
    ),
    KnownBug(
        "KAFKA-16570", "worker", (3, 3), (3, 8), "3.7.1 and 3.8.0",
        "fencing reports an unexpected error (CONCURRENT_TRANSACTIONS) though it worked, and the tasks FAIL",
        "restart the failed tasks; `eosctl fence` retries it",
        _LOOKED_UP,
    ),
    KnownBug(
        "KAFKA-16047", "worker", (3, 3), (3, 8), "3.7.1 and 3.8.0",
        "fencing times out where replicas are slow: it asks for a transaction timeout of 1 ms",
        "`eosctl fence --connector C`, then restart the failed tasks",
        _LOOKED_UP,
    ),
    KnownBug(
        "KAFKA-18073", "worker", (3, 3), (4, 0), "4.0.0",
        "a record at which a converter or transformation throws a RetriableException, say of a schema registry that is "
        "away, is dropped without a word, though errors.tolerance is none; the offset behind it is committed",
        "set errors.retry.timeout of connectors to -1 (before 3.4: above the longest outage); `eosctl audit "
        "--connector C --sequence FIELD` finds what is missing",
        "jars: RetryWithToleranceOperator.execAndRetry returns null in 3.3.2, 3.5.1 and 3.9.2, and throws in 4.0.0, "
        "4.3.1 and 4.4.0; a record was lost on 3.9.2, and not on 4.3.1 (tests/audit/test_lost_records_live.py)",
        judged_by=CONNECTORS,
    ),
    KnownBug(
        "KAFKA-15018", "worker", (3, 3), (3, 8), "3.8.0",
        "a connector with an offsets topic of its own reads an old offset after a reset: the global topic keeps it",
        "`eosctl offsets lint` shows what is left, `eosctl offsets reset` deletes it in both",
        _LOOKED_UP,
    ),
    KnownBug(
        "KAFKA-17719", "worker", (3, 7), None, "",
        "compaction of the config topic may leave the commit of a task set before the config of its connector: a "
        "worker of 3.7.1 or newer that starts then drops the tasks",
        "`eosctl task-counts validate` names such connectors",
        "pull request #23382 is open; jars: KafkaConfigBackingStore ignores such a commit in 3.7.1, 3.7.2, 3.8.0, "
        "3.9.2, 4.3.1 and 4.4.0, and not in 3.5.1, 3.6.2 and 3.7.0",
        judged_by=CONFIG_TOPIC,
    ),
    KnownBug(
        "KAFKA-17676", "worker", (3, 3), None, "",
        "after compaction of the config topic a worker that starts lacks task configs that others still have: the "
        "tasks that it is given FAIL with a NullPointerException",
        "`eosctl task-counts validate` names incomplete task sets",
        "pull request #21368 is open; jars: KafkaConfigBackingStore.processTasksCommitRecord counts the tasks of an "
        "incomplete set, too, in 3.3.2, 3.5.1, 3.9.2, 4.3.1 and 4.4.0",
        judged_by=CONFIG_TOPIC,
    ),
    KnownBug(
        "KAFKA-20297", "worker", (4, 4), None, "",
        "plugins that were built for Kafka before 4.4 may fail with NoClassDefFoundError: AppInfoParser, Sanitizer and "
        "other classes of org.apache.kafka.common.utils were moved",
        "install versions of the plugins that are built for 4.4",
        "jars: kafka-clients has the classes in utils in 4.3.1, and in utils.internals in 4.4.0",
        judged_by=CONNECTORS,
    ),
)  # fmt: skip


def bugs_of(part: Part, versions: Collection[Version], *, with_streams: bool = False) -> list[KnownBug]:
    """Return the known bugs that any of these releases has; a patch release may have the fix already.

    Those that only Kafka Streams runs into are left out, unless `with_streams`.
    """
    return [
        bug
        for bug in KNOWN_BUGS
        if bug.part == part and (with_streams or not bug.of_streams) and any(bug.has(version) for version in versions)
    ]
