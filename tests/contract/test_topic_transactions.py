"""What a TopicClient sees and does of transactions: its own, and others' that are open, aborted or late."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from eosctl.core.ids import TransactionalId
from eosctl.core.records import OutRecord, Record
from eosctl.core.transactions import TransactionDescription, TransactionState
from eosctl.engine.columns import SENT, Table, batch_of_columns
from eosctl.errors import BrokerError, DeadlineError, NotFoundError, UsageError
from eosctl.ports import TopicClient
from tests.contract.clusters import REAL, FakeSubject, Subject, on
from tests.fakes.clock import given_time
from tests.sandbox_fixtures import wait_until

on_all = pytest.mark.parametrize("subject", ["memory", *REAL], indirect=True, scope="module")
where_markers_can_be_held = pytest.mark.parametrize(
    "subject", ["memory", *on("three_brokers")], indirect=True, scope="module"
)


@pytest.fixture
def topic(store: TopicClient, name: str) -> str:
    """A new topic of one partition."""
    store.create(name, partitions=1, replication_factor=1, config={})
    return name


def keys(records: tuple[Record, ...]) -> list[bytes | None]:
    return [record.key for record in records]


def of(topic: str, *names: bytes) -> list[OutRecord]:
    return [OutRecord(topic, name, b"v", 0) for name in names]


def all_read(store: TopicClient, topic: str) -> bool:
    return not store.read(topic).blocked()


@on_all
def test_a_transaction_ends_in_a_marker_and_is_read_as_soon_as_it_is_written(store: TopicClient, topic: str) -> None:
    """Brokers answer the end of a transaction before its marker is written: a write waits for it."""
    for number in range(3):
        store.write(of(topic, b"%d" % number), transactional_id=TransactionalId(f"{topic}-id"))
        read = store.read(topic)
        assert keys(read.records) == [b"%d" % each for each in range(number + 1)]
        assert (read.bounds[0].lso, read.bounds[0].end) == (2 * number + 2, 2 * number + 2)
        assert read.blocked() == ()
    assert [record.offset for record in store.read(topic).records] == [0, 2, 4]


@on_all
def test_an_open_transaction_hides_what_comes_behind_it(subject: Subject, store: TopicClient, topic: str) -> None:
    """Connect waits for the high watermark here, for as long as the transaction is open."""
    store.write(of(topic, b"before"))
    producer = subject.producer(f"{topic}-open")
    producer.send(topic, 0, b"open")
    store.write(of(topic, b"behind"))
    read = store.read(topic)
    assert keys(read.records) == [b"before"]
    assert [(each.lso, each.end) for each in read.blocked()] == [(1, 3)]
    assert keys(store.read(topic, isolation="read_uncommitted").records) == [b"before", b"open", b"behind"]
    store.write(of(topic, b"behind"))
    hidden = store.read_behind(topic, read.blocked())
    assert [(each.key, each.offset) for each in hidden] == [(b"open", 1), (b"behind", 3)], "the newest of each key"
    producer.commit()
    wait_until(lambda: all_read(store, topic), what="the marker")
    assert keys(store.read(topic).records) == [b"before", b"open", b"behind", b"behind"]


@on_all
def test_aborted_records_are_seen_uncommitted_only(subject: Subject, store: TopicClient, topic: str) -> None:
    producer = subject.producer(f"{topic}-aborted")
    producer.send(topic, 0, b"no")
    store.write(of(topic, b"between"))
    producer.abort()
    wait_until(lambda: all_read(store, topic), what="the marker")
    assert keys(store.read(topic).records) == [b"between"]
    assert keys(store.read(topic, isolation="read_uncommitted").records) == [b"no", b"between"]
    assert store.bounds(topic)[0].end == 3


@on_all
def test_a_write_ends_what_its_id_had_left_open(subject: Subject, store: TopicClient, topic: str) -> None:
    """So a killed eosctl hides nothing any longer once it runs again."""
    subject.producer(f"{topic}-id").send(topic, 0, b"left")
    store.write(of(topic, b"next"), transactional_id=TransactionalId(f"{topic}-id"))
    assert keys(store.read(topic).records) == [b"next"]


@on_all
def test_a_write_that_cannot_go_on_is_aborted(store: TopicClient, topic: str) -> None:
    with pytest.raises(UsageError, match="there is no partition 7"):
        store.write(
            [*of(topic, b"good"), OutRecord(topic, b"bad", b"v", 7)], transactional_id=TransactionalId(f"{topic}-id")
        )
    wait_until(lambda: all_read(store, topic), what="the marker")
    assert store.read(topic).records == ()


def rows(*records: tuple[str, int, bytes, bytes | None, str | None]) -> Table:
    return Table.from_batches([batch_of_columns(list(zip(*records, strict=True)), SENT)])


@on_all
def test_columns_are_written_in_one_transaction_deletions_first(store: TopicClient, topic: str) -> None:
    headers = '[{"name":"h","value":"x"},{"name":"n","value":null}]'
    sent = rows((topic, 0, b"a", b"1", None), (topic, 0, b"b", None, None), (topic, 0, b"a", b"2", headers))
    last = store.write_columns([sent], total=3, transactional_id=TransactionalId(f"{topic}-id"))
    read = store.read(topic)
    assert [record[4:] for record in read.records] == [
        (b"b", None, ()), (b"a", b"1", ()), (b"a", b"2", (("h", b"x"), ("n", None))),
    ]  # fmt: skip
    assert (last, read.bounds[0].lso, read.bounds[0].end) == ({(topic, 0): 2}, 4, 4)


@on_all
def test_columns_of_several_transactions_that_cannot_go_on_end_with_the_last_that_could(
    store: TopicClient, topic: str
) -> None:
    sent = [rows((topic, 0, key, b"v", None)) for key in (b"a", b"b")]
    last = store.write_columns(sent, total=2, transactional_id=TransactionalId(f"{topic}-id"))
    assert last == {(topic, 0): 2}, "each has a marker behind it"
    with pytest.raises(UsageError):
        store.write_columns(
            [rows((topic, 0, b"c", b"v", None)), rows((topic, 7, b"d", b"v", None))],
            total=2,
            transactional_id=TransactionalId(f"{topic}-id"),
        )
    wait_until(lambda: all_read(store, topic), what="the marker")
    assert keys(store.read(topic).records) == [b"a", b"b", b"c"]


@on_all
def test_columns_that_cannot_go_on_are_aborted(store: TopicClient, topic: str) -> None:
    for place, error in (((topic, 7), UsageError), ((f"{topic}-no", 0), NotFoundError)):
        sent = rows((topic, 0, b"good", b"v", None), (*place, b"bad", b"v", None))
        with pytest.raises(error):
            store.write_columns([sent], total=2, transactional_id=TransactionalId(f"{topic}-id"))
    wait_until(lambda: all_read(store, topic), what="the marker")
    assert store.read(topic).records == ()


@on_all
@pytest.mark.parametrize("goes_on", [True, False], ids=["while-sending", "at-the-end"])
def test_a_writer_whose_id_was_taken_over_says_so(
    subject: Subject, store: TopicClient, topic: str, goes_on: bool
) -> None:
    """With delivery reports waiting behind the fatal error, a SystemError out of confluent-kafka came to the user."""
    transactional_id = TransactionalId(f"{topic}-id")

    def records() -> Iterator[OutRecord]:
        yield from of(topic, b"1")
        subject.producer(transactional_id)
        for number in itertools.count(2) if goes_on else (2, 3):  # on and on: until the refusal has arrived
            yield from of(topic, b"%d" % number)

    with pytest.raises(BrokerError, match=f"took over transactional id {transactional_id}; nothing was written"):
        store.write(records(), transactional_id=transactional_id)
    wait_until(lambda: all_read(store, topic), what="the marker")
    assert store.read(topic).records == ()


def test_the_fake_shows_the_old_bounds_after_the_end_was_answered() -> None:
    """What a broker does at times, a fake can do at will."""
    subject = FakeSubject()
    with subject.store() as store:
        store.create("t", partitions=1, replication_factor=1, config={})
        producer = subject.producer("id")
        producer.send("t", 0, b"a")
        producer.commit()
        looks = [(bound.lso, bound.end) for _ in range(4) for bound in store.bounds("t")]
    assert looks == [(0, 1), (0, 1), (2, 2), (2, 2)]


@where_markers_can_be_held
def test_as_long_as_the_markers_are_not_written_the_id_is_busy(subject: Subject, store: TopicClient, name: str) -> None:
    """PrepareCommit: the end was answered, readers see nothing of it yet, and nobody can take the id over.

    Both try at the same time: once the frozen broker is given up, its coordinator sends the marker again and again.
    """
    transactional_id, topic = subject.holdable(name)
    producer = subject.producer(transactional_id)
    producer.send(topic, 0, b"a")
    with subject.markers_held():
        producer.commit()
        with subject.store() as late:
            assert [(each.lso, each.end) for each in late.bounds(topic)] == [(0, 1)], "it looks open to readers"

        def try_both(timeout_s: float) -> None:
            with (
                subject.admin(timeout_s=timeout_s) as admin,
                subject.store(timeout_s=timeout_s) as late,
                ThreadPoolExecutor(1) as another,
            ):
                told = admin.describe_transactions([transactional_id])[transactional_id]
                assert isinstance(told, TransactionDescription)
                assert (told.state, told.partitions) == (TransactionState.PREPARE_COMMIT, ((topic, 0),))
                write = another.submit(late.write, of(topic, b"b"), transactional_id=transactional_id)
                (answer,) = admin.fence([transactional_id], transaction_timeout_ms=30_000)
                with pytest.raises(DeadlineError, match="CONCURRENT_TRANSACTIONS"):
                    write.result()
            assert answer.fault is not None
            assert (answer.fault.name, answer.confirmed) == ("CONCURRENT_TRANSACTIONS", False)
            assert answer.attempts > 1

        given_time(try_both, first_s=8)
    with subject.admin() as admin:
        (answer,) = admin.fence([transactional_id], transaction_timeout_ms=30_000)
    assert answer.fault is None
    wait_until(lambda: all_read(store, topic), what="the marker")
    assert keys(store.read(topic).records) == [b"a"]
