"""The contract of TransactionAdmin, on the fake cluster and on a real broker: the fake may not be kinder than Kafka."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from eosctl.core.client_settings import ClientSettings
from eosctl.core.transactions import KafkaFault, RawGroup, RawGroupMember, TransactionDescription, TransactionState
from eosctl.deadline import Deadline
from eosctl.errors import UnsupportedError
from eosctl.kafka.transaction_admin import NativeTransactionAdmin
from eosctl.ops.ports import TransactionAdmin
from tests.fakes.admin import FakeTransactionAdmin
from tests.fakes.broker import FakeCluster


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A cluster to ask, and how to begin a transaction on it that stays open."""

    open_transaction: Callable[[str, str], None]
    group: str
    open_admin: Callable[[Deadline], TransactionAdmin]

    @contextmanager
    def admin(self) -> Iterator[TransactionAdmin]:
        with self.open_admin(Deadline.after(60)) as admin:
            yield admin


def _native(bootstrap_servers: tuple[str, ...]) -> Callable[[Deadline], TransactionAdmin]:
    return lambda deadline: NativeTransactionAdmin(ClientSettings(bootstrap_servers), deadline=deadline)


def _fake(cluster: FakeCluster, open_admin: Callable[[Deadline], TransactionAdmin]) -> Surroundings:
    member = RawGroupMember("m1", "client", "/127.0.0.1", b"\x00\x02meta", b"\x00\x02assignment")
    cluster.state.groups["the-group"] = RawGroup("the-group", "Stable", "connect", "sessioned", (member,))

    def begin(transactional_id: str, topic: str) -> None:
        cluster.state.open_transaction(transactional_id, (topic, 0))

    return Surroundings(begin, "the-group", open_admin)


@pytest.fixture
def memory_surroundings() -> Surroundings:
    cluster = FakeCluster(brokers=2)
    return _fake(cluster, lambda deadline: FakeTransactionAdmin(cluster, deadline=deadline))


@pytest.fixture
def fake_surroundings() -> Iterator[Surroundings]:
    with FakeCluster(brokers=2) as cluster:
        yield _fake(cluster, _native(cluster.bootstrap_servers))


@pytest.fixture
def real_surroundings(request: pytest.FixtureRequest) -> Iterator[Surroundings]:
    from confluent_kafka import Producer

    stack: Any = request.getfixturevalue("stack")
    producers = []

    def begin(transactional_id: str, topic: str) -> None:
        producer = Producer(
            {"bootstrap.servers": stack.bootstrap_servers, "transactional.id": transactional_id, "log_level": 0}
        )
        producers.append(producer)
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(topic, b"value")
        assert producer.flush(30) == 0

    yield Surroundings(begin, "connect-eos", _native(tuple(stack.bootstrap_servers.split(","))))
    producers.clear()


@pytest.fixture(params=["memory", "fake", pytest.param("real", marks=[pytest.mark.live, pytest.mark.on("stack")])])
def surroundings(request: pytest.FixtureRequest) -> Surroundings:
    found: Surroundings = request.getfixturevalue(f"{request.param}_surroundings")
    return found


@pytest.fixture
def name() -> str:
    """An id and topic that nobody else uses."""
    return f"contract-{uuid.uuid4().hex[:10]}"


def described(admin: TransactionAdmin, transactional_id: str) -> TransactionDescription:
    answer = admin.describe_transactions([transactional_id])[transactional_id]
    assert isinstance(answer, TransactionDescription), answer
    return answer


def test_the_cluster_has_an_id(surroundings: Surroundings) -> None:
    with surroundings.admin() as admin:
        assert admin.cluster_id()
        assert admin.cluster_id() == admin.cluster_id()


def test_an_unknown_id_has_a_coordinator_but_no_transaction(surroundings: Surroundings, name: str) -> None:
    with surroundings.admin() as admin:
        assert not isinstance(admin.find_coordinators([name])[name], KafkaFault)
        answer = admin.describe_transactions([name])[name]
        assert isinstance(answer, KafkaFault)
        assert (answer.code, answer.name) == (105, "TRANSACTIONAL_ID_NOT_FOUND")


def test_fencing_an_unknown_id_creates_it_and_again_bumps_its_epoch(surroundings: Surroundings, name: str) -> None:
    with surroundings.admin() as admin:
        (first,) = admin.fence([name], transaction_timeout_ms=31_000)
        (second,) = admin.fence([name], transaction_timeout_ms=31_000)
        assert (first.producer_epoch, second.producer_epoch) == (0, 1)
        assert first.producer_id == second.producer_id
        assert first.confirmed
        assert first.fault is None
        state = described(admin, name)
        assert (state.state, state.producer_epoch, state.transaction_timeout_ms) == (TransactionState.EMPTY, 1, 31_000)
        assert (state.started_ms, state.partitions) == (None, ())
        assert state.coordinator == first.coordinator


def test_fencing_an_open_transaction_aborts_it_and_bumps_the_epoch_twice(surroundings: Surroundings, name: str) -> None:
    surroundings.open_transaction(name, name)
    with surroundings.admin() as admin:
        before = described(admin, name)
        assert (before.state, before.partitions) == (TransactionState.ONGOING, ((name, 0),))
        assert before.started_ms is not None
        (answer,) = admin.fence([name], transaction_timeout_ms=30_000)
        assert (answer.producer_id, answer.producer_epoch) == (before.producer_id, before.producer_epoch + 2)
        assert answer.attempts > 1
        assert described(admin, name).state == TransactionState.EMPTY
        producers = admin.describe_producers([(name, 0)])[(name, 0)]
        assert not isinstance(producers, KafkaFault)
        assert [producer.txn_start_offset for producer in producers] == [None]


def test_one_bad_id_does_not_hide_the_others(surroundings: Surroundings, name: str) -> None:
    with surroundings.admin() as admin:
        answers = {
            answer.transactional_id: answer
            for answer in admin.fence([name, "", f"{name}-2"], transaction_timeout_ms=30_000)
        }
        assert answers[""].fault is not None
        assert answers[""].fault.name == "INVALID_REQUEST"
        assert [answers[key].producer_epoch for key in (name, f"{name}-2")] == [0, 0]


def test_a_timeout_over_the_brokers_limit_is_a_fault_of_the_id(surroundings: Surroundings, name: str) -> None:
    with surroundings.admin() as admin:
        (answer,) = admin.fence([name], transaction_timeout_ms=900_001)
        assert answer.fault is not None
        assert answer.fault.name == "INVALID_TRANSACTION_TIMEOUT"
        assert answer.confirmed


def test_listing_filters_by_state_producer_and_pattern(surroundings: Surroundings, name: str) -> None:
    surroundings.open_transaction(f"{name}-open", name)
    with surroundings.admin() as admin:
        list(admin.fence([f"{name}-empty"], transaction_timeout_ms=30_000))
        open_id = described(admin, f"{name}-open").producer_id

        def ids(**filters: Any) -> set[str]:
            listed = admin.list_transactions(**filters)
            return {
                item.transactional_id.removeprefix(name) for item in listed if item.transactional_id.startswith(name)
            }

        assert ids() == {"-open", "-empty"}
        assert ids(states=["Ongoing"]) == {"-open"}
        assert ids(producer_ids=[open_id]) == {"-open"}
        assert ids(pattern=f"{name}-e.*") == {"-empty"}
        assert ids(pattern=name) == set(), "the pattern must match the whole id"
        assert ids(states=["Ongoing"], duration_ms=3_600_000) == set()
        (listing,) = admin.list_transactions(producer_ids=[open_id])
        assert (listing.state, listing.producer_id) == (TransactionState.ONGOING, open_id)
        list(admin.fence([f"{name}-open"], transaction_timeout_ms=30_000))


def test_a_state_no_broker_knows_is_refused(surroundings: Surroundings) -> None:
    with surroundings.admin() as admin, pytest.raises(UnsupportedError, match="Sleeping"):
        admin.list_transactions(states=["Sleeping"])


def test_an_abort_marker_ends_the_open_transaction_on_the_partition(surroundings: Surroundings, name: str) -> None:
    surroundings.open_transaction(name, name)
    with surroundings.admin() as admin:
        producers = admin.describe_producers([(name, 0)])[(name, 0)]
        assert not isinstance(producers, KafkaFault)
        (producer,) = producers
        assert producer.txn_start_offset == 0
        assert admin.abort_transaction(producer) is None
        after = admin.describe_producers([(name, 0)])[(name, 0)]
        assert not isinstance(after, KafkaFault)
        assert [item.txn_start_offset for item in after] == [None]


def test_partitions_that_do_not_exist_are_faults_beside_those_that_do(surroundings: Surroundings, name: str) -> None:
    surroundings.open_transaction(name, name)
    with surroundings.admin() as admin:
        assert admin.topic_partitions([name, f"{name}-none"]) == {name: 1}
        assert name in admin.topic_partitions()
        answers = admin.describe_producers([(name, 0), (name, 99), (f"{name}-none", 0)])
        assert not isinstance(answers[(name, 0)], KafkaFault)
        for missing in ((name, 99), (f"{name}-none", 0)):
            fault = answers[missing]
            assert isinstance(fault, KafkaFault)
            assert fault.name == "UNKNOWN_TOPIC_OR_PARTITION"
        list(admin.fence([name], transaction_timeout_ms=30_000))


def test_an_unknown_group_is_dead_and_empty(surroundings: Surroundings, name: str) -> None:
    with surroundings.admin() as admin:
        group = admin.describe_group(name)
        assert (group.group_id, group.state, group.members) == (name, "Dead", ())


def test_a_connect_group_shows_its_members_as_bytes(surroundings: Surroundings) -> None:
    with surroundings.admin() as admin:
        group = admin.describe_group(surroundings.group)
        assert (group.state, group.protocol_type, group.protocol) == ("Stable", "connect", "sessioned")
        (member,) = group.members
        assert member.metadata.startswith(b"\x00\x02")
        assert member.assignment.startswith(b"\x00\x02")
