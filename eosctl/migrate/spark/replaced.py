"""The records that a migration will replace, as the columns of a backup for `offsets restore`.

The driver makes it, a few rows at a time, from files that tasks have left: people can copy one file, and making it from
columns takes less time than starting tasks for it and joining what they wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.record_file import UNKNOWN
from eosctl.engine.backups.lines import few_at_once
from eosctl.engine.columns import NO_BYTES, VALUES
from eosctl.engine.files import part_files, read_table
from eosctl.engine.keys.matching import places_of
from eosctl.engine.reading.headers import headers_texts
from eosctl.engine.rule import sent
from eosctl.engine.write import placed
from eosctl.migrate.spark.parts import some_decisions, with_topic_names

_COLUMNS = (
    *("action", "topic", "key", "hash", "value", "partition", "partitions"),
    *("target_exists", "target_offset", "target_timestamp_ms", "target_headers", "before"),
)
_THERE = ("offset", "timestamp_ms", "value")


def replaced(snapshot: Path) -> Iterator[pa.Table]:
    """Yield the target's present record of each decision that sends something, then the copies that are deleted.

    A few rows at a time. `written` is what replaces a record. A key that the target does not have is a tombstone on the
    partition where it will be written: writing that undoes the migration. Topics have the names that they have on their
    cluster.
    """
    for file in part_files(snapshot / "decisions"):
        decisions = map(sent, chain.from_iterable(map(few_at_once, some_decisions(file, _COLUMNS))))
        yield from _as_it_is_now(snapshot, file, map(of_decisions, decisions))
    for file in part_files(snapshot / "stale"):
        yield from _as_it_is_now(snapshot, file, map(_of_copies, few_at_once(read_table(file))))


def _as_it_is_now(snapshot: Path, part: Path, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    newer = [read_table(folder / part.name) for folder in newer_folders(snapshot)]
    for rows in tables:
        for there in newer:
            rows = _with_newer(rows, there)
        yield with_topic_names(rows)


def newer_folders(snapshot: Path) -> list[Path]:
    """Return the folders of records that runs of a plan were allowed to write over, in the order of the runs.

    They hold RECORDS of the target, by parts.
    """
    return sorted(snapshot.glob("newer-*"))


def of_decisions(rows: pa.Table) -> pa.Table:
    """Return the target's record for each decision, from when it was made, with `written`, the value to replace it."""
    exists, unknown = rows["target_exists"], pa.scalar(UNKNOWN, pa.int64())
    return pa.table(
        {
            "topic": rows["topic"],
            "partition": placed(rows)["partition"],
            "key": rows["key"],
            "offset": pc.if_else(exists, rows["target_offset"], unknown),
            "timestamp_ms": pc.if_else(exists, rows["target_timestamp_ms"], unknown),
            "value": pc.if_else(exists, rows["before"], NO_BYTES),
            "headers": headers_texts(rows["target_headers"]),
            "written": rows["value"],
        }
    )


def _of_copies(records: pa.Table) -> pa.Table:
    """Return RECORDS that get tombstones, with the same columns."""
    columns = {name: records[name] for name in ("topic", "partition", "key", *_THERE)}
    columns |= {"headers": headers_texts(records["headers"]), "written": pa.nulls(len(records), VALUES)}
    return pa.table(columns)


def _with_newer(rows: pa.Table, newer: pa.Table) -> pa.Table:
    """Replace rows with the present records of their places, if `newer` (RECORDS, each place once) has them."""
    there = places_of(rows, newer)
    found, is_there = newer.take(there), pc.is_valid(there)
    found = found.set_column(found.column_names.index("headers"), "headers", headers_texts(found["headers"]))
    for name in (*_THERE, "headers"):
        column = pc.if_else(is_there, found[name], rows[name])
        rows = rows.set_column(rows.column_names.index(name), name, column)
    return rows
