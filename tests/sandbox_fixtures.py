"""Fixtures on a real stack: one broker and one exactly-once worker for the whole run, and connectors to play with."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from confluent_kafka.admin import AdminClient
from msgspec.structs import replace

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Clock, Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.sandbox.servers import process
from eosctl.sandbox.settings import GroupSpec, StackSpec
from eosctl.sandbox.stack import Stack

GROUP, PAIR = "connect-eos", "pair"
SLOW_SOURCE = Path(__file__).parent / "slow_source"
TWO_WORKERS = GroupSpec(
    PAIR,
    (Mode.ENABLED,) * 2,
    worker_config={
        "session.timeout.ms": "600000",
        # A task that ends late commits all the same. One that is stopped while it starts waits for the herder to be
        # fenced, and the herder for its end, for so long.
        "task.shutdown.graceful.timeout.ms": "20000",
        "plugin.path": str(SLOW_SOURCE),
    },
)
FORGETS = {"offsets.retention.check.interval.ms": "1000"}
EVERYBODY_IS_SUPER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
LED_AS_MADE = {"leader.imbalance.check.interval.seconds": "1"}
"""The first replica leads again soon after its broker is back, and not within five minutes."""
_POLL_S = 0.3
PATIENCE_S = 120
"""What tests wait for brokers, workers and processes that a loaded machine makes slow."""
Read = TypeVar("Read", bound=Sized)
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # $http_proxy must not see loopback URLs


@contextmanager
def sandbox(spec: StackSpec, factory: pytest.TempPathFactory, *, name: str, **more: Any) -> Iterator[Stack]:
    """A sandbox that runs until the block ends; `more` is for `Stack.up`. A run of all tests starts many.

    The classes of the version that most of them have are kept before the first (tests/run/first_starts.py).
    """
    folder = factory.mktemp(name) / "stack"
    started = Stack.up(spec, folder, name=name, environ=os.environ, records_classes=False, **more)
    try:
        yield started
    finally:
        started.down()


@contextmanager
def added_group(stack: Stack, group: GroupSpec) -> Iterator[list[str]]:
    """Another Connect group on the brokers of `stack`, which forgets it when the block ends; its workers' URLs."""
    try:
        stack.add_group(group)
        yield stack.urls(group.group_id)
    finally:
        ended = [node for node in stack.state.of_kind("worker") if node.group_id == group.group_id]
        process.kill([node.process for node in ended])
        stack.state = replace(stack.state, nodes=tuple(node for node in stack.state.nodes if node not in ended))


def group_flags(stack: Stack, group_id: str) -> list[str]:
    """The global options that point eosctl at a group of the stack, without its workers' URLs."""
    topics = stack.state.topics[group_id]
    where = ["-b", stack.bootstrap_servers, "-g", group_id]
    return [*where, "--config-topic", topics["config"], "--offset-topic", topics["offset"]]


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One broker and one worker in `enabled` with metrics, Kafka 4.3.1, group connect-eos, topics connect-*."""
    with sandbox(StackSpec(metrics=True), tmp_path_factory, name="tests") as started:
        yield started


@pytest.fixture(scope="session")
def newest_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One broker and one worker in `enabled` of Kafka 4.4.0; group and topics as in `stack`."""
    with sandbox(StackSpec(kafka_version="4.4.0"), tmp_path_factory, name="newest") as started:
        yield started


@pytest.fixture(scope="session")
def old_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One broker and one worker in `enabled` of Kafka 3.9.2, the last one before 4; group and topics as in `stack`.

    A group without members is forgotten within a second or two.
    """
    with sandbox(StackSpec(kafka_version="3.9.2", broker_config=FORGETS), tmp_path_factory, name="old") as started:
        yield started


@pytest.fixture(scope="session")
def older_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One broker and one worker in `enabled` of Kafka 3.5.1, of the first line that stops connectors; else as `stack`.

    3.5.2 has no connect-mirror on Maven Central.
    """
    with sandbox(StackSpec(kafka_version="3.5.1"), tmp_path_factory, name="older") as started:
        yield started


@pytest.fixture(scope="session")
def oldest_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One broker and one worker in `enabled` of Kafka 3.3.2, of the first line with exactly-once sources."""
    with sandbox(StackSpec(kafka_version="3.3.2"), tmp_path_factory, name="oldest") as started:
        yield started


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A broker and two workers, Kafka 4.3.1, which stay members of their group while they are frozen.

    A group without members is forgotten within a second or two. The workers have the plugin of tests/slow_source, too.
    """
    spec = StackSpec(groups=(TWO_WORKERS,), broker_config=FORGETS)
    with sandbox(spec, tmp_path_factory, name="pair") as started:
        yield started


@pytest.fixture
def topics(stack: Stack) -> Iterator[KafkaTopicClient]:
    """Topics of the stack."""
    settings = ClientSettings(bootstrap_servers=(stack.bootstrap_servers,))
    with KafkaTopicClient(settings, deadline=Deadline.after(120)) as store:
        yield store


@pytest.fixture
def unique() -> str:
    """A name that no other test uses."""
    return f"t{uuid.uuid4().hex[:8]}"


@pytest.fixture
def target_flags(stack: Stack) -> list[str]:
    """The global options that point eosctl at the stack."""
    return ["-b", stack.bootstrap_servers, "-u", stack.urls(GROUP)[0], "-g", GROUP]


@contextmanager
def frozen(stack: Stack, url: str) -> Iterator[None]:
    """The worker at `url` says nothing meanwhile; it answers again at the end."""
    (node,) = [node for node in stack.state.of_kind("worker") if node.address == url]
    process.signal_group(node.process, signal.SIGSTOP)
    try:
        wait_until(lambda: _is_stopped(node.process.pid), what=f"{url} to stop")
        yield
    finally:
        process.signal_group(node.process, signal.SIGCONT)
    wait_until(lambda: rest(url)["version"], what=f"{url} to answer")


def _is_stopped(pid: int) -> bool:
    """Whether every thread is: on a loaded machine one may answer a request after the signal."""
    stats = [(thread / "stat").read_text() for thread in Path(f"/proc/{pid}/task").iterdir()]
    return all(stat.rpartition(") ")[2].startswith("T") for stat in stats)


def wait_until_as_before(stack: Stack) -> None:
    """Waits until a broker that is back has its part again: every replica is in sync, and the first one leads.

    The next test may take another broker away, or need more than one that leads something.
    """
    brokers = len(stack.state.of_kind("broker"))
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers, "enable.metrics.push": False})

    def found() -> tuple[int, list[Any]]:
        told = admin.list_topics(timeout=PATIENCE_S)
        return len(told.brokers), [each for topic in told.topics.values() for each in topic.partitions.values()]

    def is_in_sync() -> bool:
        there, partitions = found()
        return there == brokers and all(set(each.isrs) == set(each.replicas) for each in partitions)

    wait_until(is_in_sync, what="every replica to be in sync")
    wait_until(lambda: all(each.leader == each.replicas[0] for each in found()[1]), what="the first replicas to lead")


def once_there(count: int, read: Callable[[], Read]) -> Read:
    """What `read` gives once it has so many records.

    A transaction's markers come to its partitions one after the other: that of an offset may be there before that of
    the record whose offset it is.
    """

    def found() -> tuple[Read] | None:
        there = read()
        size = there.total() if isinstance(there, Counter) else len(there)
        return (there,) if size >= count else None

    (records,) = wait_until(found, what=f"{count} records")
    return records  # type: ignore[no-any-return]


def wait_until(
    done: Callable[[], Any],
    *,
    what: str,
    timeout_s: float = PATIENCE_S,
    clock: Clock | None = None,
    scene: Callable[[], object] | None = None,
    poll_s: float = _POLL_S,
) -> Any:
    """Polls until `done()` is truthy and returns that; fails the test naming `what`, and how the `scene` is then.

    It rests for as long as a look took: one of doctor is work for all that runs on this machine.
    """
    deadline = Deadline.after(timeout_s, clock)
    while True:
        began_s = deadline.clock.monotonic_s()
        result = done()
        if result:
            return result
        if deadline.expired():
            seen = "" if scene is None else f"; now: {scene()!r}"
            pytest.fail(f"waited {timeout_s:g} s for {what}; last: {result!r}{seen}")
        deadline.clock.sleep_s(max(poll_s, deadline.clock.monotonic_s() - began_s))


def rest(url: str, method: str = "GET", body: object = None, *, opener: urllib.request.OpenerDirector = _direct) -> Any:
    """One REST call of a test's own making, independent of eosctl's client; retries 404, 409 and 500 for a while.

    500 is what a worker answers after 90 s in which a rebalance did not end: that is tried again, once at least.
    """
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    begun_s, patience_s = time.monotonic(), {404: PATIENCE_S / 2, 409: PATIENCE_S / 2, 500: 2 * PATIENCE_S}
    while True:
        request = urllib.request.Request(url, data=data, method=method, headers=headers)
        try:
            with opener.open(request, timeout=PATIENCE_S) as answer:
                text = answer.read()
                return json.loads(text) if text else None
        except urllib.error.HTTPError as exc:
            with exc:
                if time.monotonic() - begun_s > patience_s.get(exc.code, 0):
                    raise
        time.sleep(0.3)


@dataclass(slots=True)
class FileSource:
    """A FileStreamSource connector over a file of our own."""

    url: str
    name: str
    path: Path
    topic: str
    more: dict[str, str] = field(default_factory=dict)
    opener: urllib.request.OpenerDirector = _direct

    def rest(self, path: str = "", method: str = "GET", body: object = None) -> Any:
        """One call about it."""
        return rest(f"{self.url}/connectors/{self.name}{path}", method, body, opener=self.opener)

    def config(self) -> dict[str, str]:
        """Its configuration."""
        return {
            "connector.class": "FileStreamSource",
            "tasks.max": "1",
            "file": str(self.path),
            "topic": self.topic,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            **self.more,
        }

    def put(self, **more: str) -> None:
        """Creates or changes it."""
        self.more |= more
        self.rest("/config", "PUT", self.config())

    def append(self, *lines: str) -> None:
        """Adds lines to its file."""
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    def set_state(self, verb: str) -> None:
        """stop, pause or resume."""
        self.rest(f"/{verb}", "PUT")

    def task_states(self) -> list[str]:
        """The states of its tasks now."""
        return [task["state"] for task in self.rest("/status")["tasks"]]

    def wait_running(self) -> None:
        """Waits until its one task runs."""
        wait_until(lambda: self.task_states() == ["RUNNING"], what=f"{self.name} to run")

    def stop_and_wait(self) -> None:
        """Stops it and waits until its task has ended."""
        self.set_state("stop")
        wait_until(lambda: has_ended(self.rest("/status")), what=f"{self.name} to stop")

    def wait_position(self, position: int) -> None:
        """Waits until its committed source offset is `position` bytes."""

        def there() -> bool:
            offsets = self.rest("/offsets")["offsets"]
            return any((entry["offset"] or {}).get("position") == position for entry in offsets)

        wait_until(there, what=f"{self.name} at position {position}")


def has_ended(status: Any) -> bool:
    """Whether a connector is STOPPED and no task of it is left, by its `GET …/status`.

    A task's last status, UNASSIGNED, may be written after the leader has deleted them all, and then it stays.
    """
    return status["connector"]["state"] == "STOPPED" and {task["state"] for task in status["tasks"]} <= {"UNASSIGNED"}


def slow_config(topic: str, *, tasks: int, poll_ms: int = 4000, **more: str) -> dict[str, str]:
    """A source of ours whose tasks give five numbered records every `poll_ms`, and end no sooner than that."""
    return {
        "connector.class": "eosctl.tests.SlowSource",
        "tasks.max": str(tasks),
        "topic": topic,
        "poll.ms": str(poll_ms),
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        **more,
    }


def mirror_config(bootstrap_servers: str, topics: Sequence[str], *, tasks: int) -> dict[str, str]:
    """A MirrorSourceConnector from these brokers to themselves: a source whose tasks are as many as wanted."""
    raw = "org.apache.kafka.connect.converters.ByteArrayConverter"
    return {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "tasks.max": str(tasks),
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": bootstrap_servers,
        "target.cluster.bootstrap.servers": bootstrap_servers,
        "topics": ",".join(topics),
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
        "sync.topic.configs.enabled": "false",
        "key.converter": raw,
        "value.converter": raw,
    }


@pytest.fixture
def file_source(stack: Stack, tmp_path: Path, unique: str) -> Iterator[FileSource]:
    """A FileStreamSource that is not created yet (`put()` does that) and deleted after the test."""
    path = tmp_path / f"{unique}.txt"
    path.touch()
    source = FileSource(url=stack.urls(GROUP)[0], name=unique, path=path, topic=f"topic-{unique}")
    yield source
    if source.name in rest(f"{source.url}/connectors"):
        rest(f"{source.url}/connectors/{source.name}", "DELETE")


@pytest.fixture
def stopped(file_source: FileSource) -> FileSource:
    """A connector that has committed an offset and is STOPPED."""
    file_source.put()
    file_source.append("one", "two")
    file_source.wait_running()
    file_source.wait_position(8)
    file_source.stop_and_wait()
    return file_source


@pytest.fixture(scope="session")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Three brokers of Kafka 4.4.0 whose authorizer allows everybody everything, internal topics replicated to all.

    No workers but those of groups that tests add, of 4.4.0 as well.
    """
    spec = StackSpec(kafka_version="4.4.0", brokers=3, groups=(), broker_config={**EVERYBODY_IS_SUPER, **LED_AS_MADE})
    with sandbox(spec, tmp_path_factory, name="three") as started:
        yield started
