"""The contract of TransactionAdmin, on the fake cluster and on real brokers: the fake may not be kinder than Kafka."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.brokers import APPLICATION_APIS, INSPECTION_APIS, BrokerKind, kind_of
from eosctl.core.ids import TransactionalId
from eosctl.core.records import OutRecord
from eosctl.core.transactions import KafkaFault, RawGroup, TransactionDescription, TransactionState
from eosctl.core.versions import release_of
from eosctl.errors import EosctlError, UnsupportedError
from eosctl.ports import TransactionAdmin
from tests.contract.clusters import REAL, Subject, on
from tests.sandbox_fixtures import GROUP, wait_until

on_all = pytest.mark.parametrize("subject", ["memory", "tcp", *REAL], indirect=True, scope="module")
where_workers_are = pytest.mark.parametrize(
    "subject", ["memory", "tcp", *on("stack", "old_stack")], indirect=True, scope="module"
)


def open_transaction(subject: Subject, transactional_id: str, topic: str) -> None:
    """Somebody begins a transaction with a record in a new topic, and does not end it."""
    with subject.store() as store:
        store.create(topic, partitions=1, replication_factor=1, config={})
    subject.producer(transactional_id).send(topic, 0, b"key")


def described(admin: TransactionAdmin, transactional_id: TransactionalId) -> TransactionDescription:
    answer = admin.describe_transactions([transactional_id])[transactional_id]
    assert isinstance(answer, TransactionDescription), answer
    return answer


@on_all
def test_the_cluster_has_an_id(subject: Subject) -> None:
    with subject.admin() as admin:
        assert admin.cluster_id()
        assert admin.cluster_id() == admin.cluster_id()


@on_all
def test_where_all_brokers_answer_none_is_silent(subject: Subject) -> None:
    with subject.admin() as admin:
        assert admin.silent_brokers(patience_s=20) == {}


@on_all
def test_brokers_report_their_features(subject: Subject) -> None:
    """The release follows from the metadata.version that a broker can have; transaction.version 2 came with 4.0."""
    with subject.admin() as admin:
        found = admin.features().known
    assert found
    for features in found.values():
        release = release_of(features)
        assert release is not None
        assert (features.finalized.get("transaction.version", 0) == 2) == (release >= (4, 0))


@on_all
def test_kafkas_own_brokers_offer_every_transactional_api(subject: Subject) -> None:
    """And give no sign of another vendor."""
    with subject.admin() as admin:
        brokers, cluster_id = admin.features(), admin.cluster_id()
    assert brokers.known
    assert brokers.missing == {}
    assert brokers.without({**APPLICATION_APIS, **INSPECTION_APIS}) == {}
    assert kind_of(brokers.known.values(), cluster_id, []) == BrokerKind()


@on_all
def test_an_unknown_id_has_a_coordinator_but_no_transaction(subject: Subject, name: TransactionalId) -> None:
    with subject.admin() as admin:
        assert not isinstance(admin.find_coordinators([name])[name], KafkaFault)
        answer = admin.describe_transactions([name])[name]
        assert isinstance(answer, KafkaFault)
        assert (answer.code, answer.name) == (105, "TRANSACTIONAL_ID_NOT_FOUND")


@on_all
def test_fencing_an_unknown_id_creates_it_and_again_bumps_its_epoch(subject: Subject, name: TransactionalId) -> None:
    with subject.admin() as admin:
        (first,) = admin.fence([name], transaction_timeout_ms=31_000)
        (second,) = admin.fence([name], transaction_timeout_ms=31_000)
        assert first.producer_epoch is not None
        assert second.producer_epoch is not None
        assert 0 <= first.producer_epoch < second.producer_epoch  # a lost answer is asked for again: one more
        assert first.producer_id == second.producer_id
        assert first.confirmed
        assert first.fault is None
        state = described(admin, name)
        assert (state.state, state.transaction_timeout_ms) == (TransactionState.EMPTY, 31_000)
        assert state.producer_epoch == second.producer_epoch
        assert (state.started_ms, state.partitions) == (None, ())
        assert state.coordinator == first.coordinator


@on_all
def test_fencing_asks_the_coordinators_that_it_is_told_and_looks_up_those_that_are_gone(
    subject: Subject, name: TransactionalId
) -> None:
    with subject.admin() as admin:
        list(admin.fence([name], transaction_timeout_ms=30_000))
        known = described(admin, name).coordinator
        gone = replace(known, port=1)  # nobody listens there
        for at in (known, gone):
            (answer,) = admin.fence([name], transaction_timeout_ms=30_000, coordinators={name: at})
            assert (answer.fault, answer.confirmed, answer.coordinator) == (None, True, known)
        assert described(admin, name).producer_epoch >= 2


@on_all
def test_fencing_an_open_transaction_aborts_it_and_bumps_the_epoch_twice(
    subject: Subject, name: TransactionalId
) -> None:
    open_transaction(subject, name, name)
    with subject.admin() as admin:
        before = described(admin, name)
        assert (before.state, before.partitions) == (TransactionState.ONGOING, ((name, 0),))
        assert before.started_ms is not None
        (answer,) = admin.fence([name], transaction_timeout_ms=30_000)
        assert answer.producer_id == before.producer_id
        assert answer.producer_epoch is not None
        assert answer.producer_epoch >= before.producer_epoch + 2  # one for the abort; a lost answer costs one more
        assert answer.attempts > 1
        assert described(admin, name).state == TransactionState.EMPTY
        producers = admin.describe_producers([(name, 0)])[(name, 0)]
        assert not isinstance(producers, KafkaFault)
        assert [producer.txn_start_offset for producer in producers] == [None]


@on_all
def test_one_bad_id_does_not_hide_the_others(subject: Subject, name: TransactionalId) -> None:
    with subject.admin() as admin:
        empty, other = TransactionalId(""), TransactionalId(f"{name}-2")
        answers = list(admin.fence([name, empty, other], transaction_timeout_ms=30_000))
        faults = {answer.transactional_id: answer.fault for answer in answers}
        fault = faults[empty]
        assert fault is not None
        assert fault.name == "INVALID_REQUEST"
        assert (faults[name], faults[other]) == (None, None)


@on_all
def test_a_timeout_over_the_brokers_limit_is_a_fault_of_the_id(subject: Subject, name: TransactionalId) -> None:
    with subject.admin() as admin:
        (answer,) = admin.fence([name], transaction_timeout_ms=900_001)
        assert answer.fault is not None
        assert answer.fault.name == "INVALID_TRANSACTION_TIMEOUT"
        assert answer.confirmed


@on_all
def test_listing_filters_by_state_producer_and_pattern(subject: Subject, name: str) -> None:
    open_transaction(subject, f"{name}-open", name)
    with subject.admin() as admin:
        list(admin.fence([TransactionalId(f"{name}-empty")], transaction_timeout_ms=30_000))
        open_id = described(admin, TransactionalId(f"{name}-open")).producer_id

        def ids(**filters: Any) -> set[str]:
            listed = admin.list_transactions(**filters).complete()
            return {
                item.transactional_id.removeprefix(name) for item in listed if item.transactional_id.startswith(name)
            }

        assert ids() == {"-open", "-empty"}
        assert ids(states=["Ongoing"]) == {"-open"}
        assert ids(producer_ids=[open_id]) == {"-open"}
        if subject.lists_by_pattern:
            assert ids(pattern=f"{name}-e.*") == {"-empty"}
            assert ids(pattern=name) == set(), "the pattern must match the whole id"
        else:
            with pytest.raises(UnsupportedError, match=r"Kafka 4\.1"):
                ids(pattern=f"{name}-e.*")
        assert ids(states=["Ongoing"], duration_ms=3_600_000) == set()
        (listing,) = admin.list_transactions(producer_ids=[open_id]).complete()
        assert (listing.state, listing.producer_id) == (TransactionState.ONGOING, open_id)
        list(admin.fence([TransactionalId(f"{name}-open")], transaction_timeout_ms=30_000))


@on_all
def test_a_state_no_broker_knows_is_refused(subject: Subject) -> None:
    with subject.admin() as admin, pytest.raises(UnsupportedError, match="Sleeping"):
        admin.list_transactions(states=["Sleeping"])


@on_all
def test_an_abort_marker_ends_the_open_transaction_on_the_partition(subject: Subject, name: str) -> None:
    open_transaction(subject, name, name)
    with subject.admin() as admin:
        producers = admin.describe_producers([(name, 0)])[(name, 0)]
        assert not isinstance(producers, KafkaFault)
        (producer,) = producers
        assert producer.txn_start_offset == 0
        assert admin.describe_producers([(name, 0)], only_open=True) == {(name, 0): (producer,)}
        assert admin.write_marker(producer, commit=False) is None
        after = admin.describe_producers([(name, 0)])[(name, 0)]
        assert not isinstance(after, KafkaFault)
        assert [item.txn_start_offset for item in after] == [None]
        assert admin.describe_producers([(name, 0)], only_open=True) == {(name, 0): ()}


@on_all
def test_partitions_that_do_not_exist_are_faults_beside_those_that_do(subject: Subject, name: TransactionalId) -> None:
    open_transaction(subject, name, name)
    with subject.admin() as admin:
        assert admin.topic_partitions([name, f"{name}-none"]) == {name: 1}
        assert name in admin.topic_partitions()
        answers = admin.describe_producers([(name, 0), (name, 99), (f"{name}-none", 0)])
        assert not isinstance(answers[(name, 0)], KafkaFault)
        for missing in ((name, 99), (f"{name}-none", 0)):
            fault = answers[missing]
            assert isinstance(fault, KafkaFault)
            assert fault.name == "UNKNOWN_TOPIC_OR_PARTITION"
        list(admin.fence([name], transaction_timeout_ms=30_000))


@on_all
def test_each_broker_reports_its_log_directories_and_their_room(subject: Subject) -> None:
    with subject.admin() as admin:
        found = admin.log_dirs(patience_s=20)
        assert set(found) == set(admin.features().known)
        [first, *_others] = found
        assert set(admin.log_dirs(patience_s=20, besides=[first])) == set(found) - {first}
    for log_dirs in found.values():
        assert not isinstance(log_dirs, EosctlError)
        [log_dir] = log_dirs
        assert log_dir.path.startswith("/")
        assert not log_dir.is_offline
        assert log_dir.total_bytes is not None
        assert log_dir.usable_bytes is not None
        assert 0 < log_dir.usable_bytes <= log_dir.total_bytes


@on_all
def test_an_unknown_group_is_dead_and_empty(subject: Subject, name: str) -> None:
    with subject.admin() as admin:
        group = admin.describe_group(name)
        assert (group.group_id, group.state, group.members) == (name, "Dead", ())


@on_all
def test_a_group_whose_members_left_is_empty_until_it_is_deleted(subject: Subject, name: str) -> None:
    subject.empty_group(name)
    with subject.admin() as admin:
        assert admin.describe_group(name) == RawGroup(name, "Empty", "consumer", "", ())
        assert admin.list_groups()[name] == "consumer"
        subject.delete_group(name)
        wait_until(lambda: admin.describe_group(name).state == "Dead", what="the group to be forgotten")
        assert admin.describe_group(name).members == ()
        assert name not in admin.list_groups()


@where_workers_are
def test_a_connect_group_shows_its_members_as_bytes(subject: Subject) -> None:
    with subject.admin() as admin:

        def stable() -> RawGroup | None:
            return raw if (raw := admin.describe_group(GROUP)).state == "Stable" else None

        group: RawGroup = wait_until(stable, what="a rebalance to end, which an earlier test may have left")
        assert (group.protocol_type, group.protocol) == ("connect", "sessioned")
        assert admin.list_groups()[GROUP] == "connect"
        (member,) = group.members
        assert member.metadata.startswith(b"\x00\x02")
        assert member.assignment.startswith(b"\x00\x02")


@on_all
def test_a_plain_writer_is_an_active_producer_without_a_transaction(subject: Subject, name: str) -> None:
    with subject.store() as store, subject.admin() as admin:
        store.create(name, partitions=1, replication_factor=1, config={})
        store.write([OutRecord(name, b"k", b"v", 0)])
        producers = admin.describe_producers([(name, 0)])[(name, 0)]
        assert not isinstance(producers, KafkaFault)
        assert [each.txn_start_offset for each in producers] == [None]


@on_all
def test_what_committed_is_told_with_its_end(subject: Subject, name: TransactionalId) -> None:
    """A write under an id is, for its coordinator, what any producer does."""
    with subject.store() as store, subject.admin() as admin:
        store.create(name, partitions=1, replication_factor=1, config={})
        store.write([OutRecord(name, b"k", b"v", 0)], transactional_id=name)
        ended = (TransactionState.COMPLETE_COMMIT, TransactionState.EMPTY)
        wait_until(lambda: described(admin, name).state in ended, what="the coordinator to note that all is written")
        state = described(admin, name)
        assert (state.state, state.partitions, state.started_ms) == (ended[0], (), None)
        assert state.last_started_ms is not None
        assert state.transaction_timeout_ms == 60_000
        (answer,) = admin.fence([name], transaction_timeout_ms=30_000)
        assert answer.producer_id == state.producer_id
        assert answer.producer_epoch is not None
        assert answer.producer_epoch >= state.producer_epoch + 1
        # when the last one began is the former producer's until then on 3.9.2, and nobody's on 4.3.1
        assert described(admin, name).state is TransactionState.EMPTY
