"""What became of each record of a log: committed, aborted, still open; and which records are a connector's."""

from __future__ import annotations

import pytest

from eosctl.core.records import Bounds, Record, TopicRead
from eosctl.offsets.history.events import ConnectorFilter, State, name_in_keys, versions

TOPIC = "connect-offsets"


def record(offset: int, key: bytes | None = b'["c",{"filename":"/f"}]', *, partition: int = 0) -> Record:
    return Record(TOPIC, partition, offset, offset, key, b'{"position":1}')


def read(lso: int | None, *records: Record) -> TopicRead:
    """What a read up to an LSO found; None: the partition was not there yet."""
    bounds = () if lso is None else (Bounds(0, 0, lso, 10),)
    return TopicRead(TOPIC, bounds, records, len(records))


@pytest.mark.parametrize(
    ("offset", "committed_lso", "shown_lso", "state"),
    [
        (4, 5, 5, State.ABORTED),  # it lies below what was decided, and did not count
        (5, 5, 5, State.OPEN),  # the first that is not decided
        (5, 5, 6, None),  # decided between the two reads: nobody knows how
        (0, None, None, State.OPEN),  # a partition that came between the two reads
        (0, None, 1, None),
    ],
)
def test_what_became_of_a_record_that_read_committed_lacked(
    offset: int, committed_lso: int | None, shown_lso: int | None, state: State | None
) -> None:
    sieve = ConnectorFilter("c")
    kept = tuple(sieve([record(offset)]))
    [found] = versions(read(committed_lso), read(shown_lso, *kept), sieve.keys)
    assert found.state is state


@pytest.mark.parametrize("offset", [4, 5])
def test_what_read_committed_had_is_committed_whatever_the_second_read_says(offset: int) -> None:
    """Compaction may have taken it in between."""
    sieve = ConnectorFilter("c")
    [found] = versions(read(5, *sieve([record(offset)])), read(5), sieve.keys)
    assert found.state is State.COMMITTED


@pytest.mark.parametrize(
    ("connector", "key"),
    [
        ("c", b'["c",{"filename":"/f"}]'),
        ("c", rb'["\u0063",{"filename":"/f"}]'),  # escaped by another writer
        ("ü", '["ü",{"filename":"/f"}]'.encode()),
        ("ü", rb'["\u00fc",{"filename":"/f"}]'),
        ('a"b', rb'["a\"b",{"filename":"/f"}]'),
        ("\ud800", rb'["\ud800",{"filename":"/f"}]'),  # half of a pair: no UTF-8, and as text all the same
    ],
)
def test_the_sieve_keeps_a_connectors_records_however_its_name_is_written(connector: str, key: bytes) -> None:
    sieve = ConnectorFilter(connector)
    own = record(1, key)
    others = [record(0, None), record(2, b'["d",{"filename":"/c"}]'), record(3, b"c"), record(4, b"", partition=1)]
    assert list(sieve([others[0], own, *others[1:]])) == [own]
    assert [each.connector for each in sieve.keys.values()] == [connector]
    assert dict(sieve.counts) == {0: 4, 1: 1}


@pytest.mark.parametrize(("connector", "written"), [("c", b"c"), ("ü-1", b"\xc3\xbc-1"), ('a"b', b'a\\"b'), ("", b"")])
def test_the_name_as_keys_have_it_is_how_they_are_told_fast(connector: str, written: bytes) -> None:
    assert name_in_keys(connector) == written
