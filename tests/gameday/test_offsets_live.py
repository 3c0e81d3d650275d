"""Incidents of offsets: set back behind what was delivered, a topic set by hand, one that was deleted and recreated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not listed as re-exported

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from tests.gameday.ground import Ground
from tests.gameday.incident import Incident, Named, play
from tests.sandbox_fixtures import PATIENCE_S, FileSource, once_there, wait_until

pytestmark = pytest.mark.live


def goes_on(ground: Ground, source: FileSource) -> None:
    """The source delivers what comes now, and nothing that it has delivered before."""
    source.append("three")
    source.wait_position(14)
    settings = ClientSettings(bootstrap_servers=(ground.stack.bootstrap_servers,))
    with KafkaTopicClient(settings, deadline=Deadline.after(2 * PATIENCE_S)) as topics:
        lines = once_there(3, lambda: Counter(record.value for record in topics.read(source.topic).records))
    assert lines == {b"one": 1, b"two": 1, b"three": 1}


@contextmanager
def offset_set_back(ground: Ground, name: str) -> Iterator[None]:
    """Somebody writes a former offset by hand; the task would not look before its next start."""
    with ground.source(name) as source:
        source.append("two")
        source.wait_position(8)
        servers = ground.stack.bootstrap_servers
        producer = Producer({"bootstrap.servers": servers, "log_level": 0, "partitioner": "murmur2"})
        key = json.dumps([name, {"filename": str(source.path)}], separators=(",", ":"))
        producer.produce(ground.stack.state.topics[ground.group]["offset"], key=key, value=b'{"position":4}')
        assert producer.flush(PATIENCE_S) == 0
        yield
        goes_on(ground, source)


def is_made_anew(admin: AdminClient, topic: str) -> bool:
    """Deletes it and makes it; False where brokers made it first, as they do when somebody asks for it."""
    new = NewTopic(topic, 25, 1, config={"cleanup.policy": "compact"})
    with suppress(KafkaException):
        admin.delete_topics([topic])[topic].result(PATIENCE_S)
    with suppress(KafkaException):
        admin.create_topics([new])[topic].result(PATIENCE_S)
        return True
    return False


@contextmanager
def topic_made_anew(ground: Ground, name: str) -> Iterator[None]:
    """As a worker makes it at the next start of a task, where it was deleted."""
    own = f"own-{name}"
    admin = AdminClient({"bootstrap.servers": ground.stack.bootstrap_servers})
    with ground.source(name, **{"offsets.storage.topic": own}) as source:
        source.append("two")
        source.wait_position(8)
        source.stop_and_wait()
        wait_until(lambda: is_made_anew(admin, own), what=f"{own} to be there anew")
        yield
        goes_on(ground, source)
    admin.delete_topics([own])[own].result(PATIENCE_S)


@contextmanager
def topic_set_by_hand(ground: Ground, name: str) -> Iterator[None]:
    """A person gives the connector an offsets topic of its own, and nothing of what is in the global one."""
    with ground.source(name) as source:
        source.append("two")
        source.wait_position(8)
        away = source.path.rename(f"{source.path}.away")  # else the task would write its first offset there at once
        source.put(**{"offsets.storage.topic": f"own-{name}"})
        wait_until(lambda: source.task_states() == ["RUNNING"], what="the task to run on its new topic")
        yield
        away.rename(source.path)
        goes_on(ground, source)


INCIDENTS = (
    Incident(
        "an offset is set back",
        offset_set_back,
        (Named("offsets_went_back", "{}"),),
        ("eosctl connectors stop {}", "eosctl offsets set --connector {}", "eosctl connectors resume {}"),
    ),
    Incident(
        "an offsets topic was set by hand",
        topic_set_by_hand,
        (Named("offsets_topic_empty", "{}"),),
        ("eosctl connectors stop {}", "eosctl offsets merge --connector {}", "eosctl connectors resume {}"),
    ),
    Incident(
        "a connector's offsets topic is recreated",
        topic_made_anew,
        (Named("offsets_topic_empty", "{}"),),
        ("eosctl connectors stop {}", "eosctl offsets merge --connector {}", "eosctl connectors resume {}"),
    ),
)


@pytest.mark.parametrize("incident", INCIDENTS, ids=str)
def test_it_is_named_and_the_printed_remedy_heals(incident: Incident, ground: Ground, unique: str) -> None:
    play(incident, ground, unique)
