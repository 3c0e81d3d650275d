"""Ranges of offsets as columns: by eosctl's own Fetch, and by librdkafka where that can't read them.

Those are brokers that want a login of another kind, and records in the format of before Kafka 0.11.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Self

from confluent_kafka import KafkaException

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.wording import counted
from eosctl.deadline import Deadline
from eosctl.engine.reading.batches import Piece
from eosctl.engine.reading.newest import piece_of
from eosctl.engine.reading.ranges import OffsetRange, ProgressMeter, StalledError, read_runs
from eosctl.errors import BrokerError
from eosctl.events import Event, OnEvent
from eosctl.kafka.batches.records import OldFormatError, RecordReading
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.native.sasl import is_spoken_natively
from eosctl.kafka.topics.librdkafka import client_properties, error_of, translate

_TELL_EVERY_S = 0.5


class OffsetMeter:
    """Reports how many offsets of `total` are read, twice a second at most, and in the end."""

    def __init__(self, doing: str, total: int, *, deadline: Deadline, on_event: OnEvent) -> None:
        self._event = partial(Event, doing, total=total, unit="records")
        self._on_event, self._clock = on_event, deadline.clock
        self._total, self._before = total, 0
        self._next_s = self._clock.monotonic_s() + _TELL_EVERY_S

    def tell(self, count: Callable[[], int], *, last: bool = False) -> None:
        """Of several readings, one after the other, `count` tells of the present one, until its `last` time."""
        if last:
            self._before += count()
        is_over = last and self._before == self._total
        if is_over or self._clock.monotonic_s() >= self._next_s:
            self._next_s = self._clock.monotonic_s() + _TELL_EVERY_S
            self._on_event(self._event(done=self._before + (0 if last else count())))


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
        """The records of `ranges`, a piece has those of several.

        Raises what `RecordReading` raises; of what only librdkafka can read, errors of the same kinds.
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
    """What a `PieceReader` has of `ranges`."""
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
    """The `rest` of `ranges`; raises DeadlineError when the `timeout` of a `limited` reading is over."""
    number_of = {(one.topic, one.partition): number for number, one in enumerate(ranges)}
    runs = read_runs(
        client_properties(settings),
        rest,
        stall_timeout_s=timeout.remaining_s() if limited else timeout.timeout_s,
        progress=progress,
        isolation="read_committed" if committed else "read_uncommitted",
    )
    try:
        for place, messages in runs:
            if limited:
                timeout.check(f"reading {counted(len(rest), 'partition')}")
            yield piece_of(number_of[place], messages)
    except KafkaException as exc:
        raise translate(error_of(exc), f"reading {counted(len(rest), 'partition')}") from exc
    except StalledError as exc:
        raise BrokerError(str(exc), hint="Was a topic deleted and created again? Run the command again.") from exc
