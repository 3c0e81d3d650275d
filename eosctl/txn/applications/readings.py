"""The readings of a transactional id: each way in which a known product may have constructed it. Pure.

Sources: Connect `Worker.taskTransactionalId` and `DistributedConfig.transactionalProducerId` (Kafka 3.3 to 4.4); Flink
`TransactionalIdFactory` (connector 1.14 to 4.0) and `TransactionalIdsGenerator` (the older FlinkKafkaProducer); Streams
`StreamsProducer` and `ActiveTaskCreator` (2.6 to 4.4); Spring `DefaultTransactionIdSuffixStrategy` and
`zombieFenceTxIdSuffix` (spring-kafka 1.3 to 4.0).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from eosctl.core.ids import TransactionalId, is_own_id, leader_transactional_id, task_of
from eosctl.core.java.numbers import whole_number

Product = Literal["connect", "flink-sink", "flink-producer", "kafka-streams", "spring", "eosctl"]
Guarantee = Literal["exactly_once", "exactly_once_v2"]

_LEADS = leader_transactional_id("")
_NUMBER = r"(?:0|[1-9][0-9]{0,18})"  # as Java prints an int or a long
# the application.id, the UUID of the process, the thread (EOS v2)
_STREAMS_V2 = re.compile(rf"(.+)-[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}-({_NUMBER})", re.DOTALL)
# the application.id, subtopology_partition (EOS v1, until Streams 4.0)
_STREAMS_V1 = re.compile(rf"(.+)-({_NUMBER})_({_NUMBER})", re.DOTALL)
# task name, operator id (a hash), number: FlinkKafkaProducer without a prefix of its own
_FLINK_PRODUCER = re.compile(rf"(.+-[0-9a-f]{{32}})-({_NUMBER})", re.DOTALL)
# prefix, subtask, then a checkpoint (INCREMENTING) or a place in the pool (POOLING): KafkaSink
_FLINK_SINK = re.compile(rf"(.+)-({_NUMBER})-({_NUMBER})", re.DOTALL)
# a prefix and an int, in a word that has no other digit: random hex digits are no number
_ENDS_IN_NUMBER = re.compile(rf"((?:.*[-_.:/])?[^-_.:/0-9]*)({_NUMBER})", re.DOTALL)
_UUID = re.compile(r".*[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.DOTALL)
_MOST = 2**31 - 1


class IdReading(NamedTuple):
    """One reading of an id; `name` is common to all ids of the application, and identifies it.

    `first` and `second` are the numbers in it: subtask and checkpoint of a Flink sink, subtopology and partition of
    Streams. `sure`: the cluster shows that such an application exists; else only the form of the id does.
    """

    product: Product
    name: str
    group_id: str | None = None
    connector: str | None = None
    guarantee: Guarantee | None = None
    first: int | None = None
    second: int | None = None
    sure: bool = False


class ClusterFacts(Struct, frozen=True):
    """The groups and topics of the cluster, which prove readings.

    `connect_groups` maps Connect groups to the connectors that their members hold. `other_groups` are the other groups
    (for Streams, the application.id). `topics` are the topics with their numbers of partitions.
    """

    connect_groups: Mapping[str, frozenset[str]] = {}
    other_groups: Collection[str] = frozenset()
    topics: Mapping[str, int] = {}


def readings_of(transactional_id: TransactionalId, known: ClusterFacts) -> tuple[IdReading, ...]:
    """Return every reading of the id, in a fixed order; none if no product constructs such ids.

    If the cluster proves any readings, only those remain. A reading as a mere prefix and number (of Spring, or of a
    FlinkKafkaProducer with a custom prefix) counts only if there is no other.
    """
    found = [*_of_connect(transactional_id, known), *_by_shape(transactional_id, known)]
    if is_own_id(transactional_id):
        found.append(IdReading("eosctl", "eosctl", sure=True))
    if not found:
        found = list(_numbered(transactional_id))
    proven = tuple(reading for reading in found if reading.sure)
    return proven or tuple(found)


def _of_connect(transactional_id: TransactionalId, known: ClusterFacts) -> Iterator[IdReading]:
    """Yield readings as the id of a leader, or of a task of each group whose name is a prefix.

    The leader of a group that does not exist (any more) is yielded only if no group can have such a task.
    """
    leads = transactional_id.removeprefix(_LEADS) if transactional_id.startswith(_LEADS) else ""
    if leads in known.connect_groups:
        yield IdReading("connect", transactional_id, leads, sure=True)
        leads = ""
    for group_id, connectors in known.connect_groups.items():
        work = task_of(transactional_id, group_id) if transactional_id.startswith(group_id) else None
        if work is not None:
            name, leads = f"{group_id}-{work[0]}", ""
            yield IdReading("connect", name, group_id, work[0], first=work[1], sure=work[0] in connectors)
    if leads:
        yield IdReading("connect", transactional_id, leads)


def _by_shape(transactional_id: TransactionalId, known: ClusterFacts) -> Iterator[IdReading]:
    if listener := _spring_listener(transactional_id, known):
        yield listener
    if not transactional_id[-1:].isdigit():
        return  # quicker than by the shapes
    if match := _STREAMS_V2.fullmatch(transactional_id):
        sure = match[1] in known.other_groups
        yield IdReading("kafka-streams", match[1], None, None, "exactly_once_v2", int(match[2]), sure=sure)
    elif match := _STREAMS_V1.fullmatch(transactional_id):
        sure, numbers = match[1] in known.other_groups, (int(match[2]), int(match[3]))
        yield IdReading("kafka-streams", match[1], None, None, "exactly_once", *numbers, sure)
    elif match := _FLINK_PRODUCER.fullmatch(transactional_id):
        yield IdReading("flink-producer", match[1], first=int(match[2]))
    elif match := _FLINK_SINK.fullmatch(transactional_id):
        yield IdReading("flink-sink", match[1], first=int(match[2]), second=int(match[3]))


def _spring_listener(transactional_id: TransactionalId, known: ClusterFacts) -> IdReading | None:
    """Read `prefix` + `group.topic.partition` with an existing group and topic; the longest topic wins."""
    head, dot, partition = transactional_id.rpartition(".")
    number = whole_number(partition)
    if not dot or number is None or not known.topics:
        return None
    at = head.find(".")
    while at >= 0:
        topic, left = head[at + 1 :], head[:at]
        if number < known.topics.get(topic, 0):
            groups = [group for group in known.other_groups if left.endswith(group)]
            if groups:
                group = max(groups, key=len)
                return IdReading("spring", left, group, first=number, sure=True)
        at = head.find(".", at + 1)
    return None


def _numbered(transactional_id: TransactionalId) -> Iterator[IdReading]:
    """Yield readings as a prefix and a number: Spring's, and a FlinkKafkaProducer's if separated by a dash."""
    match = _ENDS_IN_NUMBER.fullmatch(transactional_id)
    if match is None or not match[1] or int(match[2]) > _MOST or _UUID.fullmatch(transactional_id):
        return
    if match[1].endswith("-"):
        yield IdReading("flink-producer", match[1][:-1], first=int(match[2]))
    yield IdReading("spring", match[1], first=int(match[2]))
