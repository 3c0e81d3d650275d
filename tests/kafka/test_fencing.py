"""Fencing on the fake cluster: what goes wrong between the first request and the last answer."""

from __future__ import annotations

import gc
import itertools
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId, task_transactional_ids
from eosctl.core.transactions import Coordinator, FenceAnswer
from eosctl.deadline import Clock, Deadline, Event
from eosctl.errors import UnreachableError
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from eosctl.kafka.transactions.fencing import CONNECTIONS_PER_COORDINATOR
from eosctl.kafka.transactions.producer_fencing import _initialise, _wait_for_epoch
from eosctl.wire import error_codes as codes
from tests.fakes.broker import FakeCluster, Seen
from tests.fakes.clock import PLENTY_S, FakeTime, given_time
from tests.kafka.connecting import admin_of
from tests.sandbox_fixtures import wait_until

NEVER_MS = 10**9  # for a request's own timeout, where something else is to end the wait
IDS = task_transactional_ids("g", "c", 100)


def fence(admin: NativeTransactionAdmin, ids: Sequence[str] = IDS) -> dict[str, FenceAnswer]:
    answers = list(admin.fence([TransactionalId(each) for each in ids], transaction_timeout_ms=30_000))
    by_id: dict[str, FenceAnswer] = {answer.transactional_id: answer for answer in answers}
    assert len(by_id) == len(answers), "an id was answered twice"
    return by_id


def no_fence_threads() -> bool:
    return not [thread for thread in threading.enumerate() if thread.name.startswith("fence ")]


def freeze_at(cluster: FakeCluster, api: str, count: int = 1) -> None:
    """Every broker stops answering at so many of these requests, for good."""

    once = [True]

    def freeze(seen: Seen, frame: bytes) -> bytes:
        if seen.api == api and cluster.count(api) >= count and once:
            once.clear()  # a request that is looked at late freezes nothing again
            cluster.frozen |= {*cluster.state.nodes}
        return frame

    cluster.tamper = freeze


def test_every_id_is_fenced_once_over_several_brokers() -> None:
    with FakeCluster(brokers=3) as cluster, admin_of(cluster) as admin:
        answers = fence(admin, [*IDS, IDS[0]])
        assert {name: answer.producer_epoch for name, answer in answers.items()} == dict.fromkeys(IDS, 0)
        assert cluster.count("InitProducerId") == len(IDS)
        assert cluster.count("FindCoordinator") == 1
        assert all(answer.confirmed and answer.attempts == 1 for answer in answers.values())
        assert {answer.coordinator.node_id for answer in answers.values() if answer.coordinator} == {1, 2, 3}
    assert no_fence_threads()


def _coordinators(admin: NativeTransactionAdmin, ids: Sequence[TransactionalId]) -> dict[TransactionalId, Coordinator]:
    found = admin.find_coordinators(ids)
    return {name: each for name, each in found.items() if isinstance(each, Coordinator)}


def test_coordinators_that_are_known_are_not_looked_up() -> None:
    """The plan's lookup used to be repeated by what follows it: half of all lookups."""
    with FakeCluster(brokers=3) as cluster, admin_of(cluster) as admin:
        known = _coordinators(admin, IDS[:50])
        cluster.seen.clear()
        answers = list(admin.fence(IDS[:50], transaction_timeout_ms=30_000, coordinators=known))
        assert {answer.transactional_id: answer.coordinator for answer in answers} == known
        assert cluster.count("FindCoordinator") == 0
        assert len(list(admin.fence(IDS, transaction_timeout_ms=30_000, coordinators=known))) == len(IDS)
        assert cluster.count("FindCoordinator") == 1


def test_known_coordinators_that_have_changed_or_died_are_looked_up() -> None:
    with FakeCluster(brokers=3) as cluster, admin_of(cluster) as admin:
        known = _coordinators(admin, IDS)
        moved = next(name for name in IDS if known[name].node_id == 1)
        cluster.state.moved[moved] = 3
        cluster.stop_broker(2)
        answers = list(admin.fence(IDS, transaction_timeout_ms=30_000, coordinators=known))
        at = {answer.transactional_id: answer.coordinator.node_id for answer in answers if answer.coordinator}
        assert all(answer.confirmed and answer.fault is None for answer in answers)
        assert {*at.values()} == {1, 3}
        assert at[moved] == 3


def test_no_broker_at_all_is_one_error_also_where_coordinators_are_known() -> None:
    with FakeCluster() as cluster, admin_of(cluster) as admin:
        known = _coordinators(admin, IDS)
        cluster.stop_broker(1)
        with pytest.raises(UnreachableError):
            list(admin.fence(IDS, transaction_timeout_ms=30_000, coordinators=known))
        wait_until(no_fence_threads, what="the threads to end", timeout_s=PLENTY_S)


def test_no_ids_need_no_broker() -> None:
    with NativeTransactionAdmin(ClientSettings(("127.0.0.1:1",)), deadline=Deadline.after(PLENTY_S)) as admin:
        assert list(admin.fence([], transaction_timeout_ms=30_000)) == []


def test_many_ids_get_many_connections_and_few_get_one() -> None:
    with FakeCluster() as cluster, admin_of(cluster) as admin:
        cluster.latency_s = 0.001
        fence(admin, IDS[:3])
        few = cluster.count("ApiVersions")
        cluster.seen.clear()
        threads: set[str] = set()
        for _ in admin.fence(
            [TransactionalId(f"many-{number}") for number in range(1000)], transaction_timeout_ms=30_000
        ):
            threads |= {thread.name + str(thread.ident) for thread in threading.enumerate() if "fence " in thread.name}
        assert few == 1
        assert len(threads) == CONNECTIONS_PER_COORDINATOR


@pytest.mark.parametrize("state_error", [codes.COORDINATOR_LOAD_IN_PROGRESS, codes.CONCURRENT_TRANSACTIONS])
def test_a_busy_coordinator_is_asked_again_without_a_lookup(state_error: int) -> None:
    with FakeCluster() as cluster, admin_of(cluster) as admin:
        cluster.fail_next("InitProducerId", state_error, state_error)
        answer = fence(admin, ["one"])["one"]
        assert (answer.producer_epoch, answer.attempts, answer.fault) == (0, 3, None)
        assert cluster.count("FindCoordinator") == 1


@pytest.mark.parametrize("moved_error", [codes.NOT_COORDINATOR, codes.COORDINATOR_NOT_AVAILABLE])
def test_a_lost_coordinator_is_looked_up_again(moved_error: int) -> None:
    with FakeCluster() as cluster, admin_of(cluster) as admin:
        cluster.fail_next("InitProducerId", moved_error)
        assert fence(admin, ["one"])["one"].attempts == 2
        assert cluster.count("FindCoordinator") == 2


def test_a_coordinator_that_moves_between_lookup_and_request_is_followed() -> None:
    with FakeCluster(brokers=2) as cluster, admin_of(cluster) as admin:

        def move_after_lookup(seen: Seen, frame: bytes) -> bytes:
            if seen.api == "FindCoordinator" and not cluster.state.moved:
                here = cluster.state.coordinator("one")
                cluster.state.moved["one"] = 2 if here == 1 else 1
            return frame

        cluster.tamper = move_after_lookup
        answer = fence(admin, ["one"])["one"]
        assert (answer.producer_epoch, answer.attempts) == (0, 2)
        assert answer.coordinator is not None
        assert answer.coordinator.node_id == cluster.state.moved["one"]


@pytest.mark.parametrize("lookup_error", [codes.COORDINATOR_NOT_AVAILABLE, codes.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_lookup_that_can_not_be_answered_yet_is_repeated(lookup_error: int) -> None:
    with FakeCluster() as cluster, admin_of(cluster) as admin:
        cluster.fail_next("FindCoordinator", lookup_error, lookup_error)
        assert fence(admin, ["one"])["one"].producer_epoch == 0


def test_denied_ids_do_not_hide_the_others() -> None:
    with FakeCluster(brokers=2) as cluster, admin_of(cluster) as admin:
        cluster.deny_describe = {IDS[3]}
        cluster.deny_write = {IDS[4]}
        answers = fence(admin)
        failed = {
            name: (answer.fault, answer.attempts, answer.confirmed) for name, answer in answers.items() if answer.fault
        }
        assert set(failed) == {IDS[3], IDS[4]}
        assert all(fault.code == codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED for fault, _, _ in failed.values())
        assert [failed[name][1:] for name in (IDS[3], IDS[4])] == [(0, True), (1, True)]


@pytest.mark.parametrize("bad", ["\udcff", "x" * 40_000])
def test_an_id_that_can_not_be_sent_is_its_own_fault(bad: str) -> None:
    """A string over 32,767 bytes makes a broker drop the connection: every id of the batch used to retry for ever."""
    with FakeCluster() as cluster, admin_of(cluster) as admin:
        answers = fence(admin, ["good", bad, ""])
        assert answers["good"].producer_epoch == 0
        assert [answers[name].fault and answers[name].fault.code for name in (bad, "")] == [codes.INVALID_REQUEST] * 2  # type: ignore[union-attr]


def test_one_lookup_per_key_where_brokers_know_no_batches() -> None:
    with FakeCluster(versions={"FindCoordinator": (0, 3)}) as cluster, admin_of(cluster) as admin:
        cluster.deny_describe = {IDS[0]}
        answers = fence(admin, IDS[:10])
        assert cluster.count("FindCoordinator") == 10
        assert [name for name, answer in answers.items() if answer.fault] == [IDS[0]]


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_every_version_of_init_producer_id_fences(version: int) -> None:
    with FakeCluster(versions={"InitProducerId": (0, version)}) as cluster, admin_of(cluster) as admin:
        assert fence(admin, ["one"])["one"].producer_epoch == 0
        assert {seen.version for seen in cluster.seen if seen.api == "InitProducerId"} == {version}


def test_a_connection_that_breaks_is_replaced_and_open_ids_are_sent_again() -> None:
    with FakeCluster() as cluster, admin_of(cluster) as admin:
        cluster.lose_answers("InitProducerId", 5)
        answers = fence(admin)
        assert all(answer.confirmed and answer.producer_epoch is not None for answer in answers.values())
        epochs = sorted(answer.producer_epoch or 0 for answer in answers.values())
        assert epochs == [0] * 95 + [1] * 5, "a lost answer means that the epoch was bumped twice, no more"


@pytest.mark.parametrize("first", [codes.NETWORK_EXCEPTION, codes.CONCURRENT_TRANSACTIONS, codes.NOT_COORDINATOR])
def test_a_refusal_of_what_was_sent_before_does_not_say_that_nothing_was_fenced(first: int) -> None:
    """It was failed. With CONCURRENT_TRANSACTIONS the coordinator has raised the epoch, and ends the transaction."""
    with FakeCluster() as cluster, admin_of(cluster) as admin:
        if first == codes.NETWORK_EXCEPTION:
            cluster.lose_answers("InitProducerId")
        cluster.fail_next("InitProducerId", first, codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        answer = fence(admin, ["one"])["one"]
        assert answer.fault is not None
        assert (answer.fault.name, answer.confirmed) == ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", False)


class _Refused:
    """A producer of librdkafka's whose calls end with these errors."""

    def __init__(self, *errors: KafkaError) -> None:
        self.errors = [*errors]

    def init_transactions(self, _timeout_s: float) -> None:
        raise KafkaException(self.errors.pop(0))


@pytest.mark.parametrize("lost", [True, False])
def test_librdkafkas_refusal_after_a_request_that_timed_out_is_not_the_last_word(lost: bool) -> None:
    refused = KafkaError(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    timed_out = [KafkaError(KafkaError._TIMED_OUT, "no answer", retriable=True)] if lost else []
    producer: Any = _Refused(*timed_out, refused)
    fault, confirmed = _initialise(producer, Deadline.after(PLENTY_S), threading.Event())
    assert (fault and fault.code, confirmed) == (codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, not lost)


def test_an_interrupt_waits_for_no_epoch_of_librdkafkas() -> None:
    """Half a minute, for each id that was under way."""
    stopping = threading.Event()
    polled = list[float]()

    class Silent:
        def poll(self, timeout_s: float) -> None:
            polled.append(timeout_s)
            stopping.set()

    producer: Any = Silent()
    _wait_for_epoch(producer, {}, Deadline.after(PLENTY_S), stopping)
    assert len(polled) == 1


@pytest.mark.parametrize(("left_s", "waited_s"), [(0.0, 2), (10.0, 10), (PLENTY_S, 30)])
def test_an_epoch_of_librdkafkas_is_waited_for_as_long_as_there_is_time(left_s: float, waited_s: float) -> None:
    """Half a minute more, however little time the command was given."""
    polled = list[float]()

    class Silent:
        def poll(self, timeout_s: float) -> None:
            polled.append(timeout_s)

    producer: Any = Silent()
    _wait_for_epoch(producer, {}, Deadline.after(left_s, FakeTime().clock()), threading.Event())
    assert sum(polled) == pytest.approx(waited_s)


def test_a_refusal_of_what_a_coordinator_could_not_take_yet_is_one() -> None:
    with FakeCluster() as cluster, admin_of(cluster) as admin:
        refusals = (codes.COORDINATOR_LOAD_IN_PROGRESS, codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        cluster.fail_next("InitProducerId", *refusals)
        assert fence(admin, ["one"])["one"].confirmed


def test_a_broker_that_dies_in_the_middle_hands_its_ids_to_the_others() -> None:
    with FakeCluster(brokers=3) as cluster, admin_of(cluster) as admin:
        cluster.latency_s = 0.002
        answers = admin.fence([TransactionalId(f"id-{number}") for number in range(600)], transaction_timeout_ms=30_000)
        first = [next(answers) for _ in range(50)]
        cluster.stop_broker(2)
        cluster.latency_s = 0
        rest = list(answers)
        assert len({answer.transactional_id for answer in first + rest}) == 600
        assert all(answer.confirmed and answer.fault is None for answer in rest)
        assert {answer.coordinator.node_id for answer in rest[-50:] if answer.coordinator} <= {1, 3}


def test_the_first_bootstrap_server_may_be_down() -> None:
    with FakeCluster(brokers=2) as cluster:
        settings = ClientSettings(("127.0.0.1:1", *cluster.bootstrap_servers))
        with NativeTransactionAdmin(settings, deadline=Deadline.after(PLENTY_S)) as admin:
            assert fence(admin, ["one"])["one"].producer_epoch == 0


def test_no_broker_at_all_lists_every_failure() -> None:
    settings = ClientSettings(("127.0.0.1:1", "127.0.0.1:2"))
    with NativeTransactionAdmin(settings, deadline=Deadline.after(PLENTY_S)) as admin:
        with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1: connection refused.*127\.0\.0\.1:2") as caught:
            fence(admin, ["one"])
        assert caught.value.hint == "Check --bootstrap-server, and that this host and port can be reached from here."


def test_at_the_deadline_open_ids_are_unconfirmed_with_their_last_fault() -> None:
    late_s, quick_at = 0.0, None

    def make_it_late(_seen: Seen, frame: bytes) -> bytes:
        """Once the quick one is answered, and that for a few attempts of the other one."""
        nonlocal late_s, quick_at
        asked = cluster.count("InitProducerId")
        if quick_at is None and "quick" in cluster.state.transactions:
            quick_at = asked
        if quick_at is not None and asked >= max(6, quick_at + 3):
            late_s = PLENTY_S
        return frame

    clock = Clock(monotonic_s=lambda: time.monotonic() + late_s)
    with FakeCluster() as cluster:
        cluster.state.open_transaction("stuck", ("t", 0))
        cluster.state.late_markers = 1_000_000
        cluster.tamper = make_it_late
        settings = ClientSettings(cluster.bootstrap_servers)
        with NativeTransactionAdmin(settings, deadline=Deadline.after(PLENTY_S, clock)) as admin:
            answers = fence(admin, ["stuck", "quick"])
        assert answers["quick"].confirmed
        assert not answers["stuck"].confirmed
        assert answers["stuck"].fault is not None
        assert answers["stuck"].fault.name == "CONCURRENT_TRANSACTIONS"
        assert answers["stuck"].attempts > 3
        wait_until(no_fence_threads, what="the threads to end", timeout_s=PLENTY_S)


def test_a_broker_that_never_answers_is_left_at_the_deadline() -> None:

    def fence_slowly(timeout_s: float) -> None:
        with FakeCluster() as cluster, admin_of(cluster, timeout_s=timeout_s, request_timeout_ms=NEVER_MS) as admin:
            freeze_at(cluster, "FindCoordinator")
            slow = fence(admin, ["slow"])["slow"]
            assert not slow.confirmed
            assert slow.coordinator is not None
            assert (slow.fault and slow.fault.message) == f"no answer within {timeout_s:g} s"
            wait_until(no_fence_threads, what="the threads to end", timeout_s=PLENTY_S)

    given_time(fence_slowly, first_s=0.5)


def test_an_answer_that_is_missing_at_the_deadline_does_not_hide_what_was_answered_before() -> None:

    def fence_in(timeout_s: float) -> None:
        with FakeCluster() as cluster, admin_of(cluster, timeout_s=timeout_s, request_timeout_ms=NEVER_MS) as admin:
            cluster.state.open_transaction("stuck", ("t", 0))
            cluster.state.late_markers = 1_000_000
            freeze_at(cluster, "InitProducerId", count=3)
            answer = fence(admin, ["stuck"])["stuck"]
        assert answer.attempts > 1
        assert answer.fault is not None
        assert (answer.confirmed, answer.fault.name) == (False, "CONCURRENT_TRANSACTIONS")

    given_time(fence_in, first_s=1)


def test_a_lookup_without_an_answer_at_the_deadline_does_not_hide_it_either() -> None:

    def fence_in(timeout_s: float) -> None:
        with FakeCluster() as cluster, admin_of(cluster, timeout_s=timeout_s, request_timeout_ms=NEVER_MS) as admin:
            freeze_at(cluster, "InitProducerId")
            cluster.fail_next("InitProducerId", codes.NOT_COORDINATOR)
            answer = fence(admin, ["moved"])["moved"]
        assert answer.attempts == 1
        assert answer.fault is not None
        assert (answer.confirmed, answer.fault.name) == (False, "NOT_COORDINATOR")

    given_time(fence_in, first_s=1)


def test_garbage_in_place_of_an_answer_is_a_fault_and_not_a_success() -> None:
    with FakeCluster() as cluster, admin_of(cluster) as admin:
        cluster.tamper = lambda seen, frame: (
            frame[:4] + b"\xff" * 8 + frame[12:] if seen.api == "InitProducerId" else frame
        )
        answer = fence(admin, ["one"])["one"]
        assert not answer.confirmed
        assert answer.fault is not None
        assert "answers request" in answer.fault.message


def test_closing_the_iterator_stops_the_threads_and_keeps_the_admin_usable() -> None:
    with FakeCluster(brokers=2) as cluster, admin_of(cluster, request_timeout_ms=NEVER_MS) as admin:
        freeze_at(cluster, "InitProducerId", 10)
        answers = admin.fence(IDS, transaction_timeout_ms=30_000)
        first = next(answers)
        wait_until(lambda: cluster.frozen, what="the brokers to freeze", timeout_s=PLENTY_S)
        answers.close()  # type: ignore[attr-defined]
        wait_until(no_fence_threads, what="the threads to end", timeout_s=PLENTY_S)
        cluster.frozen.clear()
        assert admin.describe_transactions([first.transactional_id])


def test_ctrl_c_in_the_consumer_leaves_no_thread() -> None:
    with FakeCluster() as cluster, admin_of(cluster) as admin:
        cluster.latency_s = 0.02

        def consume() -> None:
            for number, _ in enumerate(admin.fence(IDS, transaction_timeout_ms=30_000)):
                if number == 3:
                    raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            consume()
        wait_until(no_fence_threads, what="the threads to end", timeout_s=PLENTY_S)


def test_what_is_retried_is_told_once() -> None:
    told: list[Event] = []
    with FakeCluster() as cluster:
        cluster.fail_next("InitProducerId", *[codes.COORDINATOR_LOAD_IN_PROGRESS] * 4)
        settings = ClientSettings(cluster.bootstrap_servers)
        with NativeTransactionAdmin(settings, deadline=Deadline.after(PLENTY_S), on_event=told.append) as admin:
            fence(admin, ["one"])
    assert [event.message for event in told] == [
        "a transaction coordinator is loading, or waits for new producer ids; trying again"
        " (COORDINATOR_LOAD_IN_PROGRESS)"
    ]


def _attempts_alive() -> int:
    gc.collect()
    return sum(type(item).__name__ == "_Attempt" for item in gc.get_objects())


def test_settled_ids_leave_nothing_behind_while_the_run_goes_on() -> None:
    before = _attempts_alive()
    with FakeCluster() as cluster, admin_of(cluster) as admin:
        answers = admin.fence(
            [TransactionalId(f"id-{number}") for number in range(1500)], transaction_timeout_ms=30_000
        )
        assert len(list(itertools.islice(answers, 1500))) == 1500
        assert _attempts_alive() - before < 100, "more than what threads hold in their hands"
        assert list(answers) == []
