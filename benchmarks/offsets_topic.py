"""An offsets topic of many connectors, which several benchmarks read or move.

25 partitions, keys and values as Connect writes them, one record in five superseded, some tombstones, half of the
records in transactions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from confluent_kafka import Producer

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient

TOPIC = "connect-offsets"
_SUPERSEDED_EVERY, _TOMBSTONE_EVERY, _TRANSACTION_SIZE = 5, 50, 1_000


def fill(
    bootstrap: str,
    count: int,
    records: Iterator[tuple[bytes, bytes | None]] | None = None,
    *,
    connectors: int = 40,
    per_batch: int = 10_000,
    topic: str = TOPIC,
    traced: bool = False,
) -> None:
    """Write `count` records to a new topic, the first half plainly, the second in transactions.

    They are `records`, or without these what `records_of` yields for `connectors` sources. A batch has at most
    `per_batch` of them. `traced`: each has a header, a `traceparent`, as tracing adds it.
    """
    with KafkaTopicClient(ClientSettings(bootstrap_servers=(bootstrap,)), deadline=Deadline.after(120)) as store:
        store.create(topic, partitions=25, replication_factor=1, config={"cleanup.policy": "compact"})
    settings = {
        "bootstrap.servers": bootstrap,
        "partitioner": "murmur2",
        "linger.ms": 20,
        "batch.num.messages": per_batch,
        "queue.buffering.max.messages": 2_000_000,
        "enable.metrics.push": False,
        "log_level": 0,
    }
    traces = itertools.count() if traced else None
    records, plain = records or records_of(count, connectors=connectors), Producer(settings)
    for key, value in itertools.islice(records, count // 2):
        _produce(plain, topic, key, value, traces)
        plain.poll(0)
    plain.flush(120)
    exact = Producer(settings | {"transactional.id": "benchmark-fill"})
    exact.init_transactions(30)
    for _start in range(count // 2, count, _TRANSACTION_SIZE):
        exact.begin_transaction()
        for key, value in itertools.islice(records, _TRANSACTION_SIZE):
            _produce(exact, topic, key, value, traces)
        exact.commit_transaction(60)


def _produce(
    producer: Producer, topic: str, key: bytes, value: bytes | None, traces: Iterator[int] | None = None
) -> None:
    headers: list[tuple[str, str | bytes | None]] = []
    if traces is not None:
        headers = [("traceparent", b"00-%032x-%016x-01" % ((next(traces),) * 2))]
    while True:
        try:
            producer.produce(topic, key=key, value=value, headers=headers)
        except BufferError:  # millions are waiting
            producer.poll(0.1)
        else:
            return


def records_of(count: int, *, connectors: int = 40) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield keys and values as Debezium-like sources with many tables have them."""
    for number in range(count):
        superseding = number % _SUPERSEDED_EVERY == 0
        table = number // 10 * 5 + 1 if superseding else number  # 1, 6, 11, …: twice more each
        key = b'["inventory-source-%02d",{"database":"shop","table":"orders_%07d"}]' % (table % connectors, table)
        value = (
            None if number % _TOMBSTONE_EVERY == 1 else b'{"lsn":%d,"txId":%d,"snapshot":false}' % (9 * number, number)
        )
        yield key, value


def names_of(connectors: int) -> list[str]:
    """Return the connectors, of so many, that `records_of` has records of: no table has a multiple of five."""
    return [f"inventory-source-{number:02d}" for number in range(connectors) if number % _SUPERSEDED_EVERY]
