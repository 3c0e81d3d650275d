"""Topics that the brokers have not all heard of yet, on a clock of the test's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import Bounds, KnownBounds, NewTopic, Place
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError, NotFoundError, UnreachableError
from eosctl.kafka.admin import Answers, KafkaTopicAdmin
from tests.fakes.clock import FakeTime


class LaggingLeader(KafkaTopicAdmin):
    """Its brokers tell of topic t, until it is `deleted`; the leader knows nothing of it for so many questions."""

    def __init__(self, questions: int, *, deleted: bool = False) -> None:
        self.time, self.questions, self.deleted = FakeTime(), questions, deleted
        self.partitions = 1
        self.leaderless: int | None = None
        deadline = Deadline.after(60, self.time.clock())
        super().__init__(ClientSettings(("127.0.0.1:1",)), deadline=deadline)  # nobody answers there

    def _create(self, topics: Sequence[NewTopic], *, validate_only: bool) -> dict[str, EosctlError]:
        return {}

    def _described(self, topics: Collection[str]) -> dict[str, Any]:
        partitions = [SimpleNamespace(leader=None if self.leaderless == n else SimpleNamespace(id=1)) for n in (0, 1)]
        gone = self.deleted and self.questions < 10
        return {} if gone else {"t": SimpleNamespace(partitions=partitions[: self.partitions])}

    def _ask_offsets(self, places: Iterable[Place], spec: Any, isolation: Any) -> Answers:
        self.questions -= 1
        if self.questions >= 0:
            why = NotFoundError("reading the offsets of topic t failed: the topic does not exist")
            return dict.fromkeys(places, why)
        return dict.fromkeys(places, 0)


def test_a_new_topic_is_waited_for_until_its_leader_knows_of_it() -> None:
    """On three brokers one creation in ten failed: the topic does not exist."""
    admin = LaggingLeader(3)
    assert admin.create_all([NewTopic("t", 1, 1)]) == {}
    assert (admin.questions, len(admin.time.slept)) == (-1, 3)


def test_a_leader_that_has_not_heard_of_its_topic_is_asked_again() -> None:
    assert LaggingLeader(2).bounds_of(["t"]) == {"t": (Bounds(0, 0, 0, 0),)}


def test_a_topic_that_was_deleted_meanwhile_is_not_waited_for() -> None:
    admin = LaggingLeader(10, deleted=True)
    with pytest.raises(NotFoundError, match="topic t does not exist"):
        admin.bounds_of(["t"])
    assert admin.time.slept == []


def test_a_leader_that_never_hears_of_it_ends_at_the_deadline() -> None:
    with pytest.raises(DeadlineError):
        LaggingLeader(10**6).create_all([NewTopic("t", 1, 1)])
    with pytest.raises(DeadlineError):
        LaggingLeader(10**6).bounds_of(["t"])


def test_an_answer_without_an_offset_is_no_offset() -> None:
    """Right after a broker was killed, doctor said of sixteen partitions: a transaction open since offset -1001."""
    told: Future[Any] = Future()
    told.set_result(SimpleNamespace(offset=-1001))
    found = LaggingLeader(0)._offset(TopicPartition("t", 3), told)
    assert isinstance(found, UnreachableError)
    assert found.message == "reading the offsets of topic t, partition 3 (no answer from its leader)"


def half_led() -> LaggingLeader:
    """Topic t has two partitions, and no broker leads the second."""
    admin = LaggingLeader(0)
    admin.partitions, admin.leaderless = 2, 1
    return admin


def test_offsets_of_partitions_with_leaders_are_known_beside_those_without() -> None:
    """Whoever asked for one partition waited to the deadline for another one."""
    admin = half_led()
    assert admin.known_bounds("t") == KnownBounds((Bounds(0, 0, 0, 0),), {1: "partition 1 of topic t has no leader"})
    assert 15 <= admin.time.now_s < 16, "an election takes seconds"


def test_all_offsets_are_refused_before_the_deadline_where_a_partition_gets_no_leader() -> None:
    """It ended with `timed out`, and whatever else there was to ask had no time any more."""
    admin = half_led()
    with pytest.raises(UnreachableError, match="partition 1 of topic t has no leader"):
        admin.bounds_of(["t"])
    assert 15 <= admin.time.now_s < 16


def test_a_leader_that_is_elected_meanwhile_is_asked() -> None:
    admin = half_led()
    admin.time.later(5.0, lambda: setattr(admin, "leaderless", None))
    assert admin.bounds_of(["t"]) == {"t": (Bounds(0, 0, 0, 0), Bounds(1, 0, 0, 0))}


def test_no_partition_with_a_leader_is_an_error() -> None:
    admin = half_led()
    admin.partitions, admin.leaderless = 1, 0
    with pytest.raises(UnreachableError, match="partition 0 of topic t has no leader"):
        admin.known_bounds("t")
