"""Backups in Parquet: what is put in comes out, whatever the bytes are; and what is not whole is refused."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from eosctl.core.records import Headers, Record, record_line
from eosctl.core.wording import json_bytes
from eosctl.engine.backups.file import BACKUP, is_columnar, open_backup, write_tables
from eosctl.engine.columns import batch_of_rows
from eosctl.engine.reading.heads import headers_text
from eosctl.errors import InputFileError

ANY = st.one_of(
    st.none(), st.binary(max_size=12), st.sampled_from([b"", b"null", b"\xff\xfe", b'{"n":1}', b"\x00\n\x1f"])
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
HEADERS = st.lists(st.tuples(TEXT, ANY), max_size=2).map(tuple)
NUMBERS = st.integers(-1, 9)
RECORDS = st.builds(
    Record, TEXT.map(lambda name: f"t{name}"), st.integers(0, 99), NUMBERS, NUMBERS, ANY, ANY, HEADERS
)  # fmt: skip
Kept = tuple[Record, bytes | None]


def table(kept: Iterable[Kept]) -> pa.Table:
    rows = [(*record[:6], headers_text(record.headers), written) for record, written in kept]
    return pa.Table.from_batches([batch_of_rows(rows, BACKUP)] if rows else [], BACKUP)


def written(path: Path, *tables: pa.Table, cluster_id: str | None = "c") -> Path:
    with path.open("wb") as file:
        assert write_tables(file, tables, cluster_id=cluster_id) == sum(map(len, tables))
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    rows = [(Record("t", 1, number, 7, b"k%d" % number, b"v"), b"w") for number in range(200)]
    return written(tmp_path / "backup.parquet", table(rows[:50]), table(rows[50:]))


@given(st.lists(st.tuples(RECORDS, ANY), max_size=8), st.sampled_from([None, "c", 'q"']))
def test_any_records_come_back_as_the_lines_of_a_record_file(
    tmp_path_factory: pytest.TempPathFactory, kept: list[Kept], cluster_id: str | None
) -> None:
    path = written(tmp_path_factory.mktemp("b") / "b.parquet", table(kept), cluster_id=cluster_id)
    backup = open_backup(path)
    assert (is_columnar(path), backup.cluster_id, backup.records) == (True, cluster_id, len(kept))
    more = ({"written": json_bytes(over), "cluster_id": cluster_id} for _record, over in kept)
    expected = [record_line(record, extra) for (record, _over), extra in zip(kept, more, strict=True)]
    assert b"".join(backup.lines()).decode().split("\n")[:-1] == expected


def test_lines_of_some_connectors_alone(tmp_path: Path) -> None:
    keys = [b'["a",{}]', b'["b",{}]', b"junk", None]
    path = written(tmp_path / "b", table([(Record("t", 0, 1, 1, key, None), None) for key in keys]))
    assert [row["key"] for some in open_backup(path).tables(["b", "x"]) for row in some.to_pylist()] == [b'["b",{}]']


@pytest.mark.parametrize("left", [0, 3, 4, 8, 0.5, -1])
def test_one_that_was_cut_off_is_refused_before_anything_is_read(good: Path, left: float) -> None:
    content = good.read_bytes()
    good.write_bytes(content[: int(left * len(content)) if isinstance(left, float) else left])
    with pytest.raises(InputFileError, match="is cut off or damaged") as caught:
        open_backup(good)
    assert str(caught.value.hint).startswith("Copy it again")


def test_no_flipped_bit_goes_unnoticed(good: Path) -> None:
    """A row group that its end does not name any more is missing, and nothing else in Parquet says so."""
    content, backup = good.read_bytes(), open_backup(good)
    whole = pa.Table.from_batches(backup.batches())
    for place in range(0, len(content), 23):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        good.write_bytes(damaged)
        try:
            found = open_backup(good)
            assert pa.Table.from_batches(found.batches()).equals(whole), place
        except InputFileError:
            continue
        assert len(str(found.cluster_id)) == 1, "another cluster's is refused where it is used"


def _foreign(path: Path, metadata: dict[bytes, bytes], columns: pa.Table) -> Path:
    with parquet.ParquetWriter(path, columns.schema) as writer:
        writer.write_table(columns)
        writer.add_key_value_metadata(metadata)
    return path


def _about(**members: object) -> dict[bytes, bytes]:
    about = {"format": 1, "cluster_id": None, "records": 1} | members
    return {b"eosctl.backup": json.dumps(about).encode()}


@pytest.mark.parametrize(
    ("metadata", "without", "complaint"),
    [
        ({}, "", "not a backup that eosctl wrote: eosctl's own metadata are missing"),
        ({b"eosctl.backup": b"{"}, "", "not a backup that eosctl wrote: its metadata can't be read"),
        (_about(records="many"), "", "its metadata can't be read: records: expected int, got str"),
        (_about(format=2), "", "is a backup of format 2, and this eosctl reads 1"),
        (_about(), "written", "it has no column written"),
        (_about(records=2), "", "it has 1 records, and had 2"),
    ],
)
def test_other_parquet_is_no_backup(tmp_path: Path, metadata: dict[bytes, bytes], without: str, complaint: str) -> None:
    columns = table([(Record("t", 0, 1, 1, b"k", None), None)])
    path = _foreign(tmp_path / "f", metadata, columns.drop_columns([without] if without else []))
    with pytest.raises(InputFileError, match=complaint) as caught:
        list(open_backup(path).batches())
    assert caught.value.hint


def test_a_column_of_another_type_is_refused(tmp_path: Path) -> None:
    columns = table([(Record("t", 0, 1, 1, b"k", None), None)])
    texts = columns.set_column(1, "partition", pa.array(["x"]))
    with pytest.raises(InputFileError, match="damaged"):
        list(open_backup(_foreign(tmp_path / "f", _about(), texts)).batches())


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        assert not is_columnar(path)
        with pytest.raises(InputFileError, match=str(path)):
            open_backup(path)


def test_values_are_written_and_read_a_few_at_a_time() -> None:
    """Values of 1 MB each: as one row group they would be in memory all at once."""
    rows = [(Record("t", 0, number, 1, b"%d" % number, bytes(2**20)), None) for number in range(100)]
    file = io.BytesIO()
    write_tables(file, [table(rows)], cluster_id="c")
    metadata = parquet.ParquetFile(file).metadata
    assert (metadata.num_rows, metadata.num_row_groups) == (100, 2)


def _headers(*names: str) -> Headers:
    return tuple((name, b"\xff") for name in names)


def test_headers_are_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "b", table([(Record("t", 0, 1, 1, b"k", None, _headers("a", "a")), None)]))
    [line] = b"".join(open_backup(path).lines()).splitlines()
    assert json.loads(line)["headers"] == [{"name": "a", "value": {"base64": "/w=="}}] * 2
