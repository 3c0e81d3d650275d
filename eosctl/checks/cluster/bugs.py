"""Known Kafka bugs that transactions meet: their versions, symptoms and remedies. Data.

Each number, and the release that fixed it, was looked up: the commit in Kafka's repository and the tags that contain
it, or its pull request and the branches that it was picked to. What could not be looked up is not here. KAFKA-20090's
pull requests (#21469 and #21506, February 2026) name no release: the fix was seen in the classes of 4.3.1, and 4.3 is
the first branch that was made after them. That of KAFKA-19690 was seen in those of 3.9.2, that of KAFKA-18073 (#18146)
in those of 4.0.0, and its lack in those of 3.5.1 and 3.9.2.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from eosctl.core.versions import Version

Part = Literal["broker", "worker"]


class KnownBug(Struct, frozen=True):
    """A bug of releases from `since` on, up to but without `until`; `fixed_in` names patch releases, too.

    `of_streams`: only Kafka Streams runs into it.
    """

    number: str
    part: Part
    since: Version
    until: Version
    fixed_in: str
    symptom: str
    remedy: str
    of_streams: bool = False


KNOWN_BUGS: tuple[KnownBug, ...] = (
    KnownBug(
        "KAFKA-14402", "broker", (0, 11), (3, 6), "3.6.0 (KIP-890, part 1)",
        "a write that comes after its transaction has ended begins one that no coordinator knows: it hangs, and "
        "readers of committed records wait behind it for ever",
        "`eosctl txn hanging` finds them; each is ended on all of its partitions, with `eosctl txn complete` where its "
        "coordinator has committed it, else with `eosctl txn abort`",
    ),
    KnownBug(
        "KAFKA-15653", "broker", (3, 6), (3, 7), "3.6.1",
        "transactional writes of compressed records fail with InvalidRecordException or UnknownServerException, when "
        "the broker checks them with their coordinator",
        "set transaction.partition.verification.enable=false until then",
    ),
    KnownBug(
        "KAFKA-16386", "broker", (3, 6), (3, 8), "3.7.1 and 3.8.0",
        "producers fail with NetworkException while a coordinator does not take connections: older clients do not "
        "retry it",
        "restart the producers that failed",
    ),
    KnownBug(
        "KAFKA-19690", "broker", (3, 6), (4, 2), "4.2.0, 3.9.2, and the newest patch release of 4.1",
        "a Streams thread that stalled for longer than its transaction.timeout.ms dies of InvalidTxnStateException, "
        "where InvalidProducerEpochException would have let it go on",
        "restart the thread, or raise transaction.timeout.ms above the longest pause",
        of_streams=True,
    ),
    KnownBug(
        "KAFKA-19367", "broker", (4, 0), (4, 1), "4.0.1",
        "with transaction.version 2 fencing an open transaction raises the epoch twice: at the highest epoch the "
        "coordinator throws, and the id can't be used",
        "fence an id no more often than needed: each time spends epochs",
    ),
    KnownBug(
        "KAFKA-20090", "broker", (4, 0), (4, 3), "4.3.1 or newer",
        "with transaction.version 2 a transaction that times out at the highest epoch stays Ongoing for ever",
        "`eosctl txn list --state Ongoing` shows it; a new transactional id goes on",
    ),
    KnownBug(
        "KAFKA-15059", "worker", (3, 3), (3, 6), "3.6.0",
        "tasks FAIL with \"Failed to perform zombie fencing\" while a rebalance is pending",
        "restart the failed tasks: `eosctl connectors restart C`",
    ),
    KnownBug(
        "KAFKA-16570", "worker", (3, 3), (3, 8), "3.7.1 and 3.8.0",
        "fencing reports an unexpected error (CONCURRENT_TRANSACTIONS) though it worked, and the tasks FAIL",
        "restart the failed tasks; `eosctl fence` retries it",
    ),
    KnownBug(
        "KAFKA-16047", "worker", (3, 3), (3, 8), "3.7.1 and 3.8.0",
        "fencing times out where replicas are slow: it asks for a transaction timeout of 1 ms",
        "`eosctl fence --connector C`, then restart the failed tasks",
    ),
    KnownBug(
        "KAFKA-18073", "worker", (3, 3), (4, 0), "4.0.0",
        "a record at which a converter or transformation throws a RetriableException, say of a schema registry that is "
        "away, is dropped without a word, though errors.tolerance is none; the offset behind it is committed",
        "set errors.retry.timeout of connectors above the longest outage; `eosctl audit --connector C --sequence "
        "FIELD` finds what is missing",
    ),
    KnownBug(
        "KAFKA-15018", "worker", (3, 3), (3, 8), "3.8.0",
        "a connector with an offsets topic of its own reads an old offset after a reset: the global topic keeps it",
        "`eosctl offsets lint` shows what is left, `eosctl offsets reset` deletes it in both",
    ),
)  # fmt: skip
