"""Transactions that fit their timeout, whatever a quota makes of the writer; the producer is a stand-in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.deadline import Clock
from eosctl.errors import BrokerError, DeadlineError
from eosctl.kafka.topics.bulk import Counts, write_in_bulk

VALUE = b"x" * 900
SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("key", pa.binary()), ("value", pa.binary())])
ROWS = [("t", number % 3, b"k%d" % number, VALUE) for number in range(4000)]
TABLE = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in ROWS], schema=SCHEMA)


class SlowProducer:
    """Confirms at `bytes_per_s`; `open_s` is how long each transaction was open."""

    def __init__(self, bytes_per_s: float) -> None:
        self.bytes_per_s, self.time_s, self.begun_s = bytes_per_s, 0.0, 0.0
        self.open_s: list[float] = []
        self.sent: list[tuple[str, int, bytes]] = []
        self.aborted = self.asked = self.full_every = self.listed = 0
        self.ends_for: KafkaError | None = None
        self._reports: list[Callable[[], None]] = []

    def opened(self, settings: Mapping[str, Any]) -> SlowProducer:
        """In the place of a Producer."""
        self.timeout_s = settings["transaction.timeout.ms"] / 1000
        return self

    def clock(self) -> Clock:
        """Its time."""
        return Clock(monotonic_s=lambda: self.time_s)

    def __len__(self) -> int:
        return len(self._reports)

    def init_transactions(self, _timeout_s: float) -> None: ...
    def purge(self) -> None: ...
    def poll(self, _timeout_s: float) -> None: ...

    def list_topics(self, timeout: float) -> None:
        self.listed += 1
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def begin_transaction(self) -> None:
        self.begun_s = self.time_s

    def produce(
        self, topic: str, value: bytes, key: bytes, partition: int, report: Callable[..., None] | None = None
    ) -> None:
        self.asked += 1
        if self.full_every and self.asked % self.full_every == 0:
            raise BufferError
        offset = len(self.sent)
        self.sent.append((topic, partition, key))
        self.time_s += len(value) / self.bytes_per_s
        message = SimpleNamespace(
            topic=lambda: topic, partition=lambda: partition, value=lambda: value, offset=lambda: offset
        )
        if report is not None:
            purged = KafkaError(KafkaError._PURGE_QUEUE) if self.ends_for else None
            self._reports.append(lambda: report(purged, message))

    def flush(self, _timeout_s: float) -> int:
        for report in self._reports:
            report()
        self._reports.clear()
        return 0

    def commit_transaction(self, _timeout_s: float) -> None:
        if self.ends_for is not None:
            raise KafkaException(self.ends_for)
        self.open_s.append(self.time_s - self.begun_s)

    def abort_transaction(self, _timeout_s: float) -> None:
        self.aborted += 1


def write(producer: SlowProducer, rows: pa.Table = TABLE) -> Counts:
    settings = ClientSettings(("memory:9092",))
    return write_in_bulk(settings, TransactionalId("id-0"), rows, open_producer=producer.opened, clock=producer.clock())


@pytest.mark.parametrize("bytes_per_s", [1_000, 10_000, 1_000_000_000])
def test_each_transaction_fits_its_timeout(bytes_per_s: int) -> None:
    """All went into one: with a quota of the broker on the writer its transaction was aborted after ten minutes."""
    producer = SlowProducer(bytes_per_s)
    counts = write(producer)
    assert producer.sent == sorted((row[:3] for row in ROWS), key=lambda row: row[:2])
    assert {where: written for where, (written, _tombstones, _last) in counts.items()} == {
        ("t", 0): 1334, ("t", 1): 1333, ("t", 2): 1333,
    }  # fmt: skip
    assert max(producer.open_s) < producer.timeout_s / 1.5
    assert (len(producer.open_s) <= 3) == (bytes_per_s == 1_000_000_000), "a marker for each partition costs too"


def test_a_transaction_has_a_bounded_number_of_partitions() -> None:
    """The coordinator's record of one over 250,000 partitions was more than a broker takes."""
    count, producer = 4500, SlowProducer(1_000_000_000)
    columns = [pa.repeat("t", count + 1), [*range(count), 7], pa.repeat(b"k", count + 1), pa.repeat(b"{}", count + 1)]
    rows = pa.table([pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)
    counts = write(producer, rows)
    assert (len(producer.open_s), len(producer.sent), counts["t", 7][0]) == (3, count + 1, 2)


def test_a_transaction_that_can_not_go_on_tells_why() -> None:
    """All that was seen was what librdkafka reports of records that it throws away then: that it does."""
    producer = SlowProducer(1_000_000_000)
    producer.ends_for = KafkaError(KafkaError.INVALID_PRODUCER_EPOCH, "fenced by somebody")
    with pytest.raises(BrokerError, match="took over transactional id id-0; nothing was written as id-0"):
        write(producer)
    assert producer.aborted == 1


def test_what_fails_is_aborted() -> None:
    producer = SlowProducer(1)
    with pytest.raises(DeadlineError, match="timed out after 600 s while writing records"):
        write(producer)
    assert producer.aborted == 1


def test_what_fails_is_aborted_and_named_though_nothing_can_be_purged() -> None:
    """The error of the purge stood in the place of the first one, and the transaction was left open."""

    class Unpurged(SlowProducer):
        def purge(self) -> None:
            raise KafkaException(KafkaError(KafkaError._STATE))

    producer = Unpurged(1)
    with pytest.raises(DeadlineError, match="timed out after 600 s while writing records"):
        write(producer)
    assert producer.aborted == 1


def test_a_full_queue_is_waited_for() -> None:
    producer = SlowProducer(1_000_000_000)
    producer.full_every = 7
    counts = write(producer)
    assert len(producer.sent) == len(ROWS)
    assert {where: last for where, (_written, _tombstones, last) in counts.items()} == {
        ("t", number): max(row for row, each in enumerate(producer.sent) if each[1] == number) for number in range(3)
    }


def test_nothing_is_opened_for_no_rows() -> None:
    producer = SlowProducer(1)
    assert write(producer, TABLE.slice(0, 0)) == {}
    assert not hasattr(producer, "timeout_s")


@pytest.mark.parametrize(("topics", "listed"), [(1, 0), (1000, 1)])
def test_where_many_topics_are_is_asked_once(topics: int, listed: int) -> None:
    """librdkafka asked for each as it came, and again for all that it waited for: 800 requests for 1,000 topics.

    It still does where the one request fails.
    """
    rows = [(f"t{number}", 0, b"k", b"v") for number in range(topics)]
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)
    producer = SlowProducer(1_000_000)
    counts = write(producer, table)
    assert (producer.listed, len(counts)) == (listed, topics)
