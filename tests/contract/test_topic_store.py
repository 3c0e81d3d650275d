"""What every TopicStore does: one suite, on the fake of the tests and on a real broker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from eosctl.core.client_settings import ClientSettings
from eosctl.core.records import Bounds, NewTopic, OutRecord
from eosctl.deadline import Deadline
from eosctl.errors import BrokerError, NotFoundError, UsageError
from eosctl.events import Event
from eosctl.kafka.librdkafka import quiet_logger
from eosctl.kafka.topic_store import KafkaTopicStore
from eosctl.ops.ports import TopicStore
from tests.fakes.topics import FakeTopicStore
from tests.sandbox_fixtures import wait_until

PARTITIONS = 3


@pytest.fixture
def bootstrap(request: pytest.FixtureRequest) -> str:
    servers: str = request.getfixturevalue("stack").bootstrap_servers
    return servers


@pytest.fixture(params=["fake", pytest.param("real", marks=[pytest.mark.live, pytest.mark.on("stack")])])
def store(request: pytest.FixtureRequest) -> Iterator[TopicStore]:
    if request.param == "fake":
        yield FakeTopicStore()
        return
    with _real(request.getfixturevalue("bootstrap")) as real:
        yield real


@pytest.fixture
def topic(store: TopicStore) -> str:
    """A new topic of three partitions."""
    name = f"contract-{uuid.uuid4().hex[:8]}"
    store.create(name, partitions=PARTITIONS, replication_factor=1, config={"cleanup.policy": "compact"})
    return name


def _real(bootstrap: str, timeout_s: float = 30.0) -> KafkaTopicStore:
    return KafkaTopicStore(ClientSettings(tuple(bootstrap.split(","))), deadline=Deadline.after(timeout_s))


def _at(topic: str, partition: int, *pairs: tuple[bytes, bytes | None]) -> list[OutRecord]:
    return [OutRecord(topic, key, value, partition) for key, value in pairs]


def test_a_created_topic_is_described_and_empty(store: TopicStore, topic: str) -> None:
    found = store.describe([topic, "contract-nowhere"])
    assert list(found) == [topic]
    assert (found[topic].partitions, found[topic].replication_factor) == (PARTITIONS, 1)
    assert found[topic].config["cleanup.policy"] == "compact"
    assert found[topic].topic_id
    assert [(b.partition, b.begin, b.lso, b.end) for b in store.bounds(topic)] == [(p, 0, 0, 0) for p in range(3)]
    assert store.read(topic).records == ()


def test_every_broker_tells_its_settings(store: TopicStore) -> None:
    settings = store.broker_settings("transaction.max.timeout.ms")
    assert set(settings.values()) == {"900000"}
    assert store.broker_settings("no.such.setting") == {}


def test_records_come_in_partition_then_offset_order(store: TopicStore, topic: str) -> None:
    pairs = [(f"k{n}".encode(), str(n).encode()) for n in range(20)]
    store.write([record for p in (2, 0) for record in _at(topic, p, *pairs)])
    read = store.read(topic)
    assert [(r.partition, r.offset, r.key) for r in read.records] == [
        (p, offset, key) for p in (0, 2) for offset, (key, _) in enumerate(pairs)
    ]
    assert read.records_read == 40


def test_the_answer_to_a_write_is_in_the_order_given(store: TopicStore, topic: str) -> None:
    written = store.write(_at(topic, 2, (b"a", b"1")) + _at(topic, 0, (b"b", b"2")) + _at(topic, 2, (b"c", b"3")))
    assert [(w.partition, w.offset) for w in written] == [(2, 0), (0, 0), (2, 1)]


def test_bytes_headers_and_timestamps_survive(store: TopicStore, topic: str) -> None:
    headers = (("a", b"\x00\xff"), ("a", None))
    store.write([OutRecord(topic, b"\xff\xfe", b"\x80", 1, timestamp_ms=1_600_000_000_000, headers=headers)])
    (record,) = store.read(topic).records
    assert (record.key, record.value, record.headers) == (b"\xff\xfe", b"\x80", headers)
    assert record.timestamp_ms == 1_600_000_000_000


def test_a_key_falls_where_java_puts_it(store: TopicStore, topic: str) -> None:
    (written,) = store.write([OutRecord(topic, b"21", b"v")])
    assert written.partition == (-973932308 & 0x7FFFFFFF) % PARTITIONS


def test_newest_per_key_keeps_tombstones_and_counts_all(store: TopicStore, topic: str) -> None:
    store.write(_at(topic, 0, (b"a", b"1"), (b"b", b"1"), (b"a", None), (b"", b"empty")) + _at(topic, 1, (b"a", b"x")))
    read = store.read(topic, newest_per_key=True)
    assert [(r.partition, r.offset, r.key, r.value) for r in read.records] == [
        (0, 1, b"b", b"1"),
        (0, 2, b"a", None),
        (0, 3, b"", b"empty"),
        (1, 0, b"a", b"x"),
    ]
    assert read.records_read == 5


def test_records_without_a_key_are_all_kept(store: TopicStore) -> None:
    name = f"contract-{uuid.uuid4().hex[:8]}"
    store.create(name, partitions=1, replication_factor=1, config={})
    store.write([OutRecord(name, None, b"1", 0), OutRecord(name, None, b"2", 0)])
    assert [r.value for r in store.read(name, newest_per_key=True).records] == [b"1", b"2"]


def test_a_transaction_ends_in_a_marker_that_does_not_hang_the_reader(store: TopicStore, topic: str) -> None:
    store.write(_at(topic, 0, (b"a", b"1")), transactional_id=f"contract-{uuid.uuid4().hex}")
    started_s = time.monotonic()
    read = store.read(topic)
    assert time.monotonic() - started_s < 5
    assert [r.offset for r in read.records] == [0]
    assert (read.bounds[0].lso, read.bounds[0].end) == (2, 2)
    assert read.blocked() == ()


@pytest.mark.live
def test_a_write_behind_an_open_transaction_says_that_it_is_hidden(bootstrap: str, real_topic: str) -> None:
    producer = _transactional_producer(bootstrap, f"{real_topic}-open")
    producer.produce(real_topic, b"open", b"k", partition=0)
    producer.flush(10)
    events: list[Event] = []
    settings = ClientSettings(tuple(bootstrap.split(",")))
    with KafkaTopicStore(settings, deadline=Deadline.after(30), on_event=events.append) as real:
        real.write(_at(real_topic, 0, (b"k", b"v")), transactional_id=f"{real_topic}-id")
    producer.abort_transaction(10)
    assert [e.message for e in events if e.warning and f"{real_topic}-0" in e.message]


@pytest.mark.live
def test_a_long_write_tells_how_far_it_is(bootstrap: str, real_topic: str) -> None:
    """It told how many records were written and not of how many: no time left could be shown."""
    events: list[Event] = []
    settings = ClientSettings(tuple(bootstrap.split(",")))
    with KafkaTopicStore(settings, deadline=Deadline.after(60), on_event=events.append) as real:
        real.write([OutRecord(real_topic, b"k", b"v", 0)] * 15_000)
    told = [(event.done, event.total, event.unit) for event in events if event.done is not None]
    assert told == [(10_000, 15_000, "records"), (15_000, 15_000, "records")]


def test_a_missing_topic_is_not_found(store: TopicStore) -> None:
    with pytest.raises(NotFoundError, match="contract-nowhere"):
        store.read("contract-nowhere")
    with pytest.raises(NotFoundError, match="contract-nowhere"):
        store.bounds("contract-nowhere")
    with pytest.raises(NotFoundError, match="contract-nowhere"):
        store.bounds_of(["contract-nowhere"])
    with pytest.raises(NotFoundError, match="contract-nowhere"):
        store.write([OutRecord("contract-nowhere", b"k", b"v")])


def test_a_topic_is_not_created_twice(store: TopicStore, topic: str) -> None:
    with pytest.raises(BrokerError, match="TOPIC_ALREADY_EXISTS"):
        store.create(topic, partitions=1, replication_factor=1, config={})


def test_many_topics_are_created_at_once(store: TopicStore) -> None:
    name = f"contract-{uuid.uuid4().hex[:8]}"
    new = [NewTopic(f"{name}-{number}", number, 1) for number in (1, 2, 3)]
    assert store.create_all(new) == {}
    found = store.describe([each.topic for each in new])
    assert [(each.partitions, each.config["cleanup.policy"]) for each in found.values()] == [
        (number, "compact") for number in (1, 2, 3)
    ]
    store.write(_at(f"{name}-2", 1, (b"k", b"v")))
    bounds = store.bounds_of([f"{name}-1", f"{name}-2"])
    assert bounds == {f"{name}-1": (Bounds(0, 0, 0, 0),), f"{name}-2": (Bounds(0, 0, 0, 0), Bounds(1, 0, 1, 1))}
    assert {topic: store.bounds(topic) for topic in bounds} == bounds


def test_a_topic_that_is_refused_does_not_keep_the_others_from_being_made(store: TopicStore, topic: str) -> None:
    new = [NewTopic(topic, 1, 1), NewTopic(f"{topic}-far", 1, 9), NewTopic(f"{topic}-good", 1, 1)]
    refused = store.create_all(new, validate_only=True)
    assert "TOPIC_ALREADY_EXISTS" in refused[topic].message
    assert "INVALID_REPLICATION_FACTOR" in refused[f"{topic}-far"].message
    assert list(store.describe([each.topic for each in new])) == [topic], "nothing is made where the brokers are asked"
    assert list(store.create_all(new)) == list(refused) == [topic, f"{topic}-far"]
    assert list(store.describe([each.topic for each in new])) == [topic, f"{topic}-good"]


def test_nothing_is_asked_of_no_topics(store: TopicStore) -> None:
    assert (store.create_all([]), store.bounds_of([])) == ({}, {})


def test_a_partition_that_is_not_there_is_refused(store: TopicStore, topic: str) -> None:
    with pytest.raises(UsageError, match="no number 3"):
        store.write([OutRecord(topic, b"k", b"v", 3)])
    with pytest.raises(UsageError, match="neither a key nor a partition"):
        store.write([OutRecord(topic, None, b"v")])


def test_an_open_transaction_of_the_fake_holds_back_the_lso() -> None:
    fake = FakeTopicStore()
    fake.add_topic("t")
    fake.write(_at("t", 0, (b"a", b"1")))
    fake.open_transaction("t", 0)
    fake.write(_at("t", 0, (b"b", b"2")))
    assert [r.key for r in fake.read("t").records] == [b"a"]
    assert [r.key for r in fake.read("t", isolation="read_uncommitted").records] == [b"a", b"open", b"b"]
    fake.close_transaction("t", 0)
    assert [r.key for r in fake.read("t").records] == [b"a", b"b"]


def test_an_aborted_transaction_of_the_fake_is_seen_uncommitted_only() -> None:
    fake = FakeTopicStore()
    fake.add_topic("t")
    fake.write_aborted(_at("t", 0, (b"no", b"1")))
    fake.write(_at("t", 0, (b"a", b"1")))
    assert [r.key for r in fake.read("t").records] == [b"a"]
    assert [r.key for r in fake.read("t", isolation="read_uncommitted").records] == [b"no", b"a"]


def _producer(bootstrap: str, transactional_id: str) -> Any:
    properties = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "enable.metrics.push": False}
    return confluent_kafka.Producer(properties, logger=quiet_logger())


def _transactional_producer(bootstrap: str, transactional_id: str) -> Any:
    producer = _producer(bootstrap, transactional_id)
    producer.init_transactions(30)
    producer.begin_transaction()
    return producer


@pytest.fixture
def real_topic(bootstrap: str) -> str:
    name = f"contract-{uuid.uuid4().hex[:8]}"
    with _real(bootstrap) as real:
        real.create(name, partitions=1, replication_factor=1, config={})
    return name


@pytest.mark.live
def test_aborted_records_are_seen_uncommitted_only(bootstrap: str, real_topic: str) -> None:
    producer = _transactional_producer(bootstrap, f"{real_topic}-id")
    producer.produce(real_topic, b"no", b"k", partition=0)
    producer.flush(10)
    producer.abort_transaction(10)
    with _real(bootstrap) as real:
        assert real.read(real_topic).records == ()
        uncommitted = real.read(real_topic, isolation="read_uncommitted")
    assert [r.value for r in uncommitted.records] == [b"no"]


@pytest.mark.live
def test_an_open_transaction_is_told_and_does_not_hang(bootstrap: str, real_topic: str) -> None:
    """Connect waits for the high watermark here, for as long as the transaction is open."""
    with _real(bootstrap) as real:
        real.write(_at(real_topic, 0, (b"before", b"1")))
        producer = _transactional_producer(bootstrap, f"{real_topic}-id")
        producer.produce(real_topic, b"open", b"k", partition=0)
        producer.flush(10)
        real.write(_at(real_topic, 0, (b"behind", b"1")))
        started_s = time.monotonic()
        read = real.read(real_topic)
        assert time.monotonic() - started_s < 5
        assert [r.key for r in read.records] == [b"before"]
        assert [(b.lso, b.end) for b in read.blocked()] == [(1, 3)]
        producer.abort_transaction(10)
        wait_until(lambda: not real.read(real_topic).blocked(), what="the abort marker", timeout_s=10)
        assert [r.key for r in real.read(real_topic).records] == [b"before", b"behind"]


@pytest.mark.live
@pytest.mark.parametrize("settle_s", [0.0, 0.3], ids=["fenced-while-sending", "fenced-before-flush"])
def test_a_writer_whose_id_was_taken_over_says_so(bootstrap: str, real_topic: str, settle_s: float) -> None:
    """With delivery reports waiting behind the fatal error, a SystemError out of confluent-kafka came to the user."""
    transactional_id = f"{real_topic}-id"

    def records() -> Iterator[OutRecord]:
        yield OutRecord(real_topic, b"k", b"1", 0)
        thief = _producer(bootstrap, transactional_id)
        thief.init_transactions(30)
        for value in (b"2", b"3"):
            time.sleep(settle_s)  # lets the broker's refusal arrive between two records
            yield OutRecord(real_topic, b"k", value, 0)

    with _real(bootstrap) as real:
        with pytest.raises(BrokerError, match=f"took over transactional id {transactional_id}; nothing was written"):
            real.write(records(), transactional_id=transactional_id)
        assert real.read(real_topic).records == ()
