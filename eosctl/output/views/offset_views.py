"""The views of `offsets …`: what is stored, what a write would change, what differs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from eosctl.output.cells import Column, View, dig, duration, format_cell, partition_name, printable, summary_lines
from eosctl.report import Report, Row

_MOST_NEW_TOPICS = 3
"""That are told by name; hundreds would hide the rest of a plan."""


def _stored(path: str) -> Callable[[Row], object]:
    """What a store (its cell is at `path`) has for a key: its value, `deleted` for a tombstone, `-` for no record."""

    def value(row: Row) -> object:
        cell = dig(row, path)
        if not isinstance(cell, Mapping):
            return None
        return "deleted" if cell.get("value") is None else cell["value"]

    return value


def _ignored_key_lines(report: Report) -> Iterable[str]:
    """The records that no connector ever finds, then the summary."""
    ignored = report.data.get("ignored")
    for each in ignored if isinstance(ignored, list) else []:
        place = f"{each['topic']}-{each['partition']} offset {each['offset']}"
        yield f"ignored by Connect ({each['reason']}): {format_cell(each['key'])} at {place}"
    yield from summary_lines(report)


def _lint_lines(report: Report) -> Iterable[str]:
    """How to mend each kind of finding, once, and what was cut; then the summary."""
    for code, fix in dict.fromkeys((row["code"], row["fix"]) for row in report.rows):
        yield f"fix {format_cell(code)}: {format_cell(fix)}"
    limit, codes = report.data.get("rows_per_code"), report.summary.get("codes")
    for code, count in codes.items() if isinstance(codes, Mapping) else ():
        if isinstance(limit, int) and count > limit:
            yield f"{format_cell(code)}: {limit} of {count:,} are shown"
    yield from summary_lines(report)


def _partition_at(path: str) -> Callable[[Row], object]:
    """The `topic-partition` at `path`."""
    return lambda row: partition_name(dig(row, path))


_OFFSET_COLUMNS = (
    Column("CONNECTOR", "connector"),
    Column("SOURCE-PARTITION", "source_partition"),
    Column("GLOBAL", _stored("stores.global")),
    Column("DEDICATED", _stored("stores.dedicated")),
)


def _place_at(path: str) -> Callable[[Row], object]:
    """Where the record in the cell at `path` is: `topic-partition@offset`."""

    def place(row: Row) -> object:
        cell = dig(row, path)
        return f"{partition_name(cell)}@{cell['offset']}" if isinstance(cell, Mapping) else None

    return place


def _stored_in(*names: str) -> tuple[Column, ...]:
    """Where and when each of these stores got its record, and its log sequence numbers as PostgreSQL prints them."""
    return tuple(
        column
        for path in names
        for name in [path.rpartition(".")[2].upper()]
        for column in (
            Column(f"{name}-AT", _place_at(path)),
            Column(f"{name}-TIME", f"{path}.timestamp"),
            Column(f"{name}-LSN", f"{path}.lsn", optional=True),
        )
    )


def _age(row: Row) -> object:
    """How long ago what the tasks read on from was committed."""
    age_ms = row.get("age_ms")
    return duration(age_ms) if isinstance(age_ms, int) else None


_KEY = Column("KEY", "key")
_WRITE_WIDE = (
    _KEY,
    Column("BEFORE-LSN", "lsn.before", optional=True),
    Column("AFTER-LSN", "lsn.after", optional=True),
)
_OFFSET_LIST = View(
    (
        *_OFFSET_COLUMNS,
        Column("DOCUMENTED", "effective.documented"),
        Column("RUNTIME", "effective.runtime"),
        Column("AGE", _age),
        Column("FLAGS", "flags"),
    ),
    wide=(_KEY, *_stored_in("stores.global", "stores.dedicated")),
    footer=_ignored_key_lines,
    empty="No connector has offsets here.",
)


def _jump(row: Row) -> object:
    """That a version lies behind the one before it, and where that is."""
    former = row["jumped_from"]
    return f"back, from offset {former['offset']}" if isinstance(former, Mapping) else None


def _log_lines(report: Report) -> Iterable[str]:
    """Where older versions may be gone, then the summary."""
    partitions = report.data.get("partitions")
    for each in partitions if isinstance(partitions, list) else []:
        if each["older_gone"]:
            place = f"{partition_name(each)}, offsets {each['begin']} to {each['end']}"
            yield f"{place}: compacted, records left: {each['records']}; older versions may be gone"
    yield from summary_lines(report)


_OFFSET_LOG = View(
    (
        Column("SOURCE-PARTITION", "source_partition"),
        Column("AT", lambda row: f"{partition_name(row)}@{row['offset']}"),
        Column("TIME", "timestamp"),
        Column("VALUE", lambda row: "deleted" if row["tombstone"] else row["value"]),
        Column("STATE", "state"),
        Column("JUMP", _jump),
    ),
    wide=(_KEY, Column("LSN", "lsn", optional=True)),
    footer=_log_lines,
    empty="The log has no offset of this connector.",
)


def _connector(row: Row) -> object:
    former = row.get("renamed_from")
    return f"{row['connector']} (was {former})" if former else row["connector"]


def _source_partition(row: Row) -> object:
    """The source partition; the whole key where it is not one that Connect writes."""
    return row["key"] if row["source_partition"] is None else row["source_partition"]


_OFFSET_WRITES = (
    Column("ACTION", "action"),
    Column("CONNECTOR", _connector),
    Column("SOURCE-PARTITION", _source_partition),
    Column("BEFORE", "before"),
    Column("AFTER", "after"),
    Column("REASON", "reason"),
    Column("TARGET", _partition_at("target")),
)


def _created_topic_lines(report: Report) -> Iterable[str]:
    """The topics that a plan makes, how many rows are not shown, then the summary."""
    creates, keys, backup = (report.data.get(name) for name in ("creates", "keys", "backup"))
    yield from _new_topic_lines(creates if isinstance(creates, list) else [])
    if isinstance(keys, int) and keys > len(report.rows):
        where = f"; all that were written are in {format_cell(backup)}" if backup else ""
        yield f"{len(report.rows)} of {keys:,} keys are shown{where}"
    yield from summary_lines(report)


def _new_topic_lines(topics: Sequence[Row], verb: str = "creates") -> Iterator[str]:
    """A line for each topic that a plan makes; one line for many that are made alike."""
    alike: dict[tuple[int, int], list[str]] = {}
    for topic in topics:
        if str(topic["topic"]).startswith("file:"):
            yield f"{verb} file {format_cell(str(topic['topic']).removeprefix('file:'))}"
        else:
            size = (int(str(topic["partitions"])), int(str(topic["replication_factor"])))
            alike.setdefault(size, []).append(format_cell(topic["topic"]))
    for (partitions, replication_factor), names in alike.items():
        like = f"compacted, {_partitions(partitions)}, replication factor {replication_factor}"
        if len(names) > _MOST_NEW_TOPICS:
            all_of_them = f"{len(names):,} topics, {names[0]} ... {names[-1]}"
            yield f"{verb} {all_of_them}: {like} each; {_partitions(partitions * len(names))} in all"
        else:
            yield from (f"{verb} topic {name}: {like}" for name in names)


def _partitions(number: int) -> str:
    return "1 partition" if number == 1 else f"{number:,} partitions"


def _migration_lines(report: Report) -> Iterable[str]:
    """The topics that a migration makes, and where the rows are that are not shown; then the summary."""
    targets, created = report.data.get("targets"), report.data.get("created")
    missing = [each for each in targets if not each["exists"]] if isinstance(targets, list) else []
    if isinstance(created, list):
        yield from _new_topic_lines([each for each in missing if each["topic"] in created], "created")
    else:
        yield from _new_topic_lines(missing)
        parts = report.data.get("parts")
        counted = "1 part" if parts == 1 else f"{parts} parts"
        yield f"no key can be in two places: {counted}, no shuffle" if parts else "keys are shuffled"
    keys = report.summary.get("keys")
    if isinstance(keys, int) and keys > len(report.rows):
        yield f"{len(report.rows)} of {keys:,} keys are shown; all are in {format_cell(report.data.get('snapshot'))}"
    skipped = report.data.get("skipped")
    if isinstance(skipped, list) and skipped:
        yield f"resumed; already over: {', '.join(map(str, skipped))}"
    yield from summary_lines(report)


def _write_view(*more: Column) -> View:
    return View((*_OFFSET_WRITES, *more), footer=_created_topic_lines, empty="Nothing to write.", wide=_WRITE_WIDE)


def _newer(row: Row) -> object:
    """When and under which id someone else wrote since the backup; an id that is not known is left out."""
    newer = row.get("newer")
    if not isinstance(newer, Mapping):
        return None
    return f"{newer['timestamp'] or 'no time'}, {newer['transactional_id'] or 'by whom is not known'}"


_NEWER = (Column("BACKUP", "backup", optional=True), Column("WRITTEN-SINCE", _newer, optional=True))
_MISMATCHES = (
    Column("STATUS", "status"),
    Column("SIDE", "side"),
    Column("CONNECTOR", "connector"),
    Column("SOURCE-PARTITION", _source_partition),
    Column("EXPECTED", "expected"),
    Column("ACTUAL", "actual"),
    Column("STORED-IN", _partition_at("target")),
)


def _switch_lines(report: Report) -> Iterable[str]:
    """The topic that the merge makes, and where the steps are written down; then the summary."""
    if not report.rows:
        store = "the global offsets topic" if report.data["to"] == "global" else f"topic {report.data['to']}"
        yield printable(f"Connector {report.data['connector']} keeps its offsets in {store} already.")
        return
    yield from _created_topic_lines(report)
    yield f"journal: {format_cell(report.data.get('journal'))}"
    if report.data.get("kept_elsewhere"):
        yield f"note: {format_cell(report.data['kept_elsewhere'])}"


_SWITCH = View(
    (
        Column("STEP", "step"),
        Column("OUTCOME", "outcome"),
        Column("ACTION", "action"),
        Column("BEFORE", "before"),
        Column("AFTER", "after"),
        Column("DETAIL", "detail"),
    ),
    footer=_switch_lines,
    empty="Nothing to do.",
)


_CHANGES = {
    "new": "new",
    "missing": "missing",
    "type": "another type",
    "forward": "forward: what lies between is skipped",
    "backward": "backward: what lies between is read again",
    "changed": "changed",
}


def _change_lines(report: Report) -> Iterator[str]:
    """What `offsets set` changes, member by member."""
    changes = report.data.get("changes")
    for each in changes if isinstance(changes, list) else []:
        lsn = each["lsn"] or {}
        values = (_json_text(each[side]) + (f" ({lsn[side]})" if lsn.get(side) else "") for side in ("before", "after"))
        partition, member = _json_text(each["source_partition"]), printable(each["member"])
        yield f"{partition} {member}: {' -> '.join(values)}, {_CHANGES[each['change']]}"


def _json_text(value: object) -> str:
    """JSON as it is written: here text must not look like a number."""
    return "-" if value is None else printable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _former_lines(report: Report) -> Iterable[str]:
    """Which versions of the log the new offsets are taken from."""
    former = report.data.get("as_of")
    for each in former if isinstance(former, list) else []:
        place = f"{partition_name(each)}@{each['offset']}, {each['timestamp']}"
        yield f"{_json_text(each['source_partition'])} as of {place}"


def _edit_view(*more: Column) -> View:
    def lines(report: Report) -> Iterable[str]:
        if report.kind.endswith("-plan"):
            yield from _former_lines(report)
            yield from _change_lines(report)
        yield from _created_topic_lines(report)
        yield f"via {report.data['via']}: {format_cell(report.data['via_reason'])}"

    return View((*_OFFSET_WRITES, *more), footer=lines, empty="Nothing to write.", wide=_WRITE_WIDE)


OFFSET_VIEWS = {
    "offsets-set-plan": _edit_view(),
    "offsets-reset-plan": _edit_view(),
    "offsets-set-result": _edit_view(Column("OUTCOME", "outcome")),
    "offsets-reset-result": _edit_view(Column("OUTCOME", "outcome")),
    "offsets-switch-plan": _SWITCH,
    "offsets-switch-result": _SWITCH,
    "offsets-list": _OFFSET_LIST,
    "offsets-get": _OFFSET_LIST,
    "offsets-get-rest": View(
        (*_OFFSET_LIST.columns, Column("REST", "rest.offset"), Column("REST-STATUS", "rest.status")),
        wide=_OFFSET_LIST.wide,
        footer=_ignored_key_lines,
    ),
    "offsets-log": _OFFSET_LOG,
    "offsets-lint": View(
        (
            Column("SEVERITY", "severity"),
            Column("CODE", "code"),
            Column("SUBJECT", "subject"),
            Column("MESSAGE", "message"),
        ),
        footer=_lint_lines,
        empty="Nothing is wrong.",
    ),
    "offsets-import-plan": _write_view(),
    "offsets-import-result": _write_view(Column("OUTCOME", "outcome")),
    "offsets-diff": View(
        (
            Column("CONNECTOR", "connector"),
            Column("SOURCE-PARTITION", "source_partition"),
            Column("LEFT", _stored("left")),
            Column("RIGHT", _stored("right")),
            Column("STATUS", "status"),
        ),
        wide=(_KEY, *_stored_in("left", "right")),
        empty="No connector has offsets here.",
    ),
    "offsets-export": View(()),
    "offsets-merge-plan": _write_view(),
    "offsets-restore-plan": _write_view(*_NEWER),
    "offsets-merge-result": _write_view(Column("OUTCOME", "outcome")),
    "offsets-restore-result": _write_view(Column("OUTCOME", "outcome"), *_NEWER),
    "offsets-migrate-plan": View(_OFFSET_WRITES, footer=_migration_lines, empty="Nothing to write."),
    "offsets-migrate-result": View(_OFFSET_WRITES, footer=_migration_lines, empty="Nothing was written."),
    "offsets-migrate-stages": View(
        (Column("STAGE", "stage"), Column("OUTCOME", "outcome"), Column("DETAIL", "detail")), footer=summary_lines
    ),
    "offsets-verify": View(_MISMATCHES, empty="All keys are as they should be."),
}
