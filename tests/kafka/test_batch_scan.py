"""Scans of logs whose brokers, leaders and beginnings change meanwhile: every batch once, and what is gone is said."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from eosctl.core.clients.settings import ClientSettings, Secret
from eosctl.core.ids import ProducerId
from eosctl.core.records import Batch, OutRecord, Unseen, UnseenReason
from eosctl.deadline import Clock, Deadline
from eosctl.errors import BrokerError, DeadlineError, ProtocolError, UnauthorizedError
from eosctl.kafka.batches.log import NativeBatchLog
from eosctl.kafka.batches.source import PARTITION_BYTES
from eosctl.wire import error_codes as codes
from eosctl.wire.log.fetch_messages import FETCH
from tests.fakes.broker import FakeCluster, Seen
from tests.fakes.clock import PLENTY_S
from tests.kafka.batch_scene import EVERYTHING, ONE_PARTITIONS_SHARE, SMALL, TIMEOUT_S, Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()


def places(found: list[Batch]) -> list[tuple[str, int, int]]:
    return sorted((each.topic, each.partition, each.base_offset) for each in found)


ALL = sorted((topic, partition_, offset) for topic, partition_ in (("t", 0), ("t", 1), ("u", 0)) for offset in range(5))


@pytest.mark.parametrize(
    "code",
    [
        codes.NOT_LEADER_OR_FOLLOWER,
        codes.FENCED_LEADER_EPOCH,
        codes.UNKNOWN_LEADER_EPOCH,
        codes.UNKNOWN_TOPIC_ID,
        codes.INCONSISTENT_TOPIC_ID,
        codes.UNKNOWN_TOPIC_OR_PARTITION,
        codes.OFFSET_NOT_AVAILABLE,
        codes.KAFKA_STORAGE_ERROR,
    ],
)
def test_partitions_that_move_are_found_again(scene: Scene, code: int) -> None:
    plan = scene.plan()
    scene.cluster.fail_next("Fetch", code, code, code)
    scan = scene.log.scan(plan)
    assert places(list(scan)) == ALL
    assert scan.unseen() == ()
    assert set(scan.positions().values()) == {5}


def test_an_answer_that_is_lost_is_asked_for_again(scene: Scene) -> None:
    plan = scene.plan()
    scene.cluster.lose_answers("Fetch", 2)
    assert places(list(scene.log.scan(plan))) == ALL


def test_the_partitions_of_a_broker_that_dies_are_read_from_its_successor(scene: Scene) -> None:
    plan = scene.plan()
    scene.cluster.stop_broker(2)
    assert places(list(scene.log.scan(plan))) == ALL


def test_what_nobody_leads_is_unseen_and_the_rest_is_read(scene: Scene) -> None:
    plan = scene.plan()
    scene.state.leaderless.add(("t", 1))
    scan = scene.log.scan(plan)
    assert places(list(scan)) == [each for each in ALL if each[:2] != ("t", 1)]
    (lost,) = scan.unseen()
    assert lost[:6] == ("t", 1, UnseenReason.UNREADABLE, 0, 4, 5)
    assert "LEADER_NOT_AVAILABLE" in lost.detail
    assert scene.time.now_s - 1_700_000_000.0 >= TIMEOUT_S, "the timeout is for that"


def test_a_partition_without_a_leader_is_no_error_of_the_plan(scene: Scene) -> None:
    scene.state.leaderless.add(("t", 1))
    plan = scene.plan("t")
    assert [span.partition for span in plan.spans] == [0]
    assert [each[:3] for each in plan.unseen] == [("t", 1, UnseenReason.UNREADABLE)]


def test_where_nothing_can_be_read_the_time_is_over(scene: Scene) -> None:
    plan = scene.plan("t")
    scene.state.leaderless |= {("t", 0), ("t", 1)}
    with pytest.raises(DeadlineError, match=r"reading t-0: LEADER_NOT_AVAILABLE"):
        list(scene.log.scan(plan))


def test_retention_that_moves_on_is_said(scene: Scene) -> None:
    plan = scene.plan("t")
    scene.state.log("t", 0).delete_before(3)
    scan = scene.log.scan(plan)
    assert places(list(scan)) == [each for each in ALL if each[0] == "t" and each[1:] not in ((0, 0), (0, 1), (0, 2))]
    assert scan.unseen() == (Unseen("t", 0, UnseenReason.REMOVED, 0, 2, 3),)


def test_retention_that_takes_all_of_it_is_said(scene: Scene) -> None:
    plan = scene.plan("u")
    log = scene.state.log("u", 0)
    log.end = 9
    log.delete_before(9)
    scan = scene.log.scan(plan)
    assert list(scan) == []
    assert scan.unseen() == (Unseen("u", 0, UnseenReason.REMOVED, 0, 4, 5),)


def test_a_log_that_an_election_cut_off_is_said(scene: Scene) -> None:
    """An unclean leader lacks what was acknowledged by others."""
    plan = scene.plan("t")
    log = scene.state.log("t", 0)

    def cut() -> None:
        log.end, log.batches[:] = 2, log.batches[:2]

    scan = scene.log.scan(plan)
    cut()
    scene.cluster.fail_next("Fetch", codes.OFFSET_OUT_OF_RANGE)
    found = places(list(scan))
    assert found == [("t", 0, 0), ("t", 0, 1), *((topic, p, o) for topic, p, o in ALL if (topic, p) == ("t", 1))]
    (lost,) = scan.unseen()
    assert lost[:3] == ("t", 0, UnseenReason.UNREADABLE)


def test_holes_between_batches_are_compaction(scene: Scene) -> None:
    log = scene.state.log("u", 0)
    log.batches[1:3] = []
    scan = scene.log.scan(scene.plan("u"))
    assert places(list(scan)) == [("u", 0, 0), ("u", 0, 3), ("u", 0, 4)]
    assert scan.unseen() == (Unseen("u", 0, UnseenReason.COMPACTED, 1, 2, 2),)


def test_a_broker_that_gives_nothing_more_is_not_taken_for_compaction(scene: Scene) -> None:
    """Remote storage that is slow looks the same: what may be there is not proven."""
    log = scene.state.log("u", 0)
    log.batches[3:] = []
    scan = scene.log.scan(scene.plan("u"))
    assert places(list(scan)) == [("u", 0, 0), ("u", 0, 1), ("u", 0, 2)]
    (lost,) = scan.unseen()
    assert lost == Unseen("u", 0, UnseenReason.UNREADABLE, 3, 4, 2, "the broker gives no batches from there on")
    assert scan.positions() == {("u", 0): 5}


def test_records_that_compaction_took_out_of_a_batch_are_counted(scene: Scene) -> None:
    log = scene.state.log("u", 0)
    log.batches[1] = log.batches[1]._replace(last_offset=3)
    log.batches[2:4] = []
    scan = scene.log.scan(scene.plan("u"))
    assert places(list(scan)) == [("u", 0, 0), ("u", 0, 1), ("u", 0, 4)]
    assert scan.unseen() == (Unseen("u", 0, UnseenReason.COMPACTED, 1, 3, 2),)


@pytest.mark.parametrize("last_offset", [4, 10, 2**31 + 1])
def test_a_rotten_header_is_not_taken_for_compaction(scene: Scene, last_offset: int) -> None:
    """All behind it was passed over as if the log cleaner had taken it, and nothing was said against the verdict."""
    log = scene.state.log("u", 0)
    log.batches[2] = log.batches[2]._replace(last_offset=last_offset)
    scan = scene.log.scan(scene.plan("u"))
    assert places(list(scan)) == [("u", 0, 0), ("u", 0, 1)]
    (lost,) = scan.unseen()
    assert lost[2:6] == (UnseenReason.UNREADABLE, 2, 4, 3)
    assert lost.detail == f"a batch there says that its offsets are 2 to {last_offset}"


@pytest.mark.parametrize("base_offset", [5, 2**62])
def test_a_header_far_behind_the_stop_does_not_end_the_log(scene: Scene, base_offset: int) -> None:
    log = scene.state.log("u", 0)
    log.batches[2] = log.batches[2]._replace(base_offset=base_offset, last_offset=base_offset)
    scan = scene.log.scan(scene.plan("u"))
    assert places(list(scan)) == [("u", 0, 0), ("u", 0, 1)]
    assert [each[2:6] for each in scan.unseen()] == [(UnseenReason.UNREADABLE, 2, 4, 3)]


def test_batches_that_were_read_already_do_not_go_on_for_ever(scene: Scene) -> None:
    """A broker that gave the same answer again and again was asked again and again."""
    plan = scene.plan("u")
    plan = replace(plan, spans=tuple(replace(span, first=2) for span in plan.spans))
    asked = 0

    def tamper(seen: Seen, frame: bytes) -> bytes:
        nonlocal asked
        asked += seen.api == "Fetch"
        assert asked < 20, "it never ends"
        for offset in (2, 3, 4):
            frame = frame.replace(struct.pack(">qi", offset, SMALL - 12), struct.pack(">qi", 0, SMALL - 12))
        return frame

    scene.cluster.tamper = tamper
    scan = scene.log.scan(plan)
    assert list(scan) == []
    assert [each[2:6] for each in scan.unseen()] == [(UnseenReason.UNREADABLE, 2, 4, 3)]


def test_a_broker_that_slows_down_is_given_its_time(scene: Scene) -> None:
    plan = scene.plan("u")
    scene.cluster.throttle_ms = 45_000
    before_s = scene.time.now_s
    assert len(list(scene.log.scan(plan))) == 5
    assert scene.time.now_s - before_s >= 45, "and longer than the timeout"


def test_a_broker_that_slows_down_keeps_nobody_waiting(scene: Scene) -> None:
    """What other brokers had answered already was given out when the slow one's time was over."""
    plan = scene.plan("t")
    scene.cluster.throttle_ms = 20_000
    before_s = scene.time.now_s
    scan = iter(scene.log.scan(plan))
    first = [next(scan) for _ in range(5)]
    assert (len({each.partition for each in first}), scene.time.now_s - before_s) == (1, 0)
    assert len(list(scan)) == 5
    assert scene.time.now_s - before_s >= 20


def test_the_timeout_begins_anew_with_all_that_is_read(scene: Scene) -> None:
    """An audit of a whole day was over after a minute."""
    log = scene.state.log("u", 0)
    log.batches[:] = [large(offset, PARTITION_BYTES // 2 + 1000) for offset in range(5)]
    plan = scene.plan("u")

    def tamper(seen: Seen, frame: bytes) -> bytes:
        scene.time.now_s += 20.0 * (seen.api == "Fetch")
        return frame

    scene.cluster.tamper = tamper
    before_s = scene.time.now_s
    assert len(list(scene.log.scan(plan))) == 5
    assert scene.time.now_s - before_s > 2 * TIMEOUT_S


def test_a_leader_that_moves_after_the_first_timeout_is_found(scene: Scene) -> None:
    """The plan's questions had tied the thread to the first deadline, so that nobody could be asked any more."""
    log = scene.state.log("u", 0)
    log.batches[:] = [large(offset, PARTITION_BYTES // 2 + 1000) for offset in range(5)]
    plan = scene.plan("u")

    def pass_time() -> None:
        scene.time.now_s += 20.0
        scene.cluster.fail_next("Fetch", codes.NOT_LEADER_OR_FOLLOWER)
        scene.on_fetch(2, pass_time)

    scene.on_fetch(1, pass_time)
    before_s = scene.time.now_s
    assert len(list(scene.log.scan(plan))) == 5
    assert scene.time.now_s - before_s > 2 * TIMEOUT_S


def large(offset: int, size_bytes: int) -> Batch:
    return Batch("", -1, offset, offset, ProducerId(7), 0, offset, False, False, 1, 1, 1, size_bytes)


def test_batches_that_are_larger_than_what_is_asked_for_come_all_the_same(scene: Scene) -> None:
    """Brokers give one such batch to the first partition of a request, and cut off those of the others."""
    for partition_ in (0, 1):
        scene.state.log("t", partition_).batches[:] = [large(offset, PARTITION_BYTES + 100_000) for offset in range(5)]
    scene.cluster.state.nodes = [1]
    scan = scene.log.scan(scene.plan("t"))
    assert places(list(scan)) == [each for each in ALL if each[0] == "t"]
    assert scan.unseen() == ()


def test_a_topic_that_is_created_again_is_not_read_on(scene: Scene) -> None:
    plan = scene.plan("u")
    scene.cluster.fail_next("Fetch", codes.UNKNOWN_TOPIC_ID)

    def renew() -> None:
        scene.state.topics["u"].topic_id = "another"

    scene.on_fetch(1, renew)
    with pytest.raises(BrokerError, match="topic u was deleted and created again while it was read"):
        list(scene.log.scan(plan))


def test_without_read_on_a_topic_the_grant_is_named(scene: Scene) -> None:
    plan = scene.plan("u")
    scene.cluster.deny_read.add("u")
    with pytest.raises(UnauthorizedError, match="not allowed to read topic u") as caught:
        list(scene.log.scan(plan))
    assert "--operation Read --topic u" in (caught.value.hint or "")


def test_a_partition_that_its_broker_can_not_read_is_unseen(scene: Scene) -> None:
    """A corrupt segment: UNKNOWN_SERVER_ERROR, or CORRUPT_MESSAGE."""
    plan = scene.plan("t")
    scene.cluster.fail_next("Fetch", 2)
    scan = scene.log.scan(plan)
    assert len(list(scan)) == 5
    (lost,) = scan.unseen()
    assert lost[2:] == (UnseenReason.UNREADABLE, 0, 4, 5, "CORRUPT_MESSAGE")


def test_what_is_no_batch_ends_the_scan(scene: Scene) -> None:
    scene.cluster.tamper = lambda seen, frame: frame.replace(b"\2", b"\5") if seen.api == "Fetch" else frame
    with pytest.raises(ProtocolError):
        list(scene.log.scan(scene.plan("u")))


def test_a_checksum_that_is_wrong_is_said_where_it_was_asked_for(scene: Scene) -> None:
    """The bytes of one record, turned on the way."""
    log = scene.state.log("u", 0)
    log.batches[2] = log.batches[2]._replace(max_timestamp_ms=0x1122334455667788)
    scene.cluster.tamper = lambda _seen, frame: frame.replace(bytes.fromhex("1122334455667788"), b"\0" * 8)
    plan = scene.plan("u")
    assert [each.crc_ok for each in scene.log.scan(plan, check_crc=True)] == [True, True, False, True, True]
    assert {each.crc_ok for each in scene.log.scan(plan)} == {None}


@pytest.mark.parametrize("newest", [4, 6, 7, 9, 11, 12, 13, 15, 18])
def test_every_version_reads_the_same(newest: int) -> None:
    scene = Scene(Fetch=(4, newest))
    scan = scene.log.scan(scene.plan())
    assert places(list(scan)) == ALL
    assert {seen.version for seen in scene.cluster.seen if seen.api == "Fetch"} == {newest}


def test_topics_without_ids_are_named() -> None:
    """Of a cluster whose metadata is older than its brokers: Kafka 2.8 gave topics their ids."""
    scene = Scene(Metadata=(4, 9))
    assert places(list(scene.log.scan(scene.plan()))) == ALL
    assert {seen.version for seen in scene.cluster.seen if seen.api == "Fetch"} == {12}
    assert FETCH.newest > 12


def test_a_scan_that_was_left_disturbs_no_other(scene: Scene) -> None:
    """The answer that was under way must not be taken for that of the next request."""
    plan = scene.plan("t")
    scan: Iterator[Batch] = iter(scene.log.scan(plan))
    next(scan)
    scan.close()  # type: ignore[attr-defined]
    assert places(list(scene.log.scan(scene.plan("t")))) == [each for each in ALL if each[0] == "t"]


def test_a_login_that_ends_is_made_again_while_it_is_read() -> None:
    """connections.max.reauth.ms: an hour for most, and an audit of a month takes longer."""
    passed_s = 0.0

    def tamper(seen: Seen, frame: bytes) -> bytes:
        nonlocal passed_s
        passed_s += 20.0 * (seen.api == "Fetch")
        return frame

    with FakeCluster(users={"user": "word"}) as cluster:
        cluster.session_lifetime_ms, cluster.now_s, cluster.tamper = 30_000, lambda: passed_s, tamper
        cluster.state.add_topic("u", 1)
        for _ in range(5):
            cluster.state.append(OutRecord("u", b"k", b"v"), 0, (7, 0), transactional=False)
        cluster.state.log("u", 0).batches[:] = [large(offset, PARTITION_BYTES + 1000) for offset in range(5)]
        settings = ClientSettings(
            cluster.bootstrap_servers, "SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_username="user",
            sasl_password=Secret("word"), extra=ONE_PARTITIONS_SHARE,
        )  # fmt: skip
        clock = replace(Clock(), now_s=lambda: passed_s)
        with NativeBatchLog(settings, deadline=Deadline.after(PLENTY_S, clock)) as log:
            assert [each.base_offset for each in log.scan(log.plan(["u"], EVERYTHING))] == list(range(5))
    assert passed_s >= 100
    assert cluster.cut_off == 0
