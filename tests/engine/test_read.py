"""Ranges of offsets are read to their ends and no further; the consumer is a stand-in."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, Message, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.offsets.murmur2 import partition_for
from eosctl.core.records import Record
from eosctl.engine.backups.entries import ENTRIES
from eosctl.engine.columns import DECISIONS, RECORDS, meaning
from eosctl.engine.keys.homes import hashes_of
from eosctl.engine.planned import WRITES
from eosctl.engine.reading.newest import KEYS_AT_ONCE, Fold, Folding, folded, piece_of, records_table
from eosctl.engine.reading.ranges import OffsetRange, read_runs

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
        self.listed = 0
        self.positions: Iterator[int] = iter(())

    def opened(self, settings: Mapping[str, Any]) -> ScriptedConsumer:
        """In the place of a Consumer."""
        assert settings["isolation.level"] == "read_committed"
        self._on_fault = settings["error_cb"]
        return self

    def assign(self, places: Iterable[Any]) -> None:
        self.assigned = [(place.partition, place.offset) for place in places]

    def list_topics(self, timeout: float) -> None:
        self.listed += 1
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def pause(self, places: Iterable[Any]) -> None:
        self.paused += [place.partition for place in places]

    def consume(self, _most: int, timeout: float) -> Sequence[Message]:
        assert timeout < 1
        if (fault := next(self._faults, None)) is not None:
            self._on_fault(fault)
        return next(self._batches, ())

    def position(self, places: Iterable[Any]) -> list[TopicPartition]:
        at = next(self.positions, OFFSET_INVALID)
        return [TopicPartition(place.topic, place.partition, at) for place in places]

    def close(self) -> None:
        self.closed = True


def newest(consumer: ScriptedConsumer, ranges: Sequence[OffsetRange], **limits: Any) -> Iterator[Fold]:
    """What librdkafka's messages come to."""
    keys_at_once = limits.pop("keys_at_once", KEYS_AT_ONCE)
    number_of = {(one.topic, one.partition): number for number, one in enumerate(ranges)}
    runs = read_runs({}, ranges, open_consumer=consumer.opened, **limits)
    pieces = (piece_of(number_of[place], messages).columns for place, messages in runs)
    return folded(pieces, ranges, keys_at_once=keys_at_once)


Found = tuple[dict[tuple[int, bytes | None], int], int]


def read(consumer: ScriptedConsumer, *ranges: OffsetRange, **limits: Any) -> list[Found]:
    """What is given away: each key with the offset of its newest record, and how many older ones there were."""
    limits = {"stall_timeout_s": 0.05} | limits
    found = []
    for fold in newest(consumer, ranges, **limits):
        rows = fold.records.to_pylist()
        found.append(({(row["partition"], row["key"]): row["offset"] for row in rows}, fold.older))
        assert len(found[-1][0]) == len(rows), "a partition and key is there once"
    return found


def test_a_range_is_read_to_its_end_and_no_further() -> None:
    """What comes behind the end, or of a partition that is read already, is passed over."""
    consumer = ScriptedConsumer(
        [[record(0, 1), record(0, 3), record(0, 4, b"new")], [record(0, 5, b"new"), record(1, 0, None), record(1, 1)]]
    )
    assert read(consumer, TO_FOUR, TO_TWO) == [({(0, b"k"): 3, (1, None): 0, (1, b"k"): 1}, 1)]
    assert (consumer.assigned, consumer.paused, consumer.closed) == ([(0, 0), (1, 0)], [0, 1], True)


@pytest.mark.parametrize("offset", [4, 5])
def test_markers_at_the_end_are_passed_by_the_event_behind_them(offset: int) -> None:
    """The last offsets of a range may be markers or aborted records, which never come."""
    consumer = ScriptedConsumer([[record(0, 1), event(0, 2)], [record(0, 2)], [event(0, offset)]])
    assert read(consumer, TO_FOUR) == [({(0, b"k"): 2}, 1)]
    assert consumer.paused == [0]


def test_a_record_behind_a_gap_ends_the_range() -> None:
    assert read(ScriptedConsumer([[record(0, 9)]]), TO_FOUR) == [({}, 0)]


@pytest.mark.parametrize(("topics", "listed"), [(1, 0), (100, 1)])
def test_where_many_topics_are_is_asked_once(topics: int, listed: int) -> None:
    """As for a writer; a request that fails is no fault, for librdkafka asks for each then."""
    names = [f"t{number}" for number in range(topics)]
    messages = [Message(topic=name, partition=0, offset=0, key=b"k", value=b"v") for name in names]
    consumer = ScriptedConsumer([messages])
    ranges = [OffsetRange(name, 0, 0, 1) for name in names]
    [fold] = newest(consumer, ranges, stall_timeout_s=0.05)
    assert len(fold.records) == topics
    assert (consumer.listed, consumer.closed) == (listed, True)


def test_nothing_to_read_opens_nothing() -> None:
    consumer = ScriptedConsumer([])
    assert read(consumer) == [({}, 0)]
    assert not consumer.closed


def test_a_missing_right_on_the_unused_group_is_no_fault() -> None:
    refusal = Message(error=KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
    assert read(ScriptedConsumer([[refusal, record(1, 0), record(1, 1)]]), TO_TWO) == [({(1, b"k"): 1}, 1)]


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


def test_aborted_records_are_no_silence() -> None:
    """More than a minute of nothing else was reported as a stall: only their markers move the position."""

    def batches() -> Iterator[Sequence[Message]]:
        for _ in range(5):
            time.sleep(0.1)
            yield []
        yield [record(0, 8)]

    consumer = ScriptedConsumer(batches())
    consumer.positions = iter(range(2, 8))
    assert read(consumer, OffsetRange("t", 0, 0, 9), stall_timeout_s=0.25) == [({(0, b"k"): 8}, 0)]


def test_no_key_is_at_no_wrong_place() -> None:
    """A record without a key was taken for a key that Connect's producer did not put there."""
    rows = [Record("t", 0, 0, 1, None, b"x"), Record("t", partition_for(b"k", 3), 0, 1, b"k", b"x")]
    assert Fold(records_table("t", rows, partitions=3), 0, 2, {"t": 3}).in_place()
    away = Record("t", (partition_for(b"k", 3) + 1) % 3, 0, 1, b"k", b"x")
    assert not Fold(records_table("t", [*rows, away], partitions=3), 0, 3, {"t": 3}).in_place()


def test_silence_is_explained_by_the_last_fault_that_no_answer_followed() -> None:
    down = KafkaError(KafkaError._ALL_BROKERS_DOWN)
    with pytest.raises(KafkaException):
        read(ScriptedConsumer([], [down]), TO_FOUR)
    with pytest.raises(RuntimeError, match="no records"):
        read(ScriptedConsumer([[], [record(0, 1)]], [down]), TO_FOUR)


def test_so_many_keys_are_held_at_most() -> None:
    """The newest of a key is still among what was given away, last."""
    consumer = ScriptedConsumer([[record(0, 0), record(0, 1, b"l")], [record(0, 2), record(0, 3)]])
    assert read(consumer, TO_FOUR, keys_at_once=2) == [({(0, b"k"): 0, (0, b"l"): 1}, 0), ({(0, b"k"): 3}, 1)]


def test_memory_is_that_of_the_keys() -> None:
    """A million records of ten keys were a million messages until the end of the reading of a batch."""
    batches = [[record(0, first + n, b"%d" % (n % 10)) for n in range(1000)] for first in range(0, 200_000, 1000)]
    folding = Folding([OffsetRange("t", 0, 0, 200_000)])
    most = 0
    for batch in batches:
        folding.add(piece_of(0, batch).columns)
        most = max(most, sum(one.num_rows for one in folding._batches))
    fold = folding.fold()
    assert (most < 60_000, fold.records.num_rows, fold.older) == (True, 10, 199_990)
    assert fold.records["offset"].to_pylist() == list(range(199_990, 200_000))


@pytest.mark.parametrize("keyless", [False, True])
def test_two_keys_with_one_hash_supersede_none_of_each_other(*, keyless: bool) -> None:
    keys = [b'["a",{"n":85622}]', b'["a",{"n":95541}]']
    assert len(set(hashes_of(pa.array(keys, pa.binary())).tolist())) == 1
    folding = Folding([TO_FOUR], keyless=keyless)
    folding.add(
        piece_of(0, [record(0, number, key) for number, key in enumerate([*keys, None, keys[0], None])]).columns
    )

    fold = folding.fold()

    assert fold.records["offset"].to_pylist() == ([1, 2, 3, 4] if keyless else [1, 3, 4])


def test_memory_is_that_of_the_keys_however_large_their_values_are() -> None:
    """3,000 records of 1 MB, all of a few keys, were all kept: there were too few to look for what is superseded."""
    folding = Folding([OffsetRange("t", 0, 0, 3000)], bytes_at_once=100_000)
    most = 0
    for begin in range(0, 3000, 10):
        places = range(begin, begin + 10)
        some = [Message(topic="t", partition=0, offset=i, key=b"k", value=b"v" * 1000) for i in places]
        folding.add(piece_of(0, some).columns)
        most = max(most, folding.held_bytes())
    fold = folding.fold()
    assert (most < 150_000, fold.records["offset"].to_pylist(), fold.older, fold.read) == (True, [2999], 2999, 3000)


def messages(numbers: range, *, keys: int, size: int) -> list[Message]:
    value = b"v" * size
    return [Message(topic="t", partition=0, offset=n, key=b"%d" % (n % keys), value=value) for n in numbers]


@pytest.mark.parametrize(("keys", "size"), [(1000, 60), (1000, 80), (1000, 95)])
def test_keys_that_nearly_fill_the_memory_are_not_copied_for_each_record_that_comes(keys: int, size: int) -> None:
    """With 97 % of what is held at once, each 3 % that was read copied all: hundreds of times."""
    folding, copied, folds = Folding([TO_FOUR], bytes_at_once=130_000), 0, 0
    for begin in range(0, 50_000, 100):
        folding.add(piece_of(0, messages(range(begin, begin + 100), keys=keys, size=size)).columns)
        with_superseded = folding.held_bytes()
        full = folding.is_full()
        copied += folding.held_bytes() if folding.held_bytes() < with_superseded else 0
        if full:
            folding, folds = Folding([TO_FOUR], bytes_at_once=130_000), folds + 1
    read_bytes = 50_000 * (size + 35)
    assert copied + folds * 130_000 < 4 * read_bytes


def test_values_may_have_more_than_2_gib_together() -> None:
    """At which an array of `binary` ends: what takes, sorts or joins chunks raised ArrowInvalid."""
    ends_at_2_gib = {
        column.name
        for schema in (RECORDS, DECISIONS, WRITES, ENTRIES, Folding([TO_FOUR]).fold().records.schema)
        for column in schema
        if pa.types.is_binary(column.type)
    }
    assert ends_at_2_gib == {"key", "source_key"}
    value = pa.array([b"v", None], pa.large_binary())
    assert meaning(value, pa.array([False, True])).type == value.type


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([b"a", b"b", None]), st.integers(1, 3)), max_size=60))
def test_the_newest_of_each_partition_and_key(steps: list[tuple[int, bytes | None, int]]) -> None:
    """Whatever comes in which order, in runs of any length."""
    ends, newest, messages = [0, 0, 0], dict[tuple[int, bytes | None], int](), list[Message]()
    for partition, key, gap in steps:
        ends[partition] += gap
        messages.append(record(partition, ends[partition] - 1, key))
        newest[partition, key] = ends[partition] - 1
    ranges = [OffsetRange("t", number, 0, end, 3) for number, end in enumerate(ends) if end]
    found = read(ScriptedConsumer([messages]), *ranges)
    assert found == [(newest, len(steps) - len(newest))]


def test_what_a_row_says() -> None:
    key = b'["c",{"f":1}]'
    messages = [
        Message(topic="t", partition=1, offset=7, key=key, value=b"null", timestamp=(1, 5)),
        Message(topic="t", partition=partition_for(b"odd", 3), offset=8, key=b"odd", value=b"{}", timestamp=(0, 6)),
    ]
    ranges = [OffsetRange("t", number, 0, 9, 3, "t@p") for number in range(3)]
    ends = [event(number, 9) for number in range(3)]
    (fold,) = newest(ScriptedConsumer([messages, ends]), ranges)
    names = ("topic", "timestamp_ms", "nothing", "at_home", "connector")
    rows = {row["offset"]: tuple(row[name] for name in names) for row in fold.records.to_pylist()}
    assert rows == {
        7: ("t@p", 5, True, partition_for(key, 3) == 1, "c"),
        8: ("t@p", -1, False, True, None),
    }
