"""Many lines at once are the lines one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.kept import record_lines
from eosctl.core.kept.record_lines import BackupEntry, read_backup_lines, read_columns
from eosctl.core.records import Record, decode_bytes, numbered_documents, record_line
from eosctl.errors import InputFileError
from tests.core.test_record_file import RECORDS

T = TypeVar("T")
ODD = st.sampled_from([b"", b"\x00\x1f\x7f", b"\xe2\x80\xa8\xf0\x9f\x90\x99", b'"\\/\t\b', None])
PLAIN = st.builds(
    Record, st.just("t"), st.just(1), st.just(2), st.integers(-1, 9), ODD, ODD | st.text().map(str.encode)
)


HEADS = st.sampled_from([b"", b"\n", b" ", b"\xef\xbb\xbf", b"x"])
MORE = st.sampled_from([b"", b',"written":null', b',"written":"x"', b',"written":{"base64":"/w=="}', b',"written":7'])
OTHER = st.sampled_from(
    [
        b"",
        b',"cluster_id":"abc"',
        b',"cluster_id":5',
        b',"headers":[]',
        b',"partition":-1',
        b',"x":1',
        b',"cluster_id":null',
        b',"partition":2147483648',
        b',"offset":9223372036854775808',
        b',"timestamp_ms":99999999999999999999',
    ]
)


@given(st.lists(st.tuples(HEADS, PLAIN | RECORDS, MORE, OTHER), max_size=3))
def test_lines_are_read_as_they_are_one_by_one(found: list[tuple[bytes, Record, bytes, bytes]]) -> None:
    lines = [head + record_line(record).encode()[:-1] + more + other + b"}\n" for head, record, more, other in found]
    assert _outcome(read_backup_lines(lines, name="f")) == _outcome(_one_by_one(lines))
    expected = _outcome(_numbered(lines))
    for at_once in (1, 2, 5_000):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(record_lines, "LINES_AT_ONCE", at_once)
            assert _outcome(_in_columns(lines)) == expected


def _in_columns(lines: Sequence[bytes]) -> Iterator[tuple[int, Record]]:
    for columns in read_columns(iter(lines), name="f"):
        for number, *members in zip(*columns, strict=True):
            key, value = (each.encode() if isinstance(each, str) else each for each in members[4:6])
            yield number, Record(*members)._replace(key=key, value=value)


@pytest.mark.parametrize("text", [b"%s%s\n\n", b"%s\n%s", b"%s \n %s\n", b"\n\n%s\n%s\n"])
def test_lines_that_are_not_one_record_each(text: bytes) -> None:
    """Two on a line are refused, whatever the number of lines; an empty line is none."""
    one = record_line(Record("t", 1, 2, 3, b"k", b"v")).encode()
    lines = (text % (one, one)).splitlines(keepends=True)
    assert _outcome(_in_columns(lines)) == _outcome(_numbered(lines))


def _numbered(lines: Sequence[bytes]) -> Iterator[tuple[int, Record]]:
    return ((number, record) for number, _document, record in numbered_documents(lines, name="f"))


def _one_by_one(lines: list[bytes]) -> Iterator[BackupEntry]:
    for number, document, record in numbered_documents(lines, name="f"):
        try:
            written = decode_bytes(document.get("written"))
        except ValueError as exc:
            raise InputFileError(f'f, line {number}: "written" {exc}') from exc
        cluster_id = None if document.get("cluster_id") is None else str(document["cluster_id"])
        yield BackupEntry(record, written, "written" in document, cluster_id)


def _outcome(lines: Iterable[T]) -> list[T] | str:
    try:
        return list(lines)
    except InputFileError as exc:
        return exc.message
