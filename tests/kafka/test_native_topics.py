"""Topics over eosctl's own wire, where brokers are down, move or lag: test_topic_admin.py by requests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

import pytest

from eosctl.core.clients.settings import ClientSettings, Secret
from eosctl.core.records import Bounds, KnownBounds, OutRecord, Record
from eosctl.deadline import Deadline, Event
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.errors import BrokerError, DeadlineError, UnauthorizedError, UnreachableError
from eosctl.kafka.session import Connections
from eosctl.kafka.topics.meter import OffsetMeter
from eosctl.kafka.topics.native_topics import NativeTopics
from eosctl.wire import error_codes as codes
from eosctl.wire.api import decode_response, encode_response
from eosctl.wire.log.fetch_messages import FETCH
from eosctl.wire.log.records import CompressedError
from tests.engine.record_batches import Written, batch_of
from tests.fakes.admin import MemoryStream
from tests.fakes.broker import FakeCluster, Seen
from tests.fakes.clock import FakeTime

EMPTY = (Bounds(0, 0, 0, 0), Bounds(1, 0, 0, 0))


class _Stream(MemoryStream):
    """Notes what is sent together."""

    def __init__(self, sent: list[bytes], *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        self._sent = sent

    def send(self, data: bytes) -> None:
        self._sent.append(data)
        super().send(data)


class World:
    """Topic t with two partitions on one broker, or one on each of several; a request takes 1 ms."""

    def __init__(self, brokers: int = 1, *, password: str | None = None) -> None:
        self.time = FakeTime()
        self.cluster = FakeCluster(brokers=brokers, users={"u": password} if password else None)
        self.cluster.state.add_topic("t", 2)
        self.acts: Callable[[Seen], object] = lambda _seen: None
        self.fetched, self.events = list[bytes](), list[Event]()
        self.cluster.tamper = self._pass_on
        login: dict[str, Any] = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_username": "u",
            "sasl_password": Secret(password or ""),
        }
        settings = ClientSettings(self.cluster.bootstrap_servers, **login if password else {})
        self.sent = list[bytes]()
        self.connections = Connections(settings, open_stream=partial(_Stream, self.sent, self.cluster))
        deadline = Deadline.after(60, self.time.clock())
        self.topics = NativeTopics(settings, deadline=deadline, connections=self.connections)

    def meter(self, doing: str, total: int) -> OffsetMeter:
        deadline = Deadline.after(60, self.time.clock())
        return OffsetMeter(doing, total, deadline=deadline, on_event=self.events.append)

    def _pass_on(self, seen: Seen, frame: bytes) -> bytes:
        self.time.now_s += 0.001
        self.acts(seen)
        return _with_records(seen, frame, self.fetched.pop(0)) if seen.api == "Fetch" and self.fetched else frame


def _with_records(seen: Seen, frame: bytes, records: bytes) -> bytes:
    """The answer to a fetch from one partition, with other batches than the zeros of the fake."""
    number = int.from_bytes(frame[4:8], "big")
    answer = decode_response(FETCH, frame[4:], version=seen.version, correlation_id=number)
    (topic,) = answer.responses
    (part,) = topic.partitions
    changed = topic._replace(partitions=(part._replace(records=memoryview(records)),))
    return encode_response(FETCH, answer._replace(responses=(changed,)), version=seen.version, correlation_id=number)


def half_led() -> World:
    world = World()
    world.cluster.state.leaderless.add(("t", 1))
    return world


def test_offsets_of_partitions_with_leaders_are_known_beside_those_without() -> None:
    world = half_led()
    assert world.topics.known_bounds("t") == KnownBounds(EMPTY[:1], {1: "partition 1 of topic t has no leader"})
    assert 15 <= world.time.now_s < 16


def test_all_offsets_are_refused_before_the_deadline_where_a_partition_gets_no_leader() -> None:
    world = half_led()
    with pytest.raises(UnreachableError, match="partition 1 of topic t has no leader"):
        world.topics.bounds_of(["t"])
    assert 15 <= world.time.now_s < 16


def test_a_leader_that_is_elected_meanwhile_is_asked() -> None:
    world = half_led()
    world.time.later(5.0, world.cluster.state.leaderless.clear)
    assert world.topics.bounds_of(["t"]) == {"t": EMPTY}


def test_offsets_of_the_other_brokers_are_known_beside_those_of_a_frozen_one() -> None:
    world = World(brokers=2)
    world.topics.cluster_id()
    world.cluster.frozen.add(2)
    found = world.topics.known_bounds("t")
    assert found.known == EMPTY[:1]
    assert set(found.missing) == {1}


def test_what_was_answered_stays_known_when_the_last_look_is_out_of_time() -> None:
    """It was asked anew to the end: on a slow machine nothing was left for brokers that answer, and nothing known."""
    world = World(brokers=2)
    world.topics.cluster_id()
    world.cluster.stop_broker(2, noticed=False)

    def be_slow(seen: Seen) -> None:
        if seen.api == "Metadata" and world.time.now_s > 14.8:
            world.time.now_s = 15.5

    world.acts = be_slow
    found = world.topics.known_bounds("t")
    assert found.known == EMPTY[:1]
    assert set(found.missing) == {1}
    assert "connection refused" in found.missing[1]
    assert world.cluster.count("ListOffsets") == 3, "one question to the broker that has answered"


def test_a_partition_whose_leader_moves_is_asked_again() -> None:
    """Beside one that is missing all along: bounds of a leader that is gone are no bounds of the next one."""
    world = World(brokers=3)
    world.cluster.state.add_topic("t", 3)
    world.cluster.state.leaderless.add(("t", 2))
    world.time.later(3.0, lambda: world.cluster.stop_broker(1))
    found = world.topics.known_bounds("t")
    assert (found.known, set(found.missing)) == (EMPTY, {2})
    assert {seen.node for seen in world.cluster.seen if seen.api == "ListOffsets"} == {1, 2, 3}


def test_bounds_of_a_described_topic_come_with_the_metadata() -> None:
    world = World()
    world.topics.describe(["t"], configs=False)
    world.sent.clear()
    assert world.topics.bounds_of(["t"]) == {"t": EMPTY}
    assert len(world.sent) == 1


def test_bounds_of_a_described_topic_are_those_of_its_leader_now() -> None:
    world = World(brokers=2)
    world.topics.describe(["t"], configs=False)
    world.cluster.stop_broker(1)
    assert world.topics.bounds_of(["t"]) == {"t": EMPTY}


@pytest.mark.parametrize("frozen", [1, 2, 3])
def test_a_described_leader_that_freezes_hides_its_own_partition_only(frozen: int) -> None:
    """The first of them is asked together with the metadata, and may use up no more than half of the time."""
    world = World(brokers=3)
    world.cluster.state.add_topic("t", 3)
    world.topics.describe(["t"], configs=False)
    world.cluster.frozen.add(frozen)
    found = world.topics.known_bounds("t")
    assert {each.partition for each in found.known} == {0, 1, 2} - {frozen - 1}
    assert set(found.missing) == {frozen - 1}
    assert world.time.now_s < 16


def test_each_broker_tells_its_own_setting_and_none_that_does_not_is_left_out() -> None:
    world, name = World(brokers=2), "transaction.max.timeout.ms"
    world.topics.cluster_id()
    looks = world.cluster.count("Metadata")
    assert world.topics.broker_settings(name) == {1: "900000", 2: "900000"}
    assert world.cluster.count("Metadata") == looks, "the brokers are known"
    world.cluster.fail_next("DescribeConfigs", codes.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(UnauthorizedError, match="the brokers' transaction"):
        world.topics.broker_settings(name)
    world.cluster.stop_broker(2, noticed=False)
    with pytest.raises(UnreachableError, match="broker-2"):
        world.topics.broker_settings(name)


def test_the_bounds_of_all_partitions_are_of_one_look() -> None:
    """A write is checked by them: what came while another partition had no leader was not seen."""
    world = World(brokers=2)
    world.cluster.state.leaderless.add(("t", 1))
    record = OutRecord("t", b"k", b"v")
    world.time.later(2.0, lambda: world.cluster.state.append(record, 0, (7, 0), transactional=False))
    world.time.later(3.0, world.cluster.state.leaderless.clear)
    assert world.topics.bounds_of(["t"]) == {"t": (Bounds(0, 0, 1, 1), EMPTY[1])}


def test_a_leader_that_never_hears_of_its_topic_ends_at_the_deadline() -> None:
    """It may be a broker that lags; nobody is missing, so that the time of an election is no measure."""
    world = World()
    world.acts = lambda _seen: world.cluster.fail_next("ListOffsets", *[codes.UNKNOWN_TOPIC_OR_PARTITION] * 3)
    with pytest.raises(DeadlineError, match=r"timed out after 60 s while waiting for leaders .*UNKNOWN_TOPIC_OR_PART"):
        world.topics.bounds_of(["t"])


def test_a_leader_that_refuses_the_login_is_no_broker_that_is_down() -> None:
    world = World(brokers=2, password="p")
    world.topics.cluster_id()
    world.cluster.users = {"u": "another"}  # which broker 1 no longer asks for
    with pytest.raises(UnauthorizedError, match="refused SASL PLAIN"):
        world.topics.known_bounds("t")


def test_an_error_that_a_broker_answers_is_no_broker_that_is_down() -> None:
    """An audit takes a topic for unseen whose brokers are down, and goes on without it."""
    world = World()
    world.cluster.fail_next("ListOffsets", codes.UNKNOWN_SERVER_ERROR)
    with pytest.raises(BrokerError, match="reading the offsets of topic t, partition 0 failed: UNKNOWN_SERVER_ERROR"):
        world.topics.known_bounds("t")


def test_what_was_read_before_a_compressed_batch_is_not_in_the_rest() -> None:
    """The whole topic was read again by librdkafka: an audit counted its first records twice, as duplicates."""
    world, rows = World(), [Written(0, 0, b"k", b"v"), Written(1, 0, b"k", b"w")]
    world.cluster.state.add_topic("u")
    for _record in range(4):
        world.cluster.state.append(OutRecord("u", b"k", b"v"), 0, (7, 0), transactional=False)
    world.fetched = [batch_of(0, rows), batch_of(2, rows, codec="gzip")]
    meter = world.meter("reading u", 4)
    reading = world.topics.rows([OffsetRange("u", 0, 0, 4)], committed=True, limited=True, progress=meter)
    found = list[Record]()
    with pytest.raises(CompressedError):
        found.extend(chain.from_iterable(reading))
    assert [each.offset for each in found] == [0, 1]
    assert reading.rest() == [OffsetRange("u", 0, 2, 4)]
    meter.tell(lambda: 2, last=True)
    assert [each.done for each in world.events] == [4]


def test_bounds_are_those_of_the_leaders_of_now() -> None:
    """The leader died, or other partitions are wanted than those that were led."""
    world = World(brokers=2)
    world.cluster.state.add_topic("u")
    assert world.topics.bounds_of(["u"]) == {"u": EMPTY[:1]}
    world.cluster.stop_broker(1)
    assert world.topics.bounds_of(["u"]) == {"u": EMPTY[:1]}
    assert world.topics.bounds_of(["t"]) == {"t": EMPTY}
    assert world.topics.bounds_of(["t"], partitions={"t": 1}) == {"t": EMPTY[:1]}
    world.cluster.state.add_topic("u", 2)
    assert world.topics.bounds_of(["u"]) == {"u": EMPTY}


def test_bounds_at_a_leader_that_has_answered_come_with_the_metadata() -> None:
    """Each look at a topic took two round trips; far from the brokers those are what a command waits for."""
    world = World()
    world.topics.bounds_of(["t"])
    before, asked = len(world.sent), len(world.cluster.seen)
    assert world.topics.bounds_of(["t"]) == {"t": EMPTY}
    assert len(world.sent) - before == 1
    assert [each.api for each in world.cluster.seen[asked:]] == ["Metadata", *["ListOffsets"] * 3]


def test_a_leader_that_froze_since_leaves_the_others() -> None:
    world = World(brokers=2)
    assert world.topics.known_bounds("t").known == EMPTY
    world.cluster.frozen.add(1)
    found = world.topics.known_bounds("t")
    assert (found.known, set(found.missing)) == (EMPTY[1:], {0})


def test_a_topic_that_was_created_again_before_it_was_read_is_another_one() -> None:
    world = World()
    world.topics.bounds_of(["t"])
    world.cluster.state.add_topic("t", 2)
    reading = world.topics.rows(
        [OffsetRange("t", 0, 0, 1)], committed=True, limited=True, progress=world.meter("reading t", 1)
    )
    with pytest.raises(BrokerError, match="topic t was deleted and created again"):
        list(reading)
