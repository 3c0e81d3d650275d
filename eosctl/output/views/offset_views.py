"""The views of `offsets migrate` and `verify`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from eosctl.output.cells import Column, View, dig, format_cell, partition_name, summary_lines
from eosctl.report import Report, Row

_MOST_NEW_TOPICS = 3
"""That are told by name; hundreds would hide the rest of a plan."""


def _partition_at(path: str) -> Callable[[Row], object]:
    """The `topic-partition` at `path`."""
    return lambda row: partition_name(dig(row, path))


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


_MISMATCHES = (
    Column("STATUS", "status"),
    Column("SIDE", "side"),
    Column("CONNECTOR", "connector"),
    Column("SOURCE-PARTITION", _source_partition),
    Column("EXPECTED", "expected"),
    Column("ACTUAL", "actual"),
    Column("STORED-IN", _partition_at("target")),
)

OFFSET_VIEWS = {
    "offsets-migrate-plan": View(_OFFSET_WRITES, footer=_migration_lines, empty="Nothing to write."),
    "offsets-migrate-result": View(_OFFSET_WRITES, footer=_migration_lines, empty="Nothing was written."),
    "offsets-migrate-stages": View(
        (Column("STAGE", "stage"), Column("OUTCOME", "outcome"), Column("DETAIL", "detail")), footer=summary_lines
    ),
    "offsets-verify": View(_MISMATCHES, empty="All keys are as they should be."),
}
