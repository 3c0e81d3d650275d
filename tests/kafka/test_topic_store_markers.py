"""How long a write waits for the markers of its own transaction, on a clock of the test's."""

from __future__ import annotations

import pytest

from eosctl.core.records import OutRecord
from eosctl.deadline import Deadline, Event
from eosctl.kafka.topics.store import wait_for_markers
from tests.fakes.broker_state import BrokerState
from tests.fakes.clock import FakeTime
from tests.fakes.topics import FakeTopicStore


def committed(state: BrokerState, partitions: int) -> dict[tuple[str, int], int]:
    """A transaction with a record in each partition, whose end is answered and whose markers are not there yet."""
    state.late_markers = 10**6
    _error, *producer = state.init_producer_id("id", 60_000)
    records = [OutRecord("t", b"k", b"v", number) for number in range(partitions)]
    for number, record in enumerate(records):
        state.write_in("id", (producer[0], producer[1]), record, number)
    assert state.end_transaction("id", (producer[0], producer[1]), commit=True) == 0
    return {("t", number): 0 for number in range(partitions)}


@pytest.mark.parametrize(
    ("partitions", "after_s", "visible"), [(1, 4.0, True), (1, 8.0, False), (100, 8.0, True), (100, 30.0, False)]
)
def test_markers_of_many_partitions_are_waited_for_longer(partitions: int, after_s: float, visible: bool) -> None:
    """A merge into 800 new partitions gave up after five seconds, and told its own records as hidden by another."""
    topics, time, said = FakeTopicStore(), FakeTime(), list[Event]()
    topics.add_topic("t", partitions)
    last = committed(topics.state, partitions)
    time.later(after_s, topics.state.write_markers)
    wait_for_markers(topics.bounds_of, last, deadline=Deadline.after(600, time.clock()), on_event=said.append)
    assert [event.warning for event in said] == ([] if visible else [True])
    assert (time.now_s >= after_s) == visible
    assert all((bound.lso == bound.end) == visible for bound in topics.bounds("t"))
