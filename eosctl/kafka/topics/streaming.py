"""Streams a topic from its beginning to bounds that were fixed before, some partitions at a time."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import Bounds
from eosctl.deadline import Deadline, OnEvent
from eosctl.engine.reading.newest import Folding
from eosctl.engine.reading.ranges import OffsetRange, partitions_together
from eosctl.engine.reading.stretches import RecordRun, newest_run, record_run
from eosctl.kafka.topics.meter import OffsetMeter
from eosctl.kafka.topics.pieces import PieceReader

PART_OFFSETS = 50_000
"""The number of offsets of partitions that are streamed together and so in memory at once, unless one has more."""


def stream_topic(
    settings: ClientSettings,
    topic: str,
    bounds: Sequence[Bounds],
    *,
    newest_per_key: bool,
    deadline: Deadline,
    on_event: OnEvent,
) -> Generator[RecordRun, None, None]:
    """Yield the committed records up to the LSOs of `bounds`, or the newest of each partition and key, in order.

    Small partitions are read together; of a partition with many records only those that have just arrived are held.
    Raises the errors of `read_pieces`.
    """
    ranges = {one.partition: OffsetRange(topic, one.partition, one.begin, one.lso, len(bounds)) for one in bounds}
    lengths = {number: one.end - one.begin for number, one in sorted(ranges.items()) if one.begin < one.end}
    meter = OffsetMeter(f"reading {topic}", sum(lengths.values()), deadline=deadline, on_event=on_event)
    with PieceReader(settings, timeout=deadline, limited=True) as reader:
        for part in partitions_together(lengths, PART_OFFSETS):
            some = [ranges[number] for number in part]
            pieces = reader.pieces(some, progress=meter)
            if newest_per_key:
                folding = Folding(some, bare=True, keyless=True)
                for piece in pieces:
                    folding.add(piece.columns)
                fold = folding.fold()
                yield newest_run(fold.records, read=fold.read)
            elif len(part) == 1:
                yield from map(partial(record_run, topic, some), ([piece] for piece in pieces))
            else:
                yield record_run(topic, some, pieces)
