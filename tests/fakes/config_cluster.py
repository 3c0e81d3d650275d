"""A Kafka cluster and Connect workers in memory, for operations that only read the config topic and around it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eosctl.core.group_protocol import Assignment, Metadata, encode_assignment, encode_metadata
from eosctl.core.records import Bounds, Record, TopicDescription, TopicRead
from eosctl.core.transactions import (
    TRANSACTIONAL_ID_NOT_FOUND,
    ActiveProducer,
    Coordinator,
    KafkaFault,
    RawGroup,
    RawGroupMember,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from eosctl.errors import EosctlError, NotFoundError, UnsupportedError
from tests.fakes.acls import FakeAclStore
from tests.fakes.config_topic import CONFIG_TOPIC

HIDDEN = ("super.users", "allow.everyone.if.no.acl.found")


@dataclass
class FakeCluster:
    """What the cluster holds; `faults` maps a door or a method (`list_transactions`) to the error it answers with.

    `arriving` are records that a worker writes right after the next read of the config topic.
    `offsets` and `aborted_offsets` are of the global offsets topic. `known_ids` are the transactional ids that
    coordinators know (None: all), `rivals` other groups. `connectors` are name -> type; `workers` are URL -> mode, the
    first of them leads the group. `hidden_settings` are those of HIDDEN that brokers have; without `acls` of a test's
    own there is no authorizer.
    """

    records: Sequence[Record] = ()
    aborted: Sequence[Record] = ()
    arriving: Sequence[Record] = ()
    topics: Mapping[str, TopicDescription] = field(
        default_factory=lambda: {
            CONFIG_TOPIC: TopicDescription(CONFIG_TOPIC, "id", 1, 3, {"cleanup.policy": "compact"}),
        }
    )
    open_from: int | None = None
    offsets: Sequence[Record] = ()
    aborted_offsets: Sequence[Record] = ()
    max_timeout_ms: int = 900_000
    producers_fault: KafkaFault | None = None
    brokers: int = 1
    known_ids: Collection[str] | None = None
    group_id: str = "g"
    rivals: Mapping[str, RawGroup] = field(default_factory=dict)
    listings: Sequence[TransactionListing] = ()
    connectors: Mapping[str, str] = field(default_factory=dict)
    workers: Mapping[str, str] = field(default_factory=dict)
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    task_state: str = "RUNNING"
    group_state: str = "Stable"
    faults: Mapping[str, EosctlError] = field(default_factory=dict)
    hidden_settings: Collection[str] = HIDDEN
    acls: FakeAclStore = field(default_factory=lambda: FakeAclStore(refuse=UnsupportedError("there is no authorizer")))

    def doors(self) -> dict[str, Any]:
        """App's open_* callables that lead here."""
        return {
            "open_topics": lambda _app: FakeTopics(self),
            "open_transactions": lambda _app: FakeTransactions(self),
            "open_worker": lambda _app, url: FakeWorker(self, url),
            "open_acls": lambda _app: self.acls,
        }

    def check(self, name: str) -> None:
        """Raises the fault of that name."""
        if name in self.faults:
            raise self.faults[name]


@dataclass
class FakeTopics:
    """TopicStore, as far as reading goes."""

    cluster: FakeCluster

    def __enter__(self) -> FakeTopics:
        return self

    def __exit__(self, *_exc: object) -> None:
        pass

    def cluster_id(self) -> str:
        return "cluster-1"

    def describe(self, topics: Collection[str]) -> Mapping[str, TopicDescription]:
        self.cluster.check("describe")
        return {name: self.cluster.topics[name] for name in topics if name in self.cluster.topics}

    def bounds(self, topic: str) -> tuple[Bounds, ...]:
        if topic not in self.cluster.topics:
            raise NotFoundError(f"there is no topic {topic}")
        end = max((r.offset + 1 for r in [*self.cluster.records, *self.cluster.aborted]), default=0)
        if topic != CONFIG_TOPIC:
            end = max((r.offset + 1 for r in [*self.cluster.offsets, *self.cluster.aborted_offsets]), default=0)
            return tuple(Bounds(number, 0, end, end) for number in range(self.cluster.topics[topic].partitions))
        open_from = self.cluster.open_from
        return (Bounds(0, 0, end if open_from is None else open_from, end),)

    def broker_settings(self, name: str) -> Mapping[int, str]:
        self.cluster.check("broker_settings")
        if name in HIDDEN:
            return {1: ""} if name in self.cluster.hidden_settings else {}
        return {1: str(self.cluster.max_timeout_ms)}

    def read(self, topic: str, *, isolation: str = "read_committed", newest_per_key: bool = False) -> TopicRead:
        if topic != CONFIG_TOPIC:
            self.cluster.check("read offsets")
            return self._offsets(topic, isolation)
        (bound,) = self.bounds(topic)
        stop = bound.lso if isolation == "read_committed" else bound.end
        visible = [*self.cluster.records, *(self.cluster.aborted if isolation == "read_uncommitted" else ())]
        records = tuple(sorted((r for r in visible if r.offset < stop), key=lambda record: record.offset))
        self.cluster.records, self.cluster.arriving = [*self.cluster.records, *self.cluster.arriving], ()
        return TopicRead(topic, (bound,), records, len(records))

    def _offsets(self, topic: str, isolation: str) -> TopicRead:
        aborted = self.cluster.aborted_offsets if isolation == "read_uncommitted" else ()
        visible = sorted([*self.cluster.offsets, *aborted], key=lambda record: record.offset)
        newest = {(record.partition, record.key): record for record in visible if record.topic == topic}
        return TopicRead(topic, self.bounds(topic), tuple(newest.values()), len(visible))


@dataclass
class FakeTransactions:
    """TransactionAdmin, as far as listing goes."""

    cluster: FakeCluster

    def __enter__(self) -> FakeTransactions:
        self.cluster.check("transactions")
        return self

    def __exit__(self, *_exc: object) -> None:
        pass

    def list_transactions(self, **_filters: object) -> Sequence[TransactionListing]:
        self.cluster.check("list_transactions")
        return self.cluster.listings

    def cluster_id(self) -> str:
        return "cluster-1"

    def find_coordinators(self, transactional_ids: Sequence[str]) -> Mapping[str, Coordinator | KafkaFault]:
        self.cluster.check("find_coordinators")
        brokers = self.cluster.brokers
        return {each: Coordinator(at % brokers, "h", 1) for at, each in enumerate(transactional_ids)}

    def describe_transactions(
        self, transactional_ids: Sequence[str]
    ) -> Mapping[str, TransactionDescription | KafkaFault]:
        self.cluster.check("describe_transactions")
        return {each: self._described(each) for each in transactional_ids}

    def _described(self, transactional_id: str) -> TransactionDescription | KafkaFault:
        if self.cluster.known_ids is not None and transactional_id not in self.cluster.known_ids:
            return KafkaFault(TRANSACTIONAL_ID_NOT_FOUND, "TRANSACTIONAL_ID_NOT_FOUND")
        where = Coordinator(1, "h", 1)
        return TransactionDescription(transactional_id, where, TransactionState.EMPTY, 1, 0, 60_000, None, ())

    def topic_partitions(self, topics: Collection[str] | None = None) -> Mapping[str, int]:
        self.cluster.check("topic_partitions")
        there = {name: topic.partitions for name, topic in self.cluster.topics.items()}
        return {name: count for name, count in there.items() if topics is None or name in topics}

    def describe_producers(
        self, partitions: Iterable[tuple[str, int]]
    ) -> Mapping[tuple[str, int], Sequence[ActiveProducer] | KafkaFault]:
        fault = self.cluster.producers_fault
        return {place: [] if fault is None else fault for place in partitions}

    def describe_group(self, group_id: str) -> RawGroup:
        self.cluster.check("describe_group")
        if group_id != self.cluster.group_id:
            return self.cluster.rivals.get(group_id) or RawGroup(group_id, "Dead", "", "", ())
        urls = list(self.cluster.workers)
        if self.cluster.group_state == "Dead":
            return RawGroup(group_id, "Dead", "", "", ())
        if not urls:
            return RawGroup(group_id, "Empty", "connect", "", ())
        assignment = encode_assignment(Assignment(2, 0, f"member {urls[0]}", urls[0], 7))
        members = [
            RawGroupMember(f"member {url}", "c", "h", encode_metadata(Metadata(2, url, 7)), assignment) for url in urls
        ]
        return RawGroup(group_id, self.cluster.group_state, "connect", "sessioned", tuple(members))


@dataclass
class FakeWorker:
    """ConnectWorker, as far as reading goes; it objects to exactly-once unless its mode is enabled."""

    cluster: FakeCluster
    url: str

    def root(self) -> Mapping[str, str]:
        self.cluster.check(self.url)
        return {"version": "4.3.1", "commit": "c", "kafka_cluster_id": "cluster-1"}

    def health(self) -> str:
        return "healthy"

    def connectors(self) -> Mapping[str, Mapping[str, object]]:
        self.cluster.check(self.url)
        return {
            name: {
                "info": {"type": kind, "config": {"connector.class": "X", **self.cluster.configs.get(name, {})}},
                "status": {
                    "connector": {"state": "RUNNING"},
                    "tasks": [{"id": 0, "state": self.cluster.task_state, "worker_id": "w"}],
                },
            }
            for name, kind in self.cluster.connectors.items()
        }

    def plugins(self) -> Sequence[Mapping[str, object]]:
        return [{"class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "type": "source"}]

    def validate(self, plugin: str, config: Mapping[str, str]) -> Mapping[str, object]:
        self.cluster.check("validate")
        enabled = self.cluster.workers.get(self.url) == "enabled"
        errors = [] if enabled else ["This worker does not have exactly-once source support enabled."]
        value = {"name": "exactly.once.support", "value": config["exactly.once.support"], "errors": errors}
        return {"name": plugin, "error_count": len(errors), "configs": [{"value": value}]}


def listing(transactional_id: str, state: TransactionState = TransactionState.EMPTY) -> TransactionListing:
    """One line of ListTransactions."""
    return TransactionListing(transactional_id, state, 1, 1)
