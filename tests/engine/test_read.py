"""What is read comes to the newest record of each partition and key, in memory for so many keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pytest
from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.offsets.names import partition_for
from eosctl.core.records import Record
from eosctl.engine.backups.entries import ENTRIES
from eosctl.engine.columns import DECISIONS, RECORDS, batch_of_rows, meaning
from eosctl.engine.keys import hashes_of
from eosctl.engine.planned import WRITES
from eosctl.engine.reading.batches import PIECE
from eosctl.engine.reading.heads import headers_in, raw_headers
from eosctl.engine.reading.newest import KEYS_AT_ONCE, Fold, Folding, folded, piece_of, records_table
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.kafka.topics.runs import runs_of

TO_FOUR = OffsetRange("t", 0, 0, 4)


def record(partition: int, offset: int, key: bytes | None = b"k") -> Message:
    return Message(topic="t", partition=partition, offset=offset, key=key, value=b"v%d" % offset)


def newest(batches: Iterable[Sequence[Message]], ranges: Sequence[OffsetRange], *, keys_at_once: int) -> Iterator[Fold]:
    """What messages come to, of which those of a batch are of any partitions."""
    number_of = {(one.topic, one.partition): number for number, one in enumerate(ranges)}
    runs = (run for batch in batches for run in runs_of(batch))
    pieces = (piece_of(number_of[place], messages).columns for place, messages in runs)
    return folded(pieces, ranges, keys_at_once=keys_at_once)


Found = tuple[dict[tuple[int, bytes | None], int], int]


def read(batches: Iterable[Sequence[Message]], *ranges: OffsetRange, keys_at_once: int = KEYS_AT_ONCE) -> list[Found]:
    """What is given away: each key with the offset of its newest record, and how many older ones there were."""
    found = []
    for fold in newest(batches, ranges, keys_at_once=keys_at_once):
        rows = fold.records.to_pylist()
        found.append(({(row["partition"], row["key"]): row["offset"] for row in rows}, fold.older))
        assert len(found[-1][0]) == len(rows), "a partition and key is there once"
    return found


def test_no_key_is_at_no_wrong_place() -> None:
    """A record without a key was taken for a key that Connect's producer did not put there."""
    rows = [Record("t", 0, 0, 1, None, b"x"), Record("t", partition_for(b"k", 3), 0, 1, b"k", b"x")]
    assert Fold(records_table("t", rows, partitions=3), 0, 2, {"t": 3}).in_place()
    away = Record("t", (partition_for(b"k", 3) + 1) % 3, 0, 1, b"k", b"x")
    assert not Fold(records_table("t", [*rows, away], partitions=3), 0, 3, {"t": 3}).in_place()


def test_so_many_keys_are_held_at_most() -> None:
    """The newest of a key is still among what was given away, last."""
    batches = [[record(0, 0), record(0, 1, b"l")], [record(0, 2), record(0, 3)]]
    assert read(batches, TO_FOUR, keys_at_once=2) == [({(0, b"k"): 0, (0, b"l"): 1}, 0), ({(0, b"k"): 3}, 1)]


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


def test_keys_and_values_may_have_more_than_2_gib_together() -> None:
    """At which an array of `binary` ends: what takes, sorts or joins chunks raised ArrowInvalid."""
    ends_at_2_gib = {
        column.name
        for schema in (RECORDS, DECISIONS, WRITES, ENTRIES, Folding([TO_FOUR]).fold().records.schema)
        for column in schema
        if pa.types.is_binary(column.type)
    }
    assert ends_at_2_gib == set()
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
    found = read([messages], *ranges)
    assert found == [(newest, len(steps) - len(newest))]


def test_what_a_row_says() -> None:
    key = b'["c",{"f":1}]'
    messages = [
        Message(topic="t", partition=1, offset=7, key=key, value=b"null", timestamp=(1, 5)),
        Message(topic="t", partition=partition_for(b"odd", 3), offset=8, key=b"odd", value=b"{}", timestamp=(0, 6)),
    ]
    ranges = [OffsetRange("t", number, 0, 9, 3, "t@p") for number in range(3)]
    (fold,) = newest([messages], ranges, keys_at_once=KEYS_AT_ONCE)
    names = ("topic", "timestamp_ms", "nothing", "at_home", "connector")
    rows = {row["offset"]: tuple(row[name] for name in names) for row in fold.records.to_pylist()}
    assert rows == {
        7: ("t@p", 5, True, partition_for(key, 3) == 1, "c"),
        8: ("t@p", -1, False, True, None),
    }


def test_headers_go_with_the_records_that_they_are_of() -> None:
    """Those of every record were kept, however few keys there were, and put beside the newest in the end."""
    folding, size = Folding([TO_FOUR]), 1_000
    for first in range(0, 200_000, size):
        rows = [
            (
                0,
                first + row,
                1,
                b"k%d" % (row % 10),
                b"v",
                raw_headers((("at", b"%d" % (first + row)), ("t", bytes(90)))),
            )
            for row in range(size)
        ]
        folding.add(batch_of_rows(rows, PIECE))
        assert folding.held_bytes() < 15 << 20
    records = folding.fold().records
    found = {row["offset"]: headers_in(row["headers"]) for row in records.to_pylist()}
    assert found == {at: (("at", b"%d" % at), ("t", bytes(90))) for at in range(199_990, 200_000)}
    assert records.nbytes < 10_000
