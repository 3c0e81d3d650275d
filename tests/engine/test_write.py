"""Where records go."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from eosctl.core.offsets.names import partition_for
from eosctl.core.records import Record
from eosctl.engine.columns import SENT, batch_of_rows
from eosctl.engine.keys import hash_column
from eosctl.engine.reading.heads import headers_text
from eosctl.engine.write import placed, produce_rows, stamped, tombstones


def test_a_key_stays_where_the_target_has_it() -> None:
    decisions = pa.table(
        {
            "topic": ["t", "u", "t"],
            "partition": pa.array([4, None, None], pa.int32()),
            "partitions": pa.array([5, 7, 5], pa.int32()),
            "key": pa.array([b"a", b"b", b"c"]),
            "hash": hash_column(pa.array([b"a", b"b", b"c"])),
            "value": pa.array([b"{}", None, b"{}"]),
        }
    )
    found = placed(decisions)
    assert found["partition"].to_pylist() == [4, partition_for(b"b", 7), partition_for(b"c", 5)]
    assert found.column_names == ["topic", "partition", "key", "value"]


class Producer:
    """Keeps what it is handed: topic, value, key, partition; then callback, callback, timestamp and headers, if any."""

    def __init__(self) -> None:
        self.handed: list[tuple[Any, ...]] = []

    def produce(self, *arguments: Any) -> None:
        self.handed.append(arguments)

    def poll(self, _timeout_s: float) -> None: ...


def test_a_producer_is_handed_the_time_and_the_headers_of_those_that_have_some() -> None:
    rows = [("t", 0, b"a", b"1", None), ("t", 0, b"b", None, headers_text((("h", b"1"),))), ("t", 1, b"c", b"3", None)]
    table, told = pa.Table.from_batches([batch_of_rows(rows, SENT)]), print
    plain, timed = Producer(), Producer()
    assert (
        sum(produce_rows(plain, table, on_last=told)) == sum(produce_rows(timed, stamped(table, 7), on_last=told)) == 3
    )
    assert plain.handed == [
        ("t", b"1", b"a", 0),
        ("t", None, b"b", 0, told, None, 0, [("h", b"1")]),
        ("t", b"3", b"c", 1, told),
    ]
    assert timed.handed == [
        ("t", b"1", b"a", 0, None, None, 7),
        ("t", None, b"b", 0, told, None, 7, [("h", b"1")]),
        ("t", b"3", b"c", 1, told, None, 7),
    ]


def test_tombstones_are_stamped() -> None:
    [found] = tombstones([Record("t", 2, 5, 9, b"k", b"v")], timestamp_ms=11)
    assert found.to_pylist() == [
        {"topic": "t", "partition": 2, "key": b"k", "value": None, "headers": None, "timestamp_ms": 11}
    ]
