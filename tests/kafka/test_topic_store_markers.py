"""How long a write waits for the markers of its own transaction, on a clock of the test's."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from eosctl.core.client_settings import ClientSettings
from eosctl.core.records import Bounds, Written
from eosctl.deadline import Clock, Deadline
from eosctl.events import Event
from eosctl.kafka.topic_store import KafkaTopicStore


class LateMarkers(KafkaTopicStore):
    """A store whose brokers write the markers `after_s` seconds after the commit; it connects to nothing."""

    def __init__(self, partitions: int, after_s: float) -> None:
        self.now_s = 0.0
        clock = Clock(monotonic_s=lambda: self.now_s, sleep_s=self._pass)
        self.said: list[Event] = []
        super().__init__(
            ClientSettings(bootstrap_servers=("127.0.0.1:1",)),
            deadline=Deadline.after(600, clock),
            on_event=self.said.append,
        )
        self._partitions, self._after_s = partitions, after_s

    def _pass(self, seconds: float) -> None:
        self.now_s += seconds

    def bounds_of(self, topics: Collection[str]) -> Mapping[str, tuple[Bounds, ...]]:
        """One record in each partition, which its marker makes stable."""
        lso = 2 if self.now_s >= self._after_s else 0
        return {topic: tuple(Bounds(n, 0, lso, 2) for n in range(self._partitions)) for topic in topics}

    def wait(self) -> None:
        """What `write` does after a commit."""
        self._wait_until_visible([Written("t", n, 0) for n in range(self._partitions)])


@pytest.mark.parametrize(
    ("partitions", "after_s", "visible"), [(1, 4.0, True), (1, 8.0, False), (100, 8.0, True), (100, 30.0, False)]
)
def test_markers_of_many_partitions_are_waited_for_longer(partitions: int, after_s: float, visible: bool) -> None:
    """A merge into 800 new partitions gave up after five seconds, and told its own records as hidden by another."""
    store = LateMarkers(partitions, after_s)
    store.wait()
    assert [event.warning for event in store.said] == ([] if visible else [True])
    assert (store.now_s >= after_s) == visible
