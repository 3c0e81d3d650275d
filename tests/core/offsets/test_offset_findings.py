"""The rules of `offsets lint`, one code a row."""

from __future__ import annotations

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.offsets.findings import open_transaction_finding, record_findings, topic_findings
from eosctl.core.offsets.names import partition_for
from eosctl.core.open_transactions import OpenTransaction
from eosctl.core.records import Bounds, Record, TopicDescription
from eosctl.core.transactions import ActiveProducer, Coordinator, TransactionDescription, TransactionState
from tests.core.offsets.stores import PARTITIONS, store

KEY = b'["c",{"f":"a"}]'
HOME = partition_for(KEY, PARTITIONS)
AWAY = (HOME + 1) % PARTITIONS
VALUE = b'{"n":1}'


def record(
    key: bytes | None, value: bytes | None = VALUE, *, partition: int | None = None, offset: int = 0, at: int = 1
) -> Record:
    place = partition_for(key or b"", PARTITIONS) if partition is None else partition
    return Record("t", place, offset, at, key, value)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([record(KEY)], []),
        ([record(KEY, None)], []),
        ([record(None)], [("key_null", "error")]),
        ([record(b"junk")], [("key_not_json", "error")]),
        ([record(b"\xff")], [("key_not_json", "error")]),
        ([record(b"")], [("key_not_a_list", "error")]),
        ([record(b'{"c":1}')], [("key_not_a_list", "error")]),
        ([record(b'["c"]')], [("key_wrong_size", "error")]),
        ([record(b'["c",{},1]')], [("key_wrong_size", "error")]),
        ([record(b"[1,{}]")], [("key_connector_not_text", "error")]),
        ([record(b'["c",7]')], [("key_partition_not_a_map", "error")]),
        ([record(b"junk", None)], [("key_not_json", "info")]),
        ([record(b'["c",null]')], [("partition_null", "info")]),
        ([record(b'["c",{"f":[1]}]')], [("partition_not_primitive", "error")]),
        ([record(KEY, b"{nope")], [("value_not_json", "error")]),
        ([record(KEY, b"7")], [("value_not_a_map", "error")]),
        ([record(KEY, b'{"n":{"m":1}}')], [("value_not_primitive", "error")]),
        ([record(KEY, b'{"n":null,"t":"x","b":true,"d":1.5}')], []),
        ([record(KEY), record(b'["c",{"f" : "a"}]')], [("double_spelling", "error")]),
        ([record(KEY), record(b'["c",{"f" : "a"}]', None)], [("double_spelling", "warning")]),
        ([record(KEY, None), record(b'["c",{"f" : "a"}]', None)], []),
        ([record(KEY, partition=AWAY)], [("wrong_partition", "error")]),
        ([record(KEY, None, partition=AWAY)], []),
        ([record(KEY), record(KEY, partition=AWAY, at=2)], [("several_partitions", "error")]),
        ([record(KEY, at=2), record(KEY, None, partition=AWAY)], [("several_partitions", "warning")]),
        ([record(KEY), record(KEY, None, partition=AWAY, at=2)], [("several_partitions", "error")]),
    ],
)
def test_a_topic_with_one_fault(records: list[Record], expected: list[tuple[str, str]]) -> None:
    assert [(found.code, found.severity) for found in record_findings(store(*records))] == expected


@pytest.mark.parametrize(
    ("records", "repair"),
    [
        ([record(KEY, partition=AWAY)], {HOME: VALUE.decode(), AWAY: None}),
        ([record(KEY, b'{"n":0}'), record(KEY, partition=AWAY, at=2)], {HOME: VALUE.decode(), AWAY: None}),
        ([record(KEY, at=2), record(KEY, b'{"n":0}', partition=AWAY)], {HOME: VALUE.decode(), AWAY: None}),
        ([record(KEY), record(KEY, None, partition=AWAY, at=2)], {HOME: None}),
    ],
)
def test_the_repair_of_a_scattered_key(records: list[Record], repair: dict[int, str | None]) -> None:
    [found] = record_findings(store(*records))
    lines = found.evidence["repair"]
    assert isinstance(lines, list)
    assert {line["partition"]: line["value"] for line in lines} == repair
    assert {(line["topic"], line["key"]) for line in lines} == {("t", KEY.decode())}


def test_of_two_records_as_old_the_one_at_home_counts() -> None:
    """A repair's value and tombstone can fall into one millisecond; the tombstone elsewhere used to win by chance."""
    for away in (p for p in range(PARTITIONS) if p != HOME):
        folded = store(record(KEY, offset=0), record(KEY, None, partition=away, offset=5))
        assert folded.records[KEY].value == VALUE


def described(**config: str) -> TopicDescription:
    dotted = {name.replace("_", "."): value for name, value in config.items()}
    return TopicDescription("t", "id", 25, 3, dotted)


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        (described(cleanup_policy="compact"), []),
        (described(cleanup_policy="delete"), [("not_compacted", "error")]),
        (described(cleanup_policy="compact,delete"), [("deletes_old_offsets", "error")]),
        (described(), [("settings_unreadable", "warning")]),
        (TopicDescription("t", "id", 25, 1, {"cleanup.policy": "compact"}), [("single_replica", "warning")]),
        (TopicDescription("t", "id", 7, 3, {"cleanup.policy": "compact"}), [("partition_count", "info")]),
    ],
)
def test_settings(description: TopicDescription, expected: list[tuple[str, str]]) -> None:
    assert [(found.code, found.severity) for found in topic_findings(description, None)] == expected


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        (ClientSettings(("b:9092", "c:9092")), "--bootstrap-server b:9092,c:9092"),
        (
            ClientSettings(("b:9092",), security_protocol="SASL_SSL"),
            "--bootstrap-server b:9092 --command-config '<admin.properties>'",
        ),
    ],
)
def test_the_line_that_mends_a_policy_says_where(settings: ClientSettings, where: str) -> None:
    """It had no --bootstrap-server, without which kafka-configs.sh refuses it."""
    [found] = topic_findings(described(cleanup_policy="delete"), settings)
    words = "--alter --entity-type topics --entity-name t --add-config cleanup.policy=compact"
    assert found.fix == f"`kafka-configs.sh {where} {words}`"


def test_who_holds_a_transaction_open() -> None:
    bound = Bounds(3, 0, 17, 40)
    producer = ActiveProducer("t", 3, ProducerId(7), 2, 5, 1_000, 0, 17)
    state = TransactionDescription(
        TransactionalId("g-c-0"),
        Coordinator(1, "h", 9),
        TransactionState.ONGOING,
        ProducerId(7),
        2,
        60_000,
        1_000,
        (("t", 3),),
    )
    found = open_transaction_finding(
        OpenTransaction("t", bound, producer, TransactionalId("g-c-0"), state), now_ms=31_000
    )
    assert (found.code, found.severity, found.subject) == ("open_transaction", "error", "t-3")
    assert "producer 7 (epoch 2), transactional id g-c-0" in found.message
    assert "eosctl fence g-c-0" in found.fix
    assert (found.evidence["lso"], found.evidence["end"], found.evidence["age_ms"]) == (17, 40, 30_000)
    orphan = open_transaction_finding(OpenTransaction("t", bound, producer), now_ms=31_000)
    assert "which no id owns" in orphan.message
    assert "txn abort" in orphan.fix
    unknown = open_transaction_finding(OpenTransaction("t", bound), now_ms=0)
    assert "could not be found out" in unknown.message
