"""What a migration will replace, as lines of a record file: the backup that `offsets restore` takes.

The lines are made in tasks and land in files before the driver touches them: millions of rows that were fetched through
the driver's JVM would need a heap of their size.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.offsets.migration import topic_of
from eosctl.core.record_file import UNKNOWN
from eosctl.engine.columns import NO_BYTES, VALUES
from eosctl.engine.files import part_file, read_table, whole_file
from eosctl.engine.lines import backup_lines, few_at_once
from eosctl.engine.rule import places_of, sent
from eosctl.engine.write import placed

_BLOCK_BYTES = 1 << 20
_FIRST, _SECOND = "part", "stale"
_COLUMNS = (
    *("action", "topic", "key", "value", "partition", "partitions"),
    *("target_exists", "target_offset", "target_timestamp_ms", "before"),
)
_THERE = ("offset", "timestamp_ms", "value")


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
        with whole_file(folder / f"{name}-{number:05}") as draft, Path(draft).open("wb") as out:
            out.writelines(backup_lines(some, cluster_id=cluster_id, name_of=topic_of) for some in few_at_once(rows))


def newer_folders(snapshot: Path) -> list[Path]:
    """What runs of a plan were allowed to write over, the last one's last: RECORDS of the target by parts."""
    return sorted(snapshot.glob("newer-*"))


def of_decisions(rows: pa.Table) -> pa.Table:
    """What the target has of each of some decisions: topic, partition, key, offset, timestamp_ms, value, written."""
    exists, unknown = rows["target_exists"], pa.scalar(UNKNOWN, pa.int64())
    return pa.table(
        {
            "topic": rows["topic"],
            "partition": placed(rows)["partition"],
            "key": rows["key"],
            "offset": pc.if_else(exists, rows["target_offset"], unknown),
            "timestamp_ms": pc.if_else(exists, rows["target_timestamp_ms"], unknown),
            "value": pc.if_else(exists, rows["before"], NO_BYTES),
            "written": rows["value"],
        }
    )


def _of_copies(records: pa.Table) -> pa.Table:
    """The same of RECORDS that get tombstones."""
    names = ("topic", "partition", "key", *_THERE)
    return pa.table({**{name: records[name] for name in names}, "written": pa.nulls(len(records), VALUES)})


def _with_newer(rows: pa.Table, newer: pa.Table) -> pa.Table:
    """`rows` with what is there by now instead, where `newer` (RECORDS, each place once) has it."""
    there = places_of(rows, newer)
    found, is_there = newer.take(there), pc.is_valid(there)
    for name in _THERE:
        column = pc.if_else(is_there, found[name], rows[name])
        rows = rows.set_column(rows.column_names.index(name), name, column)
    return rows


def blocks_of(folder: Path) -> Iterator[bytes]:
    """The lines in `folder`, those of copies last; each file goes when it is read."""
    for part in [*sorted(folder.glob(f"{_FIRST}-*")), *sorted(folder.glob(f"{_SECOND}-*"))]:
        with part.open("rb") as file:
            yield from iter(partial(file.read, _BLOCK_BYTES), b"")
        part.unlink()
