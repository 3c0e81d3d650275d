"""What a migration will replace, as lines of a record file: the backup that `offsets restore` takes.

The lines are made in tasks and land in files before the driver touches them: millions of rows that were fetched through
the driver's JVM would need a heap of their size.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.offsets.migration import topic_of
from eosctl.core.record_file import UNKNOWN, bytes_text
from eosctl.engine.columns import NO_BYTES, one_array
from eosctl.engine.files import part_file, read_table, whole_file
from eosctl.engine.rule import rows_of, sent
from eosctl.engine.write import placed

_BLOCK_BYTES = 1 << 20
_ROWS_AT_ONCE, _BYTES_AT_ONCE = 50_000, 1 << 26
_FIRST, _SECOND = "part", "stale"
_COLUMNS = (
    *("action", "topic", "key", "value", "partition", "partitions"),
    *("target_exists", "target_offset", "target_timestamp_ms", "before"),
)
_THERE = ("offset", "timestamp_ms", "before")


def land_lines(snapshot: Path, number: int, folder: Path, *, cluster_id: str | None) -> None:
    """Lands the lines of a part in `folder`: of each decision that sends something, and of each copy that goes.

    They have what the target has now, and as `written` what replaces it. A key that the target does not have is a
    tombstone on the partition where it will be written: writing that undoes the migration.
    """
    newer = [part_file(each, number) for each in newer_folders(snapshot)]
    decisions = read_table(part_file(snapshot / "decisions", number)).select(_COLUMNS)
    tables, stale = {_FIRST: of_decisions(sent(decisions))}, part_file(snapshot / "stale", number)
    if stale.exists():
        tables[_SECOND] = _of_copies(read_table(stale))
    for name, rows in tables.items():
        for file in newer:
            rows = _with_newer(rows, read_table(file))
        with whole_file(folder / f"{name}-{number:05}") as draft:
            _write_lines(Path(draft), rows, cluster_id=cluster_id)


def newer_folders(snapshot: Path) -> list[Path]:
    """What runs of a plan were allowed to write over, the last one's last: RECORDS of the target by parts."""
    return sorted(snapshot.glob("newer-*"))


def of_decisions(rows: pa.Table) -> pa.Table:
    """What the target has of each of some decisions: topic, partition, key, offset, timestamp_ms, before, written."""
    exists, unknown = rows["target_exists"], pa.scalar(UNKNOWN, pa.int64())
    return pa.table(
        {
            "topic": rows["topic"],
            "partition": placed(rows)["partition"],
            "key": rows["key"],
            "offset": pc.if_else(exists, rows["target_offset"], unknown),
            "timestamp_ms": pc.if_else(exists, rows["target_timestamp_ms"], unknown),
            "before": pc.if_else(exists, rows["before"], NO_BYTES),
            "written": rows["value"],
        }
    )


def _of_copies(records: pa.Table) -> pa.Table:
    """The same of RECORDS that get tombstones."""
    names = ("topic", "partition", "key", "offset", "timestamp_ms")
    columns = {name: records[name] for name in names}
    return pa.table({**columns, "before": records["value"], "written": pa.nulls(len(records), pa.binary())})


def _with_newer(rows: pa.Table, newer: pa.Table) -> pa.Table:
    """`rows` with what is there by now instead, where `newer` (RECORDS, each place once) has it."""
    there = rows_of(_by_place(rows), _by_place(newer))
    found, is_there = newer.take(there), pc.is_valid(there)
    for name, of in zip(_THERE, ("offset", "timestamp_ms", "value"), strict=True):
        column = pc.if_else(is_there, found[of], rows[name])
        rows = rows.set_column(rows.column_names.index(name), name, column)
    return rows


def _by_place(rows: pa.Table) -> pa.Table:
    """The keys of `rows`, with topic and partition as one name."""
    topics = pc.binary_join_element_wise(rows["topic"], rows["partition"].cast(pa.string()), "/")
    return pa.table({"topic": topics, "key": rows["key"]})


def _write_lines(file: Path, rows: pa.Table, *, cluster_id: str | None) -> None:
    at_once = rows_at_once(rows)
    with file.open("w", encoding="utf-8", newline="\n") as lines:
        for begin in range(0, len(rows), at_once):
            lines.writelines(lines_of(rows.slice(begin, at_once), cluster_id=cluster_id).to_pylist())


def rows_at_once(rows: pa.Table) -> int:
    """How many rows to make lines of at a time: as text they are several times as long, and a column ends at 2 GiB."""
    return max(1, min(_ROWS_AT_ONCE, len(rows) * _BYTES_AT_ONCE // (int(rows.nbytes) + 1)))


def blocks_of(folder: Path) -> Iterator[bytes]:
    """The lines in `folder`, those of copies last; each file goes when it is read."""
    for part in [*sorted(folder.glob(f"{_FIRST}-*")), *sorted(folder.glob(f"{_SECOND}-*"))]:
        with part.open("rb") as file:
            yield from iter(partial(file.read, _BLOCK_BYTES), b"")
        part.unlink()


def lines_of(rows: pa.Table, *, cluster_id: str | None) -> pa.Array:
    """A line for each row of `of_decisions`, as text with its line feed."""
    batch = {name: one_array(rows[name]) for name in rows.column_names}
    topics = batch["topic"]
    texts = {name: json.dumps(topic_of(name), ensure_ascii=False) for name in pc.unique(topics).to_pylist()}
    columns = [
        '{"topic":', pa.array([texts[name] for name in topics.to_pylist()], pa.string()),
        ',"partition":', batch["partition"].cast(pa.string()),
        _member("offset", batch["offset"]), _member("timestamp_ms", batch["timestamp_ms"]),
        ',"key":', _json_texts(batch["key"]), ',"value":', _json_texts(batch["before"]),
        ',"written":', _json_texts(batch["written"]),
        f',"cluster_id":{json.dumps(cluster_id)}}}\n', "",
    ]  # fmt: skip
    return pc.binary_join_element_wise(*columns)


def _member(name: str, numbers: pa.Array) -> pa.Array:
    """`,"name":number` where it is known, else nothing."""
    known = pc.not_equal(numbers, UNKNOWN)
    return pc.if_else(known, pc.binary_join_element_wise(f',"{name}":', numbers.cast(pa.string()), ""), "")


def _json_texts(values: pa.Array) -> pa.Array:
    """`bytes_text` of a column: in Arrow, unless a value is not UTF-8 or has characters that JSON escapes by number."""
    try:
        text = values.cast(pa.string())
    except pa.ArrowInvalid:
        text = None
    if text is None or pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
        return pa.array([bytes_text(value) for value in values.to_pylist()], pa.string())
    escaped = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    return pc.fill_null(pc.binary_join_element_wise('"', escaped, '"', ""), "null")
