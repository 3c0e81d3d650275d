"""Whether the transaction coordinators know all of their transactions: before that, a listing looks whole and is not.

A broker lists what it has loaded of the partitions of `__transaction_state` that it leads. One that has just started,
and a partition without a leader, are silently missing (`TransactionStateManager.listTransactionStates`, Kafka 4.3).
"""

from __future__ import annotations

from collections import defaultdict
from itertools import count

from eosctl.core.transaction_log import TOPIC, coordinator_partition
from eosctl.core.transactions import KafkaFault
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.faults import COORDINATOR_RETRIES, fault
from eosctl.kafka.stream import Address
from eosctl.wire.cluster_messages import TopicMetadata
from eosctl.wire.error_codes import COORDINATOR_NOT_AVAILABLE, NONE
from eosctl.wire.transaction_messages import DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest


def missing_coordinator(cluster: Cluster) -> KafkaFault | None:
    """Why a listing would be a part of the truth now; None where all coordinators are ready, or nobody may know.

    Asks each leader for an id of each of its partitions: a coordinator that is ready says that it does not know it.
    Without DESCRIBE on the topic, or on such ids, brokers don't tell.
    """
    metadata = cluster.metadata([TOPIC])
    topic = next((topic for topic in metadata.topics if topic.name == TOPIC and topic.error_code == NONE), None)
    if topic is None:
        return None  # no transaction was ever begun, or this principal may not see the topic
    brokers = {broker.node_id: Address(broker.host, broker.port) for broker in metadata.brokers}
    leaderless = [part.partition_index for part in topic.partitions if part.leader_id not in brokers]
    if leaderless:
        return fault(COORDINATOR_NOT_AVAILABLE, f"partition {leaderless[0]} of {TOPIC} has no leader")
    for leader, ids in _probes(topic).items():
        answer = cluster.ask(brokers[leader], DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest(tuple(ids)))
        for item in answer.transaction_states:
            if item.error_code in COORDINATOR_RETRIES:
                return fault(item.error_code, f"broker {leader}, partition {ids[item.transactional_id]} of {TOPIC}")
    return None


def _probes(topic: TopicMetadata) -> dict[int, dict[str, int]]:
    """Leader -> an id that nobody has, for each partition that it leads -> the partition."""
    leaders = {part.partition_index: part.leader_id for part in topic.partitions}
    probes: defaultdict[int, dict[str, int]] = defaultdict(dict)
    names = (f"eosctl-probe-{number}" for number in count())
    left = set(leaders)
    while left:
        name = next(names)
        partition = coordinator_partition(name, len(leaders))
        if partition in left:
            left.remove(partition)
            probes[leaders[partition]][name] = partition
    return probes
