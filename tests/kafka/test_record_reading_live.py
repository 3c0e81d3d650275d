"""Records as eosctl's own Fetch reads them, against what librdkafka reads: whatever lies in the log."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Self

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import NewTopic, OutRecord, Record
from eosctl.deadline import Deadline
from eosctl.engine.reading.batches import Piece
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.engine.reading.stretches import record_run
from eosctl.errors import BrokerError
from eosctl.kafka.topics.pieces import read_by_librdkafka, read_pieces
from eosctl.kafka.topics.store import KafkaTopicClient
from tests.sandbox_fixtures import PATIENCE_S, wait_until

pytestmark = pytest.mark.live

PARTITIONS = 3
SMALL = {"fetch.max.bytes": "3000", "max.partition.fetch.bytes": "1000"}
"""So that a batch is asked for alone, and a large one comes all the same."""


class Log:
    """A topic of a kind, with what a log may have."""

    def __init__(self, servers: str, config: dict[str, str]) -> None:
        self.settings, self.topic = ClientSettings((servers,)), f"records-{uuid.uuid4().hex[:8]}"
        self.store = KafkaTopicClient(self.settings, deadline=Deadline.after(PATIENCE_S))
        self.store.create_all([NewTopic(self.topic, PARTITIONS, 1, {"cleanup.policy": "delete", **config})])
        self.written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.store.__exit__()

    def put(self, *, count: int, size: int = 40) -> None:
        """Records of every kind in all partitions."""
        odd = [(None, b"no key"), (b"gone", None), (b"", b""), (b"\xff", b"\x00" * size), (b"k" * 300, b"{}")]
        records = [OutRecord(self.topic, key, value, 1) for key, value in odd]
        records += [OutRecord(self.topic, b"h", b"v", 1, headers=(("a", b"\xff"), ("b", None), ("a", b"")))]
        records += [OutRecord(self.topic, b"key-%d" % n, b"v" * (n % size), n % PARTITIONS) for n in range(count)]
        self.written += len(self.store.write(records))

    def transaction(self, end: str, *, codec: str = "none") -> Producer:
        """Of small batches, as tasks write them."""
        producer = Producer(
            {
                "bootstrap.servers": self.settings.bootstrap_servers[0],
                "compression.type": codec,
                "transactional.id": uuid.uuid4().hex,
                "linger.ms": 50,
                "batch.num.messages": 2,
            }
        )
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        for number in range(60):
            producer.produce(self.topic, end.encode(), b"%s-%d" % (codec.encode(), number), number % PARTITIONS)
        producer.flush(PATIENCE_S)
        ends: dict[str, Any] = {"commit": producer.commit_transaction, "abort": producer.abort_transaction}
        if end in ends:
            ends[end](PATIENCE_S)
        return producer

    def settle(self, *, hidden: bool) -> None:
        def settled() -> bool:
            return all((bound.lso < bound.end) == hidden for bound in self.store.bounds(self.topic))

        wait_until(settled, what="the markers")

    def ranges(self, *, committed: bool, skip: int = 0) -> list[OffsetRange]:
        return [
            OffsetRange(self.topic, one.partition, one.begin + skip, one.lso if committed else one.end, PARTITIONS)
            for one in self.store.bounds(self.topic)
        ]

    def read(self, *, committed: bool, extra: dict[str, str] | None = None, skip: int = 0) -> list[Record]:
        ranges = self.ranges(committed=committed, skip=skip)
        settings = ClientSettings(self.settings.bootstrap_servers, extra=extra or {})
        pieces = read_pieces(settings, ranges, timeout=Deadline.after(PATIENCE_S), committed=committed)
        return records_of(self.topic, ranges, list(pieces))


def records_of(topic: str, ranges: Sequence[OffsetRange], pieces: Sequence[Piece]) -> list[Record]:
    return record_run(topic, ranges, pieces).records()


@pytest.mark.parametrize("codec", ["producer", "gzip", "snappy", "lz4", "zstd"])
def test_whatever_lies_in_a_log(stack: Any, codec: str) -> None:
    """Brokers compress for topics that say so, as Java's clients do; in the other one each producer has its own way."""
    times = {"message.timestamp.type": "LogAppendTime"} if codec == "gzip" else {}
    with Log(stack.bootstrap_servers, {"compression.type": codec, **times}) as log:
        log.put(count=200)
        for each in ("none", "gzip", "snappy", "lz4", "zstd") if codec == "producer" else ("none",):
            log.transaction("commit", codec=each)
            log.transaction("abort", codec=each)
        log.put(count=5, size=300_000)
        log.settle(hidden=False)
        held = log.transaction("open")
        log.settle(hidden=True)
        for committed in (True, False):
            isolation = "read_committed" if committed else "read_uncommitted"
            expected = list(log.store.read(log.topic, isolation=isolation).records)
            assert len(expected) > log.written
            assert log.read(committed=committed) == expected
            assert log.read(committed=committed, extra=SMALL) == expected
            ranges = log.ranges(committed=committed)
            theirs = read_by_librdkafka(
                log.settings, ranges, ranges, timeout=Deadline.after(PATIENCE_S), committed=committed, progress=None
            )
            assert records_of(log.topic, ranges, list(theirs)) == expected
            behind = [record for record in expected if record.offset >= 7]
            assert log.read(committed=committed, skip=7) == behind
        held.abort_transaction(PATIENCE_S)


def test_what_was_deleted_meanwhile_is_no_end_of_a_topic(stack: Any) -> None:
    """What is left out could be the newest of a key."""
    with Log(stack.bootstrap_servers, {}) as log:
        log.put(count=60)
        ranges = log.ranges(committed=True)
        admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
        for future in admin.delete_records([TopicPartition(log.topic, 0, 5)]).values():
            future.result(PATIENCE_S)
        with pytest.raises(BrokerError, match=f"{log.topic} changed while it was read: partition 0") as caught:
            list(read_pieces(log.settings, ranges, timeout=Deadline.after(PATIENCE_S)))
        assert "again" in str(caught.value.hint)
