"""What can't be judged proves nothing and accuses nobody: windows, holes, lost partitions, clocks that differ."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.audit.log.segments import PartitionFold
from eosctl.core.configs.records import OFFSETS_TOPIC
from eosctl.core.records import Unseen, UnseenReason
from tests.audit.happenings import a_disabled_worker, codes, connector, honest
from tests.audit.log_scene import KEY, MIRRORED, OUT, OWN, SOURCE, LogScene, mirror, mirror_scene, run_on
from tests.audit.test_segments import Told, marker
from tests.conftest import Invoke, Outcome
from tests.fakes.config_topic import config_records
from tests.fakes.partitions import FakePartition
from tests.fakes.world import CONFIGS, OFFSETS

START = "2023-11-14T22:13:20Z"
HOUR_MS = 3_600_000


def verdict(done: Outcome) -> Any:
    return connector(done)["verdict"]


def shift(log: FakePartition, by_ms: int, *, first: int = 0, stop: int = 1 << 30, records_only: bool = False) -> None:
    """Gives batches another time."""
    for number, each in enumerate(log.batches):
        if first <= number < stop and not (records_only and each.is_control):
            log.batches[number] = each._replace(
                first_timestamp_ms=each.first_timestamp_ms + by_ms, max_timestamp_ms=each.max_timestamp_ms + by_ms
            )


def test_the_first_transactions_of_a_window_prove_nothing_without_offsets(invoke: Invoke) -> None:
    scene = LogScene()
    task = scene.task()
    for number in range(6):
        task.write(OUT, b"k", b"v", partition=number % 2)
        task.end()
    shift(scene.state.log(OUT, 0), -2 * HOUR_MS, stop=4)
    shift(scene.state.log(OUT, 1), -2 * HOUR_MS, stop=4)
    done = run_on(scene, invoke)("-o", "json", "--since", START)
    assert (verdict(done), codes(done)) == ("unproven", set())
    assert "2 transactions without offsets may have begun before what was read" in connector(done)["why"]


def test_what_another_connector_did_at_the_edge_is_not_ours(invoke: Invoke) -> None:
    scene = LogScene()
    scene.connect.add("d", {"topic": OUT})
    other, task = scene.task(0, "d"), scene.task()
    for _ in range(3):
        other.commit(key=b'["d",{}]')
        task.commit()
    done = run_on(scene, invoke)("-o", "json", "--since", "2")
    assert verdict(done) == "exactly_once"


def test_a_hole_at_the_very_beginning_is_one() -> None:
    """The start of a compacted log stays 0, and so nothing seemed to be missing before its first batch."""
    fold = PartitionFold(Told(), next_offset=0)
    fold.take(marker(5, first_timestamp_ms=1000))
    assert (fold.removed, fold.lost_until_ms) == (5, 1000)


def test_the_markers_behind_a_hole_are_of_what_was_in_it() -> None:
    """Of each producer the first one; those that come more than the longest transaction later are not."""
    fold = PartitionFold(Told(), next_offset=0)
    for each in (
        marker(5, first_timestamp_ms=1000),
        marker(6, first_timestamp_ms=5000),
        marker(7, first_timestamp_ms=9000, producer_id=8),
        marker(8, first_timestamp_ms=9_000_000, producer_id=9),
    ):
        fold.take(each)
    assert fold.lost_until_ms == 9000


@pytest.mark.parametrize("bumps", [True, False])
@pytest.mark.parametrize("left", [1, 2])
def test_offsets_that_compaction_took_from_the_beginning_accuse_nobody(invoke: Invoke, bumps: bool, left: int) -> None:
    """Ten honest transactions, nine of whose offsets are gone, were nine transactions without offsets."""
    scene = LogScene(bumps=bumps)
    task = scene.task()
    for _ in range(10):
        task.commit()
    log = scene.state.log(OFFSETS, 0)
    keep = log.batches[-2 * left].base_offset
    log.batches = [each for each in log.batches if each.base_offset >= keep]
    log.records = [each for each in log.records if each.offset >= keep]
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), verdict(done)) == (set(), "unproven")


def test_the_marker_of_what_was_compacted_may_be_a_moment_older(invoke: Invoke) -> None:
    """Its marker in the output topic, a millisecond later, was behind the hole: the transaction was accused."""
    scene = LogScene()
    task = scene.task()
    for _ in range(10):
        task.commit()
    log = scene.state.log(OFFSETS, 0)
    log.batches = [each for each in log.batches if each.is_control or each.base_offset >= 18]
    log.records = [each for each in log.records if each.offset >= 18]
    shift(scene.state.log(OUT, 0), 1001)
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), verdict(done)) == (set(), "unproven")


def test_a_hole_where_the_window_of_the_offsets_begins_is_seen(invoke: Invoke) -> None:
    """A time leads to what compaction left behind it, so that nothing seemed to be missing."""
    scene = LogScene()
    task = scene.task()
    for _ in range(10):
        task.commit()
    log = scene.state.log(OFFSETS, 0)
    log.batches = [each for each in log.batches if not 4 <= each.base_offset < 18]
    log.records = [each for each in log.records if not 4 <= each.offset < 18]
    shift(log, -2 * HOUR_MS, stop=4)
    shift(scene.state.log(OUT, 0), -2 * HOUR_MS, stop=4)
    done = run_on(scene, invoke)("-o", "json", "--since", START)
    assert (codes(done), verdict(done)) == (set(), "unproven")


def test_records_of_the_future_do_not_move_the_window(invoke: Invoke) -> None:
    """Event times two hours ahead led to transactions of before the window, whose offsets were not read: exit 3."""
    scene = LogScene()
    task = scene.task()
    for _ in range(6):
        task.commit()
    for topic in (OUT, OFFSETS):
        shift(scene.state.log(topic, 0), -2 * HOUR_MS, stop=6)
    shift(scene.state.log(OUT, 0), 2 * HOUR_MS + 60_000, records_only=True)
    done = run_on(scene, invoke)("-o", "json", "--since", START)
    assert (codes(done), verdict(done)) == (set(), "exactly_once")


@pytest.mark.parametrize("topic", [OUT, OFFSETS])
def test_a_partition_that_gets_lost_accuses_nobody(invoke: Invoke, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What had not been read of it was missing: markers of transactions, and offsets."""
    scene = LogScene()
    task = scene.task()
    task.commit()
    for _ in range(3):
        task.write(OUT, b"k", b"v", partition=1)
        task.commit()
    lose(scene, topic, 0, at=3, monkeypatch=monkeypatch)
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), verdict(done), done.exit_code) == (set(), "unproven", 7)


def lose(scene: LogScene, topic: str, partition: int, *, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From offset `at` on, a scan does not see the partition, though the log has it."""
    scan = scene.batches.scan

    def losing(plan: Any, *, check_crc: bool = False) -> Any:
        made = scan(plan, check_crc=check_crc)
        for number, span in enumerate(made._plan.spans):
            if (span.topic, span.partition) == (topic, partition):
                spans = list(made._plan.spans)
                spans[number] = replace(span, stop=at)
                made._plan = type(plan)(tuple(spans), made._plan.unseen)
                made._lost.append(Unseen(topic, partition, UnseenReason.UNREADABLE, at, detail="its leader is gone"))
        return made

    monkeypatch.setattr(scene.batches, "scan", losing)


def test_a_marker_that_retention_took_accuses_nobody(invoke: Invoke) -> None:
    """Retention went on while the log was read: records of a transaction, and much later ones of another."""
    scene = LogScene()
    task = scene.task()
    for _ in range(4):
        task.commit()
    log = scene.state.log(OUT, 0)
    log.batches = [log.batches[0], *log.batches[4:]]
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), verdict(done)) == (set(), "unproven")
    assert "1 transaction may have ended where nothing could be read" in connector(done)["why"]


def test_an_offsets_partition_without_a_leader_leaves_it_unproven(invoke: Invoke) -> None:
    """The audit ended with exit code 4, and all that it had read was lost."""
    scene = LogScene()
    honest(scene)
    scene.state.leaderless.add((OFFSETS, 0))
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), verdict(done), done.exit_code) == (set(), "unproven", 7)


@pytest.mark.parametrize("old_ms", [0, HOUR_MS])
def test_a_marker_that_comes_while_the_offsets_are_read_is_not_missing(invoke: Invoke, old_ms: int) -> None:
    """Records with times of long ago made the transaction look as if its marker were long overdue."""
    scene = LogScene()
    task = scene.task()
    task.commit()
    task.write(OUT, b"k", b"v")
    task.write(OFFSETS, KEY, b'{"n":2}')
    shift(scene.state.log(OUT, 0), -old_ms, records_only=True)
    out = scene.state.log(OUT, 0)
    end_later(scene, task)
    done = run_on(scene, invoke)("-o", "json")
    assert out.batches[-1].is_control
    assert codes(done) == {"transaction_open"}


def end_later(scene: LogScene, task: Any) -> None:
    """The transaction is committed once the ends of the output topics were looked up."""
    plan = scene.batches.plan
    made: list[object] = []

    def planning(topics: Any, window: Any) -> Any:
        found = plan(topics, window)
        if not made:
            made.append(found)
            scene.end(task, commit=True)
        return found

    scene.batches.plan = planning  # type: ignore[method-assign]


def switched(scene: LogScene) -> None:
    """The connector had a topic of its own, then its config was changed so that the global one is in use."""
    scene.topics.add_topic(CONFIGS, 1)
    scene.topics.add_topic(OWN, 1, {"cleanup.policy": "delete"})
    for more in ({OFFSETS_TOPIC: OWN}, {}):
        (record,) = config_records(("connector-c", {"properties": {"topic": OUT, **more}}))
        scene.topics.put(CONFIGS, record.key or b"", record.value, partition=0)
    scene.offsets_topic = OWN
    scene.task().commit()
    scene.offsets_topic = OFFSETS
    scene.task().commit()


def test_the_topic_that_had_the_offsets_before_a_switch_is_read(invoke: Invoke) -> None:
    """Unless --offsets-topic named it, every transaction of before was one without offsets."""
    scene = LogScene()
    switched(scene)
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), verdict(done)) == ({"offsets_elsewhere"}, "exactly_once")
    assert connector(done)["offsets_topics"] == [OFFSETS, OWN]


def test_a_topic_of_former_offsets_that_is_gone_leaves_it_unproven(invoke: Invoke) -> None:
    scene = LogScene()
    switched(scene)
    del scene.topics.topics[OWN]
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), verdict(done)) == (set(), "unproven")
    assert "1 transaction without offsets are from a time of which" in connector(done)["why"]
    task = scene.task()
    for _ in range(9):
        task.commit()
    task.commit(key=b"")
    assert codes(run_on(scene, invoke)("-o", "json")) == {"transaction_without_offsets"}, "much later than the switch"


def test_a_window_of_offsets_is_one_of_time_for_the_offsets_topic(invoke: Invoke) -> None:
    """What a disabled worker wrote before the window counted against what came after an upgrade."""
    scene = LogScene()
    a_disabled_worker(scene)
    task = scene.task()
    for _ in range(4):
        task.commit()
    done = run_on(scene, invoke)("-o", "json", "--since", "1")
    assert (codes(done), verdict(done)) == (set(), "exactly_once")


@pytest.mark.parametrize("bumps", [True, False])
def test_a_mirror_whose_offsets_were_compacted_lacks_no_records(invoke: Invoke, bumps: bool) -> None:
    """The newest offset was left; the records before it were counted in the source, and not in the target."""
    scene = mirror_scene(bumps=bumps)
    for _ in range(30):
        scene.plain(SOURCE, b"k", b"v")
    task = scene.task(0, "m")
    for number in range(3):
        mirror(task, 10 * number + 9, 10)
    scene.state.log(OFFSETS, 0).compact()
    done = run_on(scene, invoke)("-o", "json", "--connector", "m")
    assert codes(done) == set()
    assert verdict(done) == "unproven", "what has no offsets any more is not proven to have had some"
    assert ("can't be compared" in connector(done)["why"]) is not bumps


def test_a_compacted_target_is_not_compared(invoke: Invoke) -> None:
    scene = mirror_scene()
    for _ in range(20):
        scene.plain(SOURCE, b"k", b"v")
    task = scene.task(0, "m")
    mirror(task, 9, 10)
    mirror(task, 19, 10)
    scene.state.log(MIRRORED, 0).compact()
    done = run_on(scene, invoke)("-o", "json", "--connector", "m")
    assert (codes(done), verdict(done)) == (set(), "unproven")
