"""Codes of the problems of an offsets topic, its keys and its values."""

from __future__ import annotations

from eosctl.codes import finding, warning

TOPIC_MISSING = finding(
    "topic_missing",
    "An offsets topic does not exist.",
    "A task creates it at its start, unless its worker may not (Kafka 4.4, -w shows it); or name the right one.",
)
SINGLE_REPLICA = finding(
    "single_replica", "An offsets topic has one replica: one lost disk loses all offsets.", "Add replicas."
)
PARTITION_COUNT = finding(
    "partition_count",
    "An offsets topic has other than 25 partitions.",
    "Fine if it was so from the start; never add partitions: keys then have two homes.",
)
SETTINGS_UNREADABLE = finding(
    "settings_unreadable", "The settings of a topic can't be read.", "Grant DescribeConfigs on it."
)
NOT_COMPACTED = finding(
    "not_compacted",
    "An offsets topic is not compacted: offsets vanish, and no worker starts on it.",
    "Set cleanup.policy=compact.",
)
DELETES_OLD_OFFSETS = finding(
    "deletes_old_offsets", "An offsets topic is compacted and also deletes.", "Set cleanup.policy=compact."
)
OLDEST_DELETED = finding(
    "oldest_deleted",
    "Records were deleted from the start of an offsets topic, by retention or DeleteRecords, which compaction never "
    "does: offsets that were only there are gone.",
    "Nothing, where all connectors have their offsets; see that cleanup.policy=compact.",
)
KEY_NULL = finding(
    "key_null",
    "A record without a key; Connect ignores it.",
    "It can't be deleted; a compacted topic takes no new ones.",
)
KEY_NOT_JSON = finding("key_not_json", "A key that is not JSON; Connect ignores it.", "A tombstone under the same key.")
KEY_NOT_A_LIST = finding(
    "key_not_a_list", "A key that is not a JSON array; Connect ignores it.", "A tombstone under the same key."
)
KEY_WRONG_SIZE = finding(
    "key_wrong_size",
    "A key whose array has not two elements; Connect ignores it.",
    "A tombstone under the same key.",
)
KEY_CONNECTOR_NOT_TEXT = finding(
    "key_connector_not_text",
    "A key whose connector is not text; Connect ignores it.",
    "A tombstone under the same key.",
)
KEY_PARTITION_NOT_A_MAP = finding(
    "key_partition_not_a_map",
    "A key whose source partition is not an object; Connect ignores it.",
    "A tombstone under the same key.",
)
DOUBLE_SPELLING = finding(
    "double_spelling",
    "One source partition has offsets under several spellings of its key; a task reads only the one that it writes.",
    "See which one moves while the connector runs, and delete the others.",
)
WRONG_PARTITION = finding(
    "wrong_partition",
    "A key lies on another partition than Connect's producer chooses: the next offset will be a second record.",
    "`eosctl offsets import --keep-partitions` with the repair in the evidence.",
)
SEVERAL_PARTITIONS = finding(
    "several_partitions",
    "A key lies on several partitions: which record counts is chance.",
    "`eosctl offsets import --keep-partitions` with the repair in the evidence.",
)
VALUE_NOT_JSON = finding(
    "value_not_json",
    "An offset's value is not JSON: the task gets no offset.",
    "Set or delete it: `eosctl offsets set`, `reset`.",
)
VALUE_NOT_A_MAP = finding(
    "value_not_a_map",
    "An offset's value is not an object: the task gets no offset.",
    "Set or delete it: `eosctl offsets set`, `reset`.",
)
VALUE_NOT_PRIMITIVE = finding(
    "value_not_primitive",
    "An offset's value has nested members: the task gets no offset.",
    "Set or delete it: `eosctl offsets set`, `reset`.",
)
PARTITION_NULL = finding(
    "partition_null",
    "A connector has an offset for a null source partition, which REST neither shows nor resets.",
    "Nothing, if intentional.",
)
PARTITION_NOT_PRIMITIVE = finding(
    "partition_not_primitive",
    "A source partition has nested members: no connector can write or ask for it.",
    "A tombstone under the same key.",
)
MAY_BE_ABORTED = warning(
    "may_be_aborted",
    "The tool that made a file of records prints aborted ones too, unless told otherwise, and the file does not show "
    "whether it was; or a dump of segments ends within a transaction, whose records are left out.",
    "Make the file again with the option that the message names, unless it was made with it.",
)
