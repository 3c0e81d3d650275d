"""Which topics offsets belong in: by name, by use, by their newest records, by their settings."""

from __future__ import annotations

import pytest

from eosctl.core.offsets.targets import objection_to_name, objection_to_records, objection_to_settings, objection_to_use
from eosctl.core.records import Record, TopicDescription


@pytest.mark.parametrize(
    ("topic", "complaint"),
    [
        ("configs", "is the config topic of the group"),
        ("status", "is the status topic of the group"),
        ("__consumer_offsets", "is a topic of Kafka itself"),
        ("__transaction_state", "is a topic of Kafka itself"),
        ("offsets", None),
        ("_confluent-offsets", None),
        ("__amazon_msk_connect_offsets_orders_1a2b", None),  # of a worker that MSK Connect runs
    ],
)
def test_names(topic: str, complaint: str | None) -> None:
    found = objection_to_name(topic, config_topic="configs", status_topic="status")
    assert complaint == (found and found.message.partition(", ")[0])


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"topic": "t"}, "is where connector c writes its records (topic), not an offsets topic"),
        ({"errors.deadletterqueue.topic.name": "t"}, "errors.deadletterqueue.topic.name"),
        ({"kafka.topic": "x, t"}, "kafka.topic"),
        ({"topics": "t"}, None),
        ({"offsets.storage.topic": "t"}, None),
        ({"name": "t", "file": "t"}, None),
        ({"topic": "T"}, None),
    ],
)
def test_topics_that_connectors_write_to(config: dict[str, str], complaint: str | None) -> None:
    found = objection_to_use("t", {"c": config})
    assert (found is None) is (complaint is None)
    assert found is None or str(complaint) in found.message


OFFSET, JUNK = b'["c",{"f":"x"}]', b"junk"


@pytest.mark.parametrize(
    ("records", "complaint"),
    [
        ([], None),
        ([(OFFSET, b"{}")], None),
        ([(OFFSET, None)], None),
        ([(None, b"data")], "1 of the newest 1; partition 0, offset 0 has no key"),
        ([(JUNK, b"data")], "1 of the newest 1; partition 0, offset 0 has a key that is not JSON"),
        (
            [(JUNK, b"data"), (b"{}", b"x"), (b"[1]", b"x"), (OFFSET, b"{}")],
            "3 of the newest 4; partition 0, offset 2 has a key that is not an array of two elements",
        ),
        ([(JUNK, b"x"), (b"[1]", b"x"), (OFFSET, b"{}")], None),
        ([(JUNK, None), (b"[1]", None), (OFFSET, b"{}")], None),
        ([(JUNK, b"some garbage is ignored by Connect"), (OFFSET, b"{}")], None),
    ],
)
def test_what_is_in_a_topic(records: list[tuple[bytes | None, bytes | None]], complaint: str | None) -> None:
    found = objection_to_records(Record("t", 0, at, 0, key, value) for at, (key, value) in enumerate(records))
    assert (found is None) is (complaint is None)
    assert found is None or f"holds records that are not offsets: {complaint}" in found.message


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"cleanup.policy": "compact"}, None),
        ({}, None),
        ({"cleanup.policy": "delete"}, "is not compacted (cleanup.policy=delete): offsets vanish after retention.ms"),
        ({"cleanup.policy": "compact,delete"}, "also deletes (cleanup.policy=compact,delete)"),
    ],
)
def test_settings_that_lose_offsets(config: dict[str, str], complaint: str | None) -> None:
    found = objection_to_settings(TopicDescription("t", "id", 25, 3, config), None)
    assert (found is None) is (complaint is None)
    assert found is None or found.message.startswith(str(complaint))
