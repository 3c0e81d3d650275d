"""Files of records as a migration reads and writes them; no session is needed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eosctl.core.offsets.migration import PlannedTopic
from eosctl.core.records import Record, record_line
from eosctl.errors import EosctlError, InputFileError
from eosctl.migrate.spark.files import folds_of, read_file, write_file
from eosctl.migrate.topics import expected_records
from tests.synced_files import SyncedFiles

RECORDS = [
    Record("t", 3, 17, 1_000, b'["c",{"f":"\xc3\xbc"}]', b'{"n":1}'),
    Record("t", 0, 2, 2_000, b'["c",{"f":"y"}]', None),
    Record("t", 1, 4, -1, b"\xff\xfe", b""),
    Record("t", 1, 5, 3_000, None, b"x"),
]


def lines(path: Path, records: list[Record]) -> str:
    path.write_text("".join(f"{record_line(record)}\n" for record in records))
    return str(path)


def parquet(path: Path, columns: dict[str, pa.Array]) -> str:
    pq.write_table(pa.table(columns), path)
    return str(path)


def test_a_record_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert list(read_file(lines(tmp_path / "dump.ndjson", RECORDS))) == RECORDS


def test_parquet_as_spark_writes_kafka(tmp_path: Path) -> None:
    """Spark's own Kafka source names its columns so; `timestampType` is of no use."""
    path = parquet(
        tmp_path / "dump.parquet",
        {
            "key": pa.array([r.key for r in RECORDS], pa.binary()),
            "value": pa.array([r.value for r in RECORDS], pa.binary()),
            "topic": pa.array(["t"] * 4),
            "partition": pa.array([r.partition for r in RECORDS], pa.int32()),
            "offset": pa.array([r.offset for r in RECORDS], pa.int64()),
            "timestamp": pa.array([r.timestamp_ms * 1000 for r in RECORDS], pa.timestamp("us", tz="UTC")),
        },
    )
    assert list(read_file(path)) == RECORDS


def test_without_offsets_the_order_in_the_file_counts(tmp_path: Path) -> None:
    path = lines(tmp_path / "dump.ndjson", [record._replace(offset=-1) for record in RECORDS])
    assert [record.offset for record in read_file(path)] == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["out.ndjson", "out.parquet"])
def test_what_is_written_is_read_again_and_survives_a_power_cut(tmp_path: Path, name: str, synced: SyncedFiles) -> None:
    path = str(tmp_path / name)
    assert write_file(path, iter(RECORDS)) == 4
    assert Path(path).read_bytes() in synced.kept(Path(path))
    found = [(r.topic, r.partition, r.timestamp_ms, r.key, r.value) for r in read_file(path)]
    assert found == [(r.topic, r.partition, r.timestamp_ms, r.key, r.value) for r in RECORDS]
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_file_that_breaks_off_is_not_there(tmp_path: Path) -> None:
    def broken() -> object:
        yield RECORDS[0]
        raise OSError(28, "No space left on device")

    with pytest.raises(EosctlError, match="No space left"):
        write_file(str(tmp_path / "out.ndjson"), broken())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == [], "out.ndjson.new was left"


def test_a_file_in_columns(tmp_path: Path) -> None:
    assert list(folds_of(lines(tmp_path / "empty.ndjson", []), "file:x", partitions=25)) == []
    (fold,) = folds_of(lines(tmp_path / "dump.ndjson", RECORDS), "file:x", partitions=25)
    assert (fold.records["offset"].to_pylist(), fold.read, fold.older) == ([17, 2, 4, 5], 4, 0)
    assert set(fold.records["topic"].to_pylist()) == {"file:x"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.ndjson", None, "cannot read"),
        ("gone.parquet", None, "cannot read"),
        ("bad.ndjson", b"{}\n", "line 1"),
        ("bad.parquet", b"PAR1", "bad.parquet is no Parquet file"),
    ],
)
def test_files_that_are_none(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputFileError, match=message):
        list(read_file(str(path)))


def test_a_parquet_file_of_something_else(tmp_path: Path) -> None:
    path = parquet(tmp_path / "other.parquet", {"name": pa.array(["x"])})
    with pytest.raises(InputFileError, match="no column partition, key, value"):
        list(read_file(path))


@pytest.mark.parametrize(
    "column",
    [
        {"partition": pa.array([1 << 40])},
        {"partition": pa.array(["0"])},
        {"partition": pa.array([1.5])},
        {"partition": pa.array([-3])},
        {"partition": pa.array([None], pa.int32())},
        {"offset": pa.array([(1 << 63) + 5], pa.uint64())},
        {"offset": pa.array(["7"])},
        {"offset": pa.array([-2])},
        {"timestamp_ms": pa.array(["7"])},
        {"timestamp_ms": pa.array([1.5])},
        {"topic": pa.array([b"\xff"])},
        {"key": pa.array([1])},
    ],
    ids=str,
)
def test_parquet_with_columns_of_other_types_is_refused(tmp_path: Path, column: dict[str, pa.Array]) -> None:
    """Some were unexpected errors of Arrow, and fractions were cut off without a word."""
    plain = {"partition": pa.array([0]), "key": pa.array([b"k"]), "value": pa.array([b"v"])}
    with pytest.raises(InputFileError, match="is no Parquet file of Kafka records"):
        list(folds_of(parquet(tmp_path / "odd.parquet", plain | column), "file:x", partitions=25))


def test_times_in_parquet_may_be_timestamps(tmp_path: Path) -> None:
    plain = {"partition": pa.array([0]), "key": pa.array([b"k"]), "value": pa.array([b"v"])}
    path = parquet(tmp_path / "f.parquet", plain | {"timestamp_ms": pa.array([1_000_007], pa.timestamp("ms"))})
    assert [record.timestamp_ms for record in read_file(path)] == [1_000_007]


def test_offsets_on_some_lines_alone_say_not_what_is_newer(tmp_path: Path) -> None:
    """A line without one got its place as offset, and lost to an older record with a larger one."""
    path = lines(tmp_path / "dump.ndjson", [RECORDS[0], RECORDS[1]._replace(offset=-1)])
    with pytest.raises(InputFileError, match="with an offset and records without"):
        list(read_file(path))


def test_offsets_of_two_topics_cannot_be_compared(tmp_path: Path) -> None:
    path = lines(tmp_path / "two.ndjson", [RECORDS[0], RECORDS[1]._replace(topic="u")])
    with pytest.raises(InputFileError, match="topics t and u"):
        list(read_file(path))


@pytest.mark.parametrize("name", ["records.ndjson", "records.parquet"])
def test_how_many_records_a_file_has_is_known_before_it_is_read(tmp_path: Path, name: str) -> None:
    """A file counted as nothing: however long it was, all of its keys were one part, and so in one task's memory."""
    many = (Record("t", 0, -1, -1, b'["a",{"t":%d}]' % number, b"{}") for number in range(3000))
    assert write_file(str(tmp_path / name), many) == 3000
    source = PlannedTopic(f"file:{tmp_path / name}", "digest", 25, 1)
    assert 3000 <= expected_records([source]) < 6000
