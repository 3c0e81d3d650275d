"""Offset keys: what Connect makes of them, and that no bytes make the decoder fail or forget."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.offsets.records import (
    IgnoredKey,
    KeyFault,
    OffsetKey,
    as_plain_json,
    decode_key,
    is_nothing,
    key_owner,
    renamed_key,
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
    assert decode_key(raw) == IgnoredKey(raw or b"", fault)


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


KEY_LIKE = st.builds(
    lambda name, partition, between, tail: (
        json.dumps([name, partition], ensure_ascii=False, separators=between).encode("utf-8", "replace") + tail
    ),
    ODD_JSON, ODD_JSON, st.sampled_from([(", ", ": "), (",", ":")]), st.sampled_from([b"", b" ", b"x", b"]"]),
)  # fmt: skip
PLAIN_BUT_ONE = st.lists(
    st.sampled_from([b'["a",', b'"', b"a", b'{"f":', b'"x"', b"}", b"]", b",", b":", b"0", b"01", b"-", b"9" * 5000,
                     b"true", b"null", b"\\", b"\\u0061", b"\x7f", b"\n", b" ", b"\xc3\xa9", b'{"f":"x","g":1}]']),
    max_size=8,
).map(lambda pieces: b'["a",' + b"".join(pieces))  # fmt: skip
"""Keys that are nearly, or quite, of the form that is read without a parser."""


@given(st.binary() | KEY_LIKE | PLAIN_BUT_ONE)
def test_the_migration_names_the_same_owner(raw: bytes) -> None:
    """A key that `migrate` assigns to a connector is one that `merge` assigns to it, and the other way round."""
    owner, key = key_owner(raw), decode_key(raw)
    assert (owner.connector if owner else None) == (key.connector if isinstance(key, OffsetKey) else None)


@given(st.text(min_size=1), PARTITIONS, st.text(min_size=1).filter(lambda name: name.isprintable()), st.booleans())
def test_a_rename_leaves_every_other_byte(
    connector: str, partition: dict[str, object] | None, new: str, spaces: bool
) -> None:
    written = [json.dumps(part, ensure_ascii=not spaces, separators=(",", ":")) for part in (connector, partition)]
    raw = (" [ {} , {} ] " if spaces else "[{},{}]").format(*written).encode()
    owner = key_owner(raw)
    assert owner is not None
    renamed, key = decode_key(renamed_key(raw, owner, new)), decode_key(raw)
    assert isinstance(renamed, OffsetKey)
    assert isinstance(key, OffsetKey)
    assert (renamed.connector, renamed.partition) == (new, key.partition)
    assert renamed.raw.endswith(raw[owner.end :])


def test_a_new_name_beyond_the_bmp_is_spelled_as_connect_spells_it() -> None:
    """It used to be written as raw UTF-8, under which no task finds its offsets: keys are looked up by their bytes."""
    raw = b'["c",{"f":"a"}]'
    owner = key_owner(raw)
    assert owner is not None
    assert renamed_key(raw, owner, "\u00e9\U0001f600") == '["\u00e9\\uD83D\\uDE00",{"f":"a"}]'.encode()


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
