"""A BatchLog over a BrokerState; tests/contract/test_batch_log.py runs the same suite on it and on real brokers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from eosctl.app import App
from eosctl.core.records import Batch, Place, ScanPlan, Span, Unseen, UnseenReason, Window
from eosctl.errors import NotFoundError
from tests.fakes.broker_state import BrokerState
from tests.fakes.faults import Faults
from tests.fakes.partitions import FakePartition


class FakeBatchLog(Faults):
    """A BatchLog; besides its methods, Faults knows `batch`: each one before and after it is given out."""

    def __init__(self, state: BrokerState) -> None:
        super().__init__()
        self.state = state

    def open(self, _app: App) -> FakeBatchLog:
        """App's door."""
        return self

    def __enter__(self) -> FakeBatchLog:
        return self

    def __exit__(self, *_exc: object) -> None:
        return None

    def plan(self, topics: Collection[str], window: Window) -> ScanPlan:
        with self.call("plan", topics, window):
            spans: list[Span] = []
            unseen: list[Unseen] = []
            for topic in topics:
                if topic not in self.state.topics:
                    raise NotFoundError(f"topic {topic} does not exist")
                self.state.look_at(topic)
                for number, log in enumerate(self.state.topics[topic].partitions):
                    if self.state.leader_of(topic, number) is None:
                        why = f"partition {number} of topic {topic} has no leader"
                        unseen.append(Unseen(topic, number, UnseenReason.UNREADABLE, detail=why))
                        continue
                    since = _offset_at(log, window.since_ms, window.since_offset or 0)
                    stop = _offset_at(
                        log, window.until_ms, log.end if window.until_offset is None else window.until_offset
                    )
                    first, stop = min(max(log.begin, since), log.end), min(stop, log.end)
                    spans.append(Span(topic, number, first, max(first, stop), log.begin, log.lso, log.end))
                    if since < log.begin:
                        unseen.append(
                            Unseen(topic, number, UnseenReason.REMOVED, since, log.begin - 1, log.begin - since)
                        )
            return ScanPlan(tuple(spans), tuple(unseen))

    def scan(self, plan: ScanPlan, *, check_crc: bool = False) -> FakeScan:
        with self.call("scan", plan, check_crc):
            return FakeScan(self, plan, check_crc=check_crc)


class FakeScan:
    """One pass: a batch of each partition in turn."""

    def __init__(self, log: FakeBatchLog, plan: ScanPlan, *, check_crc: bool) -> None:
        self._log, self._plan, self._check_crc = log, plan, check_crc
        self._positions = {(span.topic, span.partition): span.first for span in plan.spans}
        self._holes: dict[Place, Unseen] = {}
        self._lost: list[Unseen] = []

    def __iter__(self) -> Iterator[Batch]:
        ways = [self._read(span) for span in self._plan.spans]
        while ways:
            for way in list(ways):
                batch = next(way, None)
                if batch is None:
                    ways.remove(way)
                else:
                    with self._log.call("batch", batch):
                        yield batch

    def _read(self, span: Span) -> Iterator[Batch]:
        place = (span.topic, span.partition)
        for batch in list(self._log.state.log(*place).batches):
            if batch.last_offset < span.first:
                continue
            if batch.base_offset >= span.stop:
                self._pass(place, span.stop)
                return
            self._pass(place, batch.base_offset)
            self._positions[place] = batch.last_offset + 1
            yield batch._replace(topic=span.topic, partition=span.partition, crc_ok=True if self._check_crc else None)
        at = self._positions[place]
        if at < span.stop:
            why = "the broker gives no batches from there on"
            self._lost.append(Unseen(*place, UnseenReason.UNREADABLE, at, span.stop - 1, span.stop - at, why))
            self._positions[place] = span.stop

    def _pass(self, place: Place, offset: int) -> None:
        """What lies between the position and `offset` is not there any more."""
        at = self._positions[place]
        if at < offset:
            known = self._holes.get(place)
            first, count = (known.first_offset, known.offsets or 0) if known else (at, 0)
            self._holes[place] = Unseen(*place, UnseenReason.COMPACTED, first, offset - 1, count + offset - at)
            self._positions[place] = offset

    def positions(self) -> Mapping[Place, int]:
        return self._positions

    def unseen(self) -> Sequence[Unseen]:
        return (*self._plan.unseen, *self._lost, *(self._holes[place] for place in sorted(self._holes)))


def _offset_at(log: FakePartition, time_ms: int | None, otherwise: int) -> int:
    """The first offset whose batch is as young as `time_ms`; the end for none."""
    if time_ms is None:
        return otherwise
    young = (each.base_offset for each in log.batches if each.max_timestamp_ms >= time_ms)
    return next(young, log.end)
