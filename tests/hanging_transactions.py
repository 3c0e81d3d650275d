"""A transaction that really hangs: written past the coordinator, as brokers before Kafka 3.6 let any client do."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not listed as re-exported
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from tests.sandbox_fixtures import PATIENCE_S


def offsets(stack: Any, topic: str) -> tuple[int, int]:
    """LSO and high watermark of partition 0."""
    from confluent_kafka import IsolationLevel, TopicPartition

    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    found = []
    for isolation in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
        asked = {TopicPartition(topic, 0): OffsetSpec.latest()}  # type: ignore[no-untyped-call]
        (future,) = admin.list_offsets(asked, isolation_level=isolation).values()
        found.append(future.result(PATIENCE_S).offset)
    return found[0], found[1]


@contextmanager
def unverified_transactions(stack: Any) -> Iterator[None]:
    """The broker does not ask coordinators about transactional writes, as brokers before 3.6 did not (KIP-890)."""
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    node = str(next(iter(admin.list_topics(timeout=PATIENCE_S).brokers)))
    name = "transaction.partition.verification.enable"

    def change(operation: Any, value: str | None) -> None:
        entry = ConfigEntry(name, value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.BROKER, node, incremental_configs=[entry])
        (future,) = admin.incremental_alter_configs([resource]).values()
        future.result(PATIENCE_S)

    change(AlterConfigOpType.SET, "false")
    try:
        yield
    finally:
        change(AlterConfigOpType.DELETE, None)


def write_in_a_transaction_that_no_coordinator_knows(
    stack: Any, topic: str, *, producer_id: int, producer_epoch: int = 0
) -> bool:
    """Produce v7 with one transactional batch, an hour old, from a producer id that nobody was ever given.

    Whether the broker took it: it refuses (INVALID_PRODUCER_ID_MAPPING) until it has heard of its changed setting, and
    (UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER) until it has heard of a new topic.
    """
    from kafka.record.default_records import DefaultRecordBatchBuilder

    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=True, producer_id=producer_id, producer_epoch=producer_epoch,
        base_sequence=0, batch_size=1_000,
    )  # fmt: skip
    builder.append(0, timestamp=int(time.time() * 1000) - 3_600_000, key=None, value=b"lost", headers=[])
    batch = bytes(builder.build())

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    body = text("ghost") + struct.pack(">hii", -1, 30_000, 1) + text(topic) + struct.pack(">iii", 1, 0, len(batch))
    request = struct.pack(">hhi", 0, 7, 1) + text("test") + body + batch
    host, port = stack.bootstrap_servers.split(",")[0].rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answers:
            (size,) = struct.unpack(">i", answers.read(4))
            answer = answers.read(size)
    at = 4 + 4 + 2 + len(topic) + 4 + 4  # correlation id, topics, name, partitions, index
    (error,) = struct.unpack_from(">h", answer, at)
    assert error in (0, 3, 6, 49), error
    return bool(error == 0)
