"""Many lines at once are the lines one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.kept.record_lines import ReadLine, read_lines
from eosctl.core.record_file import decode_bytes, numbered_documents, record_line
from eosctl.core.records import Record
from eosctl.errors import InputFileError
from tests.core.test_record_file import RECORDS

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
    assert _outcome(read_lines(lines, name="f", is_backup=True)) == _outcome(_one_by_one(lines, is_backup=True))
    assert _outcome(read_lines(lines, name="f", is_backup=False)) == _outcome(_one_by_one(lines, is_backup=False))


def _one_by_one(lines: list[bytes], *, is_backup: bool) -> Iterator[ReadLine]:
    for number, document, record in numbered_documents(lines, name="f"):
        if not is_backup:
            yield ReadLine(number, record)
            continue
        try:
            written = decode_bytes(document.get("written"))
        except ValueError as exc:
            raise InputFileError(f'f, line {number}: "written" {exc}') from exc
        cluster_id = None if document.get("cluster_id") is None else str(document["cluster_id"])
        yield ReadLine(number, record, written, "written" in document, cluster_id)


def _outcome(lines: Iterable[ReadLine]) -> list[ReadLine] | str:
    try:
        return list(lines)
    except InputFileError as exc:
        return exc.message
