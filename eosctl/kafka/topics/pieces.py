"""Ranges of offsets as columns: by eosctl's own Fetch, and by librdkafka where that can't read them.

Those are brokers that want a login of another kind, and records in the format of before Kafka 0.11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial

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
    """Reports how many offsets of `total` are read, twice a second at most."""

    def __init__(self, doing: str, total: int, *, deadline: Deadline, on_event: OnEvent) -> None:
        self._event = partial(Event, doing, total=total, unit="records")
        self._on_event, self._clock = on_event, deadline.clock
        self._next_s = self._clock.monotonic_s() + _TELL_EVERY_S

    def tell(self, count: Callable[[], int], *, last: bool = False) -> None:
        """Reports what `count` returns, if it is time to, or it is the `last` time."""
        if last or self._clock.monotonic_s() >= self._next_s:
            self._next_s = self._clock.monotonic_s() + _TELL_EVERY_S
            self._on_event(self._event(done=count()))


def read_pieces(
    settings: ClientSettings,
    ranges: Sequence[OffsetRange],
    *,
    timeout: Deadline,
    committed: bool = True,
    limited: bool = False,
    progress: ProgressMeter | None = None,
) -> Iterator[Piece]:
    """The records of `ranges`, a piece has those of several; `timeout` and `limited` as in `RecordReading`.

    Raises what `RecordReading` raises, and of what only librdkafka can read what `read_runs` raises.
    """
    rest = [one for one in ranges if one.begin < one.end]
    if not rest:
        return
    if is_spoken_natively(settings):
        with closing(Cluster(settings, deadline=timeout)) as cluster:
            reading = RecordReading(
                cluster, ranges, settings=settings, timeout=timeout, committed=committed, limited=limited
            )
            try:
                for piece in reading:
                    yield piece
                    if progress is not None:
                        progress.tell(reading.passed)
            except OldFormatError:
                rest = [one for one in reading.rest() if one.begin < one.end]
            else:
                if progress is not None:
                    progress.tell(reading.passed, last=True)
                return
    yield from _by_librdkafka(settings, ranges, rest, timeout=timeout, committed=committed, progress=progress)


def _by_librdkafka(
    settings: ClientSettings,
    ranges: Sequence[OffsetRange],
    rest: Sequence[OffsetRange],
    *,
    timeout: Deadline,
    committed: bool,
    progress: ProgressMeter | None,
) -> Iterator[Piece]:
    """The `rest` of `ranges`."""
    number_of = {(one.topic, one.partition): number for number, one in enumerate(ranges)}
    runs = read_runs(
        client_properties(settings),
        rest,
        stall_timeout_s=timeout.timeout_s,
        progress=progress,
        isolation="read_committed" if committed else "read_uncommitted",
    )
    try:
        for place, messages in runs:
            yield piece_of(number_of[place], messages)
    except KafkaException as exc:
        raise translate(error_of(exc), f"reading {counted(len(rest), 'partition')}") from exc
    except StalledError as exc:
        raise BrokerError(str(exc), hint="Was a topic deleted and created again? Run the command again.") from exc
