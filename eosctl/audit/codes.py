"""The codes of `audit`'s findings, and of what it could not prove."""

from __future__ import annotations

from eosctl.codes import finding, warning

BATCH_NOT_TRANSACTIONAL = finding(
    "batch_not_transactional",
    "Records were written to an output topic without a transaction: they stay if their offsets are lost.",
    "`eosctl connectors check` shows tasks without a transactional id; a producer that a connector makes itself has "
    "none either. If another application writes to the topic, audit the others with --topic.",
)
FOREIGN_PRODUCER = finding(
    "foreign_producer",
    "A producer of another connector or application wrote to an output topic; its records were not judged.",
    "Nothing if that is meant. Its records are not covered by the connector's transactions.",
)
PRODUCER_UNKNOWN = finding(
    "producer_unknown",
    "A producer wrote to an output topic in transactions, and nothing shows whose it is.",
    "Grant DESCRIBE on TransactionalIds and READ on __transaction_state, and audit soon: ids are forgotten.",
)
TRANSACTION_WITHOUT_OFFSETS = finding(
    "transaction_without_offsets",
    "A task committed records, and no source offset in the same transaction: after a restart they are read again.",
    "The connector gives records without source offsets, which no worker can make exactly-once: report it to "
    "its developers.",
)
TRANSACTION_TORN = finding(
    "transaction_torn",
    "One part of a transaction was committed, and another one aborted: records or source offsets are lost.",
    "Somebody aborted it by hand (`eosctl history` shows what eosctl did), or a broker lost a marker. "
    "Rows that are lost are read again after `eosctl offsets set`.",
)
OFFSETS_WITHOUT_RECORDS = finding(
    "offsets_without_records",
    "A task committed source offsets, and the records of the same transaction are gone: they are lost.",
    "Look for an unclean leader election of the partition. Rows that are lost are read again after "
    "`eosctl offsets set`.",
)
SOURCE_PARTITION_SHARED = finding(
    "source_partition_shared",
    "Two producers committed offsets of one source partition in turn, and neither was started again in between: both "
    "read it, so its records are there twice.",
    "`eosctl txn describe` shows both: stop the connector that should not run, or `eosctl fence` the former task. "
    "Look for duplicates with --unique.",
)
SOURCE_OFFSET_WENT_BACK = finding(
    "source_offset_went_back",
    "The source offset that was committed lies before the previous one, or was deleted: what lies between is read "
    "again.",
    "Meant after `eosctl offsets set` or `reset`. Else look for a source that starts over, and for duplicates with "
    "--unique.",
)
FOREIGN_OFFSETS = finding(
    "foreign_offsets",
    "A producer that is no task of this connector in this group committed source offsets of it.",
    "A connector of the same name may run in another Connect group: stop it there. `eosctl txn describe ID` shows it.",
)
OFFSETS_WITHOUT_TRANSACTION = finding(
    "offsets_without_transaction",
    "Source offsets were written outside a transaction: records and offsets can part.",
    "`eosctl workers probe` shows workers that are not `enabled`; `eosctl upgrade plan --to enabled` is the way there.",
)
OFFSETS_ELSEWHERE = finding(
    "offsets_elsewhere",
    "Transactions committed their source offsets in another topic than the one in use.",
    "Right for what was written before `eosctl offsets switch`; else see `eosctl offsets diff`.",
)
TRANSACTION_ABORTED = finding(
    "transaction_aborted", "Transactions were aborted; consumers with read_committed never see their records."
)
TRANSACTION_OPEN = finding(
    "transaction_open",
    "A transaction has not ended yet; consumers with read_committed wait behind it.",
    "If it is older than its timeout, see `eosctl txn hanging`.",
)
EPOCH_WENT_BACK = finding(
    "epoch_went_back",
    "A partition has a batch of an older producer epoch after a newer one, which brokers must refuse.",
    "Keep the log segments, and report it with the broker's version.",
)
ZOMBIE_WROTE = finding(
    "zombie_wrote",
    "A producer whose transactional id had a successor wrote all the same: its records are in the topic.",
    "Look for duplicates with --unique; keep the log segments, and report it with the broker's version.",
)
COMMIT_MARKERS_MISSING = finding(
    "commit_markers_missing",
    "A transaction was committed, and one of its partitions has no marker of it: its records there are not visible "
    "until a later marker of the same producer ends them, too.",
    "Brokers skip markers when the only replica of a partition stops (Kafka 4.3.1, 4.4.0): keep more than one. "
    "`eosctl txn hanging` shows the partition, and `eosctl txn complete --as-decided` ends it as it was decided; an "
    "abort there loses these records.",
)
CRC_WRONG = finding(
    "crc_wrong",
    "The checksum of a batch does not match its bytes.",
    "Look at the broker's disks; other replicas may have the batch unharmed.",
)
DUPLICATE = finding(
    "duplicate",
    "Committed records have the same value in the field that --unique or --sequence names.",
    "The source was read again, another producer wrote for the same source partition or under the same transactional "
    "id, or the field is not unique.",
)
GAP = finding(
    "gap",
    "Numbers are missing in the field that --sequence names.",
    "Records were dropped or lost, the source skipped them, or its numbers have holes. Numbers that a source shares "
    "out among several topics are no sequence in any of them.",
)
MIRROR_GAP = finding(
    "mirror_gap",
    "The mirrored partition has fewer records than the source committed in the same range.",
    "Look for filters and for `errors.tolerance=all` in the connector's config; then compare the records.",
)
MIRROR_DUPLICATE = finding(
    "mirror_duplicate",
    "The mirrored partition has more records than the source committed in the same range.",
    "The connector read a range twice, or aborted records too (consumer.isolation.level=read_committed is needed).",
)
SOURCE_TOPIC_RECREATED = finding(
    "source_topic_recreated",
    "The offset that was mirrored last lies behind the end of the source topic, which was deleted and made again.",
    "Reset the connector's offsets of this topic once it is clear what the target should have.",
)
NOT_PROVEN = warning(
    "not_proven", "A part of what was asked for could not be looked at; the proven window is smaller by it."
)
