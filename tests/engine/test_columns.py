"""Small words of Arrow; and Arrow without pandas, where pandas is installed."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.offsets.records import is_nothing
from eosctl.engine.columns import VALUES, are_nothing, filter_rows, one_array, row_numbers

_PROBE = """
import sys
import eosctl.engine.columns, eosctl.engine.reading.newest, eosctl.engine.rule
print("pandas" in sys.modules)
import pandas, pyarrow
table = pyarrow.Table.from_pandas(pandas.DataFrame({"key": ["a", None]}))
print(table.to_pandas()["key"].isna().tolist(), pyarrow.array(pandas.Series([1.0, None])).to_pylist())
"""


def test_pandas_is_not_loaded_and_can_be_later() -> None:
    """pyarrow loads it with its first array: 0.4 s and 40 MiB for each process, for nothing."""
    done = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False", "[False, True] [1.0, None]"]


@pytest.mark.parametrize("mask", [[True, True], [True, False], [True, None], [None, None], [False, False]])
def test_those_are_what_a_filter_leaves_and_no_copy_where_that_is_all(mask: list[bool | None]) -> None:
    rows, which = pa.table({"n": [1, 2]}), pa.array(mask, pa.bool_())
    assert filter_rows(rows, which).equals(rows.filter(which))
    assert (filter_rows(rows, which) is rows) == all(mask)


def test_a_column_of_one_piece_is_that_piece() -> None:
    piece, empty = pa.array([1, 2]), pa.array([], pa.int64())
    assert one_array(pa.chunked_array([empty, piece, empty])).equals(piece)
    assert one_array(pa.chunked_array([piece, piece])).to_pylist() == [1, 2, 1, 2]
    assert one_array(pa.chunked_array([empty, empty])).equals(empty)
    assert one_array(piece) is piece


def test_rows_are_numbered_from_zero() -> None:
    assert [row_numbers(count).to_pylist() for count in (0, 1, 3)] == [[], [0], [0, 1, 2]]


@given(
    st.lists(st.none() | st.sampled_from([b"", b"null", b" null ", b"nul", b"{}", b"{", b"0", b"\xff"]), max_size=12)
)
def test_what_means_no_offset_in_a_column(values: list[bytes | None]) -> None:
    column = pa.array([b"before", *values], VALUES).slice(1)
    assert are_nothing(column).to_pylist() == [is_nothing(value) for value in values]
