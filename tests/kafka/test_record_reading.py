"""What a reading of records makes of what it can't read: a bounded read leaves nothing out."""

from __future__ import annotations

import warnings
from functools import partial
from uuid import uuid4

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import OutRecord
from eosctl.deadline import Deadline
from eosctl.engine.reading.batches import Piece
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.errors import DeadlineError, ProtocolError, UnauthorizedError, UnreachableError
from eosctl.kafka.batches.records import RecordReading, _Records
from eosctl.kafka.batches.source import PartitionReading
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.session import Connections
from eosctl.kafka.topics.stream import Address, Leader
from eosctl.wire import error_codes as codes
from eosctl.wire.log.batches import OldFormatError
from eosctl.wire.log.fetch_messages import AbortedTransaction, PartitionData
from tests.fakes.admin import MemoryStream
from tests.fakes.broker import FakeCluster, Seen
from tests.fakes.clock import FakeTime
from tests.kafka.batch_scene import TIMEOUT_S

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of importlib.resources, in kafka-python 3.0.12
    from kafka.record.default_records import DefaultRecordBatchBuilder
    from kafka.record.legacy_records import LegacyRecordBatchBuilder

RANGES = [OffsetRange("t", 0, 0, 5)]


class World:
    """A topic of five batches on a broker, and a reading of it; the fake's batches hold zeros for records."""

    def __init__(self, *, limited: bool = False) -> None:
        self.time = FakeTime(1_700_000_000.0)
        self.cluster = FakeCluster(brokers=1)
        self.cluster.state.add_topic("t", 1)
        for _ in range(5):
            self.cluster.state.append(OutRecord("t", b"k", b"v"), 0, (7, 0), transactional=False)
        settings = ClientSettings(self.cluster.bootstrap_servers)
        deadline = Deadline.after(TIMEOUT_S, self.time.clock())
        cluster = Cluster(
            settings,
            deadline=deadline,
            connections=Connections(settings, open_stream=partial(MemoryStream, self.cluster)),
        )
        self.reading = RecordReading(cluster, RANGES, settings=settings, timeout=deadline, limited=limited)

    def read(self) -> list[Piece]:
        return list(self.reading)

    def on_fetch(self, code: int) -> None:
        def tamper(seen: Seen, frame: bytes) -> bytes:
            if seen.api == "Fetch":
                self.time.now_s += 10.0
                self.cluster.fail_next("Fetch", code)
            return frame

        self.cluster.tamper = tamper
        self.cluster.fail_next("Fetch", code)


def test_who_may_not_read_is_told_what_it_takes() -> None:
    world = World()
    world.cluster.fail_next("Fetch", codes.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(UnauthorizedError, match="not allowed to read topic t") as caught:
        world.read()
    assert "--operation Read" in str(caught.value.hint)


@pytest.mark.parametrize("limited", [False, True])
def test_a_leader_that_is_never_found_ends_it(limited: bool) -> None:
    world = World(limited=limited)
    world.on_fetch(codes.NOT_LEADER_OR_FOLLOWER)
    with pytest.raises(DeadlineError, match="reading t-0: NOT_LEADER_OR_FOLLOWER"):
        world.read()
    assert world.reading.passed() == 0
    assert world.reading.rest() == RANGES


def test_a_broker_that_is_gone_is_unreachable() -> None:
    """Exit code and hint are those of a broker that is down, and not of a topic that was recreated."""
    world = World()
    world.cluster.state.nodes = []
    with pytest.raises(UnreachableError, match="reading t-0: "):
        world.read()


def test_a_follower_that_lags_may_not_know_an_offset_yet() -> None:
    """After an election a leader may refuse an offset that it soon has; nothing of the log is gone."""
    world = World()
    world.cluster.fail_next("Fetch", codes.OFFSET_OUT_OF_RANGE)
    with pytest.raises(ProtocolError, match="record batch"):  # as far as it comes: the fake has no records
        world.read()
    assert world.cluster.count("Fetch") == 2


def test_what_are_no_records_is_no_end() -> None:
    with pytest.raises(ProtocolError, match="record batch"):
        World().read()


def _taken(part: PartitionData, stop: int = 100) -> list[int]:
    """The base offsets of the batches that count."""
    reading = PartitionReading(("t", 0), 0, stop, Leader(Address("b", 1), 0, uuid4()))
    batches = _Records(RANGES).take(reading, part)
    assert batches is not None
    return [*map(int, batches.bases())]


def test_records_of_before_kafka_0_11_are_for_others() -> None:
    builder = LegacyRecordBatchBuilder(magic=1, compression_type=0, batch_size=1 << 20)
    builder.append(0, timestamp=5, key=b"k", value=b"v")
    with pytest.raises(OldFormatError):
        _taken(PartitionData(0, high_watermark=1, records=memoryview(bytes(builder.build()))))


def _batch(base: int, producer_id: int, *, transactional: bool = True) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, transactional, producer_id, 0, base, 1 << 20)
    builder.append(0, 5, b"k", b"v", [])
    return base.to_bytes(8, "big") + bytes(builder.build())[8:]


def _marker(base: int, producer_id: int, *, commit: bool) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, True, producer_id, 0, -1, 1 << 20)
    builder.append(0, 5, bytes([0, 0, 0, commit]), bytes(6), [])
    made = bytearray(builder.build())
    made[22] |= 32
    return base.to_bytes(8, "big") + bytes(made[8:])


def test_what_was_aborted_does_not_count() -> None:
    """As the broker says it; a producer that aborted once may commit the next time."""
    batches = [
        *(_batch(0, 7), _batch(1, 8), _marker(2, 7, commit=False), _batch(3, 7), _marker(4, 7, commit=True)),
        *(_batch(5, 9, transactional=False), _batch(6, 8), _marker(7, 8, commit=False), _batch(8, 8)),
    ]
    records = memoryview(b"".join(batches))
    aborted = (AbortedTransaction(8, 1), AbortedTransaction(7, 0))
    assert _taken(PartitionData(0, high_watermark=9, records=records, aborted_transactions=aborted)) == [3, 5, 8]
    assert _taken(PartitionData(0, high_watermark=9, records=records)) == [0, 1, 3, 5, 6, 8], "nothing is said: all"
