"""Reads ranges of offsets as columns: by eosctl's own Fetch, and by librdkafka where that can't read them.

Those are brokers that require a login of another kind, and records in the format from before Kafka 0.11.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Self

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.engine.reading.batches import Piece
from eosctl.engine.reading.newest import piece_of
from eosctl.engine.reading.ranges import OffsetRange, ProgressMeter
from eosctl.kafka.batches.records import RecordReading
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.native.sasl import is_spoken_natively
from eosctl.kafka.topics.runs import RunReading
from eosctl.wire.log.batches import OldFormatError


class PieceReader:
    """Reads ranges of one cluster; `timeout` and `limited` as in `RecordReading`."""

    def __init__(self, settings: ClientSettings, *, timeout: Deadline, limited: bool = False) -> None:
        self._settings, self._timeout, self._limited = settings, timeout, limited
        self._cluster = Cluster(settings, deadline=timeout) if is_spoken_natively(settings) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._cluster is not None:
            self._cluster.close()

    def pieces(
        self, ranges: Sequence[OffsetRange], *, committed: bool = True, progress: ProgressMeter | None = None
    ) -> Iterator[Piece]:
        """Yield the records of `ranges`, several of them in one piece.

        Raises the errors of `RecordReading`; where only librdkafka can read the records, errors of the same kinds.
        """
        rest = [one for one in ranges if one.begin < one.end]
        if rest and self._cluster is not None:
            reading = RecordReading(
                self._cluster,
                ranges,
                settings=self._settings,
                timeout=self._timeout,
                committed=committed,
                limited=self._limited,
            )
            try:
                for piece in reading:
                    yield piece
                    if progress is not None:
                        progress.tell(reading.passed)
            except OldFormatError:
                rest = [one for one in reading.rest() if one.begin < one.end]
            else:
                rest = []
            if progress is not None:
                progress.tell(reading.passed, last=True)
        if rest:
            yield from read_by_librdkafka(
                self._settings,
                ranges,
                rest,
                timeout=self._timeout,
                limited=self._limited,
                committed=committed,
                progress=progress,
            )


def read_pieces(
    settings: ClientSettings,
    ranges: Sequence[OffsetRange],
    *,
    timeout: Deadline,
    committed: bool = True,
    limited: bool = False,
    progress: ProgressMeter | None = None,
) -> Generator[Piece, None, None]:
    """Yield the records of `ranges` with a `PieceReader` that is closed at the end."""
    with PieceReader(settings, timeout=timeout, limited=limited) as reader:
        yield from reader.pieces(ranges, committed=committed, progress=progress)


def read_by_librdkafka(
    settings: ClientSettings,
    ranges: Sequence[OffsetRange],
    rest: Sequence[OffsetRange],
    *,
    timeout: Deadline,
    limited: bool = False,
    committed: bool,
    progress: ProgressMeter | None,
) -> Iterator[Piece]:
    """Read the `rest` of `ranges`; `timeout`, `limited` and errors are those of `RunReading`."""
    number_of = {(one.topic, one.partition): number for number, one in enumerate(ranges)}
    reading = RunReading(settings, rest, timeout=timeout, limited=limited, committed=committed, progress=progress)
    for runs in reading:
        for place, messages in runs:
            yield piece_of(number_of[place], messages)
