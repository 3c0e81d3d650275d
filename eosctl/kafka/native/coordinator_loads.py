"""The brokers that coordinate transactions, and whether they have loaded all of theirs.

A broker lists what it has loaded of the partitions of `__transaction_state` that it leads. One that has just started,
and a partition without a leader, are silently missing (`TransactionStateManager.listTransactionStates`, Kafka 4.3): a
listing would look complete.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import count

from msgspec import Struct

from eosctl.core.ids import TransactionalId
from eosctl.core.transaction_log import TOPIC, coordinator_partition
from eosctl.core.transactions import KafkaFault
from eosctl.errors import DeadlineError, UnreachableError
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.faults import COORDINATOR_RETRIES, fault, fault_of
from eosctl.kafka.topics.stream import Address
from eosctl.wire.cluster_messages import TopicMetadata
from eosctl.wire.error_codes import (
    COORDINATOR_NOT_AVAILABLE,
    LEADER_NOT_AVAILABLE,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from eosctl.wire.transaction_messages import DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest


class Coordinators(Struct, frozen=True):
    """The brokers that list their transactions, by node id.

    `missing` has a fault for what their listings leave out now. `unseen` is set where that is unknown: this principal
    may not DESCRIBE the topic, so that a partition without a leader would not be noticed.
    """

    ready: Mapping[int, Address]
    missing: tuple[KafkaFault, ...] = ()
    unseen: KafkaFault | None = None


def find_coordinating_brokers(cluster: Cluster) -> Coordinators:
    """Find the brokers that coordinate transactions and have loaded them.

    Metadata is requested once; then each leader is asked for an unknown id of each of its partitions, which one that is
    ready reports as unknown. Without DESCRIBE on the topic, or on such ids, brokers don't report: then all of them
    count as ready, as far as is known.
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
    return _ask_leaders(cluster, topic, brokers) if topic.partitions else Coordinators(brokers)


def _ask_leaders(cluster: Cluster, topic: TopicMetadata, brokers: Mapping[int, Address]) -> Coordinators:
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
