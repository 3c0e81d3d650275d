"""Transactions that fit their timeout, whatever a quota makes of the writer; the producer is a stand-in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from eosctl.migrate.spark.records.kafka_writes import write_transaction

VALUE = b"x" * 900
ROWS = [("t", number % 3, b"k%d" % number, VALUE) for number in range(4000)]


class SlowProducer:
    """Confirms at `bytes_per_s`; `open_s` is how long each transaction was open."""

    def __init__(self, bytes_per_s: float) -> None:
        self.bytes_per_s, self.time_s, self.begun_s = bytes_per_s, 0.0, 0.0
        self.open_s: list[float] = []
        self.sent: list[tuple[str, int, bytes]] = []
        self.aborted = 0
        self._reports: list[Callable[[], None]] = []

    def opened(self, settings: Mapping[str, Any]) -> SlowProducer:
        """In the place of a Producer."""
        self.timeout_s = settings["transaction.timeout.ms"] / 1000
        return self

    def init_transactions(self, _timeout_s: float) -> None: ...
    def purge(self) -> None: ...
    def poll(self, _timeout_s: float) -> None: ...

    def begin_transaction(self) -> None:
        self.begun_s = self.time_s

    def produce(self, topic: str, value: bytes, key: bytes, partition: int, report: Callable[..., None]) -> None:
        offset = len(self.sent)
        self.sent.append((topic, partition, key))
        self.time_s += len(value) / self.bytes_per_s
        message = SimpleNamespace(
            topic=lambda: topic, partition=lambda: partition, value=lambda: value, offset=lambda: offset
        )
        self._reports.append(lambda: report(None, message))

    def flush(self, _timeout_s: float) -> int:
        for report in self._reports:
            report()
        self._reports.clear()
        return 0

    def commit_transaction(self, _timeout_s: float) -> None:
        self.open_s.append(self.time_s - self.begun_s)
        if self.open_s[-1] > self.timeout_s:
            raise RuntimeError("the coordinator has aborted the transaction")

    def abort_transaction(self, _timeout_s: float) -> None:
        self.aborted += 1


@pytest.mark.parametrize("bytes_per_s", [1_000, 10_000, 1_000_000_000])
def test_each_transaction_fits_its_timeout(bytes_per_s: int) -> None:
    """All went into one: with a quota of the broker on the writer its transaction was aborted after ten minutes."""
    producer = SlowProducer(bytes_per_s)
    counts = write_transaction({}, "id-0", ROWS, open_producer=producer.opened, now_s=lambda: producer.time_s)
    assert producer.sent == [(topic, partition, key) for topic, partition, key, _value in ROWS]
    assert {where: written for where, (written, _tombstones, _last) in counts.items()} == {
        ("t", 0): 1334, ("t", 1): 1333, ("t", 2): 1333,
    }  # fmt: skip
    assert max(producer.open_s) < producer.timeout_s / 1.5
    assert (len(producer.open_s) <= 3) == (bytes_per_s == 1_000_000_000), "a marker for each partition costs too"


def test_what_fails_is_aborted() -> None:
    producer = SlowProducer(1)
    with pytest.raises(RuntimeError, match="aborted the transaction"):
        write_transaction({}, "id-0", ROWS, open_producer=producer.opened, now_s=lambda: producer.time_s)
    assert producer.aborted == 1
