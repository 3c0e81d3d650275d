"""Reads topics as rows: small ones, and the ends of many. Bulk reads use columns (`pieces`).

Rows need neither numpy nor Arrow: loading these takes longer than reading a small topic.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import Bounds, Record, RecordFilter
from eosctl.deadline import Deadline
from eosctl.engine.reading.ranges import OffsetRange

if TYPE_CHECKING:
    from eosctl.kafka.topics.runs import Run

_TAIL_BYTES = {"max.partition.fetch.bytes": 1 << 16}


def rows_of(
    reading: Iterable[list[Record]],
    partitions: Iterable[int],
    *,
    newest_per_key: bool,
    keep: RecordFilter | None = None,
) -> tuple[Record, ...]:
    """Return the records of a topic's `partitions`, in partition, then offset order; raises the errors of `reading`.

    `reading` yields some records at a time.

    `newest_per_key` keeps the newest in each partition, so that memory grows with the keys, not with the log. Records
    without a key can't supersede each other and are all kept. Only records that `keep` returns are held; it takes many
    at a time, because a call per record is slow.
    """
    records = chain.from_iterable(reading if keep is None else map(keep, reading))
    with collector_paused():
        if not newest_per_key:
            found: dict[int, list[Record]] = {partition: [] for partition in sorted(partitions)}
            for record in records:  # its fields by number: a name costs as much as the rest of the line
                found[record[1]].append(record)
            return tuple(chain.from_iterable(found.values()))
        newest: dict[int, dict[bytes | int, Record]] = {partition: {} for partition in sorted(partitions)}
        for record in records:
            newest[record[1]][record[2] if record[4] is None else record[4]] = record
        return tuple(chain.from_iterable(sorted(each.values(), key=itemgetter(2)) for each in newest.values()))


def read_tails(
    settings: ClientSettings, bounds: Mapping[str, Sequence[Bounds]], *, offsets: int, deadline: Deadline
) -> dict[str, tuple[Record, ...]]:
    """Return the committed records among the last `offsets` offsets of each partition, in partition, then offset order.

    It samples many topics rather than reading them. Records that retention removes meanwhile are left out. Raises the
    errors of `RunReading`.
    """
    from eosctl.kafka.topics.runs import RunReading

    ranges = [
        OffsetRange(topic, one.partition, max(one.begin, one.lso - offsets), one.lso)
        for topic, each in bounds.items()
        for one in each
    ]
    reading = RunReading(settings, ranges, timeout=deadline, limited=True, skips_gone=True, properties=_TAIL_BYTES)
    found: dict[str, list[Record]] = {topic: [] for topic in bounds}
    for record in chain.from_iterable(map(records_of_runs, reading)):
        found[record.topic].append(record)
    return {topic: tuple(sorted(records, key=itemgetter(1, 2))) for topic, records in found.items()}


def records_of_runs(runs: Sequence[Run]) -> list[Record]:
    """Convert messages of librdkafka to records.

    A record without a timestamp has -1 in librdkafka too.
    """
    new, cls = tuple.__new__, Record
    return [
        new(
            cls,
            (
                topic,
                partition,
                message.offset(),
                message.timestamp()[1],
                message.key(),
                message.value(),
                tuple(headers) if (headers := message.headers()) else (),
            ),
        )
        for (topic, partition), run in runs
        for message in run
    ]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause Python's cycle collector, which would walk millions of records over and over; they hold no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
