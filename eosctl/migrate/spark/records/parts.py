"""The stages of a migration in which no key can be in two places: a task per part of the partitions, and no shuffle.

Each task has all that is known of its keys in the files of its part, and applies the rule key by key
(`eosctl.core.offsets.decision`). Everything here runs in tasks; rows never pass through the JVM.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.offsets.decision import Cell, Decision, KeyAction, decide, mismatch
from eosctl.core.offsets.migration import MigrationPlan, topic_of
from eosctl.core.offsets.records import is_nothing
from eosctl.migrate.spark.record_counts import TaskProgress
from eosctl.migrate.spark.records.arrow_rows import arrow_batch, arrow_schema, batch_of_columns
from eosctl.migrate.spark.records.kafka_io import Newest, OffsetRange, read_keys
from eosctl.migrate.spark.records.kafka_writes import placed_batch
from eosctl.migrate.spark.records.transforms import DECISIONS
from eosctl.migrate.spark.snapshots import batches_of, part_file, whole_file

ARROW_DECISIONS = arrow_schema(DECISIONS)
COUNTED = "connector string, action string, keys long, both long, versions long"
"""Rows of `decide_part`. Without an action: the keys of a connector (null: nobody's) that were read, and all `versions`
of them; with one: the keys that got it, `both` of them in conflict."""

_ARROW_COUNTED = arrow_schema(COUNTED)
COMPARED = (
    "whole boolean, compared long, differing long, side string, status string, connector string, topic string, "
    "partition int, key binary, expected binary, actual binary"
)
"""Rows of `compare_part`: one of numbers with a null `side`, and one for each of the first keys that differ.

`whole` is false where a key was found in a place where another part may have it too: then the part says nothing.
"""
_ARROW_COMPARED = arrow_schema(COMPARED)
SENDS = (KeyAction.WRITE.value, KeyAction.DELETE.value)
Found = tuple[int, int, int, bytes | None, bool]
"""Of a record of the target: partition, offset, timestamp in ms, value, and whether that is a deletion."""


def decide_part(folder: Path, number: int, plan: MigrationPlan) -> Iterator[pa.RecordBatch]:
    """Applies the rule to one part, lands its decisions in `folder`/decisions, and counts, as COUNTED."""
    rule = _Rule(plan, _there(part_file(folder / "target", number)))
    counted: Counter[tuple[str | None, str | None, str]] = Counter()
    with whole_file(part_file(folder / "decisions", number), ARROW_DECISIONS) as writer:
        for batch in batches_of(part_file(folder / "source", number)):
            _count(counted, batch, ["connector"], keys=("versions", "count"), versions=("versions", "sum"))
            made = rule.decided(batch)
            _count(counted, made, ["connector", "action"], keys=("claims", "count"), both=("conflict", "sum"))
            writer.write_batch(made)
    names = dict.fromkeys((connector, action) for connector, action, _ in counted)
    rows = [(*name, *(counted[*name, what] for what in ("keys", "both", "versions"))) for name in names]
    if rows:
        yield arrow_batch(rows, _ARROW_COUNTED)


def _count(counted: Counter[Any], batch: pa.RecordBatch, by: list[str], **what: tuple[str, str]) -> None:
    """Adds to `counted`, per connector and action, what a batch has of each."""
    groups = pa.table(batch).group_by(by).aggregate(list(what.values()))
    for row in groups.to_pylist():
        for name, (column, function) in what.items():
            counted[row["connector"], row.get("action"), name] += row[f"{column}_{function}"]


def _there(file: Path) -> dict[tuple[str, bytes], Found]:
    """What the target has, by topic and key."""
    columns = ("topic", "key", "partition", "offset", "timestamp_ms", "value", "nothing")
    rows = (row for batch in batches_of(file, columns) for row in _rows(batch, *columns))
    return {(topic, key): found for topic, key, *found in rows}  # type: ignore[misc]


def _rows(batch: pa.RecordBatch, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(batch.column(name).to_pylist() for name in names), strict=True)


class _Rule:
    """The plan's rule for keys that have one claim: no other source, and no rename."""

    def __init__(self, plan: MigrationPlan, there: Mapping[tuple[str, bytes], Found]) -> None:
        self._policy, self._there = plan.policy, there
        self._topics = {route.connector: route.target_topic for route in plan.routes}
        self._sizes = {topic.name: topic.partitions for topic in plan.targets}
        # a key that the target does not have is decided by whether its value says anything: one of two outcomes
        self._missing = {
            nothing: decide(Cell(None if nothing else b"{}", 0), None, plan.policy) for nothing in (True, False)
        }

    def decided(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """RECORDS of the source to DECISIONS, connectors that are not selected left out."""
        chosen = batch.filter(pc.is_in(batch.column("connector"), value_set=pa.array(self._topics, pa.string())))
        column = chosen.column
        topics = [self._topics[connector] for connector in column("connector").to_pylist()]
        keys, values = column("key").to_pylist(), column("value").to_pylist()
        nothing, times_ms = column("nothing").to_pylist(), column("timestamp_ms").to_pylist()
        found = [self._there.get(where) for where in zip(topics, keys, strict=True)]
        outcomes = [
            self._missing[is_deletion] if there is None else self._against(value, time_ms, there)
            for value, is_deletion, time_ms, there in zip(values, nothing, times_ms, found, strict=True)
        ]
        made = {
            "connector": column("connector"),
            "target_connector": column("connector"),
            "source_topic": column("topic"),
            "source_partition": column("partition"),
            "source_offset": column("offset"),
            "source_key": column("key"),
            "value": pc.if_else(column("nothing"), pa.scalar(None, pa.binary()), column("value")),
            "topic": topics,
            "key": column("key"),
            "partitions": [self._sizes[topic] for topic in topics],
            "target_exists": [there is not None for there in found],
            "action": [outcome.action.value for outcome in outcomes],
            "reason": [outcome.reason for outcome in outcomes],
            "conflict": [outcome.conflict for outcome in outcomes],
            "claims": pa.repeat(pa.scalar(1, pa.int64()), len(topics)),
        }
        of_target = ("partition", "target_offset", "target_timestamp_ms", "before", "before_nothing")
        for place, name in enumerate(of_target):
            made[name] = [None if there is None else there[place] for there in found]
        return batch_of_columns([made[field.name] for field in ARROW_DECISIONS], ARROW_DECISIONS)

    def _against(self, value: bytes | None, timestamp_ms: int, there: Found) -> Decision:
        _partition, _offset, there_ms, before, _nothing = there
        return decide(Cell(value, timestamp_ms), Cell(before, there_ms), self._policy)


def sample_of(file: Path, limit: int) -> Iterator[pa.RecordBatch]:
    """The first decisions of a file: changes and conflicts first, then by topic and key."""
    first = ARROW_DECISIONS.empty_table()
    for batch in batches_of(file):
        rows = pa.concat_tables([first, pa.table(batch).cast(ARROW_DECISIONS)])  # Spark knows what is never null
        kept = pc.equal(rows["action"], KeyAction.KEEP.value).cast(pa.int8())
        order = [("kept", "ascending"), ("topic", "ascending"), ("key", "ascending")]
        ranked = pa.table({"kept": kept, "topic": rows["topic"], "key": rows["key"]})
        first = rows.take(pc.select_k_unstable(ranked, k=min(limit, len(ranked)), sort_keys=order))
    yield from first.to_batches()


def sent(decisions: pa.RecordBatch) -> pa.RecordBatch:
    """Those of a batch of decisions that send something."""
    return decisions.filter(pc.is_in(decisions.column("action"), value_set=pa.array(SENDS, pa.string())))


def to_write(folder: Path, number: int) -> Iterator[pa.RecordBatch]:
    """What the decisions of one part send, as PLACED."""
    names = ("topic", "partition", "partitions", "key", "value", "action")
    for batch in batches_of(part_file(folder / "decisions", number), names):
        placed = placed_batch(sent(batch))
        topics = [topic_of(name) for name in placed.column("topic").to_pylist()]
        yield placed.set_column(0, "topic", pa.array(topics, pa.string()))


def compare_part(
    client: Mapping[str, Any],
    ranges: Sequence[OffsetRange],
    folder: Path,
    number: int,
    *,
    limit: int,
    count: TaskProgress | None = None,
) -> Iterator[pa.RecordBatch]:
    """Reads the `ranges` of the target that are one part's, and compares them with its decisions, as COMPARED."""
    names = {one.topic: one.name or one.topic for one in ranges}
    parts: list[Newest] = list(read_keys(client, ranges, count=count))
    now = {(names[topic], key): message for topic, key, message in _messages(parts[-1])}
    whole = len(parts) == 1 and _in_place(parts[-1], {one.topic: one.partitions for one in ranges})
    compared, differing, shown = 0, 0, list[tuple[Any, ...]]()
    columns = ("connector", "topic", "key", "value", "before", "before_nothing", "action")
    for batch in batches_of(part_file(folder / "decisions", number), columns) if whole else ():
        compared += batch.num_rows
        for connector, topic, key, value, before, before_nothing, action in _rows(batch, *columns):
            expected = value if action in SENDS else None if before_nothing else before
            message = now.get((topic, key))
            actual = None if message is None or is_nothing(message.value()) else message.value()
            if actual != expected:
                differing += 1
                partition = message and message.partition()
                status = mismatch(expected, actual, found=message is not None).value
                shown.append((None, None, None, "target", status, connector, topic, partition, key, expected, actual))
        shown = sorted(shown, key=lambda row: (row[6], row[8]))[:limit]
    yield arrow_batch([(whole, compared, differing, *[None] * 8), *shown], _ARROW_COMPARED)


def _messages(newest: Newest) -> Iterator[tuple[str, bytes | None, Any]]:
    for (topic, _partition), keys in newest.items():
        for key, (message, _versions) in keys.items():
            yield topic, key, message


def _in_place(newest: Newest, partitions: Mapping[str, int]) -> bool:
    """Whether every key is where Connect's producer puts it."""
    from confluent_kafka import murmur2

    return all(
        key is not None and murmur2(key, partitions[topic]) == partition
        for (topic, partition), keys in newest.items()
        for key in keys
    )
