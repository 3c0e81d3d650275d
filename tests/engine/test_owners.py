"""Whole columns of keys in Arrow are read and renamed as single keys are, whatever the bytes are."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.offsets.keys import key_owner, renamed_key
from eosctl.engine.keys.owners import owners_of, renamed

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
