"""Where another table has the same key: held to a dictionary, whatever the hashes are."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.engine.keys import hash_column, places_of, rows_of

Row = tuple[str, int, bytes | None]

_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["offsets", "other", "third"]),
        st.sampled_from([0, 1, 5, 25]),
        st.none() | st.binary(max_size=2),
    ),
    max_size=30,
)


def _table(rows: Sequence[Row], hashing: str = "none") -> pa.Table:
    """Rows without hashes, with their own, or with those that all are the same."""
    topics, partitions, keys = zip(*rows, strict=True) if rows else ((), (), ())
    columns = [pa.array(topics, pa.string()), pa.array(partitions, pa.int32()), pa.array(keys, pa.binary())]
    table = pa.table(columns, names=["topic", "partition", "key"])
    if hashing == "none":
        return table
    hashes = hash_column(pa.array(keys, pa.binary()))
    if hashing == "alike":
        hashes = pa.array([None if each is None else 7 for each in hashes.to_pylist()], pa.uint32())
    return table.append_column("hash", hashes)


@pytest.mark.parametrize("hashing", ["none", "own", "alike"])
@given(rows=_ROWS, others=_ROWS)
def test_each_row_is_found_where_its_topic_partition_and_key_are(
    hashing: str, rows: list[Row], others: list[Row]
) -> None:
    others = list(dict.fromkeys(others))
    there = {row: number for number, row in enumerate(others)}

    found = places_of(_table(rows, hashing), _table(others, hashing))

    assert found.to_pylist() == [there.get(row) for row in rows]
    assert found.type == pa.int32()


@pytest.mark.parametrize("hashing", ["none", "own", "alike"])
@given(rows=_ROWS, others=_ROWS)
def test_without_the_partition_topic_and_key_are_enough(hashing: str, rows: list[Row], others: list[Row]) -> None:
    others = list({(topic, key): (topic, partition, key) for topic, partition, key in others}.values())
    there = {(topic, key): number for number, (topic, _partition, key) in enumerate(others)}

    found = rows_of(_table(rows, hashing), _table(others, hashing))

    assert found.to_pylist() == [there.get((topic, key)) for topic, _partition, key in rows]


def test_one_side_may_have_hashes_and_come_in_chunks() -> None:
    keys = [b'["a",{"n":%d}]' % number for number in range(5_000)]
    others = _table([("offsets", 0, key) for key in keys], "own")
    rows = pa.concat_tables([_table([("offsets", 3, key) for key in some]) for some in (keys[3_000:], keys[:10])])

    assert rows_of(rows, others).to_pylist() == [*range(3_000, 5_000), *range(10)]
    assert places_of(rows, others).null_count == len(rows)


def test_two_keys_with_one_hash_are_told_apart() -> None:
    pair = [b'["a",{"n":85622}]', b'["a",{"n":95541}]']
    assert len(set(hash_column(pa.array(pair, pa.binary())).to_pylist())) == 1
    rows, others = ([("offsets", 0, key) for key in keys] for keys in (pair[::-1], pair))

    assert rows_of(_table(rows), _table(others)).to_pylist() == [1, 0]
