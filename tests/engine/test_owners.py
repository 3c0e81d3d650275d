"""Whole columns of keys in Arrow are read and renamed as single keys are, whatever the bytes are."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.offsets.records import key_owner, renamed_key
from eosctl.engine.columns import cut_column
from eosctl.engine.keys import owners_of, renamed

TOKENS = (
    b"[", b"]", b'"', b"{", b"}", b":", b",", b" ", b"\\", b"\n", b"\x00", b"\x7f", b"\xff", "ü".encode(), b"null",
)  # fmt: skip
PARTS = (
    b'"c"', b'["c",', b'["a-b",{', b'"f":1', b'"f":-0', b'"f":01', b'"f":1.5', b"true", b"\xef\xbb\xbf", b"\\u00e9",
)  # fmt: skip
PIECES = st.sampled_from((*TOKENS, *PARTS))
KEYS = st.lists(PIECES, max_size=8).map(b"".join)
PLAIN = st.tuples(st.sampled_from(["c", "", "a b", "x" * 200]), st.integers(-(10**17), 10**17)).map(
    lambda pair: f'["{pair[0]}",{{"file":"f","n":{pair[1]}}}]'.encode()
)


@given(st.lists(st.one_of(st.none(), KEYS, PLAIN), min_size=1, max_size=30))
def test_owners_and_new_names(keys: list[bytes | None]) -> None:
    column = pa.array(keys, pa.binary())
    owners = [key_owner(key) for key in keys]
    assert owners_of(column).to_pylist() == [owner and owner.connector for owner in owners]
    renames = {"c": 'new "one"', "é": "c", "": "ü"}
    assert renamed(column, owners_of(column), renames).to_pylist() == [
        renamed_key(key, owner, renames[owner.connector]) if key and owner and owner.connector in renames else key
        for key, owner in zip(keys, owners, strict=True)
    ]


NAMES = st.lists(
    st.sampled_from([*'",\\[]{}: ', "\x00", "\x1f", "\n", "\x7f", "\x9f", "c", "ü", "漢", "😀"]), max_size=4
).map("".join)
PARTITIONS = st.sampled_from([None, {}, {"f": 1}, {"a": ",", "b": '",'}])


@given(st.lists(st.tuples(NAMES, PARTITIONS, st.booleans()), min_size=1, max_size=30))
def test_owners_of_any_names(parts: list[tuple[str, object, bool]]) -> None:
    """One name must not change whose the others are: where it began with a comma, it took the process down."""
    keys = [json.dumps([name, of], ensure_ascii=plain, separators=(",", ":")).encode() for name, of, plain in parts]
    found = owners_of(pa.array(keys, pa.binary()))
    found.validate(full=True)
    assert found.to_pylist() == [name for name, _of, _plain in parts]


@pytest.mark.parametrize(("odd", "place"), list(product(['[",orders",{"f":1}]', '[",",null]', '[",",{}]'], range(3))))
def test_a_name_that_begins_with_a_comma_among_others(odd: str, place: int) -> None:
    keys = [b'["c%d",{"a":1}]' % number for number in range(60)]
    keys.insert(30 * place, odd.encode())
    found = owners_of(pa.array(keys, pa.binary()))
    found.validate(full=True)
    assert found.to_pylist() == [json.loads(key)[0] for key in keys]


@pytest.mark.parametrize("cuts", [[0, 4, 2], [-1, 2, 3], [0, 2, 9]], ids=["go back", "before", "behind"])
def test_cuts_that_read_other_memory_are_refused(cuts: list[int]) -> None:
    with pytest.raises(ValueError, match="outside"):
        cut_column(np.array(cuts, np.int32), b"12345")
