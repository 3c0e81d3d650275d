"""One pass over the batches of a plan, by their headers; a partition that has no leader for the timeout is unseen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from eosctl.core.batches import Batch, Place, ScanPlan, Unseen
from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.batches.fetching import FetchPass
from eosctl.kafka.batches.seen import SeenBatches
from eosctl.kafka.cluster import Cluster


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
