"""Incidents of topics: settings that workers refuse, records that break them, transactions that nobody ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not listed as re-exported
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.findings import WARNING
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.sandbox.operations import Zombie
from tests.gameday.ground import Ground
from tests.gameday.incident import Incident, Named, Saboteur, play
from tests.hanging_transactions import unverified_transactions, write_in_a_transaction_that_no_coordinator_knows
from tests.sandbox_fixtures import PATIENCE_S, wait_until

pytestmark = pytest.mark.live


def set_policy(ground: Ground, topic: str, policy: str) -> None:
    entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": ground.stack.bootstrap_servers})
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result(PATIENCE_S)


def own_settings(ground: Ground, topic: str) -> Mapping[str, str]:
    """What is set for the topic itself."""
    settings = ClientSettings(bootstrap_servers=(ground.stack.bootstrap_servers,))
    with KafkaTopicClient(settings, deadline=Deadline.after(PATIENCE_S)) as store:
        return store.own_settings(topic)


def cleanup_policy(kind: str, policy: str) -> Saboteur:
    """The group's topic for `kind` is no longer compacted, or not only."""

    @contextmanager
    def changed(ground: Ground, _name: str) -> Iterator[None]:
        topic = ground.stack.state.topics[ground.group][kind]
        set_policy(ground, topic, policy)
        try:
            yield
        finally:
            set_policy(ground, topic, "compact")

    return changed


@contextmanager
def hanging_transaction(ground: Ground, name: str) -> Iterator[None]:
    """Readers of committed records wait in a data topic, for ever."""
    admin = AdminClient({"bootstrap.servers": ground.stack.bootstrap_servers})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(PATIENCE_S)
    try:
        with unverified_transactions(ground.stack):
            wait_until(
                lambda: write_in_a_transaction_that_no_coordinator_knows(ground.stack, name, producer_id=987_654_321),
                what="the broker to take the batch",
            )
            yield
    finally:
        admin.delete_topics([name])[name].result(PATIENCE_S)


@contextmanager
def topic_held_by_a_stranger(ground: Ground, name: str) -> Iterator[None]:
    """Somebody's transaction stays open on the topic of a connector, for longer than half of its timeout.

    It has to be named and fenced in the other half, on a loaded machine too.
    """
    timeout_ms, servers = 150_000, ground.stack.bootstrap_servers
    with ground.source(name) as source:
        began_s = time.monotonic()
        with Zombie(servers, f"{name}-stranger", topic=source.topic, record=b"open", timeout_ms=timeout_ms):
            wait_until(lambda: time.monotonic() - began_s > timeout_ms / 2000, what="half of the timeout to be over")
            yield
        source.append("two")
        source.wait_position(8)


@contextmanager
def task_count_of_another_type(ground: Ground, name: str) -> Iterator[None]:
    """A starting worker gives up reading the config topic at that record; overwriting it helps nobody."""
    topic = ground.stack.state.topics[ground.group]["config"]
    with ground.source(name) as source:
        before = own_settings(ground, topic)
        producer = Producer({"bootstrap.servers": ground.stack.bootstrap_servers, "log_level": 0})
        producer.produce(topic, key=f"tasks-fencing-{name}".encode(), value=b'{"task-count":"1"}', partition=0)
        assert producer.flush(PATIENCE_S) == 0
        yield
        assert own_settings(ground, topic) == before
        assert source.task_states() == ["RUNNING"]


INCIDENTS = (
    Incident(
        "the offsets topic is deleted from",
        cleanup_policy("offset", "delete"),
        (Named("not_compacted", "connect-offsets", follows=("offset_topic",)),),
        ("kafka-configs.sh",),
    ),
    Incident(
        "the status topic is deleted from",
        cleanup_policy("status", "compact,delete"),
        (Named("status_not_compact", "connect-status"),),
        ("kafka-configs.sh",),
    ),
    Incident(
        "a transaction hangs",
        hanging_transaction,
        (Named("hanging_transaction", "{}-0"), Named("ids_may_be_hidden", "transactions", WARNING)),
        ("eosctl txn abort",),
    ),
    Incident(
        "a stranger's transaction on a data topic",
        topic_held_by_a_stranger,
        (Named("data_topic_held", "{}-stranger"),),
        ("eosctl txn describe", "eosctl fence"),
    ),
    Incident(
        "a task-count record that breaks workers",
        task_count_of_another_type,
        (Named("wrong_type", "{}"),),
        ("eosctl task-counts clean",),
    ),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")  # kafka-python, when imported
@pytest.mark.parametrize("incident", INCIDENTS, ids=str)
def test_it_is_named_and_the_printed_remedy_heals(incident: Incident, ground: Ground, unique: str) -> None:
    play(incident, ground, unique)
