"""What Jackson and java.util.HashMap really produced (Kafka 4.2 and 4.3 classes), as tables."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.java.json import double_text, encode_key, encode_offset, hash_map_order, primitive_text, string_text
from eosctl.errors import UsageError


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1e10, "1.0E10"),
        (1e-7, "1.0E-7"),
        (100.0, "100.0"),
        (0.1, "0.1"),
        (1.2345678901234568e17, "1.2345678901234568E17"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (-1.5, "-1.5"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (1234.5, "1234.5"),
        (0.0123, "0.0123"),
        (float("nan"), '"NaN"'),
        (float("inf"), '"Infinity"'),
        (float("-inf"), '"-Infinity"'),
    ],
)
def test_double_text(number: float, text: str) -> None:
    assert double_text(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back_equal(number: float) -> None:
    assert struct.pack(">d", float(double_text(number))) == struct.pack(">d", number)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain", '"plain"'),
        ('q" b\\', '"q\\" b\\\\"'),
        ("\b\f\n\r\t", '"\\b\\f\\n\\r\\t"'),
        ("\x1f\x00", '"\\u001F\\u0000"'),
        ("é€\u2028/<&\x7f", '"é€\u2028/<&\x7f"'),
        ("😀", '"\\uD83D\\uDE00"'),
    ],
)
def test_string_text(text: str, written: str) -> None:
    assert string_text(text) == written
    assert json.loads(written) == text


@pytest.mark.parametrize(
    ("inserted", "iterated"),
    [
        ("topic,partition,cluster", "cluster,partition,topic"),
        ("b,a,c", "a,b,c"),
        ("db,table,schema", "schema,db,table"),
        ("consumerGroup,topic,partition", "partition,topic,consumerGroup"),
        ("name,connector.class,tasks.max,topic,file", "connector.class,file,tasks.max,name,topic"),
        ("table,shard", "shard,table"),
    ],
)
def test_hash_map_order(inserted: str, iterated: str) -> None:
    assert ",".join(hash_map_order(inserted.split(","))) == iterated


@given(st.lists(st.text(max_size=5), unique=True, max_size=60))
def test_hash_map_order_loses_nothing(names: list[str]) -> None:
    assert sorted(hash_map_order(names)) == sorted(names)


def test_keys_and_values_are_connects_own_bytes() -> None:
    assert encode_key("conn", {"filename": "tmp/x"}) == b'["conn",{"filename":"tmp/x"}]'
    assert encode_key("mm2", {"topic": "t1", "partition": 3, "cluster": "A"}) == (
        b'["mm2",{"cluster":"A","partition":3,"topic":"t1"}]'
    )
    assert encode_key("conn", None) == b'["conn",null]'
    assert encode_offset({"n": 1, "f": True, "x": None, "d": 1.0}) == b'{"d":1.0,"f":true,"x":null,"n":1}'


@pytest.mark.parametrize("value", [{"a": 1}, [1], 2**63, b"x", "\ud800"])
def test_what_connect_refuses_is_refused(value: object) -> None:
    with pytest.raises(UsageError):
        primitive_text(value)
