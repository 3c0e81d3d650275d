"""Requests to many brokers of which some are gone, frozen or lead nothing: the others' answers come all the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import cast

import pytest

from eosctl.core.ids import TransactionalId
from eosctl.core.transaction_log import TOPIC, coordinator_partition
from eosctl.core.transactions import ActiveProducer, KafkaFault, RawGroup, TransactionListings
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, ExitCode, UnauthorizedError, UnreachableError
from eosctl.fence.gather import FenceRequest
from eosctl.fence.plan import apply_fence, plan_fence
from eosctl.kafka.transactions.admin import _error_of
from eosctl.observation.transactions import find_rival_groups
from eosctl.wire.error_codes import NOT_LEADER_OR_FOLLOWER, SASL_AUTHENTICATION_FAILED, UNKNOWN_SERVER_ERROR
from tests.fakes.admin import FakeTransactionAdmin
from tests.fakes.broker import FakeCluster, Seen
from tests.fakes.clock import PLENTY_S, FakeTime
from tests.fakes.world import World

PARTITIONS = 6
IDS = [TransactionalId(f"id-{number}") for number in range(30)]
LOST = 2  # the broker that is gone, and the partition that has no leader


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    """Three brokers that coordinate thirty ids."""
    with FakeCluster(brokers=3) as built:
        built.state.add_topic(TOPIC, PARTITIONS)
        for transactional_id in IDS:
            built.state.init_producer_id(transactional_id, 60_000)
        yield built


def of_partition(number: int) -> set[str]:
    return {each for each in IDS if coordinator_partition(each, PARTITIONS) == number}


def led_by(cluster: FakeCluster, node: int) -> set[str]:
    return {each for each in IDS if cluster.state.coordinator(each) == node}


def faults(answers: object) -> dict[str, str]:
    assert isinstance(answers, dict)
    return {key: answer.name for key, answer in answers.items() if isinstance(answer, KafkaFault)}


def in_memory(cluster: FakeCluster, time: FakeTime | None = None) -> FakeTransactionAdmin:
    """An admin whose waits take no time of ours; `time_left` tells about what they would have left of 60 s.

    Several threads wait on the one clock, and each moves it for all: a few seconds more may seem to have passed.
    """
    return FakeTransactionAdmin(cluster, deadline=Deadline.after(60, (time or FakeTime()).clock()))


def time_left(admin: FakeTransactionAdmin) -> float:
    return admin._deadline.remaining_s()


@pytest.mark.parametrize("how", ["no leader", "refuses connections"])
@pytest.mark.parametrize("ask", ["describe_transactions", "find_coordinators"])
def test_ids_without_a_coordinator_do_not_hold_up_the_others(cluster: FakeCluster, how: str, ask: str) -> None:
    """The lookup went on to the deadline over one id, no coordinator was asked for the others, and no time was left."""
    if how == "no leader":
        cluster.state.leaderless.add((TOPIC, LOST))
        expected = dict.fromkeys(of_partition(LOST), "COORDINATOR_NOT_AVAILABLE")
    else:
        cluster.stop_broker(LOST, noticed=False)
        lost = led_by(cluster, LOST) if ask == "describe_transactions" else set()
        expected = dict.fromkeys(lost, "NETWORK_EXCEPTION")
    with in_memory(cluster) as admin:
        answers = getattr(admin, ask)(IDS)
        assert faults(answers) == expected
        assert set(answers) == set(IDS)
        assert time_left(admin) >= (38 if how == "no leader" else 23)


def test_while_nobody_answers_the_whole_time_is_waited(cluster: FakeCluster) -> None:
    """Half of it would help nobody: there is nothing that could be done with the answers."""
    cluster.state.leaderless = {(TOPIC, number) for number in range(PARTITIONS)}
    with in_memory(cluster) as admin:
        assert set(faults(admin.describe_transactions(IDS))) == set(IDS)
        assert time_left(admin) == 0


def test_a_coordinator_that_comes_back_is_waited_for(cluster: FakeCluster) -> None:
    cluster.state.leaderless.add((TOPIC, LOST))

    def elect(_seen: object, frame: bytes) -> bytes:
        if cluster.count("FindCoordinator") > 5:
            cluster.state.leaderless.clear()
        return frame

    cluster.tamper = elect
    with in_memory(cluster) as admin:
        assert faults(admin.describe_transactions(IDS)) == {}


def test_a_frozen_coordinator_hides_its_own_ids_only(cluster: FakeCluster) -> None:
    """The whole of --timeout went to a frozen coordinator, and whoever was asked after it had none."""
    lost = led_by(cluster, LOST)
    with in_memory(cluster) as admin:
        assert admin.cluster_id()  # of a broker that answers
        cluster.frozen.add(LOST)
        described = admin.describe_transactions(IDS)
        assert faults(described) == dict.fromkeys(lost, "REQUEST_TIMED_OUT")
        assert time_left(admin) >= 15


def test_brokers_that_do_not_answer_are_named_with_the_reason(cluster: FakeCluster) -> None:
    """Nothing said which broker it was; each look waited for it anew."""
    time, others = FakeTime(), threading.Event()
    host, port = cluster.address(LOST)

    def tell(_seen: Seen, frame: bytes) -> bytes:
        if {seen.node for seen in cluster.seen} == {1, 3}:
            others.set()
        return frame

    with in_memory(cluster, time) as admin:
        assert admin.silent_brokers(patience_s=3) == {}
        cluster.frozen.add(LOST)
        cluster.seen.clear()
        cluster.tamper = tell
        time.later(1, lambda: others.wait(PLENTY_S))  # all are asked side by side: no thread is too late
        assert {broker: str(why.message) for broker, why in admin.silent_brokers(patience_s=3).items()} == {
            LOST: f"timed out after 3 s while waiting for {host}:{port}"
        }
        cluster.stop_broker(LOST, noticed=False)
        assert set(admin.silent_brokers(patience_s=3)) == {LOST}


def test_a_broker_that_answers_with_an_error_is_not_silent_and_offers_nothing_known(cluster: FakeCluster) -> None:
    """The first one is asked together with the metadata."""
    with in_memory(cluster) as admin:
        assert set(admin.features().known) == {1, 2, 3}
        cluster.fail_next("ApiVersions", UNKNOWN_SERVER_ERROR)
        found = admin.features()
        assert (set(found.known), found.missing) == ({2, 3}, {1: "it answers UNKNOWN_SERVER_ERROR"})
        cluster.fail_next("ApiVersions", UNKNOWN_SERVER_ERROR)
        assert admin.silent_brokers(patience_s=3) == {}


def read(admin: FakeTransactionAdmin) -> set[int]:
    """The brokers whose log directories are known."""
    found = admin.log_dirs(patience_s=3)
    assert set(found) == {1, 2, 3}
    return {broker for broker, each in found.items() if not isinstance(each, EosctlError)}


def test_a_broker_that_does_not_answer_hides_the_log_directories_of_no_other(cluster: FakeCluster) -> None:
    others = {*cluster.state.nodes} - {LOST}
    with in_memory(cluster) as admin:
        assert read(admin) == {*others, LOST}
        cluster.frozen.add(LOST)
        before_s = time_left(admin)
        assert set(admin.log_dirs(patience_s=3, besides=[LOST])) == others
        assert time_left(admin) == before_s
        cluster.stop_broker(LOST, noticed=False)
        assert read(admin) == others


def listed(listings: TransactionListings) -> set[str]:
    return {each.transactional_id for each in listings.found}


def test_a_listing_without_some_partitions_names_them(cluster: FakeCluster) -> None:
    """It waited to the deadline for one partition without a leader, and failed then."""
    cluster.state.leaderless |= {(TOPIC, LOST), (TOPIC, LOST + 1)}
    with in_memory(cluster) as admin:
        listings = admin.list_transactions()
        assert listed(listings) == {*IDS} - of_partition(LOST) - of_partition(LOST + 1)
        assert [str(each) for each in listings.missing] == [
            f"LEADER_NOT_AVAILABLE: partitions {LOST}, {LOST + 1} of {TOPIC} have no leader"
        ]
        assert time_left(admin) >= 38, "an election takes seconds: this one does not come"
        with pytest.raises(UnreachableError, match=f"can't list all transactional ids: .* partitions {LOST}"):
            listings.complete()


def test_a_listing_without_a_broker_names_it_and_what_it_leads(cluster: FakeCluster) -> None:
    cluster.stop_broker(LOST, noticed=False)
    with in_memory(cluster) as admin:
        listings = admin.list_transactions()
        assert listed(listings) == {*IDS} - led_by(cluster, LOST)
        (missing,) = listings.missing
        assert missing.name == "NETWORK_EXCEPTION"
        assert missing.message.startswith(f"broker {LOST}, which leads partitions 1, 4 of {TOPIC}: can't connect to")
        assert 23 <= time_left(admin) <= 31, "what is wrong may pass: half of the time is for that"


def test_a_coordinator_that_never_loads_leaves_half_of_the_time(cluster: FakeCluster) -> None:
    cluster.state.loading.add(LOST)
    with in_memory(cluster) as admin:
        (missing,) = admin.list_transactions().missing
        assert missing.name == "COORDINATOR_LOAD_IN_PROGRESS"
        assert 23 <= time_left(admin) <= 31


def test_a_broker_that_freezes_when_it_is_to_list_has_not_all_of_the_time(cluster: FakeCluster) -> None:
    """It had just said that it was ready: half of --timeout was waited for it, long after its ids had moved."""
    time = FakeTime()

    def freeze(seen: Seen, frame: bytes) -> bytes:
        if (seen.node, seen.api) == (LOST, "DescribeTransactions") and LOST not in cluster.frozen:
            cluster.frozen.add(LOST)
            time.later(9, lambda: cluster.stop_broker(LOST))
        return frame

    cluster.tamper = freeze
    with in_memory(cluster, time) as admin:
        listings = admin.list_transactions()
        assert (listed(listings), listings.missing) == ({*IDS}, ())
        assert time_left(admin) >= 40


def test_a_listing_of_a_frozen_broker_is_left_out(cluster: FakeCluster) -> None:
    with in_memory(cluster) as admin:
        assert admin.cluster_id()
        cluster.frozen.add(LOST)
        listings = admin.list_transactions()
        assert listed(listings) == {*IDS} - led_by(cluster, LOST)
        assert [each.name for each in listings.missing] == ["REQUEST_TIMED_OUT"]
        assert time_left(admin) >= 15


def test_a_look_that_is_out_of_time_loses_no_broker_that_was_ready(cluster: FakeCluster) -> None:
    """Its last question came too late, so that the ids of a broker that answers were not known, beside the missing."""
    time = FakeTime()
    cluster.frozen.add(LOST)

    def be_slow(seen: Seen, frame: bytes) -> bytes:
        if (seen.node, seen.api) == (1, "DescribeTransactions") and 25 < time.now_s < 30:
            time.now_s = 30.5
        return frame

    cluster.tamper = be_slow
    with in_memory(cluster, time) as admin:
        listings = admin.list_transactions()
        assert listed(listings) == {*IDS} - led_by(cluster, LOST)
        assert [each.message.partition(",")[0] for each in listings.missing] == [f"broker {LOST}"]


def test_a_look_that_is_out_of_time_names_what_a_broker_has_not_loaded(cluster: FakeCluster) -> None:
    """What was missing before was told in its place, and that a listing lacks what is not loaded was not."""
    time, loads = FakeTime(), 3  # a partition of broker 1
    cluster.frozen.add(LOST)

    def be_slow(seen: Seen, frame: bytes) -> bytes:
        if seen.api == "Metadata" and time.now_s > 20:
            cluster.state.loading = {loads}
        if (seen.node, seen.api) == (1, "DescribeTransactions") and 20 < time.now_s < 30:
            time.now_s = 30.5
        return frame

    cluster.tamper = be_slow
    with in_memory(cluster, time) as admin:
        listings = admin.list_transactions()
        assert listed(listings) >= led_by(cluster, 3)
        assert any(f"partition {loads} of" in each.message for each in listings.missing)


def test_groups_that_a_broker_does_not_list_leave_half_of_the_time(cluster: FakeCluster) -> None:
    """`txn applications` waited to the deadline for a broker that refused connections, and told nothing of the rest."""
    with in_memory(cluster) as admin:
        assert admin.list_groups() == {}
        assert cluster.count("ListGroups") == 3
        cluster.stop_broker(LOST, noticed=False)
        with pytest.raises(UnreachableError, match="can't list groups: NETWORK_EXCEPTION"):
            admin.list_groups()
        assert 23 <= time_left(admin) <= 31
        assert cluster.count("ListGroups") == 5, "the others are asked once"
        cluster.frozen.add(1)
        with pytest.raises(UnreachableError, match="can't list groups: "):
            admin.list_groups()
        assert time_left(admin) > 3


def test_the_groups_of_a_broker_that_is_known_to_be_gone_are_listed_where_they_are_now(cluster: FakeCluster) -> None:
    """The brokers that have them now had answered before they came."""
    time, names = FakeTime(), [f"group-{number}" for number in range(12)]
    for name in names:
        cluster.state.groups[name] = RawGroup(name, "Stable", "connect", "sessioned", ())
    assert {cluster.state.coordinator(name) for name in names} == {1, 2, 3}
    cluster.stop_broker(LOST, noticed=False)
    time.later(9, lambda: cluster.state.nodes.remove(LOST))
    with in_memory(cluster, time) as admin:
        assert admin.list_groups() == dict.fromkeys(names, "connect")


def test_groups_that_moved_while_their_broker_was_waited_for_are_listed(cluster: FakeCluster) -> None:
    """It came back without them, and they were at one that had answered before: a group that was there was none."""
    time, names = FakeTime(), [f"group-{number}" for number in range(12)]
    for name in names:
        cluster.state.groups[name] = RawGroup(name, "Stable", "connect", "sessioned", ())
    cluster.stop_broker(LOST, noticed=False)

    def come_back() -> None:
        cluster._gone.discard(LOST)
        cluster.state.moved |= {name: 1 for name in names if cluster.state.coordinator(name) == LOST}

    time.later(9, come_back)
    with in_memory(cluster, time) as admin:
        assert admin.list_groups() == dict.fromkeys(names, "connect")
        assert cluster.state.moved
        assert time_left(admin) > 40


def freeze_once_asked_again(cluster: FakeCluster) -> None:
    """No broker answers the second marker."""

    def freeze(seen: Seen, frame: bytes) -> bytes:
        if seen.api == "Metadata" and cluster.count("WriteTxnMarkers"):
            cluster.frozen |= {1, 2, 3}
        return frame

    cluster.tamper = freeze


def test_a_marker_whose_answer_never_came_may_have_been_written(cluster: FakeCluster) -> None:
    """It had the fault of the try before, NOT_LEADER_OR_FOLLOWER, which says that nothing was written."""
    cluster.state.open_transaction("one", ("t", 0))
    with in_memory(cluster) as admin:
        [producer] = cast("list[ActiveProducer]", admin.describe_producers([("t", 0)])["t", 0])
        cluster.fail_next("WriteTxnMarkers", NOT_LEADER_OR_FOLLOWER)
        freeze_once_asked_again(cluster)
        fault = admin.write_marker(producer, commit=False)
        assert fault is not None
        assert fault.name == "REQUEST_TIMED_OUT"


def test_groups_that_are_described_together_hide_none_of_the_others(cluster: FakeCluster) -> None:
    """They come in the order of their names, whoever coordinates them: so do the messages made of them."""
    names = [f"group-{number}" for number in range(12)]
    cluster.state.groups |= {name: RawGroup(name, "Stable", "connect", "", ()) for name in names}
    lost = {name for name in names if cluster.state.coordinator(name) == LOST}
    denied = min({*names} - lost)
    cluster.deny_groups.add(denied)
    cluster.stop_broker(LOST, noticed=False)
    with in_memory(cluster) as admin:
        answers = admin.describe_groups(names[::-1])
        assert list(answers) == sorted(names)
        assert {name for name, each in answers.items() if isinstance(each, UnreachableError)} == lost != set()
        assert [name for name, each in answers.items() if isinstance(each, UnauthorizedError)] == [denied]
        assert time_left(admin) >= 23
        with pytest.raises(UnreachableError, match="can't describe group group"):
            find_rival_groups(admin, "g", [TransactionalId(f"{min(lost)}-c-0")])


def test_a_login_that_is_refused_is_no_lack_of_rights_on_a_group() -> None:
    fault = KafkaFault(SASL_AUTHENTICATION_FAILED, "SASL_AUTHENTICATION_FAILED", "of alice")
    refused = _error_of(fault, "describe group g", denied="kafka-acls --add")
    assert (type(refused), refused.hint) == (UnauthorizedError, "Check user name, password or token.")


def freeze_all_once(cluster: FakeCluster, api: str, count: int) -> None:
    """Every broker stops answering once so many of these requests have been answered."""

    def freeze(seen: Seen, frame: bytes) -> bytes:
        if seen.api == api and cluster.count(api) == count:
            cluster.frozen |= {1, 2, 3}
        return frame

    cluster.tamper = freeze


def test_a_listing_that_is_out_of_time_says_what_was_missing(cluster: FakeCluster) -> None:
    """It was "timed out while connecting" to a broker that has nothing wrong; the frozen one was not named."""
    with in_memory(cluster) as admin:
        assert admin.cluster_id()
        cluster.frozen.add(LOST)
        freeze_all_once(cluster, "DescribeTransactions", 2)
        with pytest.raises(UnreachableError, match=f"can't list transactions: REQUEST_TIMED_OUT: broker {LOST}, which"):
            admin.list_transactions()


def test_a_cluster_that_answers_nothing_for_half_of_the_time_is_listed_in_the_other_half(cluster: FakeCluster) -> None:
    """That half of --timeout was over ended the command, where the first look had something missing."""
    time = FakeTime()
    cluster.state.leaderless.add((TOPIC, LOST))
    freeze_all_once(cluster, "DescribeTransactions", 3)
    time.later(29, cluster.frozen.clear)
    with in_memory(cluster, time) as admin:
        listings = admin.list_transactions()
        assert listed(listings) == {*IDS} - of_partition(LOST)
        assert [each.name for each in listings.missing] == ["LEADER_NOT_AVAILABLE"]


@pytest.mark.parametrize("what", ["no leader", "no broker"])
def test_nothing_is_never_all_there_is_where_nobody_can_tell(cluster: FakeCluster, what: str) -> None:
    """Metadata without brokers was taken for a cluster without transactions: an empty listing, and exit code 0."""
    if what == "no broker":
        cluster.unnamed = {1, 2, 3}
    else:
        cluster.state.leaderless = {(TOPIC, number) for number in range(PARTITIONS)}
    with in_memory(cluster) as admin, pytest.raises(UnreachableError, match="can't list transactions"):
        admin.list_transactions()


def test_metadata_is_asked_for_once(cluster: FakeCluster) -> None:
    """For the brokers, for the leaders of the topic, and for the id of the cluster: three times in all."""
    with in_memory(cluster) as admin:
        admin.list_transactions()
        assert admin.cluster_id()
    assert cluster.count("Metadata") == 1


def test_a_frozen_bootstrap_server_leaves_time_for_the_next_one() -> None:
    """Its connection was accepted, and the rest of --timeout was spent waiting for its first answer."""
    with FakeCluster(brokers=2) as cluster:
        cluster.frozen.add(1)
        with in_memory(cluster) as admin:
            assert admin.cluster_id() == "fake-cluster-id"
            assert time_left(admin) >= 30


def test_ids_of_a_frozen_coordinator_are_found_again_where_they_moved(cluster: FakeCluster) -> None:
    lost = led_by(cluster, LOST)
    assert lost

    def move(_seen: object, frame: bytes) -> bytes:
        if cluster.frozen and cluster.count("DescribeTransactions"):
            cluster.state.moved.update(dict.fromkeys(lost, 1))
        return frame

    cluster.tamper = move
    with in_memory(cluster) as admin:
        assert admin.cluster_id()
        cluster.frozen.add(LOST)
        assert faults(admin.describe_transactions(IDS)) == {}


def test_ids_of_a_coordinator_that_is_gone_are_failed_rows_beside_those_that_are_fenced() -> None:
    """Describing them went on to the deadline, and the ids of the other coordinators could not be fenced any more."""
    world = World()
    state = world.brokers.state
    state.add_topic(TOPIC, PARTITIONS)
    for transactional_id in IDS:
        state.init_producer_id(transactional_id, 60_000)
    state.leaderless.add((TOPIC, LOST))
    app = world.app(group_id=None)
    report = apply_fence(app, plan_fence(app, FenceRequest(tuple(IDS))))
    assert {row.transactional_id: row.outcome for row in report.rows} == {
        each: "failed" if each in of_partition(LOST) else "fenced" for each in IDS
    }
    (problem,) = [each for each in report.problems if each.code == "failed"]
    assert "COORDINATOR_NOT_AVAILABLE" in problem.message
    assert report.exit_code is ExitCode.PARTIAL
