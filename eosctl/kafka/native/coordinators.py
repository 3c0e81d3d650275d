"""Coordinators on the wire: found by key, complete or not in what they list, and asked about many keys.

FindCoordinator is one batched request where brokers can (v4, Kafka 3.0), else one request per key. A request about many
keys goes to the broker of each: an error of one broker hides no result of the others. Responses become the values of
eosctl.core.transactions.

The brokers that coordinate transactions are checked for having loaded all of theirs. A broker lists what it has loaded
of the partitions of `__transaction_state` that it leads. One that has just started, and a partition without a leader,
are silently missing (`TransactionStateManager.listTransactionStates`, Kafka 4.3): a listing would look complete.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar, cast

from msgspec import Struct

from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.transaction_log import TOPIC, coordinator_partition
from eosctl.core.transactions import (
    Coordinator,
    KafkaFault,
    RawGroup,
    RawGroupMember,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from eosctl.errors import DeadlineError, EosctlError, UnreachableError, UnsupportedError
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.faults import COORDINATOR_RETRIES, fault, fault_of
from eosctl.kafka.native.connection import Connection
from eosctl.kafka.topics.stream import Address
from eosctl.wire.cluster_messages import (
    FIND_COORDINATOR,
    FIND_COORDINATOR_BATCHED_FROM,
    FindCoordinatorRequest,
    FoundCoordinator,
    KeyType,
    TopicMetadata,
)
from eosctl.wire.error_codes import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_ID_NOT_FOUND,
    INVALID_REQUEST,
    LEADER_NOT_AVAILABLE,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from eosctl.wire.transaction_messages import DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest

if TYPE_CHECKING:
    from eosctl.wire.group_messages import DescribedGroup
    from eosctl.wire.transaction_listing_messages import ListedTransaction
    from eosctl.wire.transaction_messages import DescribedTransaction


K = TypeVar("K", bound=str)
BATCH = 1000
LONGEST_KEY_BYTES = 32_767  # a broker drops the connection over a longer string, and with it everybody's answers


def find_coordinators(cluster: Cluster, keys: Sequence[K], key_type: KeyType) -> dict[K, Coordinator | KafkaFault]:
    """Look up each key once: its coordinator, or the fault.

    Raises only when no broker can be asked.
    """
    answers: dict[str, Coordinator | KafkaFault] = {key: why for key in keys if (why := unfit_key(key))}
    fit = [key for key in keys if key not in answers]
    for start in range(0, len(fit), BATCH):
        batch = fit[start : start + BATCH]
        found = cluster.use_any(lambda connection, batch=batch: _ask(cluster, connection, batch, key_type))  # type: ignore[misc]
        answers.update(_by_key(found))
        left_out = (key for key in batch if key not in answers)
        answers.update(dict.fromkeys(left_out, fault(INVALID_REQUEST, "the broker's answer leaves this key out")))
    return cast("dict[K, Coordinator | KafkaFault]", answers)  # no response has a key that was not requested


def unfit_key(key: str) -> KafkaFault | None:
    """Return the fault of a key that can't be sent at all: not encodable, or longer than Kafka's strings; else None."""
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        return fault(INVALID_REQUEST, "the id is not valid UTF-8")
    if size > LONGEST_KEY_BYTES:
        return fault(INVALID_REQUEST, f"the id has {size} bytes, Kafka allows {LONGEST_KEY_BYTES}")
    return None


def _ask(cluster: Cluster, connection: Connection, keys: Sequence[str], key_type: KeyType) -> list[FoundCoordinator]:
    if connection.version_of(FIND_COORDINATOR) >= FIND_COORDINATOR_BATCHED_FROM:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=tuple(keys))
        return list(cluster.call_with_cluster_id(connection, FIND_COORDINATOR, request).coordinators)
    answers = connection.pipeline(FIND_COORDINATOR, [FindCoordinatorRequest(key, key_type) for key in keys])
    return [
        FoundCoordinator(key, answer.node_id, answer.host, answer.port, answer.error_code, answer.error_message)
        for key, answer in zip(keys, answers, strict=True)
    ]


def _by_key(found: Sequence[FoundCoordinator]) -> Mapping[str, Coordinator | KafkaFault]:
    brokers: dict[tuple[int, str, int], Coordinator] = {}  # one object per broker, not one per id
    return {
        item.key: brokers.setdefault(item[1:4], Coordinator(item.node_id, item.host, item.port))
        if item.error_code == NONE
        else fault(item.error_code, item.error_message)
        for item in found
    }


class Coordinators(Struct, frozen=True):
    """The brokers that list their transactions, by node id.

    `missing` has a fault for what their listings leave out now. `unseen` is set where that is unknown: this principal
    may not DESCRIBE the topic, so that a partition without a leader would not be noticed.
    """

    ready: Mapping[int, Address]
    missing: tuple[KafkaFault, ...] = ()
    unseen: KafkaFault | None = None


def find_coordinating_brokers(cluster: Cluster, *, before: Collection[int] = ()) -> Coordinators:
    """Find the brokers that coordinate transactions and have loaded them.

    Metadata is requested once; then each leader is asked for an unknown id of each of its partitions, which one that is
    ready reports as unknown. Without DESCRIBE on the topic, or on such ids, brokers don't report: then all of them
    count as ready, as far as is known. A broker that was ready `before` is, where no time was left to ask it.
    """
    metadata = cluster.metadata([TOPIC])
    brokers = {broker.node_id: Address(broker.host, broker.port) for broker in metadata.brokers}
    if not brokers:
        return Coordinators({}, (fault(COORDINATOR_NOT_AVAILABLE, "the metadata of this cluster names no broker"),))
    topic = next((topic for topic in metadata.topics if topic.name == TOPIC), None)
    if topic is not None and topic.error_code == TOPIC_AUTHORIZATION_FAILED:
        return Coordinators(brokers, unseen=fault(topic.error_code, f"which brokers lead {TOPIC} can't be seen"))
    if topic is None or topic.error_code == UNKNOWN_TOPIC_OR_PARTITION:
        return Coordinators(brokers)  # no transaction was ever begun
    if topic.error_code != NONE:
        return Coordinators({}, (fault(topic.error_code, f"topic {TOPIC} has no leaders yet"),))
    return _ask_leaders(cluster, topic, brokers, before) if topic.partitions else Coordinators(brokers)


def _ask_leaders(
    cluster: Cluster, topic: TopicMetadata, brokers: Mapping[int, Address], before: Collection[int]
) -> Coordinators:
    probes = _probes(topic)
    missing: list[KafkaFault] = []
    ready: dict[int, Address] = {}
    leaderless = sorted(partition for leader in probes.keys() - brokers.keys() for partition in probes[leader].values())
    if leaderless:
        has = "has" if len(leaderless) == 1 else "have"
        missing.append(fault(LEADER_NOT_AVAILABLE, f"{_of_topic(leaderless)} {has} no leader"))
    for leader in sorted(probes.keys() & brokers.keys()):
        ids = probes[leader]
        try:
            with cluster.one_of(len(brokers)):
                answer = cluster.ask(brokers[leader], DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest(tuple(ids)))
        except (UnreachableError, DeadlineError) as exc:
            if leader in before and isinstance(exc, DeadlineError) and cluster.deadline().expired():
                ready[leader] = brokers[leader]
                continue
            led = _of_topic(ids.values())
            missing.append(fault(fault_of(exc).code, f"broker {leader}, which leads {led}: {exc.message}"))
        else:
            ready[leader] = brokers[leader]
            missing += _not_loaded(
                leader,
                {ids[TransactionalId(each.transactional_id)]: each.error_code for each in answer.transaction_states},
            )
    return Coordinators(ready, tuple(missing))


def _not_loaded(leader: int, errors: Mapping[int, int]) -> list[KafkaFault]:
    """Return the faults of partitions that a broker has not loaded; other errors mean that it may not report."""
    codes = sorted(set(errors.values()) & COORDINATOR_RETRIES)
    partitions = {code: [partition for partition, error in errors.items() if error == code] for code in codes}
    return [fault(code, f"broker {leader} does not know {_of_topic(partitions[code])} yet") for code in codes]


def _of_topic(partitions: Iterable[int]) -> str:
    numbers = sorted(partitions)
    return f"{'partition' if len(numbers) == 1 else 'partitions'} {', '.join(map(str, numbers))} of {TOPIC}"


def _probes(topic: TopicMetadata) -> dict[int, dict[TransactionalId, int]]:
    """Map each leader to probe ids that nobody uses, one for each partition that it leads, with that partition."""
    leaders = {part.partition_index: part.leader_id for part in topic.partitions}
    probes: defaultdict[int, dict[TransactionalId, int]] = defaultdict(dict)
    names = (TransactionalId(f"eosctl-probe-{number}") for number in count())
    left = set(leaders)
    while left:
        name = next(names)
        partition = coordinator_partition(name, len(leaders))
        if partition in left:
            left.remove(partition)
            probes[leaders[partition]][name] = partition
    return probes


Key = TypeVar("Key")
V = TypeVar("V")


def ask_each_broker(
    cluster: Cluster,
    located: Mapping[Key, Address | KafkaFault],
    ask: Callable[[Address, list[Key]], Mapping[Key, V | KafkaFault]],
) -> dict[Key, V | KafkaFault]:
    """Send each broker a request for its keys, in batches.

    An error of one batch is a fault of its keys, not of the others. Raises UnsupportedError: a broker too old for the
    request is no problem of single keys.
    """
    answers: dict[Key, V | KafkaFault] = {}
    by_broker: defaultdict[Address, list[Key]] = defaultdict(list)
    for key, where in located.items():
        if isinstance(where, KafkaFault):
            answers[key] = where
        else:
            by_broker[where].append(key)
    for address, keys in by_broker.items():
        with cluster.one_of(len(by_broker)):
            for start in range(0, len(keys), BATCH):
                batch = keys[start : start + BATCH]
                answers.update(dict.fromkeys(batch, fault(INVALID_REQUEST, f"{address} left this out of its answer")))
                try:
                    answers.update(ask(address, batch))
                except UnsupportedError:
                    raise
                except EosctlError as exc:
                    answers.update(dict.fromkeys(batch, fault_of(exc)))
    return answers


_STATES = {state.value: state for state in TransactionState}
_ENDED = {
    TransactionState.EMPTY.value,
    TransactionState.COMPLETE_COMMIT.value,
    TransactionState.COMPLETE_ABORT.value,
    TransactionState.DEAD.value,
}


def transaction_of(item: DescribedTransaction, coordinator: Coordinator) -> TransactionDescription | KafkaFault:
    """Convert one result of DescribeTransactions.

    Brokers report the start of a transaction that has ended, too (4.3.1).
    """
    if item.error_code != NONE:
        return fault(item.error_code)
    state, started_ms = _STATES.get(item.transaction_state, TransactionState.UNKNOWN), item.transaction_start_time_ms
    topics = item.topics
    return TransactionDescription(
        transactional_id=TransactionalId(item.transactional_id),
        coordinator=coordinator,
        state=state,
        producer_id=ProducerId(item.producer_id),
        producer_epoch=item.producer_epoch,
        transaction_timeout_ms=item.transaction_timeout_ms,
        started_ms=started_ms if started_ms >= 0 and item.transaction_state not in _ENDED else None,
        partitions=tuple([(topic.topic, index) for topic in topics for index in topic.partitions]) if topics else (),
        last_started_ms=started_ms if started_ms >= 0 else None,
    )


def listings_of(items: Iterable[ListedTransaction], coordinator_id: int) -> list[TransactionListing]:
    """Convert the entries of ListTransactions, and sort them by id.

    Ids are copied in this order: of hundreds of thousands, each that lies elsewhere in memory is waited for whenever
    it is looked at.
    """
    return [
        TransactionListing(
            TransactionalId(name.encode().decode()),
            _STATES.get(state, TransactionState.UNKNOWN),
            ProducerId(producer_id),
            coordinator_id,
        )
        for name, producer_id, state in sorted(items, key=itemgetter(0))
    ]


def group_of(item: DescribedGroup) -> RawGroup | KafkaFault:
    """Convert one result of DescribeGroups.

    Brokers from 4.0 on return GROUP_ID_NOT_FOUND where older ones return Dead.
    """
    if item.error_code not in {NONE, GROUP_ID_NOT_FOUND}:
        return fault(item.error_code, item.error_message)
    return RawGroup(
        group_id=item.group_id,
        state=item.group_state or "Dead",
        protocol_type=item.protocol_type,
        protocol=item.protocol_data,
        members=tuple(
            RawGroupMember(
                member_id=member.member_id,
                client_id=member.client_id,
                host=member.client_host,
                metadata=member.member_metadata,
                assignment=member.member_assignment,
            )
            for member in item.members
        ),
    )
