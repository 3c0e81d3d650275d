"""The record file: lossless both ways, and exact about what is wrong where."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.records import Record, numbered_documents, read_records, record_line
from eosctl.errors import InputFileError

NAMES = st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape"))
"""Of headers: bytes that are no UTF-8 became U+FFFD, in files and in what was restored of them."""
RECORDS = st.builds(
    Record,
    topic=st.text(min_size=1),
    partition=st.integers(0, 99),
    offset=st.integers(-1, 2**62),
    timestamp_ms=st.integers(-1, 2**62),
    key=st.none() | st.binary() | st.text().map(str.encode),
    value=st.none() | st.binary() | st.text().map(str.encode),
    headers=st.lists(st.tuples(NAMES, st.none() | st.binary()), max_size=2).map(tuple),
)


@given(st.lists(RECORDS, max_size=5))
def test_every_record_comes_back(records: list[Record]) -> None:
    lines = [record_line(record).encode() + b"\n" for record in records]
    assert all(line.count(b"\n") == 1 for line in lines)
    assert list(read_records(lines, name="f")) == records


def test_the_shape_of_a_line() -> None:
    line = record_line(Record("connect-offsets", 3, 17, 1700000000000, b'["c",{"f":"a"}]', b'{"n":1}'))
    assert line == (
        '{"topic":"connect-offsets","partition":3,"offset":17,"timestamp_ms":1700000000000,'
        '"key":"[\\"c\\",{\\"f\\":\\"a\\"}]","value":"{\\"n\\":1}"}'
    )
    assert json.loads(record_line(Record("t", 0, -1, -1, b"\xff", None))) == {
        "topic": "t", "partition": 0, "key": {"base64": "/w=="}, "value": None,
    }  # fmt: skip


def test_extra_members_are_for_the_reader_that_knows_them() -> None:
    line = record_line(Record("t", 0, 1, 2, b"k", None), {"written": "x"})
    [(number, document, record)] = numbered_documents([b"\n", line.encode()], name="f")
    assert (number, document["written"], record) == (2, "x", Record("t", 0, 1, 2, b"k", None))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{", "not JSON at column 2"),
        (b"[]", "expected a JSON object"),
        (b"\xff", "utf-8"),
        (b"[" * 100_000, "recursion"),
        (b'{"partition":0,"key":null,"value":null}', '"topic" is missing'),
        (b'{"topic":"t","partition":0,"key":"k"}', '"value"'),
        (b'{"topic":"t","partition":-2,"key":"k","value":null}', '"partition"'),
        (b'{"topic":"t","partition":true,"key":"k","value":null}', '"partition"'),
        (b'{"topic":"t","key":"k","value":null}', '"partition"'),
        (
            b'{"topic":"t","partition":2147483648,"key":"k","value":null}',
            '"partition" is not a number from 0 to 2147483647',
        ),
        (
            b'{"topic":"t","partition":1,"offset":9223372036854775808,"key":"k","value":null}',
            '"offset" is not a number',
        ),
        (b'{"topic":"t","partition":1,"timestamp_ms":1e400,"key":"k","value":null}', '"timestamp_ms" is not a number'),
        (b'{"topic":"\\ud800","partition":1,"key":"k","value":null}', "surrogates"),
        (
            b'{"topic":"t","partition":1,"key":"k","value":null,"headers":[{"name":"\\ud800","value":null}]}',
            "surrogates",
        ),
        (b'{"topic":"t","partition":0,"key":7,"value":null}', "base64"),
        (b'{"topic":"t","partition":0,"key":{"base64":"*"},"value":null}', "Only base64 data"),
        (b'{"topic":"t","partition":0,"key":"k","value":null,"headers":{}}', '"headers"'),
        (b'{"topic":"t","partition":0,"key":"k","value":null,"headers":[1]}', "header"),
        (b'{"topic":"t","partition":0,"key":"k","value":"\\ud800"}', "surrogates"),
    ],
)
def test_errors_name_file_and_line(line: bytes, complaint: str) -> None:
    good = record_line(Record("t", 0, 1, 2, b"k", None)).encode()
    with pytest.raises(InputFileError, match=r"^offsets\.ndjson, line 2: ") as failure:
        list(read_records([good, line], name="offsets.ndjson"))
    assert complaint.lower() in str(failure.value).lower()
