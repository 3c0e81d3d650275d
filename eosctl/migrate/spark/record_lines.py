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
from pyspark import SparkContext

from eosctl.core.offsets.migration import topic_of
from eosctl.core.record_file import UNKNOWN, bytes_text
from eosctl.engine.columns import NO_BYTES, one_array
from eosctl.engine.files import part_files, read_table, whole_file
from eosctl.engine.rule import sent
from eosctl.engine.write import placed
from eosctl.migrate.spark.snapshots import fresh_folder
from eosctl.migrate.spark.tasks import run_tasks

_BLOCK_BYTES = 1 << 20
_ROWS_AT_ONCE, _BYTES_AT_ONCE = 50_000, 1 << 26
_COLUMNS = (
    *("action", "topic", "key", "value", "partition", "partitions"),
    *("target_exists", "target_offset", "target_timestamp_ms", "before"),
)


def backup_blocks(context: SparkContext, snapshot: Path, *, cluster_id: str | None) -> Iterator[bytes]:
    """The record file, in blocks of bytes.

    For each decision of a snapshot that sends something: what the target has now, and as `written` what replaces it. A
    key that the target does not have is a tombstone on the partition where it will be written: writing that undoes the
    migration.
    """
    files, folder = part_files(snapshot / "decisions"), fresh_folder(snapshot / "backup")

    def write_lines(number: int) -> None:
        rows = sent(read_table(files[number]).select(_COLUMNS))
        part = folder / f"part-{number:05}"
        with whole_file(part) as draft, Path(draft).open("w", encoding="utf-8", newline="\n") as file:
            at_once = rows_at_once(rows)
            for begin in range(0, len(rows), at_once):
                lines = lines_of(rows.slice(begin, at_once), cluster_id=cluster_id)
                file.writelines(lines.to_pylist())

    run_tasks(context, len(files), write_lines)
    return _blocks_of(folder)


def rows_at_once(rows: pa.Table) -> int:
    """How many rows to make lines of at a time: as text they are several times as long, and a column ends at 2 GiB."""
    return max(1, min(_ROWS_AT_ONCE, len(rows) * _BYTES_AT_ONCE // (int(rows.nbytes) + 1)))


def _blocks_of(folder: Path) -> Iterator[bytes]:
    """What the files of a folder hold, one after the other; each goes when it is read."""
    for part in sorted(folder.glob("part-*")):
        with part.open("rb") as file:
            yield from iter(partial(file.read, _BLOCK_BYTES), b"")
        part.unlink()


def lines_of(rows: pa.Table, *, cluster_id: str | None) -> pa.Array:
    """A line for each of the decisions, as text with its line feed."""
    batch = {name: one_array(rows[name]) for name in rows.column_names}
    topics, keys, exists = (batch[name] for name in ("topic", "key", "target_exists"))
    texts = {name: json.dumps(topic_of(name), ensure_ascii=False) for name in pc.unique(topics).to_pylist()}
    there = pc.if_else(exists, batch["before"], NO_BYTES)
    columns = [
        '{"topic":', pa.array([texts[name] for name in topics.to_pylist()], pa.string()),
        ',"partition":', one_array(placed(rows)["partition"]).cast(pa.string()),
        _member("offset", batch["target_offset"], exists),
        _member("timestamp_ms", batch["target_timestamp_ms"], exists),
        ',"key":', _json_texts(keys), ',"value":', _json_texts(there),
        ',"written":', _json_texts(batch["value"]),
        f',"cluster_id":{json.dumps(cluster_id)}}}\n', "",
    ]  # fmt: skip
    return pc.binary_join_element_wise(*columns)


def _member(name: str, numbers: pa.Array, exists: pa.Array) -> pa.Array:
    """`,"name":number` where it is known, else nothing."""
    known = pc.and_(exists, pc.fill_null(pc.not_equal(numbers, UNKNOWN), fill_value=False))
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
