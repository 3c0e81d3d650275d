"""Where keys belong, of a whole column: what the rule for one key says."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.offsets.names import murmur2, partition_for
from eosctl.engine.keys import hashes_of, homes_of

_KEYS = st.lists(st.none() | st.binary(max_size=40) | st.integers(1020, 1030).map(bytes), max_size=30)


@given(_KEYS, st.integers(0, 3), st.integers(1, 100))
def test_homes_of_a_column(keys: list[bytes | None], skipped: int, partitions: int) -> None:
    """Also of a part of one, whose bytes begin somewhere else."""
    column = pa.array([b"before"] * skipped + keys, pa.binary()).slice(skipped)
    expected = [None if key is None else partition_for(key, partitions) for key in keys]
    assert homes_of(column, partitions).to_pylist() == expected
    assert homes_of(column, pa.array([partitions] * len(keys), pa.int32())).to_pylist() == expected


@pytest.mark.parametrize("length", [*range(10), 63, 1024])
def test_hashes_of_any_length(length: int) -> None:
    keys = [bytes(length), b"\xff" * length, bytes(range(256)) * 4]
    assert hashes_of(pa.array(keys, pa.binary())).tolist() == [murmur2(key) for key in keys]


def test_topics_of_different_sizes() -> None:
    """Topics that are not there have no number of partitions: their keys are of no use to anybody, and no fault."""
    sizes = pa.array([3, 7, None], pa.int32())
    found = homes_of(pa.array([b"k", b"k", b"k"], pa.binary()), sizes).to_pylist()
    assert found[:2] == [partition_for(b"k", 3), partition_for(b"k", 7)]
