"""Ranges of offsets are read to their ends and no further, by librdkafka; the consumer is a stand-in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, Message, TopicPartition

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import Record
from eosctl.deadline import Deadline
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.errors import BrokerError, DeadlineError, UnauthorizedError, UnreachableError
from eosctl.kafka.topics.meter import OffsetMeter
from eosctl.kafka.topics.reader import records_of_runs, rows_of
from eosctl.kafka.topics.runs import RunReading
from tests.fakes.clock import FakeTime

TO_FOUR, TO_TWO = OffsetRange("t", 0, 0, 4), OffsetRange("t", 1, 0, 2)
TIMEOUT_S, ANSWER_S = 30.0, 20.0


def record(partition: int, offset: int, key: bytes | None = b"k", *, topic: str = "t") -> Message:
    return Message(topic=topic, partition=partition, offset=offset, key=key, value=b"v%d" % offset)


def event(partition: int, offset: int, code: int = KafkaError._PARTITION_EOF) -> Message:
    return Message(topic="t", partition=partition, offset=offset, error=KafkaError(code))


class ScriptedConsumer:
    """Answers with `batches`, one after the other, and then with nothing, each time after `answer_s`.

    It reports each of `faults` while it does, and is at `positions`.
    """

    def __init__(
        self, batches: Iterable[Sequence[Message]], faults: Iterable[int] = (), *, answer_s: float = ANSWER_S
    ) -> None:
        self._batches, self._faults, self._answer_s = iter(batches), iter(faults), answer_s
        self.time = FakeTime()
        self.assigned: list[tuple[int, int]] = []
        self.paused: list[int] = []
        self.closed = False
        self.listed = 0
        self.positions: Iterator[int] = iter(())
        self._left: list[Message] = []

    def opened(self, properties: Mapping[str, Any]) -> ScriptedConsumer:
        """In the place of a Consumer."""
        assert (properties["isolation.level"], properties["bootstrap.servers"]) == ("read_committed", "memory:9092")
        self._on_fault = properties["error_cb"]
        return self

    def assign(self, places: Iterable[Any]) -> None:
        self.assigned = [(place.partition, place.offset) for place in places]

    def list_topics(self, timeout: float) -> None:
        self.listed += 1
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def pause(self, places: Iterable[Any]) -> None:
        self.paused += [place.partition for place in places]

    def consume(self, most: int, timeout: float) -> list[Message]:
        """What is left of a batch is there at once."""
        assert most > 0
        if timeout:
            assert most == 1  # else librdkafka waits for as many: a small topic took 0.1 s
        if not self._left and timeout:
            self.time.now_s += max(self._answer_s, timeout)
            if (fault := next(self._faults, None)) is not None:
                self._on_fault(KafkaError(fault))
            self._left = list(next(self._batches, ()))
        given, self._left = self._left[:most], self._left[most:]
        return given

    def position(self, places: Iterable[Any]) -> list[TopicPartition]:
        at = next(self.positions, OFFSET_INVALID)
        return [TopicPartition(place.topic, place.partition, at) for place in places]

    def close(self) -> None:
        self.closed = True


def reading(consumer: ScriptedConsumer, *ranges: OffsetRange, limited: bool = False, **more: Any) -> RunReading:
    """By a consumer that stands in for librdkafka's."""
    timeout = Deadline.after(TIMEOUT_S, consumer.time.clock())
    settings = ClientSettings(("memory:9092",))
    return RunReading(settings, ranges, timeout=timeout, limited=limited, open_consumer=consumer.opened, **more)


def read(consumer: ScriptedConsumer, *ranges: OffsetRange, **more: Any) -> list[tuple[int, int]]:
    """The places of what comes of a reading, in partition, then offset order."""
    runs = [run for runs in reading(consumer, *ranges, **more) for run in runs]
    return sorted((partition, message.offset()) for (_topic, partition), messages in runs for message in messages)


def test_a_range_is_read_to_its_end_and_no_further() -> None:
    """What comes behind the end, or of a partition that is read already, is passed over."""
    consumer = ScriptedConsumer(
        [[record(0, 1), record(0, 3), record(0, 4, b"new")], [record(0, 5, b"new"), record(1, 0, None), record(1, 1)]]
    )
    assert read(consumer, TO_FOUR, TO_TWO) == [(0, 1), (0, 3), (1, 0), (1, 1)]
    assert (consumer.assigned, consumer.paused, consumer.closed) == ([(0, 0), (1, 0)], [0, 1], True)


@pytest.mark.parametrize("offset", [4, 5])
def test_markers_at_the_end_are_passed_by_the_event_behind_them(offset: int) -> None:
    """The last offsets of a range may be markers or aborted records, which never come."""
    consumer = ScriptedConsumer([[record(0, 1), event(0, 2)], [record(0, 2)], [event(0, offset)]])
    assert read(consumer, TO_FOUR) == [(0, 1), (0, 2)]
    assert consumer.paused == [0]


def test_records_come_with_the_event_that_ends_their_partition() -> None:
    """They were dropped, as of a partition that was over: a small topic was read as an empty one, now and then."""
    consumer = ScriptedConsumer([[record(0, 0), record(0, 1), event(0, 4), record(1, 0), event(1, 2)]])
    assert read(consumer, TO_FOUR, TO_TWO) == [(0, 0), (0, 1), (1, 0)]


def test_a_record_behind_a_gap_ends_the_range() -> None:
    assert read(ScriptedConsumer([[record(0, 9)]]), TO_FOUR) == []


@pytest.mark.parametrize(("topics", "listed"), [(1, 0), (100, 1)])
def test_where_many_topics_are_is_asked_once(topics: int, listed: int) -> None:
    """As for a writer; a request that fails is no fault, for librdkafka asks for each then."""
    names = [f"t{number}" for number in range(topics)]
    consumer = ScriptedConsumer([[record(0, 0, topic=name) for name in names]])
    assert len(read(consumer, *(OffsetRange(name, 0, 0, 1) for name in names))) == topics
    assert (consumer.listed, consumer.closed) == (listed, True)


def test_nothing_to_read_opens_nothing() -> None:
    consumer = ScriptedConsumer([])
    assert read(consumer, OffsetRange("t", 0, 7, 7)) == []
    assert not consumer.closed


def test_a_missing_right_on_the_unused_group_is_no_fault() -> None:
    refusal = Message(error=KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
    assert read(ScriptedConsumer([[refusal, record(1, 0), record(1, 1)]]), TO_TWO) == [(1, 0), (1, 1)]


def test_a_fault_of_a_partition_ends_the_reading() -> None:
    consumer = ScriptedConsumer([[record(0, 0), event(0, 0, KafkaError.TOPIC_AUTHORIZATION_FAILED)]])
    with pytest.raises(UnauthorizedError, match=r"reading topic t failed \(READ on Topic t is needed\)"):
        read(consumer, TO_FOUR)
    assert consumer.closed


def test_what_is_gone_is_left_out_only_where_it_may_be() -> None:
    gone = [event(0, 0, KafkaError._AUTO_OFFSET_RESET), record(1, 0), record(1, 1)]
    with pytest.raises(BrokerError, match="topic t changed while it was read"):
        read(ScriptedConsumer([gone]), TO_FOUR, TO_TWO)
    assert read(ScriptedConsumer([gone]), TO_FOUR, TO_TWO, skips_gone=True) == [(1, 0), (1, 1)]


def test_silence_is_reported_with_what_is_left() -> None:
    consumer = ScriptedConsumer([[record(1, 0), record(1, 1), record(0, 1)]])
    told = r"after 30 s while reading topic t: partition 0 is at offset 2, to be read to 4 \(1 unfinished partition\)$"
    with pytest.raises(DeadlineError, match=told):
        read(consumer, TO_FOUR, TO_TWO)
    assert consumer.closed


def test_aborted_records_are_no_silence() -> None:
    """More than a minute of nothing else was reported as a stall: only their markers move the position."""
    consumer = ScriptedConsumer([[], [], [], [], [], [record(0, 8)]])
    consumer.positions = iter(range(2, 8))
    assert read(consumer, OffsetRange("t", 0, 0, 9)) == [(0, 8)]


def test_silence_is_explained_by_the_last_fault_that_no_answer_followed() -> None:
    with pytest.raises(DeadlineError, match=r"unfinished partition\); .*transport"):
        read(ScriptedConsumer([], [KafkaError._TRANSPORT]), TO_FOUR)
    with pytest.raises(DeadlineError, match=r"unfinished partition\)$"):
        read(ScriptedConsumer([[], [record(0, 1)]], [KafkaError._TRANSPORT]), TO_FOUR)


@pytest.mark.parametrize(("limited", "ends_s"), [(True, 4), (False, 30)])
def test_brokers_that_are_down_are_waited_for_as_long_as_the_reading_may_take(*, limited: bool, ends_s: float) -> None:
    """Somebody who waits is told within seconds; an audit also reads on after brokers were restarted."""
    consumer = ScriptedConsumer([], [KafkaError._ALL_BROKERS_DOWN], answer_s=1)
    begun_s = consumer.time.now_s
    with pytest.raises((UnreachableError, DeadlineError)):
        read(consumer, TO_FOUR, limited=limited)
    assert consumer.time.now_s - begun_s == ends_s


def test_a_login_that_is_refused_is_told_at_once() -> None:
    with pytest.raises(UnauthorizedError):
        read(ScriptedConsumer([], [KafkaError._AUTHENTICATION]), TO_FOUR)


def slow(silent_from: int = 5) -> ScriptedConsumer:
    """Gives one record each time, which takes most of the time that there is."""
    return ScriptedConsumer([record(0, offset)] for offset in range(silent_from))


def test_a_read_that_gets_on_may_take_longer_than_the_timeout() -> None:
    """An audit ended in the middle of an offsets topic that takes more than a minute."""
    assert len(read(slow(), OffsetRange("t", 0, 0, 5))) == 5


@pytest.mark.parametrize(("limited", "silent_from"), [(True, 5), (False, 3)])
def test_a_read_ends_with_its_time(*, limited: bool, silent_from: int) -> None:
    with pytest.raises(DeadlineError, match="partition 0 is at offset"):
        read(slow(silent_from), OffsetRange("t", 0, 0, 5), limited=limited)


def test_progress_ends_with_all_offsets_markers_too() -> None:
    consumer, told = ScriptedConsumer([[record(0, 1)], [event(0, 4)], [record(1, 0), event(1, 2)]]), list[int]()
    meter = OffsetMeter(
        "reading t", 6, deadline=Deadline.after(1, consumer.time.clock()), on_event=lambda it: told.append(it.done or 0)
    )
    read(consumer, TO_FOUR, TO_TWO, progress=meter)
    assert told == [2, 4, 6]


@pytest.mark.parametrize(
    ("newest_per_key", "offsets"), [(False, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]), (True, [(0, 1), (0, 2), (1, 1)])]
)
def test_rows_are_in_order_and_the_newest_of_each_partition(
    newest_per_key: bool, offsets: list[tuple[int, int]]
) -> None:
    consumer = ScriptedConsumer([[record(1, 0), record(0, 0)], [record(0, 1, None), record(1, 1), record(0, 2)]])
    both = reading(consumer, OffsetRange("t", 0, 0, 3), TO_TWO)
    rows = rows_of(map(records_of_runs, both), [1, 0], newest_per_key=newest_per_key)
    assert [(row.partition, row.offset) for row in rows] == offsets
    assert rows[-1] == Record("t", 1, 1, 0, b"k", b"v1")
    assert both.read == 5


def test_a_sieve_is_given_some_at_a_time() -> None:
    consumer, given = ScriptedConsumer([[record(1, 0)], [record(1, 1)]]), list[int]()

    def none(records: Sequence[Record]) -> Sequence[Record]:
        given.append(len(records))
        return ()

    both = reading(consumer, TO_TWO)
    assert (rows_of(map(records_of_runs, both), [1], newest_per_key=True, keep=none), both.read, given) == (
        (),
        2,
        [1, 1],
    )
