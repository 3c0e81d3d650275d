"""The end of a window of time: by the brokers' clocks, which only markers have.

The offset that a time leads to is that of the first record that is as young. Sources give records any time: one of the
year 2100 ended the window there. So what lies behind is read up to the first marker that is as young as the window's
end, and what ended before that marker belongs to the window.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from eosctl.core.batches import Batch, Place, ScanPlan, Unseen, UnseenReason
from eosctl.ports import BatchLog


@dataclass(slots=True)
class BehindTheStop:
    """What comes behind the stops of a plan: given to `take` as far as it belongs to the window."""

    until_ms: int
    take: Callable[[Batch], None]
    stops: dict[Place, int] = field(default_factory=dict)
    over: set[Place] = field(default_factory=set)
    _waiting: defaultdict[Place, list[Batch]] = field(default_factory=lambda: defaultdict(list))

    def pass_on(self, batch: Batch) -> None:
        """The next batch of its partition: what is transactional waits for a marker that is older than the end."""
        place = (batch.topic, batch.partition)
        if place in self.over:
            return
        waiting = self._waiting[place]
        if batch.is_control and batch.max_timestamp_ms >= self.until_ms:
            self.over.add(place)
            waiting.clear()
        elif batch.is_control or (not batch.is_transactional and batch.max_timestamp_ms < self.until_ms):
            for each in (*waiting, batch):
                self.take(each)
            waiting.clear()
            self.stops[place] = batch.last_offset + 1
        elif batch.is_transactional:
            waiting.append(batch)


def read_past_the_stop(
    log: BatchLog, plan: ScanPlan, until_ms: int, take: Callable[[Batch], None]
) -> tuple[ScanPlan, tuple[Unseen, ...]]:
    """The plan as far as it was really read then, and what could not be read of what is behind."""
    behind = {(s.topic, s.partition): s._replace(first=s.stop, stop=s.end) for s in plan.spans if s.stop < s.end}
    if not behind:
        return plan, ()
    found = BehindTheStop(until_ms, take)
    scan = log.scan(ScanPlan(tuple(behind.values())))
    for batch in scan:
        found.pass_on(batch)
        if found.over == behind.keys():
            break
    lost = tuple(
        each
        for each in scan.unseen()
        if each.reason is not UnseenReason.COMPACTED and (each.topic, each.partition) not in found.over
    )
    spans = (span._replace(stop=found.stops.get((span.topic, span.partition), span.stop)) for span in plan.spans)
    return replace(plan, spans=tuple(spans)), lost
