"""A transaction that stays open: its producer sent a record, and does nothing more."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Producer

from tests.sandbox_fixtures import PATIENCE_S

TIMEOUT_MS = 600_000  # not over before a loaded machine has come to the end of a test


def zombie(
    stack: Any, transactional_id: str, topic: str, *, key: bytes | None = None, value: bytes = b"uncommitted"
) -> Producer:
    """The producer of such a transaction, which holds one record; its brokers have it."""
    producer = Producer(
        {
            "bootstrap.servers": stack.bootstrap_servers,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TIMEOUT_MS,
            "partitioner": "murmur2",
            "log_level": 0,
        }
    )
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, value, key)
    assert producer.flush(PATIENCE_S) == 0
    return producer
