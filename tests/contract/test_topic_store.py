"""What every TopicClient does: one suite, on the fake of the tests and on real brokers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from eosctl.core.ids import TransactionalId
from eosctl.core.records import Bounds, KnownBounds, NewTopic, OutRecord, Record
from eosctl.engine.reading.heads import headers_in
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.errors import BrokerError, NotFoundError, UsageError
from eosctl.ports import TopicClient
from tests.contract.clusters import SESSION, Subject, on
from tests.sandbox_fixtures import wait_until

PARTITIONS = 3
REAL = on("stack", f"{SESSION}three_brokers", f"{SESSION}old_stack")
OTHERS = on(f"{SESSION}stack", "three_brokers", "old_stack", slow=True)
"""A full run has each cluster once, and librdkafka on one of them: it speaks to each version as to the others."""
pytestmark = pytest.mark.parametrize("subject", ["memory", *REAL, *OTHERS], indirect=True, scope="module")


@pytest.fixture
def topic(store: TopicClient, name: str) -> str:
    """A new topic of three partitions."""
    store.create(name, partitions=PARTITIONS, replication_factor=1, config={"cleanup.policy": "compact"})
    return name


def _at(topic: str, partition: int, *pairs: tuple[bytes, bytes | None]) -> list[OutRecord]:
    return [OutRecord(topic, key, value, partition) for key, value in pairs]


def test_a_created_topic_is_described_and_empty(store: TopicClient, topic: str) -> None:
    found = store.describe([topic, "contract-nowhere"])
    assert list(found) == [topic]
    assert (found[topic].partitions, found[topic].replication_factor) == (PARTITIONS, 1)
    assert found[topic].config["cleanup.policy"] == "compact"
    assert found[topic].topic_id
    assert store.describe([topic], configs=False) == {topic: replace(found[topic], config={})}
    assert [(b.partition, b.begin, b.lso, b.end) for b in store.bounds(topic)] == [(p, 0, 0, 0) for p in range(3)]
    assert store.read(topic).records == ()


def test_a_description_says_where_each_partition_lies(store: TopicClient, topic: str) -> None:
    brokers = set(store.broker_settings("transaction.max.timeout.ms"))
    placements = store.describe([topic])[topic].placements
    assert [each.partition for each in placements] == list(range(PARTITIONS))
    for each in placements:
        assert each.replicas == each.in_sync == (each.leader,), "one replica, which leads"
        assert {each.leader} <= brokers
        assert each.offline == ()


def test_every_broker_tells_its_settings(store: TopicClient) -> None:
    settings = store.broker_settings("transaction.max.timeout.ms")
    assert set(settings.values()) == {"900000"}
    assert store.broker_settings("no.such.setting") == {}


def test_records_come_in_partition_then_offset_order(store: TopicClient, topic: str) -> None:
    pairs = [(f"k{n}".encode(), str(n).encode()) for n in range(20)]
    store.write([record for p in (2, 0) for record in _at(topic, p, *pairs)])
    read = store.read(topic)
    assert [(r.partition, r.offset, r.key) for r in read.records] == [
        (p, offset, key) for p in (0, 2) for offset, (key, _) in enumerate(pairs)
    ]
    assert read.records_read == 40


def test_the_answer_to_a_write_is_in_the_order_given(store: TopicClient, topic: str) -> None:
    written = store.write(_at(topic, 2, (b"a", b"1")) + _at(topic, 0, (b"b", b"2")) + _at(topic, 2, (b"c", b"3")))
    assert [(w.partition, w.offset) for w in written] == [(2, 0), (0, 0), (2, 1)]


def test_bytes_headers_and_timestamps_survive(store: TopicClient, topic: str) -> None:
    headers = (("a", b"\x00\xff"), ("a", None))
    store.write([OutRecord(topic, b"\xff\xfe", b"\x80", 1, timestamp_ms=1_600_000_000_000, headers=headers)])
    (record,) = store.read(topic).records
    assert (record.key, record.value, record.headers) == (b"\xff\xfe", b"\x80", headers)
    assert record.timestamp_ms == 1_600_000_000_000


def test_a_key_falls_where_java_puts_it(store: TopicClient, topic: str) -> None:
    (written,) = store.write([OutRecord(topic, b"21", b"v")])
    assert written.partition == (-973932308 & 0x7FFFFFFF) % PARTITIONS
    assert store.read(topic).partition_for(b"21", PARTITIONS) == written.partition


def test_newest_per_key_keeps_tombstones_and_counts_all(store: TopicClient, topic: str) -> None:
    store.write(_at(topic, 0, (b"a", b"1"), (b"b", b"1"), (b"a", None), (b"", b"empty")) + _at(topic, 1, (b"a", b"x")))
    read = store.read(topic, newest_per_key=True)
    assert [(r.partition, r.offset, r.key, r.value) for r in read.records] == [
        (0, 1, b"b", b"1"),
        (0, 2, b"a", None),
        (0, 3, b"", b"empty"),
        (1, 0, b"a", b"x"),
    ]
    assert read.records_read == 5


def test_a_partition_can_be_read_from_an_offset_on(store: TopicClient, topic: str) -> None:
    """What came since a plan was made is little; the whole topic may be large."""
    store.write(_at(topic, 0, (b"a", b"1"), (b"b", b"1"), (b"a", b"2")) + _at(topic, 1, (b"a", b"x")))
    read = store.read(topic, since={0: 1, 2: 99})
    assert [(r.partition, r.offset) for r in read.records] == [(0, 1), (0, 2), (1, 0)]
    assert (read.records_read, read.bounds) == (3, store.bounds(topic))


def test_a_partition_can_be_read_up_to_an_offset(store: TopicClient, topic: str) -> None:
    pairs = [(f"k{n}".encode(), b"v") for n in range(4)]
    store.write(_at(topic, 0, *pairs) + _at(topic, 1, *pairs))
    read = store.read(topic, since={0: 1}, until={0: 3, 1: 0})
    assert [(r.partition, r.offset) for r in read.records] == [(0, 1), (0, 2)]
    assert [(b.begin, b.lso) for b in read.bounds] == [(0, 4), (0, 4), (0, 0)], "the bounds are those of the log"
    assert len(store.read(topic, since={0: 3}, until={0: 2}).records) == 4


def test_only_what_a_sieve_keeps_is_held(store: TopicClient, topic: str) -> None:
    """It sees every record, those of a partition in order; the newest of a key is that of those which it keeps."""
    store.write(_at(topic, 0, *((b"a", str(n).encode()) for n in range(5)), (b"b", b"x")))
    seen: list[Record] = []

    def even(records: Sequence[Record]) -> Sequence[Record]:
        seen.extend(records)
        return [record for record in records if record.offset % 2 == 0]

    read = store.read(topic, keep=even)
    assert [(r.offset, r.key) for r in seen] == [*((n, b"a") for n in range(5)), (5, b"b")]
    assert ([r.offset for r in read.records], read.records_read) == ([0, 2, 4], 6)
    assert [r.offset for r in store.read(topic, newest_per_key=True, keep=even).records] == [4]


def test_a_sieve_sees_each_record_once_where_the_compression_changed(store: TopicClient, name: str) -> None:
    """An audit that counted its first records twice took them for duplicates. They are more than one fetch brings."""
    store.create(name, partitions=1, replication_factor=1, config={"compression.type": "uncompressed"})
    for _record in range(10):
        store.write(_at(name, 0, (b"k", bytes(900_000))))
    changed = {"compression.type": "gzip"}
    store.change_settings(name, changed)
    wait_until(lambda: store.own_settings(name) == changed, what="the new setting")
    store.write(_at(name, 0, (b"k", bytes(1000))))
    seen: list[int] = []

    def note(records: Sequence[Record]) -> Sequence[Record]:
        seen.extend(record.offset for record in records)
        return records

    read = store.read(name, keep=note)
    assert seen == [record.offset for record in read.records] == list(range(11))
    assert read.records_read == 11


@pytest.mark.parametrize("at_once", [30, 50_000])
def test_a_stream_has_what_a_read_has_in_the_same_order(
    store: TopicClient, topic: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read held everything in memory; a stream takes the bounds at which it ends, and some partitions at a time."""
    monkeypatch.setattr("eosctl.kafka.topics.streaming.PART_OFFSETS", at_once)
    pairs = [(f"k{n % 7}".encode(), str(n).encode()) for n in range(20)]
    store.write([record for p in (2, 0, 1) for record in _at(topic, p, *pairs)])
    store.write([OutRecord(topic, b"h", b"%d" % n, 1, headers=(("h", b"\xff"),)) for n in range(2)])
    bounds = store.bounds(topic)
    whole, newest = store.read(topic), store.read(topic, newest_per_key=True)
    store.write(_at(topic, 0, (b"late", b"1")))
    for read, newest_per_key in ((whole, False), (newest, True)):
        stretches = list(store.stream(topic, bounds, newest_per_key=newest_per_key))
        assert tuple(record for each in stretches for record in each.records()) == read.records
        assert sum(each.read for each in stretches) == read.records_read


def test_records_without_a_key_are_all_kept(store: TopicClient, name: str) -> None:
    store.create(name, partitions=1, replication_factor=1, config={})
    store.write([OutRecord(name, None, b"1", 0), OutRecord(name, None, b"2", 0)])
    assert [r.value for r in store.read(name, newest_per_key=True).records] == [b"1", b"2"]
    (stretch,) = store.stream(name, store.bounds(name), newest_per_key=True)
    assert [r.value for r in stretch.records()] == [b"1", b"2"]


def test_columns_have_what_a_read_of_the_newest_has(store: TopicClient, topic: str) -> None:
    pairs = [(b"k", b"1"), (b"\xff", b"2"), (b"k", None), (b"gone", b"null")]
    store.write(_at(topic, 0, *pairs) + _at(topic, 2, (b"k", b"3")), transactional_id=TransactionalId("columns"))
    store.write([OutRecord(topic, b"h", b"4", 2, headers=(("a", b"\xff"), ("b", None)))])
    read, columns = store.read(topic, newest_per_key=True), store.read_columns(topic)
    rows = sorted(columns.records.to_pylist(), key=lambda row: (row["partition"], row["offset"]))
    assert [(row["partition"], row["offset"], row["timestamp_ms"], row["key"], row["value"]) for row in rows] == [
        record[1:6] for record in read.records
    ]
    headers = [() if row["headers"] is None else headers_in(row["headers"]) for row in rows]
    assert headers == [record.headers for record in read.records]
    assert (columns.topic, columns.bounds, sum(map(bool, headers))) == (topic, read.bounds, 1)
    bare, unasked = store.read_columns(topic, bare=True).records, ["connector"]
    known, order = columns.records.drop_columns(unasked), [("partition", "ascending"), ("offset", "ascending")]
    assert bare.drop_columns(unasked).sort_by(order).to_pylist() == known.sort_by(order).to_pylist()
    assert [bare[name].null_count for name in unasked] == [len(bare)]
    some = store.read_columns(topic, since={2: 1}, partitions=[2]).records
    assert (some["partition"].to_pylist(), some["key"].to_pylist()) == ([2], [b"h"])
    assert len(store.read_columns(topic, partitions=[]).records) == 0


def test_pieces_have_the_committed_records_of_ranges_with_their_producers(store: TopicClient, topic: str) -> None:
    """In the order of the log, with every record of a key, those of each range under its number."""
    begin = store.write(_at(topic, 0, (b"before", b"0")))[0].offset + 1
    for who in ("mine", "yours"):
        sent = _at(topic, 0, (b"k", who.encode()), (b"k", None)) + _at(topic, 2, (b"k", who.encode()))
        store.write(sent, transactional_id=TransactionalId(f"{topic}-{who}"))
    bounds = store.bounds(topic)
    ranges = [OffsetRange(topic, 2, 0, bounds[2].lso, 3), OffsetRange(topic, 0, begin, bounds[0].lso, 3)]
    found = dict[int, list[tuple[bytes | None, int]]]()
    for piece in store.pieces(ranges):
        rows = zip(piece.columns.to_pylist(), piece.producers.tolist(), strict=True)
        for row, producer in rows:
            found.setdefault(row["place"], []).append((row["value"], producer))
    (_, mine), (_, yours) = found[0]
    assert mine != yours
    assert found == {
        0: [(b"mine", mine), (b"yours", yours)],
        1: [(b"mine", mine), (None, mine), (b"yours", yours), (None, yours)],
    }
    assert list(store.pieces([OffsetRange(topic, 1, 0, 0, 3)])) == []


def test_a_look_at_the_newest_records_does_not_read_the_rest(store: TopicClient, topic: str, name: str) -> None:
    store.create(f"{name}-empty", partitions=1, replication_factor=1, config={})
    store.write(
        _at(topic, 2, *((b"old", b"x") for _ in range(30)), (b"a", b"1"), (b"a", None)) + _at(topic, 0, (b"b", b"2"))
    )
    found = store.newest_of([topic, f"{name}-empty"], offsets=3)
    assert {t: [(r.partition, r.offset, r.key, r.value) for r in records] for t, records in found.items()} == {
        topic: [(0, 0, b"b", b"2"), (2, 29, b"old", b"x"), (2, 30, b"a", b"1"), (2, 31, b"a", None)],
        f"{name}-empty": [],
    }
    with pytest.raises(NotFoundError, match="contract-nowhere"):
        store.newest_of(["contract-nowhere"], offsets=3)


def test_partitions_that_all_have_leaders_are_all_known(store: TopicClient, topic: str) -> None:
    store.write(_at(topic, 1, (b"k", b"v")))
    assert store.known_bounds(topic) == KnownBounds(store.bounds(topic), {})
    assert store.known_bounds_of([topic]) == {topic: store.known_bounds(topic)}
    assert store.known_bounds_of([topic], partitions={topic: PARTITIONS}) == {topic: store.known_bounds(topic)}
    assert store.bounds_of([topic], partitions={topic: PARTITIONS}) == {topic: store.bounds(topic)}
    some = KnownBounds(store.bounds(topic)[:2], {})
    assert store.known_bounds_of([topic], partitions={topic: 2, "contract-nowhere": 1}) == {topic: some}
    read = store.read(topic, partly=True)
    assert ([r.value for r in read.records], read.missing) == ([b"v"], {})


def test_a_partition_that_a_topic_has_not_is_not_found(store: TopicClient, topic: str) -> None:
    with pytest.raises(NotFoundError, match=topic):
        store.known_bounds_of([topic], partitions={topic: PARTITIONS + 1})
    assert store.bounds_of([topic], partitions={topic: PARTITIONS + 1}) == {topic: store.bounds(topic)}


def test_a_missing_topic_is_not_found(store: TopicClient) -> None:
    with pytest.raises(NotFoundError, match="contract-nowhere"):
        store.read("contract-nowhere")
    with pytest.raises(NotFoundError, match="contract-nowhere"):
        store.bounds("contract-nowhere")
    with pytest.raises(NotFoundError, match="contract-nowhere"):
        store.known_bounds("contract-nowhere")
    with pytest.raises(NotFoundError, match="contract-nowhere"):
        store.known_bounds_of(["contract-nowhere"])
    with pytest.raises(NotFoundError, match="contract-nowhere"):
        store.known_bounds_of(["contract-nowhere"], partitions={"contract-nowhere": 1})
    with pytest.raises(NotFoundError, match="contract-nowhere"):
        store.bounds_of(["contract-nowhere"])
    with pytest.raises(NotFoundError, match="contract-nowhere"):
        store.write([OutRecord("contract-nowhere", b"k", b"v")])


@pytest.mark.parametrize("topic", ["${file:/x:y}", "a b", "a/b", "o@p", "x" * 250])
def test_a_name_that_no_topic_can_have_is_refused(store: TopicClient, topic: str) -> None:
    with pytest.raises(BrokerError, match="TOPIC_EXCEPTION"):
        store.describe(["contract-nowhere", topic])


def test_a_topic_is_not_created_twice(store: TopicClient, topic: str) -> None:
    with pytest.raises(BrokerError, match="TOPIC_ALREADY_EXISTS"):
        store.create(topic, partitions=1, replication_factor=1, config={})


def test_many_topics_are_created_at_once(store: TopicClient, name: str) -> None:
    new = [NewTopic(f"{name}-{number}", number, 1) for number in (1, 2, 3)]
    assert store.create_all(new) == {}
    found = store.describe([each.topic for each in new])
    assert [(each.partitions, each.config["cleanup.policy"]) for each in found.values()] == [
        (number, "compact") for number in (1, 2, 3)
    ]
    store.write(_at(f"{name}-2", 1, (b"k", b"v")))
    bounds = store.bounds_of([f"{name}-1", f"{name}-2"])
    assert bounds == {f"{name}-1": (Bounds(0, 0, 0, 0),), f"{name}-2": (Bounds(0, 0, 0, 0), Bounds(1, 0, 1, 1))}
    assert {topic: store.bounds(topic) for topic in bounds} == bounds


def test_a_topic_that_is_refused_does_not_keep_the_others_from_being_made(store: TopicClient, topic: str) -> None:
    new = [NewTopic(topic, 1, 1), NewTopic(f"{topic}-far", 1, 9), NewTopic(f"{topic}-good", 1, 1)]
    refused = store.create_all(new, validate_only=True)
    assert "TOPIC_ALREADY_EXISTS" in refused[topic].message
    assert "INVALID_REPLICATION_FACTOR" in refused[f"{topic}-far"].message
    assert list(store.describe([each.topic for each in new])) == [topic], "nothing is made where the brokers are asked"
    assert list(store.create_all(new)) == list(refused) == [topic, f"{topic}-far"]
    assert list(store.describe([each.topic for each in new])) == [topic, f"{topic}-good"]


def test_nothing_is_asked_of_no_topics(store: TopicClient) -> None:
    assert (store.create_all([]), store.bounds_of([])) == ({}, {})


def test_a_partition_that_is_not_there_is_refused(store: TopicClient, topic: str) -> None:
    with pytest.raises(UsageError, match="there is no partition 3"):
        store.write([OutRecord(topic, b"k", b"v", 3)])
    with pytest.raises(UsageError, match="neither a key nor a partition"):
        store.write([OutRecord(topic, None, b"v")])


def test_a_record_as_large_as_brokers_take(store: TopicClient, topic: str) -> None:
    """librdkafka refused it before any broker saw it: its own limit, with the key, is a million bytes."""
    value = b"{}".ljust(1_000_000)
    store.write([OutRecord(topic, b"k", value)])
    assert [record.value for record in store.read(topic).records] == [value]


def test_settings_that_nobody_gave_are_told_too(store: TopicClient, name: str) -> None:
    store.create(name, partitions=1, replication_factor=1, config={"min.insync.replicas": "1"})
    config = store.describe([name])[name].config
    assert (config["cleanup.policy"], config["retention.ms"]) == ("delete", "604800000")


def test_what_was_set_for_a_topic_is_told_apart_from_defaults_and_can_be_changed(store: TopicClient, name: str) -> None:
    given = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.7"}
    store.create(name, partitions=1, replication_factor=1, config=given)
    wait_until(lambda: store.own_settings(name) == given, what="every broker to know them")
    store.change_settings(name, {"segment.ms": "1000", "min.cleanable.dirty.ratio": None})
    changed = {"cleanup.policy": "compact", "segment.ms": "1000"}
    wait_until(lambda: store.own_settings(name) == changed, what="the change to be told")
    wait_until(lambda: store.describe([name])[name].config["segment.ms"] == "1000", what="every broker to know it")
    store.change_settings(name, {"segment.ms": None, "retention.ms": None})
    wait_until(lambda: list(store.own_settings(name)) == ["cleanup.policy"], what="the default to be back")


def test_settings_of_what_is_not_there(store: TopicClient, topic: str) -> None:
    for ask in (lambda: store.own_settings("contract-nowhere"),
                lambda: store.change_settings("contract-nowhere", {"segment.ms": "1"})):  # fmt: skip
        with pytest.raises(NotFoundError):
            ask()
    with pytest.raises(BrokerError, match=r"no\.such\.setting"):
        store.change_settings(topic, {"no.such.setting": "1"})


COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "1",  # of the records' own time: what they are apart rolls the log
    "min.cleanable.dirty.ratio": "0.01",
}


def test_compaction_leaves_gaps_and_the_newest_of_each_key(subject: Subject, store: TopicClient, name: str) -> None:
    store.create(name, partitions=1, replication_factor=1, config=COMPACTED)
    pairs = [(b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"), (b"b", None), (b"last", b"1")]
    start_ms = 1_700_000_000_000
    for number, (key, value) in enumerate(pairs):
        store.write([OutRecord(name, key, value, 0, timestamp_ms=start_ms + 10_000 * number)])
    before = store.bounds(name)
    subject.compact(name)
    kept = [(2, b"a", b"2"), (3, b"c", b"1"), (4, b"b", None), (5, b"last", b"1")]
    # it may have been at work while they were written, and come back for the rest
    wait_until(lambda: store.read(name).records_read == len(kept), what="the log cleaner")
    read = store.read(name)
    assert [(r.offset, r.key, r.value) for r in read.records] == kept
    assert (read.records_read, read.bounds) == (4, before), "the end stays, and so does the beginning"
    assert store.read(name, newest_per_key=True).records == read.records
    assert [w.offset for w in store.write(_at(name, 0, (b"a", b"3")))] == [6]


def test_what_was_deleted_before_the_beginning_is_gone(subject: Subject, store: TopicClient, topic: str) -> None:
    name = f"{topic}-deleted"
    store.create(name, partitions=2, replication_factor=1, config={"cleanup.policy": "compact,delete"})
    store.write(_at(name, 1, (b"a", b"1"), (b"b", b"1"), (b"a", None)))
    subject.delete_before(name, 1, 2)
    assert store.bounds(name) == (Bounds(0, 0, 0, 0), Bounds(1, 2, 3, 3))
    read = store.read(name)
    assert [(r.offset, r.key, r.value) for r in read.records] == [(2, b"a", None)]
    subject.delete_before(name, 1, 3)
    assert store.read(name).records == ()
