"""What every BatchLog does: one suite, on the fake of the tests and on real brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import astuple

from eosctl.core.records import NO_PRODUCER, Batch, OutRecord, Unseen, UnseenReason, Window
from eosctl.errors import NotFoundError
from eosctl.ports import BatchLog, TopicClient
from tests.contract.clusters import Subject, on
from tests.sandbox_fixtures import wait_until

pytestmark = pytest.mark.parametrize(
    "subject", ["memory", "tcp", *on("stack", "old_stack", "oldest_stack")], indirect=True, scope="module"
)
EVERYTHING = Window()


@pytest.fixture(scope="module")
def batches(subject: Subject) -> Iterator[BatchLog]:
    with subject.batches() as found:
        yield found


@pytest.fixture
def topic(store: TopicClient, name: str) -> str:
    """A new topic of two partitions."""
    store.create(name, partitions=2, replication_factor=1, config={"retention.ms": "-1"})  # for records of long ago
    return name


def read(log: BatchLog, topic: str, window: Window = EVERYTHING) -> list[Batch]:
    return list(log.scan(log.plan([topic], window)))


def places(found: list[Batch]) -> list[tuple[int, int, int]]:
    """Partition, first and last offset of each batch, by partition."""
    return sorted((each.partition, each.base_offset, each.last_offset) for each in found)


def ended(log: BatchLog, topic: str, markers: int) -> list[Batch]:
    """All batches once so many markers are written: brokers answer the end of a transaction before that."""
    found: list[Batch] = []

    def all_there() -> bool:
        found[:] = read(log, topic)
        return sum(each.is_control for each in found) == markers

    wait_until(all_there, what="the markers")
    return found


def test_an_empty_topic_has_spans_and_no_batches(batches: BatchLog, topic: str) -> None:
    plan = batches.plan([topic], EVERYTHING)
    assert [astuple(span) for span in plan.spans] == [(topic, number, 0, 0, 0, 0, 0) for number in range(2)]
    scan = batches.scan(plan)
    assert (list(scan), scan.unseen()) == ([], ())
    assert scan.positions() == {(topic, 0): 0, (topic, 1): 0}


def test_a_topic_that_is_not_there_is_not_found(batches: BatchLog, name: str) -> None:
    with pytest.raises(NotFoundError, match=name):
        batches.plan([name], EVERYTHING)


def test_transactions_are_batches_of_a_producer_and_a_marker(subject: Subject, batches: BatchLog, topic: str) -> None:
    committed = subject.producer(f"{topic}-a")
    for partition in (0, 1):
        committed.send(topic, partition, b"k", b"x" * 100)
    committed.commit()
    ended(batches, topic, 2)
    aborted = subject.producer(f"{topic}-b")
    aborted.send(topic, 0, b"k")
    aborted.abort()
    found = [each for each in ended(batches, topic, 3) if each.partition == 0]
    data, commit, other, abort = found
    assert {(each.topic, each.is_transactional, each.magic, each.crc_ok) for each in found} == {(topic, True, 2, None)}
    assert (data.base_offset, data.last_offset, data.records, data.base_sequence) == (0, 0, 1, 0)
    assert (data.is_control, data.commit, data.coordinator_epoch) == (False, None, None)
    assert data.size_bytes > 100
    assert data.producer_id == commit.producer_id != other.producer_id == abort.producer_id
    assert data.producer_epoch <= commit.producer_epoch <= data.producer_epoch + 1
    assert [(each.is_control, each.commit, each.records) for each in (commit, abort)] == [
        (True, True, 0),
        (True, False, 0),
    ]
    assert commit.coordinator_epoch is not None
    assert commit.coordinator_epoch >= 0
    assert 0 < data.first_timestamp_ms <= data.max_timestamp_ms
    assert [each.base_offset for each in found] == [0, 1, 2, 3]


def test_a_plain_write_belongs_to_no_transaction(batches: BatchLog, store: TopicClient, topic: str) -> None:
    store.write([OutRecord(topic, b"a", b"v", 0), OutRecord(topic, b"b", b"v", 1)])
    assert places(read(batches, topic)) == [(0, 0, 0), (1, 0, 0)]
    for each in read(batches, topic):
        assert not each.is_transactional
        assert not each.is_control
        assert each.producer_id >= NO_PRODUCER
        assert each.records == 1


def test_an_open_transaction_is_read_too(subject: Subject, batches: BatchLog, topic: str) -> None:
    producer = subject.producer(f"{topic}-open")
    producer.send(topic, 0, b"a")
    span = batches.plan([topic], EVERYTHING).spans[0]
    assert (span.first, span.last_stable, span.end, span.stop) == (0, 0, 1, 1)
    assert places(read(batches, topic)) == [(0, 0, 0)]
    producer.abort()


def test_a_window_of_offsets_is_read_as_far_as_it_is_there(batches: BatchLog, store: TopicClient, topic: str) -> None:
    for key in (b"a", b"b", b"c"):
        store.write([OutRecord(topic, key, b"v", 0)])
    window = Window(since_offset=1, until_offset=2)
    assert places(read(batches, topic, window)) == [(0, 1, 1)]
    far = batches.plan([topic], Window(since_offset=1, until_offset=99))
    assert [(span.partition, span.first, span.stop) for span in far.spans] == [(0, 1, 3), (1, 0, 0)]


def test_a_window_of_time_begins_at_the_first_record_that_is_as_young(
    batches: BatchLog, store: TopicClient, topic: str
) -> None:
    for number in range(3):
        store.write([OutRecord(topic, b"k", b"v", 0, timestamp_ms=1_600_000_000_000 + 1000 * number)])
    assert places(read(batches, topic, Window(since_ms=1_600_000_000_500))) == [(0, 1, 1), (0, 2, 2)]
    assert places(read(batches, topic, Window(until_ms=1_600_000_001_000))) == [(0, 0, 0)]
    later = batches.plan([topic], Window(since_ms=1_600_000_005_000))
    assert [(span.first, span.stop) for span in later.spans] == [(3, 3), (0, 0)]


def test_what_was_deleted_is_unseen(subject: Subject, batches: BatchLog, store: TopicClient, topic: str) -> None:
    for key in (b"a", b"b", b"c"):
        store.write([OutRecord(topic, key, b"v", 1)])
    subject.delete_before(topic, 1, 2)
    plan = batches.plan([topic], EVERYTHING)
    assert plan.unseen == (Unseen(topic, 1, UnseenReason.REMOVED, 0, 1, 2),)
    assert [(span.first, span.stop, span.log_start) for span in plan.spans] == [(0, 0, 0), (2, 3, 2)]
    scan = batches.scan(plan)
    assert places(list(scan)) == [(1, 2, 2)]
    assert scan.unseen() == plan.unseen
    assert scan.positions() == {(topic, 0): 0, (topic, 1): 3}
    assert batches.plan([topic], Window(since_offset=2)).unseen == ()


def test_batches_are_read_with_their_checksums_where_that_is_asked_for(
    batches: BatchLog, store: TopicClient, topic: str
) -> None:
    store.write([OutRecord(topic, b"a", b"v", 0)])
    (found,) = batches.scan(batches.plan([topic], EVERYTHING), check_crc=True)
    assert found.crc_ok is True


def test_a_scan_that_was_left_says_how_far_it_came(batches: BatchLog, store: TopicClient, topic: str) -> None:
    for key in (b"a", b"b", b"c"):
        store.write([OutRecord(topic, key, b"v", 0)])
    scan = batches.scan(batches.plan([topic], EVERYTHING))
    first = next(iter(scan))
    assert (first.base_offset, scan.positions()[topic, 0]) == (0, 1)
