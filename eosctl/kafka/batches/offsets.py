"""The first and last offsets of partitions, and their offsets for times: ListOffsets to their leaders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from eosctl.core.batches import Place
from eosctl.core.transactions import KafkaFault
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.faults import LEADER_RETRIES, ask_until_settled, fault
from eosctl.kafka.native.each_broker import ask_each_broker
from eosctl.kafka.topics.partition_leaders import Leader, describe_leaders
from eosctl.kafka.topics.stream import Address
from eosctl.wire.error_codes import (
    INCONSISTENT_TOPIC_ID,
    NONE,
    OFFSET_NOT_AVAILABLE,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from eosctl.wire.log.offset_messages import (
    EARLIEST,
    LATEST,
    LIST_OFFSETS,
    Isolation,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetLookup,
    TopicOffsetLookups,
)

MOVING = LEADER_RETRIES | {
    *(UNKNOWN_LEADER_EPOCH, OFFSET_NOT_AVAILABLE),
    *(UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID),
}
"""Faults of partitions whose leader is not settled, or does not know them yet."""
_REMOTE_TIMEOUT_MS = 30_000
"""The time that a broker may search remote storage for the offset of a time; it is Java's request timeout."""
_WITHOUT_TOPIC = MOVING - {UNKNOWN_TOPIC_OR_PARTITION}


class LogBounds(Struct, frozen=True):
    """Log start, last stable offset and high watermark of a partition, the offsets of the requested times, its leader.

    A time that is later than all records has the high watermark.
    """

    start: int
    last_stable: int
    end: int
    of_times: tuple[int, ...]
    leader: Leader


def read_log_bounds(
    cluster: Cluster, places: Iterable[Place], *, times_ms: Sequence[int] = ()
) -> dict[Place, LogBounds | KafkaFault]:
    """Return the bounds of each partition, or the fault of its leader.

    Leaders are asked again until they are settled.
    """

    def ask_once(pending: list[Place]) -> Mapping[Place, LogBounds | KafkaFault]:
        leaders = describe_leaders(cluster, pending)
        located = {place: each if isinstance(each, KafkaFault) else each.address for place, each in leaders.items()}
        known = {place: each for place, each in leaders.items() if isinstance(each, Leader)}
        return ask_each_broker(
            cluster,
            located,
            lambda address, batch: _ask(cluster, address, {each: known[each] for each in batch}, times_ms),
        )

    return ask_until_settled(
        places, ask_once, retriable=_WITHOUT_TOPIC, deadline=cluster.deadline(), within=cluster.within
    )


def _ask(
    cluster: Cluster, address: Address, leaders: Mapping[Place, Leader], times_ms: Sequence[int]
) -> dict[Place, LogBounds | KafkaFault]:
    asked = [(EARLIEST, Isolation.UNCOMMITTED), (LATEST, Isolation.COMMITTED), (LATEST, Isolation.UNCOMMITTED)]
    asked += [(time_ms, Isolation.UNCOMMITTED) for time_ms in times_ms]
    requests = [_request(leaders, timestamp, isolation) for timestamp, isolation in asked]
    answers = cluster.use(address, lambda connection: connection.pipeline(LIST_OFFSETS, requests))
    found = [_by_place(answer) for answer in answers]
    return {place: _bounds([each.get(place) for each in found], leader) for place, leader in leaders.items()}


def _request(leaders: Mapping[Place, Leader], timestamp: int, isolation: Isolation) -> ListOffsetsRequest:
    topics: defaultdict[str, list[OffsetLookup]] = defaultdict(list)
    for (topic, partition), leader in leaders.items():
        topics[topic].append(OffsetLookup(partition, leader.epoch, timestamp))
    queries = tuple(TopicOffsetLookups(topic, tuple(each)) for topic, each in topics.items())
    return ListOffsetsRequest(isolation_level=isolation, topics=queries, timeout_ms=_REMOTE_TIMEOUT_MS)


def _by_place(answer: ListOffsetsResponse) -> dict[Place, int | KafkaFault]:
    return {
        (topic.name, each.partition_index): each.offset if each.error_code == NONE else fault(each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    }


def _bounds(found: Sequence[int | KafkaFault | None], leader: Leader) -> LogBounds | KafkaFault:
    offsets = [each for each in found if isinstance(each, int)]
    if len(offsets) < len(found):
        faults = (each for each in found if isinstance(each, KafkaFault))
        return next(faults, fault(UNKNOWN_TOPIC_OR_PARTITION, "the broker's answer leaves this partition out"))
    start, last_stable, end, *of_times = offsets
    return LogBounds(start, last_stable, end, tuple(end if each < 0 else each for each in of_times), leader)
