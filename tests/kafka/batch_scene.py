"""A log of a few batches on two brokers, and a native log over it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import OutRecord, ScanPlan, Window
from eosctl.deadline import Deadline
from eosctl.kafka.batches.log import NativeBatchLog
from eosctl.kafka.batches.source import PARTITION_BYTES
from eosctl.kafka.session import Connections
from tests.fakes.admin import MemoryStream
from tests.fakes.broker import FakeCluster, Seen
from tests.fakes.clock import FakeTime

TIMEOUT_S = 30.0
EVERYTHING = Window()
ONE_PARTITIONS_SHARE = {"max.partition.fetch.bytes": str(PARTITION_BYTES)}
"""As of many partitions: of a few there would be more at once."""
SMALL = 72  # bytes of each batch of a Scene


class Scene:
    """Topics t, with two partitions, and u, of five batches each, on two brokers; and a native log over them."""

    def __init__(self, **versions: tuple[int, int]) -> None:
        self.time = FakeTime(1_700_000_000.0)
        self.cluster = FakeCluster(brokers=2, versions=versions)
        self.state = self.cluster.state
        for topic, partitions in (("t", 2), ("u", 1)):
            self.state.add_topic(topic, partitions)
            for partition_ in range(partitions):
                for number in range(5):
                    record = OutRecord(topic, b"k", b"%d" % number)
                    self.state.append(record, partition_, (7, 0), transactional=False)
        settings = ClientSettings(self.cluster.bootstrap_servers, extra=ONE_PARTITIONS_SHARE)
        self.log = NativeBatchLog(
            settings,
            deadline=Deadline.after(TIMEOUT_S, self.time.clock()),
            connections=Connections(settings, open_stream=partial(MemoryStream, self.cluster)),
        )

    def plan(self, *topics: str) -> ScanPlan:
        return self.log.plan(topics or ("t", "u"), EVERYTHING)

    def on_fetch(self, number: int, act: Callable[[], None]) -> None:
        """Calls `act` behind the answer to fetch number `number`."""
        left = [number]

        def tamper(seen: Seen, frame: bytes) -> bytes:
            left[0] -= seen.api == "Fetch"
            if left[0] == 0 and seen.api == "Fetch":
                act()
            return frame

        self.cluster.tamper = tamper
