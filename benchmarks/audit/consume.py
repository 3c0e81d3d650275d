"""`python -m benchmarks.audit.consume SERVERS TOPIC`: librdkafka reads a topic from its beginning to its end."""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, KafkaError, TopicPartition

from eosctl.core.clients.settings import ClientSettings
from eosctl.kafka.topics.runs import consumer_properties


def main(servers: str, topic: str) -> None:
    """With the settings of eosctl's own reader, the fastest that were found."""
    settings = ClientSettings(tuple(servers.split(",")))
    consumer = Consumer(consumer_properties(settings, committed=False))
    left = set(consumer.list_topics(topic, 30).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
    while left:
        for message in consumer.consume(10_000, 0.1):
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition() or 0)
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
