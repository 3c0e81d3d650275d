"""Requests on a cluster that is not well: busy and moved coordinators, moved leaders, old versions."""

from __future__ import annotations

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.transaction_log import TOPIC
from eosctl.core.transactions import RawGroup, RawGroupMember
from eosctl.deadline import Deadline
from eosctl.errors import UnauthorizedError, UnsupportedError, UsageError
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.native.coordinators import find_coordinating_brokers
from eosctl.wire import error_codes as codes
from tests.fakes.broker import FakeCluster, Seen
from tests.fakes.clock import PLENTY_S
from tests.kafka.connecting import admin_of


def test_describing_survives_a_busy_and_a_moved_coordinator() -> None:
    with FakeCluster(brokers=2) as cluster:
        cluster.state.open_transaction("one", ("t", 0))
        cluster.fail_next("DescribeTransactions", codes.COORDINATOR_LOAD_IN_PROGRESS, codes.NOT_COORDINATOR)
        with admin_of(cluster) as admin:
            answer = admin.describe_transactions([TransactionalId("one")])[TransactionalId("one")]
            assert getattr(answer, "state", None) == "Ongoing"


def test_listing_waits_for_a_loading_coordinator_and_is_never_half() -> None:
    with FakeCluster(brokers=3) as cluster:
        for number in range(30):
            cluster.state.open_transaction(f"id-{number}", ("t", 0))
        with admin_of(cluster) as admin:
            cluster.fail_next("ListTransactions", codes.NONE, codes.COORDINATOR_LOAD_IN_PROGRESS)
            assert len(admin.list_transactions().complete()) == 30
            cluster.stop_broker(3)
            assert len({item.transactional_id for item in admin.list_transactions().complete()}) == 30


def test_listing_waits_until_every_coordinator_has_loaded_its_transactions() -> None:
    """A broker that had just started listed none of 2,000 ids, and that was taken for all there are."""
    with FakeCluster(brokers=2) as cluster:
        cluster.state.add_topic(TOPIC, 5)
        cluster.state.open_transaction("one", ("t", 0))
        cluster.fail_next("DescribeTransactions", codes.NOT_COORDINATOR, codes.COORDINATOR_LOAD_IN_PROGRESS)
        with admin_of(cluster) as admin:
            assert [item.transactional_id for item in admin.list_transactions().complete()] == ["one"]
            assert cluster.count("DescribeTransactions") == 4  # two that fail, then one of each broker
            assert cluster.count("ListTransactions") == 2


@pytest.mark.parametrize("partition", range(5))
def test_no_partition_of_the_transaction_topic_is_left_out(partition: int) -> None:
    with FakeCluster(brokers=3) as cluster:
        cluster.state.add_topic(TOPIC, 5)
        cluster.state.loading.add(partition)
        asked = Cluster(ClientSettings(cluster.bootstrap_servers), deadline=Deadline.after(PLENTY_S))
        try:
            (missing,) = find_coordinating_brokers(asked).missing
        finally:
            asked.close()
        leader = cluster.state.leader(partition)
    assert missing.name == "COORDINATOR_LOAD_IN_PROGRESS"
    assert missing.message == f"broker {leader} does not know partition {partition} of {TOPIC} yet"


def test_a_bad_pattern_is_a_usage_error() -> None:
    with FakeCluster() as cluster:
        cluster.fail_next("ListTransactions", codes.INVALID_REGULAR_EXPRESSION)
        with admin_of(cluster) as admin, pytest.raises(UsageError):
            admin.list_transactions(pattern=".*")


def test_a_filter_the_broker_is_too_old_for_is_refused() -> None:
    with FakeCluster(versions={"ListTransactions": (0, 1)}) as cluster, admin_of(cluster) as admin:
        assert admin.list_transactions(duration_ms=5).complete() == []
        with pytest.raises(UnsupportedError, match=r"needs Kafka 4\.1 \(ListTransactions v2\)"):
            admin.list_transactions(pattern="x.*")


def test_a_leader_that_moved_is_found_again() -> None:
    with FakeCluster(brokers=2) as cluster:
        cluster.state.open_transaction("one", ("t", 0), ("t", 1))
        cluster.fail_next("DescribeProducers", codes.NOT_LEADER_OR_FOLLOWER)
        cluster.fail_next("WriteTxnMarkers", codes.NOT_LEADER_OR_FOLLOWER)
        with admin_of(cluster) as admin:
            answers = admin.describe_producers([("t", 0), ("t", 1)])
            producer = answers[("t", 1)][0]  # type: ignore[index]
            assert producer.txn_start_offset == 0
            assert admin.write_marker(producer, commit=False) is None


def test_an_abort_that_is_refused_is_a_fault() -> None:
    with FakeCluster() as cluster:
        producer_id = cluster.state.open_transaction("one", ("t", 0), epoch=5)
        cluster.state.log("t", 0).producers[producer_id].coordinator_epoch = 3
        with admin_of(cluster) as admin:
            producer = admin.describe_producers([("t", 0)])[("t", 0)][0]  # type: ignore[index]
            cluster.state.log("t", 0).producers[producer_id].coordinator_epoch = 4
            fault = admin.write_marker(producer, commit=False)
            assert fault is not None
            assert fault.name == "TRANSACTION_COORDINATOR_FENCED"


@pytest.mark.parametrize("first", [codes.NETWORK_EXCEPTION, codes.NOT_LEADER_OR_FOLLOWER])
def test_a_refusal_of_what_was_sent_before_leaves_open_whether_it_was_written(first: int) -> None:
    """The fault was the refusal's. A leader that is replaced while it waits for its followers answers 6."""
    with FakeCluster() as cluster:
        cluster.state.open_transaction("one", ("t", 0))
        with admin_of(cluster) as admin:
            producer = admin.describe_producers([("t", 0)])[("t", 0)][0]  # type: ignore[index]
            if first == codes.NETWORK_EXCEPTION:
                cluster.lose_answers("WriteTxnMarkers")
            cluster.fail_next("WriteTxnMarkers", first, codes.INVALID_PRODUCER_EPOCH)
            fault = admin.write_marker(producer, commit=False)
            assert fault is not None
            assert (fault.name, "INVALID_PRODUCER_EPOCH" in fault.message) == ("UNKNOWN_SERVER_ERROR", True)


@pytest.mark.parametrize("code", [codes.UNKNOWN_SERVER_ERROR, codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND])
def test_an_error_from_behind_the_append_is_no_refusal(code: int) -> None:
    """NOT_ENOUGH_REPLICAS_AFTER_APPEND was a failure: nothing was written."""
    with FakeCluster() as cluster:
        cluster.state.open_transaction("one", ("t", 0))
        with admin_of(cluster) as admin:
            producer = admin.describe_producers([("t", 0)])[("t", 0)][0]  # type: ignore[index]
            cluster.fail_next("WriteTxnMarkers", code)
            fault = admin.write_marker(producer, commit=False)
            assert fault is not None
            assert fault.name == "NETWORK_EXCEPTION"


def test_a_leader_that_could_not_be_reached_wrote_nothing() -> None:
    with FakeCluster(brokers=2) as cluster:
        cluster.state.open_transaction("one", ("t", 0))
        with admin_of(cluster) as admin:
            producer = admin.describe_producers([("t", 0)])[("t", 0)][0]  # type: ignore[index]
            leader, noticed = cluster.state.leader(0), list[int]()
            cluster.stop_broker(leader, noticed=False)

            def notice(seen: Seen, frame: bytes) -> bytes:
                if seen.api == "Metadata" and not noticed:
                    noticed.append(leader)
                    cluster.state.nodes.remove(leader)
                return frame

            cluster.tamper = notice
            cluster.fail_next("WriteTxnMarkers", codes.INVALID_PRODUCER_EPOCH)
            fault = admin.write_marker(producer, commit=False)
            assert fault is not None
            assert (fault.name, bool(noticed)) == ("INVALID_PRODUCER_EPOCH", True)


@pytest.mark.parametrize("version", [4, 5, 6])
def test_groups_are_described_in_old_and_new_versions(version: int) -> None:
    with FakeCluster(brokers=2, versions={"DescribeGroups": (0, version)}) as cluster:
        cluster.state.groups["g"] = RawGroup(
            "g", "Stable", "connect", "sessioned", (RawGroupMember("m", "c", "/h", b"\0\1", b"\0\2"),)
        )
        with admin_of(cluster) as admin:
            (member,) = admin.describe_group("g").members
            assert (member.member_id, member.metadata, member.assignment) == ("m", b"\0\1", b"\0\2")
            assert admin.describe_group("unknown").state == "Dead"
            cluster.fail_next("DescribeGroups", codes.GROUP_AUTHORIZATION_FAILED)
            with pytest.raises(UnauthorizedError, match="GROUP_AUTHORIZATION_FAILED"):
                admin.describe_group("g")
