"""Offset keys: what Connect makes of them, and that no bytes make the decoder fail or forget."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.offset_keys import key_owner
from eosctl.core.offset_records import (
    IgnoredKey,
    KeyFault,
    OffsetKey,
    as_plain_json,
    decode_key,
    is_nothing,
    shown_value,
)

PRIMITIVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
PARTITIONS = st.none() | st.dictionaries(st.text(), PRIMITIVES)
ODD_JSON = st.recursive(
    PRIMITIVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (None, KeyFault.NULL_KEY),
        (b"not json", KeyFault.NOT_JSON),
        (b"\xff\xfe", KeyFault.NOT_JSON),
        (b'["c",{"a":NaN}]', KeyFault.NOT_JSON),
        (b'["c",{"f":"a"}', KeyFault.NOT_JSON),
        (b"[" * 100_000, KeyFault.NOT_JSON),
        (b"", KeyFault.NOT_A_LIST),
        (b"null", KeyFault.NOT_A_LIST),
        (b'{"c":1}', KeyFault.NOT_A_LIST),
        (b'"c"', KeyFault.NOT_A_LIST),
        (b"[]", KeyFault.WRONG_SIZE),
        (b'["c"]', KeyFault.WRONG_SIZE),
        (b'["c",{},1]', KeyFault.WRONG_SIZE),
        (b"[1,{}]", KeyFault.CONNECTOR_NOT_TEXT),
        (b"[null,{}]", KeyFault.CONNECTOR_NOT_TEXT),
        (b'["c","p"]', KeyFault.PARTITION_NOT_A_MAP),
        (b'["c",[1]]', KeyFault.PARTITION_NOT_A_MAP),
    ],
)
def test_keys_that_connect_ignores(raw: bytes | None, fault: KeyFault) -> None:
    assert decode_key(raw) == IgnoredKey(raw, fault)


@pytest.mark.parametrize(
    ("raw", "connector", "partition"),
    [
        (b'["c",{"filename":"tmp/x"}]', "c", {"filename": "tmp/x"}),
        (b'["c",null]', "c", None),
        (b'["c",{}]', "c", {}),
        (b' [ "c" , {"a" : 1} ] ', "c", {"a": 1}),
        (b'["\\u0063",{"a":"\\ud83d\\ude00"}]', "c", {"a": "😀"}),
        (b'["c",{"a":1,"a":2}]', "c", {"a": 2}),
        (b'["c",{"a":007}]', "c", {"a": 7}),
        (b'["c",{"a":1}]trailing', "c", {"a": 1}),
    ],
)
def test_keys_that_connect_takes(raw: bytes, connector: str, partition: object) -> None:
    key = decode_key(raw)
    assert isinstance(key, OffsetKey)
    assert (key.raw, key.connector, key.partition) == (raw, connector, partition)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'["c",{"a":1,"b":2}]', b'["c",{"b":2,"a":1}]', True),
        (b'["c",{"a":1}]', b'["c", {"a": 1}]', True),
        (b'["c",{"a":"\xc3\xa9"}]', b'["c",{"a":"\\u00e9"}]', True),
        (b'["c",{"a":1}]', b'["c",{"a":1.0}]', False),
        (b'["c",{"a":1}]', b'["c",{"a":"1"}]', False),
        (b'["c",{"a":1}]', b'["c",{"a":true}]', False),
        (b'["c",{"a":0.0}]', b'["c",{"a":-0.0}]', False),
        (b'["c",{"a":1}]', b'["d",{"a":1}]', False),
        (b'["c",null]', b'["c",{}]', False),
        (b'["c",{"a":18446744073709551617}]', b'["c",{"a":1}]', True),
    ],
)
def test_two_spellings_of_one_partition_have_one_identity(one: bytes, other: bytes, same: bool) -> None:
    left, right = decode_key(one), decode_key(other)
    assert isinstance(left, OffsetKey)
    assert isinstance(right, OffsetKey)
    assert (left.identity == right.identity) is same


@given(st.binary() | ODD_JSON.map(lambda value: json.dumps(value).encode()))
def test_no_bytes_fail_or_get_lost(raw: bytes) -> None:
    key = decode_key(raw)
    assert key.raw == raw
    is_nothing(raw)
    shown = shown_value(raw)
    assert shown == raw or json.dumps(shown, allow_nan=False).encode() is not None


@given(st.text(), PARTITIONS, st.booleans())
def test_what_was_written_is_read(connector: str, partition: dict[str, object] | None, spaces: bool) -> None:
    raw = json.dumps([connector, partition], separators=(", ", ": ") if spaces else (",", ":")).encode()
    key = decode_key(raw)
    assert isinstance(key, OffsetKey)
    assert json.dumps([key.connector, key.partition]) == json.dumps([connector, partition])


@given(st.binary() | ODD_JSON.map(lambda value: json.dumps(value).encode()))
def test_the_migration_names_the_same_owner(raw: bytes) -> None:
    """A key that `migrate` assigns to a connector is one that `merge` assigns to the same connector."""
    owner, key = key_owner(raw), decode_key(raw)
    if owner is not None and b"NaN" not in raw and b"Infinity" not in raw:
        assert isinstance(key, OffsetKey)
        assert key.connector == owner.connector


@pytest.mark.parametrize(
    ("value", "nothing", "shown"),
    [
        (None, True, None),
        (b"", True, None),
        (b"null", True, None),
        (b" null ", True, None),
        (b"{}", False, {}),
        (b'{"position":20}', False, {"position": 20}),
        (b"oops", False, b"oops"),
        (b"\xff", False, b"\xff"),
        (b'{"a":1e999}', False, {"a": "inf"}),
        (b'"\\ud800"', False, "?"),
    ],
)
def test_values(value: bytes | None, nothing: bool, shown: object) -> None:
    assert is_nothing(value) is nothing
    assert shown_value(value) == shown


def test_plain_json_reaches_into_lists() -> None:
    assert as_plain_json([{"a\ud800": float("-inf")}, True, 1]) == [{"a?": "-inf"}, True, 1]
