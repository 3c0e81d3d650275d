"""Ranges of offsets are read to their ends and no further; the consumer is a stand-in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from eosctl.migrate.spark.records.kafka_io import Seen, read_keys
from eosctl.migrate.spark.records.offset_ranges import OffsetRange

TO_FOUR, TO_TWO = OffsetRange("t", 0, 0, 4), OffsetRange("t", 1, 0, 2)


def record(partition: int, offset: int, key: bytes | None = b"k") -> Message:
    return Message(topic="t", partition=partition, offset=offset, key=key, value=b"v%d" % offset)


def event(partition: int, offset: int, code: int = KafkaError._PARTITION_EOF) -> Message:
    return Message(topic="t", partition=partition, offset=offset, error=KafkaError(code))


class ScriptedConsumer:
    """Answers with `batches`, one after the other, and then with nothing; reports each of `faults` while it does."""

    def __init__(self, batches: Iterable[Sequence[Message]], faults: Iterable[KafkaError] = ()) -> None:
        self._batches, self._faults = iter(batches), iter(faults)
        self.assigned: list[tuple[int, int]] = []
        self.paused: list[int] = []
        self.closed = False

    def opened(self, settings: Mapping[str, Any]) -> ScriptedConsumer:
        """In the place of a Consumer."""
        assert settings["isolation.level"] == "read_committed"
        self._on_fault = settings["error_cb"]
        return self

    def assign(self, places: Iterable[Any]) -> None:
        self.assigned = [(place.partition, place.offset) for place in places]

    def pause(self, places: Iterable[Any]) -> None:
        self.paused += [place.partition for place in places]

    def consume(self, _most: int, timeout: float) -> Sequence[Message]:
        assert timeout < 1
        if (fault := next(self._faults, None)) is not None:
            self._on_fault(fault)
        return next(self._batches, ())

    def close(self) -> None:
        self.closed = True


def read(consumer: ScriptedConsumer, *ranges: OffsetRange, **limits: Any) -> list[dict[Any, Any]]:
    """What is given away, each key with the offset of its newest record and how many there were."""
    limits = {"stall_timeout_s": 0.05} | limits
    return [
        {
            (partition, key): (message.offset(), count)
            for (_topic, partition), keys in newest.items()
            for key, (message, count) in keys.items()
        }
        for newest in read_keys({}, ranges, open_consumer=consumer.opened, **limits)
    ]


def test_a_range_is_read_to_its_end_and_no_further() -> None:
    """What comes behind the end, or of a partition that is read already, is passed over."""
    consumer = ScriptedConsumer(
        [[record(0, 1), record(0, 3), record(0, 4, b"new")], [record(0, 5, b"new"), record(1, 0, None), record(1, 1)]]
    )
    seen = Seen()
    assert read(consumer, TO_FOUR, TO_TWO, seen=seen) == [{(0, b"k"): (3, 2), (1, None): (0, 1), (1, b"k"): (1, 1)}]
    assert (consumer.assigned, consumer.paused, consumer.closed) == ([(0, 0), (1, 0)], [0, 1], True)
    assert seen.records == 4


@pytest.mark.parametrize("offset", [4, 5])
def test_markers_at_the_end_are_passed_by_the_event_behind_them(offset: int) -> None:
    """The last offsets of a range may be markers or aborted records, which never come."""
    consumer = ScriptedConsumer([[record(0, 1), event(0, 2)], [record(0, 2)], [event(0, offset)]])
    assert read(consumer, TO_FOUR) == [{(0, b"k"): (2, 2)}]
    assert consumer.paused == [0]


def test_a_record_behind_a_gap_ends_the_range() -> None:
    assert read(ScriptedConsumer([[record(0, 9)]]), TO_FOUR) == [{}]


def test_nothing_to_read_opens_nothing() -> None:
    consumer = ScriptedConsumer([])
    assert read(consumer) == [{}]
    assert not consumer.closed


def test_a_missing_right_on_the_unused_group_is_no_fault() -> None:
    refusal = Message(error=KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
    assert read(ScriptedConsumer([[refusal, record(1, 0), record(1, 1)]]), TO_TWO) == [{(1, b"k"): (1, 2)}]


def test_a_fault_of_a_partition_ends_the_reading() -> None:
    consumer = ScriptedConsumer([[record(0, 0), event(0, 0, KafkaError.TOPIC_AUTHORIZATION_FAILED)]])
    with pytest.raises(KafkaException) as error:
        read(consumer, TO_FOUR)
    assert error.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert consumer.closed


def test_silence_is_reported_with_what_is_left() -> None:
    consumer = ScriptedConsumer([[record(1, 0), record(1, 1), record(0, 1)]])
    with pytest.raises(RuntimeError, match=r"no records for 0.05 s, still to read: t-0 up to offset 4$"):
        read(consumer, TO_FOUR, TO_TWO)
    assert consumer.closed


def test_silence_is_explained_by_the_last_fault_that_no_answer_followed() -> None:
    down = KafkaError(KafkaError._ALL_BROKERS_DOWN)
    with pytest.raises(KafkaException):
        read(ScriptedConsumer([], [down]), TO_FOUR)
    with pytest.raises(RuntimeError, match="no records"):
        read(ScriptedConsumer([[], [record(0, 1)]], [down]), TO_FOUR)


def test_so_many_keys_are_held_at_most() -> None:
    """The newest of a key is still among what was given away, last."""
    consumer = ScriptedConsumer([[record(0, 0), record(0, 1, b"l"), record(0, 2), record(0, 3)]])
    assert read(consumer, TO_FOUR, keys_at_once=2) == [{(0, b"k"): (0, 1), (0, b"l"): (1, 1)}, {(0, b"k"): (3, 2)}]
