"""The clusters that the contract runs on, real and fake, and what others do there: each knob has both meanings."""

from __future__ import annotations

import gc
import itertools
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import confluent_kafka
import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.records import OutRecord
from eosctl.core.transactions import Coordinator, RawGroup, RawGroupMember
from eosctl.deadline import Clock, Deadline
from eosctl.kafka.batches.log import NativeBatchLog
from eosctl.kafka.session import KafkaSession
from eosctl.kafka.topics.librdkafka import quiet_logger
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from eosctl.ports import BatchLog, TopicClient, TransactionAdmin
from eosctl.sandbox.servers import process
from eosctl.sandbox.stack import Stack
from tests.fakes.admin import FakeTransactionAdmin
from tests.fakes.batch_log import FakeBatchLog
from tests.fakes.broker import FakeCluster
from tests.fakes.broker_state import BrokerState
from tests.fakes.clock import FakeTime
from tests.fakes.topics import FakeTopicStore
from tests.sandbox_fixtures import GROUP, PATIENCE_S, wait_until, wait_until_as_before


def on(*stacks: str, slow: bool = False) -> list[Any]:
    """Parameters of a fixture that gets a real stack by its name."""
    more = [pytest.mark.slow] if slow else []
    return [
        pytest.param(name, marks=[pytest.mark.live, pytest.mark.on(name.removeprefix(SESSION)), *more])
        for name in stacks
    ]


SESSION = "session-"
REAL = on("stack", "three_brokers", "old_stack")
FROZEN = 3


class Producer(Protocol):
    """Somebody else's transactional producer, with a transaction begun."""

    def send(self, topic: str, partition: int, key: bytes, value: bytes | None = b"v") -> None:
        """A record that the broker has taken."""

    def commit(self) -> None:
        """Returns when the end is answered, which is before the markers are written."""

    def abort(self) -> None:
        """As `commit`."""


class Subject(Protocol):
    """A cluster to ask, and what others do to it."""

    workers: bool
    """Whether Connect group GROUP is there, with one member."""
    lists_by_pattern: bool

    def store(self, timeout_s: float = 60.0) -> AbstractContextManager[TopicClient]: ...
    def admin(self, timeout_s: float = 60.0) -> AbstractContextManager[TransactionAdmin]: ...
    def batches(self, timeout_s: float = 60.0) -> AbstractContextManager[BatchLog]: ...
    def producer(self, transactional_id: str) -> Producer: ...
    def empty_group(self, group_id: str) -> None:
        """Makes a group whose only member has left."""

    def delete_group(self, group_id: str) -> None: ...
    def compact(self, topic: str) -> None:
        """Runs the log cleaner over the topic; its settings must allow it."""

    def delete_before(self, topic: str, partition: int, offset: int) -> None: ...
    def holdable(self, name: str) -> tuple[TransactionalId, str]:
        """A transactional id and a new topic of one partition, for `markers_held`."""

    def markers_held(self) -> AbstractContextManager[None]:
        """Keeps the markers of transactions on `holdable` topics from being written until the block ends."""


class FakeProducer:
    """A producer over a BrokerState."""

    def __init__(self, state: BrokerState, transactional_id: str) -> None:
        self._state, self._id = state, transactional_id
        _error, producer_id, epoch = state.init_producer_id(transactional_id, 60_000)
        self._producer = producer_id, epoch

    def send(self, topic: str, partition: int, key: bytes, value: bytes | None = b"v") -> None:
        assert self._state.write_in(self._id, self._producer, OutRecord(topic, key, value), partition) >= 0

    def commit(self) -> None:
        assert self._state.end_transaction(self._id, self._producer, commit=True) == 0

    def abort(self) -> None:
        assert self._state.end_transaction(self._id, self._producer, commit=False) == 0


class FakeSubject:
    """The fakes, with a clock that stands still and markers that are late."""

    workers = True
    lists_by_pattern = True

    def __init__(self, *, over_tcp: bool = False) -> None:
        self.state = BrokerState(brokers=2)
        self.state.late_markers = 2
        member = RawGroupMember("m1", "client", "/127.0.0.1", b"\x00\x02meta", b"\x00\x02assignment")
        self.state.groups[GROUP] = RawGroup(GROUP, "Stable", "connect", "sessioned", (member,))
        self.brokers, self._over_tcp = FakeCluster(state=self.state), over_tcp
        self._clock = Clock() if over_tcp else FakeTime().clock()

    @contextmanager
    def store(self, timeout_s: float = 60.0) -> Iterator[TopicClient]:
        yield FakeTopicStore(self.state)

    @contextmanager
    def admin(self, timeout_s: float = 60.0) -> Iterator[TransactionAdmin]:
        deadline = Deadline.after(timeout_s, self._clock)
        if not self._over_tcp:
            with FakeTransactionAdmin(self.brokers, deadline=deadline) as fake:
                yield fake
            return
        settings = ClientSettings(self.brokers.bootstrap_servers)
        with NativeTransactionAdmin(settings, deadline=deadline) as admin:
            yield admin

    @contextmanager
    def batches(self, timeout_s: float = 60.0) -> Iterator[BatchLog]:
        if not self._over_tcp:
            yield FakeBatchLog(self.state)
            return
        settings = ClientSettings(self.brokers.bootstrap_servers)
        with NativeBatchLog(settings, deadline=Deadline.after(timeout_s)) as batches:
            yield batches

    def producer(self, transactional_id: str) -> Producer:
        return FakeProducer(self.state, transactional_id)

    def empty_group(self, group_id: str) -> None:
        self.state.groups[group_id] = RawGroup(group_id, "Empty", "consumer", "", ())

    def delete_group(self, group_id: str) -> None:
        del self.state.groups[group_id]

    def compact(self, topic: str) -> None:
        for log in self.state.topics[topic].partitions:
            log.compact()

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        self.state.log(topic, partition).delete_before(offset)

    def holdable(self, name: str) -> tuple[TransactionalId, str]:
        self.state.add_topic(name)
        return TransactionalId(name), name

    @contextmanager
    def markers_held(self) -> Iterator[None]:
        before, self.state.late_markers = self.state.late_markers, 10**6
        yield
        self.state.late_markers = before
        self.state.write_markers()


class RealProducer:
    """confluent-kafka's."""

    def __init__(self, bootstrap_servers: str, transactional_id: str) -> None:
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": 300_000,  # what is left open stays so for as long as a test may take
                "socket.timeout.ms": 1000 * PATIENCE_S,
                "enable.metrics.push": False,
            },
            logger=quiet_logger(),
        )
        self._producer.init_transactions(PATIENCE_S)
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, key: bytes, value: bytes | None = b"v") -> None:
        self._producer.produce(topic, value, key, partition=partition)
        assert self._producer.flush(PATIENCE_S) == 0

    def commit(self) -> None:
        self._producer.commit_transaction(PATIENCE_S)

    def abort(self) -> None:
        self._producer.abort_transaction(PATIENCE_S)


class RealSubject:
    """A sandbox; with `session` its topics are asked over the connections of a command, else by librdkafka."""

    def __init__(self, stack: Stack, session: KafkaSession | None = None) -> None:
        self._session = session
        self._stack, self._servers = stack, stack.bootstrap_servers
        self._settings = ClientSettings(tuple(self._servers.split(",")))
        self._confluent = AdminClient({"bootstrap.servers": self._servers, "enable.metrics.push": False})
        self._brokers = len(stack.state.of_kind("broker"))
        self.workers = bool(stack.state.of_kind("worker"))
        self.lists_by_pattern = int(stack.state.kafka_version.split(".")[0]) >= 4

    def store(self, timeout_s: float = 60.0) -> AbstractContextManager[TopicClient]:
        connections = self._session.to(self._settings) if self._session is not None else None
        return KafkaTopicClient(self._settings, deadline=Deadline.after(timeout_s), connections=connections)

    def admin(self, timeout_s: float = 60.0) -> AbstractContextManager[TransactionAdmin]:
        return NativeTransactionAdmin(self._settings, deadline=Deadline.after(timeout_s))

    def batches(self, timeout_s: float = 60.0) -> AbstractContextManager[BatchLog]:
        return NativeBatchLog(self._settings, deadline=Deadline.after(timeout_s))

    def producer(self, transactional_id: str) -> Producer:
        return RealProducer(self._servers, transactional_id)

    def empty_group(self, group_id: str) -> None:
        place = confluent_kafka.TopicPartition(f"{group_id}-topic", 0, 0)
        with self.store() as store:
            store.create(place.topic, partitions=1, replication_factor=1, config={})
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self._servers, "group.id": group_id, "enable.metrics.push": False},
            logger=quiet_logger(),
        )
        consumer.subscribe([place.topic])
        wait_until(lambda: consumer.poll(0.1) is None and consumer.assignment(), what="a member to join")
        consumer.commit(offsets=[place], asynchronous=False)
        consumer.close()
        with self.admin() as admin:
            wait_until(lambda: admin.describe_group(group_id).state == "Empty", what="the member to have left")

    def delete_group(self, group_id: str) -> None:
        for future in self._confluent.delete_consumer_groups([group_id]).values():
            future.result(PATIENCE_S)

    def compact(self, topic: str) -> None:
        """A change of any of its settings makes the cleaner start anew, and look at once."""
        for number, size in itertools.product(range(1, self._brokers + 1), ("0.8", "0.9")):
            entry = ConfigEntry("log.cleaner.io.buffer.load.factor", size, incremental_operation=AlterConfigOpType.SET)
            resource = ConfigResource(ResourceType.BROKER, str(number), incremental_configs=[entry])
            for future in self._confluent.incremental_alter_configs([resource]).values():
                future.result(PATIENCE_S)

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        wanted = [confluent_kafka.TopicPartition(topic, partition, offset)]
        for future in self._confluent.delete_records(wanted).values():
            future.result(PATIENCE_S)

    def holdable(self, name: str) -> tuple[TransactionalId, str]:
        """A topic that can't be written without the broker that `markers_held` freezes, and another one's id.

        Of a partition without any leader Kafka (4.3.1) skips the markers, and leaves a hanging transaction there.
        """
        new = NewTopic(name, 1, replica_assignment=[[1, FROZEN]], config={"min.insync.replicas": "2"})
        for future in self._confluent.create_topics([new]).values():
            future.result(PATIENCE_S)
        with self.admin() as admin:
            found = admin.find_coordinators([TransactionalId(f"{name}-{number}") for number in range(30)])
        others = [each for each, at in found.items() if isinstance(at, Coordinator) and at.node_id != FROZEN]
        return others[0], name

    @contextmanager
    def markers_held(self) -> Iterator[None]:
        """The other brokers wait for the frozen one until the controller gives it up, after nine seconds."""
        frozen = self._stack.node(f"broker-{FROZEN}").process
        process.signal_group(frozen, signal.SIGSTOP)
        try:
            yield
        finally:
            process.signal_group(frozen, signal.SIGCONT)
        wait_until_as_before(self._stack)


@contextmanager
def subject_of(name: str, request: pytest.FixtureRequest) -> Iterator[Subject]:
    """The subject that a parameter names: `memory`, `tcp`, or the fixture of a sandbox, perhaps after SESSION."""
    if name == "memory":
        yield FakeSubject()
    elif name == "tcp":
        fake = FakeSubject(over_tcp=True)
        with fake.brokers:
            yield fake
    elif name.startswith(SESSION):
        session = KafkaSession()
        yield RealSubject(request.getfixturevalue(name.removeprefix(SESSION)), session)
        session.close()
    else:
        yield RealSubject(request.getfixturevalue(name))
        gc.collect()  # producers that outlive their brokers complain
