"""Objections to a topic as a place for offsets: pure rules about its name, its newest records and its settings.

Kafka accepts a record under any key in any topic; an offset in a data topic, or in one of the group's own topics, stays
there for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.findings import ERROR
from eosctl.core.offsets.findings import topic_findings
from eosctl.core.offsets.records import IgnoredKey, KeyFault, OffsetKey, decode_key
from eosctl.core.records import Record, TopicDescription

NEWEST_OFFSETS = 20
"""How many of the last offsets of a partition are read; with exactly-once every other offset is a marker."""

_WORDS = {
    KeyFault.NULL_KEY: "has no key",
    KeyFault.NOT_JSON: "has a key that is not JSON",
    KeyFault.NOT_A_LIST: "has a key that is not a JSON array",
    KeyFault.WRONG_SIZE: "has a key that is not an array of two elements",
    KeyFault.CONNECTOR_NOT_TEXT: "has a key that names no connector",
    KeyFault.PARTITION_NOT_A_MAP: "has a key without a source partition",
}
_KAFKAS_OWN = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata", "__remote_log_metadata"}
)
"""No other name with two underscores: MSK Connect's offsets topics begin with `__amazon_msk_connect_offsets`."""
_ANOTHER = "Name a topic that holds nothing but offsets; one that does not exist yet is created."


class Objection(Struct, frozen=True):
    """The reason why a topic is unsuitable for offsets, as the end of a sentence about it, and a remedy."""

    message: str
    hint: str = _ANOTHER


def objection_to_name(topic: str, *, config_topic: str, status_topic: str) -> Objection | None:
    """Return the objection to a topic that holds regardless of its contents, or None."""
    if topic == config_topic:
        return Objection("is the config topic of the group, not an offsets topic")
    if topic == status_topic:
        return Objection("is the status topic of the group, not an offsets topic")
    if topic in _KAFKAS_OWN:
        return Objection("is a topic of Kafka itself, not an offsets topic")
    return None


def objection_to_use(topic: str, configs: Mapping[str, Mapping[str, str]]) -> Objection | None:
    """Return an objection to a topic that a connector's config names as one for its records, or None.

    The `topics` of sinks are not meant: sinks only read them.
    """
    for connector, config in sorted(configs.items()):
        for name, value in sorted(config.items()):
            if _names_output(name) and topic in (each.strip() for each in str(value).split(",")):
                return Objection(f"is where connector {connector} writes its records ({name}), not an offsets topic")
    return None


def _names_output(name: str) -> bool:
    return "topic" in name and name not in ("topics", "topics.regex", "offsets.storage.topic")


def objection_to_records(newest: Iterable[Record]) -> Objection | None:
    """Return an objection to a topic if more than two thirds of its newest records have keys that are no offset keys.

    Fewer are no objection: Connect ignores them, and deleting them takes a write to the topic. Deleted ones do not
    count.
    """
    offsets, foreign = 0, []
    for record in newest:
        key = decode_key(record.key)
        if isinstance(key, OffsetKey):
            offsets += 1
        elif isinstance(key, IgnoredKey) and record.value is not None:
            foreign.append((record, key.fault))
    if len(foreign) <= 2 * offsets:
        return None
    record, fault = foreign[-1]
    return Objection(
        f"holds records that are not offsets: {len(foreign)} of the newest {len(foreign) + offsets}; partition "
        f"{record.partition}, offset {record.offset} {_WORDS[fault]}"
    )


def objection_to_settings(description: TopicDescription, settings: ClientSettings | None) -> Objection | None:
    """Return an objection to a topic with settings that lose offsets, or None."""
    for finding in topic_findings(description, settings):
        if finding.severity == ERROR:
            return Objection(
                finding.message.removeprefix(f"topic {description.name} "),
                f"If it is an offsets topic: {finding.fix}. Otherwise name another one.",
            )
    return None
