"""The stages of a migration in which no key can be in two places: a task per part of the partitions, and no shuffle.

Each task has all that is known of its keys in the files of its part, and applies the rule key by key
(`eosctl.core.offsets.decision`). Everything here runs in tasks; rows never pass through the JVM.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.offsets.decision import Cell, Decision, KeyAction, decide
from eosctl.core.offsets.migration import MigrationPlan, topic_of
from eosctl.migrate.spark.records.arrow_rows import arrow_batch, arrow_schema, batch_of_columns
from eosctl.migrate.spark.records.kafka_writes import placed_batch
from eosctl.migrate.spark.records.transforms import DECISIONS
from eosctl.migrate.spark.snapshots import batches_of, part_file, whole_file

ARROW_DECISIONS = arrow_schema(DECISIONS)
COUNTED = "connector string, action string, keys long, both long, versions long"
"""Rows of `decide_part`. Without an action: the keys of a connector (null: nobody's) that were read, and all `versions`
of them; with one: the keys that got it, `both` of them in conflict."""

_ARROW_COUNTED = arrow_schema(COUNTED)
SENDS = (KeyAction.WRITE.value, KeyAction.DELETE.value)


class Found(NamedTuple):
    """A record of the target; `nothing` is whether its value is a deletion."""

    partition: int
    offset: int
    timestamp_ms: int
    value: bytes | None
    nothing: bool


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
    return dict(chain.from_iterable(map(_found, batches_of(file, ("topic", "key", *Found._fields)))))


def _found(batch: pa.RecordBatch) -> Iterator[tuple[tuple[str, bytes], Found]]:
    topics, keys, *columns = (column.to_pylist() for column in batch.columns)
    return zip(zip(topics, keys, strict=True), map(Found._make, zip(*columns, strict=True)), strict=True)


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
        topics = [self._topics[connector] for connector in chosen.column("connector").to_pylist()]
        wanted = zip(topics, chosen.column("key").to_pylist(), strict=True)
        found = [self._there.get(where) for where in wanted]
        columns: dict[str, Any] = {"topic": topics, "partitions": [self._sizes[topic] for topic in topics]}
        columns |= _of_source(chosen) | _of_target(found) | _of_outcomes(self._outcomes(chosen, found))
        return batch_of_columns([columns[field.name] for field in ARROW_DECISIONS], ARROW_DECISIONS)

    def _outcomes(self, chosen: pa.RecordBatch, found: Sequence[Found | None]) -> list[Decision]:
        """What becomes of each key."""
        cells = (chosen.column(name).to_pylist() for name in ("value", "timestamp_ms", "nothing"))
        return [
            self._missing[nothing] if there is None else self._against(Cell(value, timestamp_ms), there)
            for value, timestamp_ms, nothing, there in zip(*cells, found, strict=True)
        ]

    def _against(self, source: Cell, there: Found) -> Decision:
        return decide(source, Cell(there.value, there.timestamp_ms), self._policy)


def _of_source(chosen: pa.RecordBatch) -> dict[str, Any]:
    """The columns of DECISIONS that RECORDS of the source have."""
    connector, key = chosen.column("connector"), chosen.column("key")
    return {
        "connector": connector,
        "target_connector": connector,
        "source_topic": chosen.column("topic"),
        "source_partition": chosen.column("partition"),
        "source_offset": chosen.column("offset"),
        "source_key": key,
        "value": pc.if_else(chosen.column("nothing"), pa.scalar(None, pa.binary()), chosen.column("value")),
        "key": key,
        "claims": pa.repeat(pa.scalar(1, pa.int64()), len(chosen)),
    }


def _of_target(found: Sequence[Found | None]) -> dict[str, Any]:
    """The columns of DECISIONS that report what the target has."""
    names = ("partition", "target_offset", "target_timestamp_ms", "before", "before_nothing")
    columns: dict[str, Any] = {name: [there and there[place] for there in found] for place, name in enumerate(names)}
    return columns | {"target_exists": [there is not None for there in found]}


def _of_outcomes(outcomes: Sequence[Decision]) -> dict[str, Any]:
    """The columns of DECISIONS that report what becomes of the keys."""
    return {
        "action": [outcome.action.value for outcome in outcomes],
        "reason": [outcome.reason for outcome in outcomes],
        "conflict": [outcome.conflict for outcome in outcomes],
    }


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
    return decisions.filter(is_sent(decisions))


def is_sent(decisions: pa.RecordBatch) -> pa.Array:
    """Whether each of a batch of decisions sends something."""
    return pc.is_in(decisions.column("action"), value_set=pa.array(SENDS, pa.string()))


def to_write(folder: Path, number: int) -> Iterator[pa.RecordBatch]:
    """What the decisions of one part send, as PLACED."""
    names = ("topic", "partition", "partitions", "key", "value", "action")
    for batch in batches_of(part_file(folder / "decisions", number), names):
        placed = placed_batch(sent(batch))
        topics = [topic_of(name) for name in placed.column("topic").to_pylist()]
        yield placed.set_column(0, "topic", pa.array(topics, pa.string()))
