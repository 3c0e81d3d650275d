"""A real broker, written and read by plain librdkafka and not by eosctl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from eosctl.app import App
from eosctl.core.allowances import Allowances
from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.target import Target
from tests.sandbox_fixtures import PATIENCE_S, wait_until

PARTITIONS = 25
_MOST_QUEUED = 50_000
DOWN = Allowances(force_running=True)
Line = tuple[bytes, bytes | None]


@dataclass
class Cluster:
    """A broker and a name of our own on it."""

    servers: str
    name: str

    def create(self, *topics: str, partitions: int = PARTITIONS, config: Mapping[str, str] | None = None) -> None:
        """Without a `config` nothing is compacted before the test is over."""
        config = dict(config or {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"})
        admin = AdminClient({"bootstrap.servers": self.servers})  # must outlive its futures
        made = admin.create_topics([NewTopic(topic, partitions, 1, config=config) for topic in topics])
        for future in made.values():
            future.result(PATIENCE_S)
        wait_until(lambda: made.keys() <= admin.list_topics(timeout=PATIENCE_S).topics.keys(), what="the topics")

    def grows(self, topic: str) -> bool:
        """Whether a topic has records, those of open transactions too."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "test"})
        try:
            partitions = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
            places = [TopicPartition(topic, number) for number in partitions]
            return any(consumer.get_watermark_offsets(place, timeout=PATIENCE_S)[1] for place in places)
        finally:
            consumer.close()

    def delete(self, *topics: str) -> None:
        """Returns when the topics are no longer listed."""
        admin = AdminClient({"bootstrap.servers": self.servers})
        for future in admin.delete_topics(list(topics)).values():
            future.result(PATIENCE_S)
        wait_until(lambda: admin.list_topics(timeout=PATIENCE_S).topics.keys().isdisjoint(topics), what="their end")

    def write(self, topic: str, lines: Iterable[Line], **settings: Any) -> None:
        """As Connect's own producer would, timestamps rising with every call."""
        producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "partitioner": "murmur2",
                "enable.idempotence": True,
                "message.max.bytes": 2_000_000,
                **settings,
            }
        )
        for key, value in lines:
            while len(producer) >= _MOST_QUEUED:
                producer.poll(0.1)
            producer.produce(topic, value, key)
        assert producer.flush(PATIENCE_S) == 0

    def end(self, topic: str) -> int:
        """Where the log of its first partition ends."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "test"})
        try:
            return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE_S)[1])
        finally:
            consumer.close()

    def committed(self, topic: str) -> dict[bytes, tuple[int, bytes | None]]:
        """key -> (partition, value) of the newest committed record; a key on two partitions fails the test."""
        placed = self.per_partition(topic)
        found = {key: (partition, value) for (partition, key), value in placed.items()}
        assert len(found) == len(placed), "one key on two partitions"
        return found

    def per_partition(self, topic: str) -> dict[tuple[int, bytes], bytes | None]:
        """(partition, key) -> value of the newest committed record there, read to the end."""
        found: dict[tuple[int, bytes], bytes | None] = {}
        for message in self.messages(topic):
            key, partition = message.key(), message.partition()
            assert isinstance(key, bytes)
            assert partition is not None
            found[partition, key] = message.value()
        return found

    def messages(self, topic: str, isolation_level: str = "read_committed") -> Iterator[Message]:
        """Every record of a topic, each partition read to its end; `read_uncommitted` has those of aborts too."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "test",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "isolation.level": isolation_level,
            }
        )
        try:
            partitions = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
            consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
            ended: set[int | None] = set()
            while len(ended) < len(partitions):
                for message in consumer.consume(10_000, 0.2):
                    error = message.error()
                    if error is None:
                        yield message
                    else:
                        assert error.code() == KafkaError._PARTITION_EOF, error
                        ended.add(message.partition())
        finally:
            consumer.close()


def app(cluster: Cluster, folder: Path) -> App:
    """An App on that broker whose global offsets topic has the cluster's own name."""
    settings = ClientSettings(tuple(cluster.servers.split(",")))
    return App(Target(client=settings, offset_topic=cluster.name), Deadline.after(4 * PATIENCE_S), folder)
