"""What only the real TopicClient does: it tells how far a write is, and what hides it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from confluent_kafka import KafkaException, Producer
from pyarrow import concat_tables

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.records import OutRecord
from eosctl.deadline import Deadline, Event, ignore_events
from eosctl.engine.columns import SENT, Table, batch_of_columns
from eosctl.errors import BrokerError
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.kafka.topics.writer import KafkaTopicWriter
from eosctl.sandbox.stack import Stack
from tests.contract.clusters import RealProducer
from tests.sandbox_fixtures import wait_until


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def store(stack: Stack, events: list[Event], unique: str) -> Iterator[KafkaTopicClient]:
    """With a topic of one partition, by the test's name."""
    settings = ClientSettings((stack.bootstrap_servers,))
    with KafkaTopicClient(settings, deadline=Deadline.after(120), on_event=events.append) as store:
        store.create(unique, partitions=1, replication_factor=1, config={})
        yield store


@pytest.mark.live
def test_a_write_behind_an_open_transaction_says_that_it_is_hidden(
    stack: Stack, store: KafkaTopicClient, events: list[Event], unique: str
) -> None:
    producer = RealProducer(stack.bootstrap_servers, f"{unique}-open")
    producer.send(unique, 0, b"k")
    store.write([OutRecord(unique, b"k", b"v", 0)], transactional_id=TransactionalId(f"{unique}-id"))
    producer.abort()
    assert [event.message for event in events if event.warning and f"{unique}-0" in event.message]


@pytest.mark.live
def test_a_long_write_tells_how_far_it_is(store: KafkaTopicClient, events: list[Event], unique: str) -> None:
    """It told how many records were written and not of how many: no time left could be shown."""
    store.write([OutRecord(unique, b"k", b"v", 0)] * 15_000)
    told = [(event.done, event.total, event.unit) for event in events if event.done is not None]
    assert told == [(10_000, 15_000, "records"), (15_000, 15_000, "records")]


@pytest.mark.live
def test_columns_tell_how_far_they_are(store: KafkaTopicClient, events: list[Event], unique: str) -> None:
    store.write_columns([_rows(unique, 25_000)], total=25_000, transactional_id=TransactionalId(f"{unique}-id"))
    told = [(event.done, event.total, event.unit) for event in events if event.done is not None]
    done = [count for count, _total, _unit in told]
    assert (done == sorted(done), told[-1]) == (True, (25_000, 25_000, "records"))


@pytest.mark.live
@pytest.mark.parametrize("count", [1, 150_000], ids=["at-the-end", "while-sending"])
def test_columns_whose_id_was_taken_over_say_so(stack: Stack, store: KafkaTopicClient, unique: str, count: int) -> None:
    """More than librdkafka's queue holds: its error stands in the way of the next record, or only of the end."""
    transactional_id = TransactionalId(f"{unique}-id")

    def partitions_of(_topic: str) -> int:
        RealProducer(stack.bootstrap_servers, transactional_id)
        return 1

    writer = KafkaTopicWriter(
        ClientSettings((stack.bootstrap_servers,)), partitions_of,
        transactional_id=transactional_id, deadline=Deadline.after(60), on_event=ignore_events,
    )  # fmt: skip
    with pytest.raises(BrokerError, match=f"took over transactional id {transactional_id}; nothing was written"):
        writer.write_rows([[_rows(unique, count)]], total=count)
    wait_until(lambda: not store.read(unique).blocked(), what="the marker")
    assert store.read(unique).records == ()


class _QuietProducer(Producer):
    """A producer whose poll tells no fatal error yet: librdkafka refuses records a moment before it says why."""

    def poll(self, timeout: float = -1, /) -> int:
        with suppress(KafkaException, SystemError):
            return super().poll(timeout)
        return 0


@pytest.mark.live
def test_a_record_that_is_refused_before_the_error_is_told(
    stack: Stack, store: KafkaTopicClient, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It used to say "_FATAL: Unable to produce message", and not that another producer took the id over."""
    monkeypatch.setattr("eosctl.kafka.topics.writer.Producer", _QuietProducer)
    transactional_id = TransactionalId(f"{unique}-id")

    def records() -> Iterator[OutRecord]:
        yield OutRecord(unique, b"k", b"v", 0)
        RealProducer(stack.bootstrap_servers, transactional_id)
        while True:  # until one is refused
            yield OutRecord(unique, b"k", b"v", 0)

    with pytest.raises(BrokerError, match=f"took over transactional id {transactional_id}; nothing was written"):
        store.write(records(), transactional_id=transactional_id)


@pytest.mark.live
def test_one_record_that_is_too_large_aborts_all_columns(store: KafkaTopicClient, unique: str) -> None:
    """It reports nothing itself: it is not the last of its partition."""
    store.change_settings(unique, {"max.message.bytes": "100000"})
    large = Table.from_batches([batch_of_columns([[unique], [0], [b"k"], [b"v" * 200_000], [None]], SENT)])
    rows = concat_tables([_rows(unique, 10), large, _rows(unique, 10)])
    with pytest.raises(BrokerError, match="MSG_SIZE_TOO_LARGE"):
        store.write_columns([rows], total=21, transactional_id=TransactionalId(f"{unique}-id"))
    wait_until(lambda: not store.read(unique).blocked(), what="the marker")
    assert store.read(unique).records == ()


def _rows(topic: str, count: int) -> Table:
    columns = [[topic] * count, [0] * count, [b"k"] * count, [b"v"] * count, [None] * count]
    return Table.from_batches([batch_of_columns(columns, SENT)])
