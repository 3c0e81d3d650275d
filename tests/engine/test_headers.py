"""Headers of many records at once, held to the headers of each record and to a line of a record file."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.records import Headers, encode_headers
from eosctl.engine.columns import VALUES
from eosctl.engine.reading.heads import headers_texts, raw_headers
from eosctl.errors import ProtocolError

NAMES = st.one_of(st.text(max_size=3), st.binary(max_size=3).map(lambda name: name.decode("utf-8", "surrogateescape")))
HEADERS = st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=80)), max_size=10).map(tuple)


def text(headers: Headers) -> str | None:
    return json.dumps(encode_headers(headers), ensure_ascii=False, separators=(",", ":")) if headers else None


@given(st.lists(st.one_of(st.just((("traceparent", b"00-ab-cd-01"),)), HEADERS), max_size=12))
def test_headers_of_many_records_are_those_of_each(rows: list[Headers]) -> None:
    assert headers_texts(pa.array(map(raw_headers, rows), VALUES)).to_pylist() == list(map(text, rows))


def test_records_without_headers_may_lie_between_others() -> None:
    raw = raw_headers((("trace", b"1"),))
    some = pa.array([b"before", None, raw, b"\0", raw, None, b"behind"], VALUES)[1:6]
    assert headers_texts(some).to_pylist() == [None, one := '[{"name":"trace","value":"1"}]', None, one, None]


@pytest.mark.parametrize(
    "damaged",
    [
        b"\x02\x02a\x04b",  # its last value ends in the next record
        b"\x02\x02a\x02bc",
        b"\x02\x02a",
        b"\x02",
        b"\x02\x82\x80\x80\x80\x80\x00a\x02b",  # more bytes for a number than Kafka reads
    ],
)
def test_what_is_damaged_is_no_headers(damaged: bytes) -> None:
    raw = raw_headers((("a", b"b"),))
    for rows in ([raw, damaged, raw], [damaged, raw], [raw, damaged]):
        with pytest.raises(ProtocolError):
            headers_texts(pa.array(rows, VALUES))
