"""Lines of a backup made in Arrow are those of single records, whatever the bytes are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.offsets.names import murmur2, partition_for
from eosctl.core.records import Record, record_line
from eosctl.core.wording import json_bytes
from eosctl.engine.backups.file import backup_lines, few_at_once
from eosctl.engine.columns import DECISIONS, RECORDS
from eosctl.engine.files import part_file, write_table
from eosctl.engine.reading.heads import raw_headers
from eosctl.errors import StalePlanError
from eosctl.migrate.spark.parts import of_decisions, replaced, to_write, with_topic_names

TOKENS = (
    b"[", b"]", b'"', b"{", b"}", b":", b",", b" ", b"\\", b"\n", b"\x00", b"\x7f", b"\xff", "ü".encode(), b"null",
)  # fmt: skip
PARTS = (
    b'"c"', b'["c",', b'["a-b",{', b'"f":1', b'"f":-0', b'"f":01', b'"f":1.5', b"true", b"\xef\xbb\xbf", b"\\u00e9",
)  # fmt: skip
PIECES = st.sampled_from((*TOKENS, *PARTS))
KEYS = st.lists(PIECES, max_size=8).map(b"".join)
PLAIN = st.tuples(st.sampled_from(["c", "", "a b", "x" * 200]), st.integers(-(10**17), 10**17)).map(
    lambda pair: f'["{pair[0]}",{{"file":"f","n":{pair[1]}}}]'.encode()
)
VALUES = st.one_of(st.none(), KEYS, st.just(b'{"position":1}'))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["t", 'q"@p', "ü@p"]), st.one_of(KEYS, PLAIN), VALUES, VALUES, st.booleans(),
            st.integers(-1, 3), st.integers(0, 24),
        ),
        max_size=20,
    ),
    st.sampled_from([None, "cluster", 'q"']),
)  # fmt: skip
def test_backup_lines(rows: list[tuple[str, bytes, bytes | None, bytes | None, bool, int, int]], cluster: str) -> None:
    names = ("topic", "key", "value", "before", "target_exists", "target_timestamp_ms", "partition")
    documents = [dict(zip(names, row, strict=True)) for row in rows]
    for document, (_topic, key, *_facts) in zip(documents, rows, strict=True):
        there = document["target_exists"]
        document |= {"partitions": 25, "hash": murmur2(key), "target_offset": 7 if there else None}
        if not there:
            document |= {"partition": None, "before": None, "target_timestamp_ms": None}
    schema = pa.schema(
        [DECISIONS.field(name) for name in (*names, "hash", "partitions", "target_offset", "target_headers")]
    )
    decisions = pa.Table.from_pylist(documents, schema=schema)
    lines = backup_lines(with_topic_names(of_decisions(decisions)), cluster_id=cluster)
    expected = []
    for topic, key, value, before, there, timestamp_ms, partition in rows:
        record = Record(topic.partition("@")[0], partition, 7, timestamp_ms, key, before)
        absent = Record(record.topic, partition_for(key, 25), -1, -1, key, None)
        line = record_line(record if there else absent, {"written": json_bytes(value), "cluster_id": cluster})
        expected.append(f"{line}\n")
    assert lines.decode() == "".join(expected)


def test_large_values_are_made_lines_of_a_few_at_a_time() -> None:
    """A column of their text passed the 2 GiB at which an array of Arrow ends."""
    rows = pa.table({"value": pa.chunked_array([pa.array([b"v" * 2**20] * 10, pa.binary())] * 100)})
    sizes = [len(some) for some in few_at_once(rows)]
    assert (sum(sizes), 50 < sizes[0] <= 64) == (1000, True)
    assert list(few_at_once(rows.slice(0, 0))) == []


def test_a_backup_has_what_is_sent_as_it_is_by_now_and_copies_that_go(tmp_path: Path) -> None:
    for name in ("decisions", "newer-1", "stale"):
        (tmp_path / name).mkdir()
    there = {"topic": "t", "key": b"k", "partition": 1, "value": b"v", "action": "write", "partitions": 3}
    there |= {"target_exists": True, "target_offset": 5, "target_timestamp_ms": 9, "before": b"old"}
    there["target_headers"] = raw_headers((("trace", b"1"),))
    new = {"topic": "t", "key": b"n", "value": b"v", "action": "write", "partitions": 3, "target_exists": False}
    new |= {"hash": murmur2(b"n")}
    others = [
        {**there, "key": b"kept", "action": "keep"},
        {**there, "key": b"as it was", "hash": murmur2(b"as it was")},
    ]
    decisions = pa.Table.from_pylist([there, new, *others], schema=DECISIONS)
    record = {"topic": "t", "partition": 1, "offset": 8, "timestamp_ms": 10, "key": b"k", "value": b"newer"}
    record |= {"hash": murmur2(b"k"), "headers": raw_headers(headers := (("trace", b"\xff"), ("x", None)))}
    write_table(part_file(tmp_path / "decisions", 0), decisions)
    write_table(part_file(tmp_path / "newer-1", 0), pa.Table.from_pylist([record], schema=RECORDS))
    copy = {**record, "partition": 2, "offset": 3}
    write_table(part_file(tmp_path / "stale", 0), pa.Table.from_pylist([copy], schema=RECORDS))
    expected = [
        record_line(Record("t", 1, 8, 10, b"k", b"newer", headers), {"written": "v", "cluster_id": "C"}),
        record_line(Record("t", partition_for(b"n", 3), -1, -1, b"n", None), {"written": "v", "cluster_id": "C"}),
        record_line(
            Record("t", 1, 5, 9, b"as it was", b"old", (("trace", b"1"),)), {"written": "v", "cluster_id": "C"}
        ),
        record_line(Record("t", 2, 3, 10, b"k", b"newer", headers), {"written": None, "cluster_id": "C"}),
    ]
    lines = b"".join(backup_lines(rows, cluster_id="C") for rows in replaced(tmp_path))
    assert lines.decode().splitlines() == expected


def test_a_plan_of_an_earlier_version_is_made_again(tmp_path: Path) -> None:
    """Its decisions lack what is asked for, which was an unexpected KeyError; nothing is written."""
    (tmp_path / "decisions").mkdir()
    write_table(part_file(tmp_path / "decisions", 0), DECISIONS.empty_table().drop_columns(["hash"]))
    for use in (lambda: list(replaced(tmp_path)), lambda: to_write(part_file(tmp_path / "decisions", 0))):
        with pytest.raises(StalePlanError, match="another version of eosctl: its decisions have no hash") as caught:
            use()
        assert caught.value.hint == "Plan again."
