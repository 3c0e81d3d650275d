"""The batches of a log over eosctl's own wire, against real brokers: `eosctl.ports.BatchLog`.

One pass over the batches of a plan, by their headers; a partition that has no leader for the timeout is unseen. No
record is taken apart, so neither numpy nor Arrow is loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Self

from eosctl.core.acls.lines import grant_hint
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import Batch, Place, ScanPlan, Span, Unseen, UnseenReason, Window
from eosctl.core.transactions import KafkaFault
from eosctl.deadline import Deadline
from eosctl.errors import NotFoundError, UnauthorizedError
from eosctl.kafka.batches.fetching import FetchPass, LogBounds, read_log_bounds
from eosctl.kafka.batches.source import SeenBatches
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.session import Connections
from eosctl.kafka.topics.partition_leaders import count_partitions
from eosctl.wire.error_codes import TOPIC_AUTHORIZATION_FAILED


class NativeScan:
    """An iterable that can be iterated once; `timeout` begins anew whenever something is read."""

    def __init__(
        self,
        cluster: Cluster,
        plan: ScanPlan,
        *,
        settings: ClientSettings,
        timeout: Deadline,
        check_crc: bool,
    ) -> None:
        self._seen = SeenBatches(plan, check_crc=check_crc)
        stops = {(each.topic, each.partition): each.stop for each in plan.spans if each.first < each.stop}
        self._batches = FetchPass(cluster, self._seen, stops, settings=settings, timeout=timeout)

    def positions(self) -> Mapping[Place, int]:
        """Return the next offset of each partition."""
        return self._seen.positions

    def unseen(self) -> Sequence[Unseen]:
        """Return the offsets that were not seen so far."""
        return self._seen.unseen()

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._batches)


class NativeBatchLog:
    """Connects at its first request; one thread may use it, for one scan at a time."""

    def __init__(
        self,
        settings: ClientSettings,
        *,
        deadline: Deadline,
        connections: Connections | None = None,
    ) -> None:
        self._settings, self._deadline = settings, deadline
        self._cluster = Cluster(settings, deadline=deadline, connections=connections)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._cluster.close()

    def plan(self, topics: Collection[str], window: Window) -> ScanPlan:
        """Plan a scan of `window` with its current first and last offsets.

        Partitions without a responding leader are unseen. Raises NotFoundError, UnauthorizedError, UnreachableError.
        """
        counts = count_partitions(self._cluster, topics, self._settings)
        for topic in topics:
            if topic not in counts:
                raise NotFoundError(f"topic {topic} does not exist", hint="Names are case-sensitive.")
        places = [(topic, number) for topic in topics for number in range(counts[topic])]
        times_ms = [each for each in (window.since_ms, window.until_ms) if each is not None]
        found = read_log_bounds(self._cluster, places, times_ms=times_ms)
        spans: list[Span] = []
        unseen: list[Unseen] = []
        for place in places:
            answer = found[place]
            if isinstance(answer, KafkaFault):
                unseen.append(self._unread(place, answer))
            else:
                span, missing = _span(place, answer, window)
                spans.append(span)
                unseen += missing
        return ScanPlan(tuple(spans), tuple(unseen))

    def scan(self, plan: ScanPlan, *, check_crc: bool = False) -> NativeScan:
        """Scan the plan's partitions."""
        return NativeScan(
            self._cluster, plan,
            settings=self._settings, timeout=self._deadline, check_crc=check_crc,
        )  # fmt: skip

    def _unread(self, place: Place, why: KafkaFault) -> Unseen:
        if why.code == TOPIC_AUTHORIZATION_FAILED:
            hint = grant_hint("DESCRIBE", "Topic", [place[0]], settings=self._settings, then="READ")
            raise UnauthorizedError(f"not allowed to describe topic {place[0]}", hint=hint)
        return Unseen(*place, UnseenReason.UNREADABLE, detail=str(why))


def _span(place: Place, bounds: LogBounds, window: Window) -> tuple[Span, list[Unseen]]:
    """Return the readable part of the window, and the offsets of it before the log's start."""
    times = iter(bounds.of_times)
    since = next(times) if window.since_ms is not None else window.since_offset or 0
    stop = next(times) if window.until_ms is not None else window.until_offset
    first = min(max(since, bounds.start), bounds.end)
    stop = bounds.end if stop is None else min(stop, bounds.end)
    span = Span(*place, first, max(first, stop), bounds.start, bounds.last_stable, bounds.end)
    if since >= bounds.start:
        return span, []
    last = min(bounds.start, bounds.end if window.until_offset is None else window.until_offset) - 1
    return span, [Unseen(*place, UnseenReason.REMOVED, since, last, last + 1 - since)] if last >= since else []
