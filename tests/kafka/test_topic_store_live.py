"""What only the real TopicStore does: it tells how far a write is, and what hides it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.records import OutRecord
from eosctl.deadline import Deadline
from eosctl.events import Event
from eosctl.kafka.topics.store import KafkaTopicStore
from eosctl.sandbox.stack import Stack
from tests.contract.clusters import RealProducer


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def store(stack: Stack, events: list[Event], unique: str) -> Iterator[KafkaTopicStore]:
    """With a topic of one partition, by the test's name."""
    settings = ClientSettings((stack.bootstrap_servers,))
    with KafkaTopicStore(settings, deadline=Deadline.after(120), on_event=events.append) as store:
        store.create(unique, partitions=1, replication_factor=1, config={})
        yield store


@pytest.mark.live
def test_a_write_behind_an_open_transaction_says_that_it_is_hidden(
    stack: Stack, store: KafkaTopicStore, events: list[Event], unique: str
) -> None:
    producer = RealProducer(stack.bootstrap_servers, f"{unique}-open")
    producer.send(unique, 0, b"k")
    store.write([OutRecord(unique, b"k", b"v", 0)], transactional_id=TransactionalId(f"{unique}-id"))
    producer.abort()
    assert [event.message for event in events if event.warning and f"{unique}-0" in event.message]


@pytest.mark.live
def test_a_long_write_tells_how_far_it_is(store: KafkaTopicStore, events: list[Event], unique: str) -> None:
    """It told how many records were written and not of how many: no time left could be shown."""
    store.write([OutRecord(unique, b"k", b"v", 0)] * 15_000)
    told = [(event.done, event.total, event.unit) for event in events if event.done is not None]
    assert told == [(10_000, 15_000, "records"), (15_000, 15_000, "records")]
