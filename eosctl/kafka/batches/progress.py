"""How far a scan is, in megabytes: how many there are in all is reckoned from the offsets that are left."""

from __future__ import annotations

from eosctl.core.batches import ScanPlan
from eosctl.deadline import Clock
from eosctl.events import Event, OnEvent
from eosctl.kafka.batches.seen import SeenBatches

_EVERY_S = 0.5
_MB = 1_000_000


class ScanProgress:
    """`bytes_read` is counted by who reads."""

    def __init__(self, plan: ScanPlan, seen: SeenBatches, *, on_event: OnEvent, clock: Clock) -> None:
        self.bytes_read = 0
        self._seen, self._on_event, self._clock = seen, on_event, clock
        self._first = sum(span.first for span in plan.spans)
        self._offsets = sum(span.stop - span.first for span in plan.spans)
        self._reported_s = clock.monotonic_s()

    def report(self) -> None:
        """An event, if the last one was a while ago."""
        now_s = self._clock.monotonic_s()
        if now_s - self._reported_s < _EVERY_S:
            return
        self._reported_s = now_s
        passed = sum(self._seen.positions.values()) - self._first
        left = max(self._offsets - passed, 0) / passed if passed else 0.0
        self._tell(self.bytes_read // _MB, int(self.bytes_read * (1 + left)) // _MB + 1)

    def end(self) -> None:
        """It is over."""
        self._tell(self.bytes_read // _MB, self.bytes_read // _MB)

    def _tell(self, done: int, total: int) -> None:
        self._on_event(Event("reading batches", done=done, total=total, unit="MB"))
