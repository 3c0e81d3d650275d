"""The collector: sources by themselves, facts with an age, and nothing that grows."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.collect.collector import Collector, pause_s
from eosctl.collect.facts import DoctorFacts, GroupFacts, KafkaFacts, LsoFacts, OffsetFacts, TransactionFacts
from eosctl.collect.looks import SOURCE_NAMES, sources
from eosctl.collect.overview import FactSource, Overview
from eosctl.core.transactions import RawGroup
from eosctl.deadline import Deadline, Event
from eosctl.errors import UnauthorizedError, UnreachableError
from tests.collect.scene import app_of, collector_of, group, source_of
from tests.fakes.clock import PLENTY_S
from tests.fakes.world import World

ROUNDS = 45


def test_the_table_of_sources_is_complete() -> None:
    assert tuple(each.name for each in sources()) == SOURCE_NAMES


def test_each_source_is_collected(tmp_path: Path) -> None:
    collector = collector_of(app_of(group(), tmp_path))
    assert collector.overview().awaited() == list(SOURCE_NAMES)
    for source in collector.sources:
        collector.look(source)
    seen = collector.overview()
    assert {name: each.error for name, each in seen.collected.items()} == dict.fromkeys(SOURCE_NAMES)
    assert seen.awaited() == []
    assert seen.version == len(SOURCE_NAMES)
    kafka, connect, doctor = seen.facts(KafkaFacts), seen.facts(GroupFacts), seen.facts(DoctorFacts)
    assert kafka is not None
    assert kafka.cluster_id == "cluster-1"
    assert connect is not None
    assert [each.mode for each in connect.workers] == ["enabled"]
    assert connect.connectors is not None
    assert [each.name for each in connect.connectors] == ["orders"]
    assert doctor is not None
    assert [each.code for each in doctor.findings] == ["acls_not_checked"]
    assert None not in (seen.facts(LsoFacts), seen.facts(OffsetFacts), seen.facts(TransactionFacts))


def test_a_source_that_hangs_holds_up_no_other() -> None:
    """Its own error says so, once it is later than it may be."""
    world, hang, looked = World(), threading.Event(), threading.Semaphore(0)

    def hanging(_app: App, _overview: Overview) -> object:
        hang.wait(PLENTY_S)
        return KafkaFacts("late")

    def quick(_app: App, _overview: Overview) -> object:
        looked.release()
        return TransactionFacts(())

    both = [FactSource("stuck", hanging, deadline_s=1.0), FactSource("quick", quick)]
    with Collector(world.app(), both, interval_s=0.01) as collector:
        assert all(looked.acquire(timeout=PLENTY_S) for _ in range(3))
        assert collector.overview().error("stuck") is None
        world.time.pass_until(world.time.now_s + 10)
        seen = collector.overview()
        assert (seen.error("stuck"), seen.error("quick")) == ("timed_out", None)
        assert seen.facts(KafkaFacts) is None
        hang.set()


def test_what_is_last_waits_for_the_first_looks_of_the_others() -> None:
    """doctor takes the most memory, and the first read of an offsets topic, too."""
    go_on, order = threading.Event(), list[str]()

    def first(_app: App, _overview: Overview) -> object:
        go_on.wait(PLENTY_S)
        order.append("first")
        return KafkaFacts("c")

    both = [FactSource("last", lambda _app, _overview: order.append("last"), last=True), FactSource("first", first)]
    with Collector(World().app(), both, interval_s=PLENTY_S) as collector:
        assert order == []
        go_on.set()
        while collector.overview().version < 2:
            collector.wait(collector.overview().version, PLENTY_S)
    assert order == ["first", "last"]


@pytest.mark.parametrize(
    ("interval_s", "took_s", "rests_s"), [(30, 1, 29), (30, 28, 28), (30, 45, 30), (30, 600, 30), (1, 0, 1)]
)
def test_a_slow_cluster_is_not_asked_without_a_pause(interval_s: float, took_s: float, rests_s: float) -> None:
    assert pause_s(interval_s, took_s) == rests_s


def test_what_failed_is_tried_again_soon() -> None:
    """However rarely its source is looked at: doctor's findings must not be missing for ten minutes by one failure."""
    looks = threading.Semaphore(0)

    def failing(_app: App, _overview: Overview) -> object:
        looks.release()
        raise UnreachableError("no broker answers")

    source = FactSource("rare", failing, every=1_000_000)
    with Collector(World().app(), [source], interval_s=0.01):
        assert all(looks.acquire(timeout=PLENTY_S) for _ in range(3))


def test_once_what_needs_others_comes_after_them() -> None:
    seen: list[object] = []
    world = World()
    late = FactSource("late", lambda _app, overview: seen.append(overview.facts(KafkaFacts)), after=True)
    first = FactSource("first", lambda _app, _overview: KafkaFacts("c"))
    Collector(world.app(), [late, first]).look_once(Deadline.after(PLENTY_S))
    assert seen == [KafkaFacts("c")]


def test_facts_outlive_a_failure_for_a_while(tmp_path: Path) -> None:
    """Then their series vanish; what failed is said once, and once that it is well again."""
    world = group()
    app = app_of(world, tmp_path)
    collector = collector_of(app, "group")
    source = source_of(collector, "group")
    collector.look(source)
    heal = world.brokers.state.groups.pop("g")
    world.brokers.state.groups["g"] = _raise
    del world.events[:]
    for _ in range(3):
        collector.look(source)
    seen = collector.overview()
    assert seen.facts(GroupFacts) is not None
    assert seen.collected["group"].failures == {"unreachable": 3}
    assert [event.warning for event in world.events] == [True]
    world.time.pass_until(world.time.now_s + 200)
    assert collector.overview().facts(GroupFacts) is None
    world.brokers.state.groups["g"] = heal
    collector.look(source)
    assert collector.overview().facts(GroupFacts) is not None
    assert [event.message for event in world.events][1:] == ["group: collected again"]


def _raise() -> RawGroup:
    raise UnreachableError("no broker answers")


@pytest.mark.parametrize(("error", "code"), [(UnauthorizedError("no"), "not_authorized"), (KeyError("x"), "failed")])
def test_a_failure_is_its_code(error: Exception, code: str) -> None:
    """Also a defect of ours: it must not end the thread of its source."""

    def failing(_app: App, _overview: Overview) -> object:
        raise error

    collector = Collector(World().app(), [FactSource("one", failing)])
    collector.look(collector.sources[0])
    assert collector.overview().error("one") == code


def test_a_look_has_a_deadline_of_its_own() -> None:
    world, seen = World(), list[float]()
    source = FactSource("one", lambda app, _overview: seen.append(app.deadline.remaining_s()), deadline_s=7.0)
    app = world.app(timeout_s=1.0)
    world.time.pass_until(world.time.now_s + 100)
    Collector(app, [source]).look(source)
    assert seen == [7.0]


def test_one_round_waits_no_longer_than_it_may() -> None:
    hang = threading.Event()
    world = World()
    source = FactSource("stuck", lambda _app, _overview: hang.wait(PLENTY_S))
    collector = Collector(world.app(), [source])
    seen = collector.look_once(Deadline.after(0.0, world.clock()))
    assert seen.awaited() == ["stuck"]
    hang.set()


def test_readers_wait_for_a_change_and_no_longer() -> None:
    collector = Collector(World().app(), [source := FactSource("one", lambda _app, _overview: KafkaFacts("c"))])
    assert collector.wait(0, 0.0).version == 0
    threading.Timer(0.05, collector.look, (source,)).start()
    assert collector.wait(0, PLENTY_S).version == 1


def test_many_rounds_leave_nothing_behind(tmp_path: Path) -> None:
    """Of all sources but doctor's, whose looks end with it."""
    world = group()
    collector = collector_of(app_of(world, tmp_path), *(name for name in SOURCE_NAMES if name != "doctor"))
    threads, used = threading.active_count(), []
    tracemalloc.start()
    try:
        for number in range(ROUNDS):
            for source in collector.sources:
                collector.look(source)
            world.time.pass_until(world.time.now_s + 30)
            _forget(world)
            if number in (ROUNDS // 3, ROUNDS - 1):
                gc.collect()
                used.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert collector.overview().collected["group"].looks == ROUNDS
    assert used[1] - used[0] < 30_000, used
    assert threading.active_count() == threads


def _forget(world: World) -> None:
    """What the fakes write down of each call."""
    del world.events[:], world.time.slept[:]
    world.brokers.seen.clear()
    world.connect.opened.clear()


def test_a_source_goes_on_when_nobody_can_be_told(tmp_path: Path) -> None:
    """Its thread ended for good with the reader of stderr, and what it had seen last was served as health."""
    looks, is_down = threading.Semaphore(0), True

    def look(_app: App, _overview: Overview) -> object:
        looks.release()
        if is_down:
            raise UnreachableError("no broker answers")
        return KafkaFacts("c")

    def broken(_event: Event) -> None:
        raise BrokenPipeError("nobody reads stderr")

    app = replace(World().app(tmp_path), on_event=broken)
    with Collector(app, [FactSource("kafka", look)], interval_s=0.01) as collector:
        assert all(looks.acquire(timeout=PLENTY_S) for _ in range(3))
        is_down = False
        assert all(looks.acquire(timeout=PLENTY_S) for _ in range(3))
        assert collector.overview().error("kafka") is None


def test_facts_that_nobody_renews_are_a_failure(tmp_path: Path) -> None:
    """The last look succeeded, and no other came: that was success for ever."""
    world = World()
    collector = Collector(world.app(tmp_path), [source := FactSource("kafka", lambda _app, _overview: KafkaFacts("c"))])
    collector.look(source)
    assert collector.overview().error("kafka") is None
    world.time.pass_until(world.time.now_s + 200)
    assert collector.overview().error("kafka") == "stale"
    collector.look(source)
    assert collector.overview().error("kafka") is None


def test_it_is_ready_after_the_first_looks_and_after_an_interval_at_the_latest(tmp_path: Path) -> None:
    """It waited for doctor, and for each source that hangs, though everything else was served."""
    world = World()
    rare = FactSource("rare", lambda _app, _overview: KafkaFacts("c"), every=4)
    late = FactSource("late", lambda _app, _overview: KafkaFacts("c"), last=True)
    for looked_at, passed_s, ready in (((), 0, False), ((rare,), 0, True), ((late,), 29, False), ((), 30, True)):
        collector = Collector(world.app(tmp_path), [rare, late], interval_s=30.0)
        for source in looked_at:
            collector.look(source)
        world.time.pass_until(world.time.now_s + passed_s)
        assert collector.overview().is_ready() == ready, (looked_at, passed_s)
