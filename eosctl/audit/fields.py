"""Reads fields of the committed records of a window, for `--unique` and `--sequence`.

Records come through confluent-kafka, which decompresses them, as read_committed shows them: what was aborted is no
duplicate, and an open transaction hides what lies behind its first record. Those partitions are named.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import astuple

from eosctl.app import App
from eosctl.audit.log.debezium import ChangeEvents
from eosctl.audit.log.field_paths import NamedFields
from eosctl.audit.log.values import FieldValue
from eosctl.audit.log.writers import WriterKind
from eosctl.core.batches import Place, Span
from eosctl.core.records import Record
from eosctl.deadline import Deadline
from eosctl.ports import TopicReader

OPEN_S = 5.0
"""How long a reader waits for transactions that hide records of its window."""
_AGAIN_S = 0.25

WriterOf = Callable[[Place, int], WriterKind]
"""The writer of the record of a partition at an offset."""
Take = Callable[[FieldValue], object]


@dataclass(slots=True)
class FieldRead:
    """The counts of the connector's records, and of those that lack the field.

    `hidden` partitions were read to that offset. `unknown` counts records of unknown producers, `passed` those that
    have no such field by design.
    """

    records: int = 0
    without: int = 0
    unknown: int = 0
    passed: int = 0
    hidden: dict[Place, int] = field(default_factory=dict)


def read_field(
    app: App,
    fields: NamedFields | ChangeEvents,
    spans: Iterable[Span],
    *,
    writer_of: WriterOf,
    take: Take,
    take_unknown: Take | None = None,
) -> FieldRead:
    """Give the fields' value in each committed record of `spans` to `take`, in each partition's order.

    Records of others are left out; those of unknown producers go to `take_unknown`. A record is forgotten as soon as it
    was looked at. A transaction that was open when the log's end was looked up gets a moment to end. Raises what
    TopicReader.read raises; DeadlineError where the time is too short for all.
    """
    read = FieldRead()
    by_topic: defaultdict[str, list[Span]] = defaultdict(list)
    for span in spans:
        by_topic[span.topic].append(span)

    def look(records: Sequence[Record]) -> Sequence[Record]:
        for record in records:
            writer = writer_of((record.topic, record.partition), record.offset)
            if writer is WriterKind.OWN:
                read.records += 1
                _look_at(record, fields, read, take)
            elif writer is WriterKind.UNKNOWN:
                read.unknown += 1
                if take_unknown is not None:
                    _look_at(record, fields, FieldRead(), take_unknown)
        return ()

    for topic, its in by_topic.items():
        with app.with_whole_timeout().topics() as store:
            _await_open_transactions(app, store, its)
            bounds = store.read(
                topic,
                since={span.partition: span.first for span in its},
                until={span.partition: span.stop for span in its},
                keep=look,
                renews=True,
            ).bounds
        stable = {bound.partition: bound.lso for bound in bounds}
        read.hidden |= {
            (topic, span.partition): stable[span.partition] for span in its if stable[span.partition] < span.stop
        }
    return read


def _look_at(record: Record, fields: NamedFields | ChangeEvents, read: FieldRead, take: Take) -> None:
    if fields.passes(record):
        read.passed += 1
        return
    found = fields.read(record)
    if found is None:
        read.without += 1
    else:
        take(FieldValue(record.topic, record.partition, record.offset, record.timestamp_ms, *astuple(found)))


def _await_open_transactions(app: App, store: TopicReader, spans: Sequence[Span]) -> None:
    """Wait until nothing in the spans of one topic is hidden, or OPEN_S have passed: a source at work is nearly always
    in a transaction, and short ones end at once."""
    stops = {span.partition: span.stop for span in spans}
    for _ in Deadline.after(min(OPEN_S, app.deadline.remaining_s() / 2), app.clock).rounds(_AGAIN_S):
        bounds = store.bounds(spans[0].topic)
        if all(bound.lso >= stops.get(bound.partition, 0) for bound in bounds):
            return
