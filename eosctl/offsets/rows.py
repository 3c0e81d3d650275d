"""Rows of the `eosctl offsets` reports: keys, cells and writes as plain data, in the shapes that scripts rely on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eosctl.core.offsets.decision import KeyAction
from eosctl.core.offsets.records import IgnoredKey, OffsetKey, as_plain_json, shown_value
from eosctl.core.offsets.views import IgnoredOffsetRecord, OffsetView, PlannedWrite
from eosctl.core.records import Record
from eosctl.offsets.history.sources import lsn_texts
from eosctl.report import Json, Row, json_bytes, rfc3339


def view_row(view: OffsetView, *, now_ms: int) -> dict[str, Json]:
    """A row of `offsets list` and `get`; `age_ms` is that of the record which a task reads on from."""
    newest_ms = view.runtime.timestamp_ms if view.runtime is not None else -1
    return {
        **_key_members(view.key),
        "stores": {"global": None, "dedicated": None} | {name: cell_row(record) for name, record in view.cells.items()},
        "effective": {"documented": _value_of(view.documented), "runtime": _value_of(view.runtime)},
        "age_ms": max(0, now_ms - newest_ms) if newest_ms >= 0 else None,
        "flags": [flag.value for flag in view.flags],
    }


def write_row(write: PlannedWrite, *, outcome: str | None = None) -> dict[str, Json]:
    """A row of a plan; with `outcome`, of a result."""
    row: dict[str, Json] = {
        **_key_members(write.key),
        "action": write.action.value,
        "reason": write.reason,
        "before": _value_of(write.before),
        "after": value_json(write.after),
        "target": {"topic": write.topic, "partition": write.partition},
    }
    lsns = {"before": lsn_texts(row["before"]), "after": lsn_texts(row["after"])}
    if any(lsns.values()):
        row["lsn"] = lsns
    return row if outcome is None else {**row, "outcome": outcome}


def ignored_rows(ignored: Iterable[IgnoredOffsetRecord]) -> list[Row]:
    """`data.ignored`: records under keys that Connect ignores, and why."""
    return [
        {
            "topic": each.record.topic,
            "partition": each.record.partition,
            "offset": each.record.offset,
            "key": json_bytes(each.record.key),
            "reason": each.fault.value,
        }
        for each in ignored
    ]


MOST_ROWS = 100
"""That are shown of a plan, a result or a comparison, as text and as JSON; the counts are complete."""


def first_rows(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows of writes to show: of many the first, those that went wrong before those that change something."""
    if len(rows) <= MOST_ROWS:
        return rows
    return sorted(rows, key=_rank)[:MOST_ROWS]


def _rank(row: Row) -> tuple[bool, bool]:
    return row.get("outcome", "written") in ("written", "unchanged"), row["action"] == KeyAction.KEEP


def value_json(value: bytes | None) -> Json:
    """An offset value as JSON, or as text or base64 where Connect could not read it."""
    shown = shown_value(value)
    return json_bytes(shown) if isinstance(shown, bytes) else shown


def _key_members(key: OffsetKey | IgnoredKey) -> Mapping[str, Json]:
    return {
        "connector": as_plain_json(key.connector),
        "source_partition": as_plain_json(key.partition),
        "key": json_bytes(key.raw),
    }


def _value_of(record: Record | None) -> Json:
    return None if record is None else value_json(record.value)


def cell_row(record: Record | None) -> Row | None:
    """A CELL: where a record is and what it says; None for no record, `value` None for a tombstone.

    `lsn`, where there is one, has the log sequence numbers of PostgreSQL in the value, as PostgreSQL prints them.
    """
    if record is None:
        return None
    value = value_json(record.value)
    cell = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": rfc3339(record.timestamp_ms),
        "timestamp_ms": record.timestamp_ms,
        "value": value,
    }
    lsns = lsn_texts(value)
    return cell if lsns is None else {**cell, "lsn": lsns}
