"""The rows of `offsets list` as text are what `json` makes of them, whatever a topic holds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.records import OffsetKey, decode_key, duplicate_spellings
from eosctl.core.offsets.views import fold_store, offset_views
from eosctl.core.records import Bounds, Record, TopicRead
from eosctl.offsets.rows import ViewRows
from eosctl.report import plain

NUMBERS = st.integers() | st.floats(allow_nan=False) | st.sampled_from([2**64, -(2**70), 1e16, 1e-7, 10**30])
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=4)
TREES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner))
ODD = st.sampled_from(
    [
        *(None, b"", b"null", b" {}", b"{} junk", b"{", b"007", b"NaN", b"\xff", b'"\\ud800"'),
        *(b'{"a":1,"a":2}', b'{"lsn":28717056}', b'{"lsn":-1,"lsn_proc":9}', b'"\x01"', b"[" * 2000 + b"]" * 2000),
    ]
)
VALUES = ODD | TREES.map(lambda tree: json.dumps(tree, ensure_ascii=False).encode("utf-8", "replace"))
KEYS = st.sampled_from(
    [
        *(b'["c",{"f":"a"}]', b'["c",{"f":1.5}]', b'["c",{"f":"\\ud800"}]', b'["c",null]', b'["c",{"f":"a"}] junk'),
        *(b' ["c",{}]', '["ö",{"f":"ü"}]'.encode(), b'["c",{"f":18446744073709551616}]'),
    ]
)


@given(st.lists(st.tuples(KEYS, VALUES, st.integers(-1, 300_000_000_000_000)), min_size=1, max_size=4))
def test_a_row_as_text_is_the_row_as_json(found: list[tuple[bytes, bytes | None, int]]) -> None:
    records = tuple(Record("t", partition_for(key, 3), n, ms, key, value) for n, (key, value, ms) in enumerate(found))
    store = fold_store(TopicRead("t", tuple(Bounds(p, 0, 9, 9) for p in range(3)), records, len(records)))
    views = [offset_views({"global": store}, name, dedicated_in_use=False) for name in sorted(store.connectors)]
    rows = ViewRows(views, now_ms=1_800_000_000_000)
    made = list(rows)
    assert (len(rows), list(rows[:1]), rows[-1]) == (len(made), [rows[0]], made[-1])


@pytest.mark.parametrize("depth", [200, 600, 850])
def test_what_is_nested_too_deep_is_shown_as_its_bytes(depth: int) -> None:
    """`-o json` stopped in the middle of the document: 1.5 is for the slower of the two ways to make a row."""
    deep = b"[" * depth + b"1.5" + b"]" * depth
    found = [(b'["c",{"a":1}]', b'{"x":' + deep + b"}"), (b'["c",{"a":' + deep + b"}]", b"{}"), (b'["c",{}]', b"{}")]
    records = tuple(Record("t", 0, number, 1, key, value) for number, (key, value) in enumerate(found))
    store = fold_store(TopicRead("t", (Bounds(0, 0, 9, 9),), records, len(records)))
    rows = ViewRows([offset_views({"global": store}, "c", dedicated_in_use=False)], now_ms=5)
    by_key = {row["key"].encode(): row for row in json.loads(json.dumps(list(map(plain, rows))))}
    assert list(by_key) == [row.key.encode() for row in rows if isinstance(row.key, str)]
    assert list(by_key[b'["c",{}]']["stores"]["global"]["value"]) == []
    if depth > 500:
        assert by_key[found[0][0]]["stores"]["global"]["value"] == found[0][1].decode()
        assert by_key[found[1][0]]["source_partition"] == found[1][0].decode()


MEMBERS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "a,b", ":"]), st.sampled_from([*"xy,:{", 'x","y', 0, 1, 1.0, -0, 2**63, True, None])
    ),
    max_size=3,
)


def _spelled(members: list[tuple[str, object]], *, spaces: bool) -> bytes:
    colon = ": " if spaces else ":"
    body = ",".join(f"{json.dumps(name)}{colon}{json.dumps(value)}" for name, value in members)
    return f'["a{{b",{{{body}}}]'.encode()


@given(st.lists(st.builds(_spelled, MEMBERS, spaces=st.booleans()), max_size=6, unique=True))
def test_two_spellings_of_a_source_partition_are_found_without_asking_each(raws: list[bytes]) -> None:
    """The identity of each of a million keys took longer than all else about them."""
    keys = [key for key in map(decode_key, raws) if isinstance(key, OffsetKey)]
    identities = [key.identity for key in keys]
    assert duplicate_spellings(keys) == {each for each in identities if identities.count(each) > 1}
