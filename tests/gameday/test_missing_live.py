"""Incidents of what should be there and is not: a member, a class, a commit, offsets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from eosctl.core.workers.modes import Mode
from eosctl.rehearse.ground import Forwarder
from eosctl.sandbox.servers.process import Node
from eosctl.sandbox.settings import GroupSpec, StackSpec
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.gameday.ground import ONE_BROKER, Ground
from tests.gameday.incident import Incident, Named, play
from tests.gameday.test_topics_live import set_policy
from tests.gameday.test_workers_live import last_worker
from tests.sandbox_fixtures import PATIENCE_S, SLOW_SOURCE, rest, sandbox, slow_config, wait_until

pytestmark = pytest.mark.live
GROUP = "parted"


@dataclass(frozen=True, slots=True)
class Wire:
    """What the last worker reaches the broker by."""

    stack: Stack
    forwarder: Forwarder

    @contextmanager
    def cut(self) -> Iterator[None]:
        """That worker reaches no broker meanwhile; its REST interface answers."""
        upstream, self.forwarder.upstream = self.forwarder.upstream, None
        self.forwarder.cut()
        try:
            yield
        finally:
            self.forwarder.upstream = upstream


def set_in_file(node: Node, name: str, value: str) -> None:
    """Of several lines with a name the last one counts."""
    with Path(node.config).open("a", encoding="ascii") as config:
        config.write(f"{name}={value}\n")


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    forwarder = Forwarder()
    quick = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "1000"}
    group = GroupSpec(GROUP, (Mode.ENABLED,) * 2, worker_config={"plugin.path": str(SLOW_SOURCE), **quick})
    with sandbox(StackSpec(groups=(group,), forwarded=(forwarder.port,)), tmp_path_factory, name="parted") as stack:
        [broker] = stack.state.of_kind("broker")
        forwarder.lead_to(str(broker.forwarded_address))
        *_others, node = [each for each in stack.state.of_kind("worker") if each.address == stack.urls(GROUP)[-1]]
        set_in_file(node, "bootstrap.servers", f"127.0.0.1:{forwarder.port}")
        stack.restart_node(node.name)
        yield Wire(stack, forwarder)
    forwarder.close()


@pytest.fixture
def ground(wire: Wire, invoke: Invoke, tmp_path: Path) -> Ground:
    """The group of `wire`, whose workers are named."""
    return Ground(wire.stack, GROUP, invoke, tmp_path, ONE_BROKER)


def told(title: str, code: str, named_s: float, healed_s: float) -> None:
    print(f"{title} | {code} | named {named_s:.1f} s | healed {healed_s:.1f} s")


def test_a_worker_that_lost_the_brokers(ground: Ground, wire: Wire, unique: str) -> None:
    """Named by its URL, and found without it by what the status topic says of the task that it had."""
    worker, connector = ground.urls[-1], f"{ground.urls[0]}/connectors/{unique}"
    rest(f"{connector}/config", "PUT", slow_config(f"topic-{unique}", tasks=2, poll_ms=300))

    def first_row(*urls: str) -> object:
        rows = ground.look(*urls)
        return rows[0]["code"] == "worker_not_a_member" and rows[0]["subject"]

    try:
        wait_until(lambda: len(_workers(connector)) == 2, what="both workers to have a task")
        ground.wait_until_quiet()
        began_s = time.monotonic()
        with wire.cut():
            assert wait_until(first_row, what="doctor to name the worker") == worker
            named_s = time.monotonic()
            alone = ("-u", ground.urls[0])
            assert wait_until(lambda: first_row(*alone), what="doctor to find the worker") == worker
            found_s = time.monotonic()
        wait_until(lambda: _is_member(ground, worker), what=f"{worker} to be a member again")
        rest(f"{connector}/restart?includeTasks=true", "POST")  # what the worker says late would stay else
        ground.wait_until_quiet()
    finally:
        rest(connector, "DELETE")
    told("a worker that lost the brokers", "worker_not_a_member", named_s - began_s, time.monotonic() - found_s)


def _workers(connector: str) -> set[str]:
    """Where its tasks are RUNNING."""
    return {task["worker_id"] for task in rest(f"{connector}/status")["tasks"] if task["state"] == "RUNNING"}


def _is_member(ground: Ground, url: str) -> bool:
    rows = ground.invoke("workers", "list", "-o", "json").json()["data"]["rows"]
    return any(row["url"] == url and row["member_id"] is not None for row in rows)


def test_a_class_that_one_worker_lacks(ground: Ground, wire: Wire, unique: str) -> None:
    node, url = last_worker(ground), ground.urls[0]
    config = slow_config(f"topic-{unique}", tasks=2, poll_ms=300)
    rest(f"{url}/connectors/{unique}/config", "PUT", config)
    try:
        ground.wait_until_quiet()
        set_in_file(node, "plugin.path", str(ground.folder))
        began_s = time.monotonic()
        wire.stack.restart_node(node.name)
        rows = wait_until(lambda: _with(ground, "plugin_missing"), what="doctor to name the class")
        named_s = time.monotonic()
        assert (rows[0]["code"], rows[0]["subject"]) == ("plugin_missing", node.address), rows
        set_in_file(node, "plugin.path", str(SLOW_SOURCE))
        wire.stack.restart_node(node.name)
        ground.paste(rows[0]["fix"].rpartition("then `")[2].partition("`")[0])
        ground.wait_until_quiet()
        told("a class that one worker lacks", "plugin_missing", named_s - began_s, time.monotonic() - named_s)
    finally:
        set_in_file(node, "plugin.path", str(SLOW_SOURCE))
        rest(f"{url}/connectors/{unique}", "DELETE")


def _with(ground: Ground, code: str) -> list[dict[str, object]]:
    rows = ground.look()
    return rows if any(row["code"] == code for row in rows) else []


STEADY = 6
"""So many looks, half a second apart, have to be alike."""


@contextmanager
def never_committed(ground: Ground, name: str) -> Iterator[None]:
    """Its transaction is due in an hour, and brokers abort it after five seconds; the task does not notice."""
    with ground.source(name) as source:
        source.put(
            **{
                "transaction.boundary": "interval",
                "transaction.boundary.interval.ms": "3600000",
                "producer.override.transaction.timeout.ms": "5000",
            }
        )
        wait_until(lambda: _timeout_ms(ground, name) == 5000, what="the task to begin with its new config")
        source.wait_running()
        source.append("two")
        yield
        source.wait_position(8)


def _timeout_ms(ground: Ground, name: str) -> object:
    """That of the task's id: the task that runs until its connector has the new config would commit what it reads."""
    rows = ground.invoke("txn", "describe", f"{ground.group}-{name}-0", "-o", "json").json()["data"]["rows"]
    return rows[0]["transaction_timeout_ms"]


def commit_at_each_poll(ground: Ground) -> None:
    [name] = rest(f"{ground.urls[0]}/connectors")
    config = rest(f"{ground.urls[0]}/connectors/{name}")["config"]
    rest(f"{ground.urls[0]}/connectors/{name}/config", "PUT", config | {"transaction.boundary": "poll"})
    looks: list[object] = []

    def is_steady() -> bool:
        """A plan that is made while the worker takes the config up is refused, rightly."""
        looks.append(rest(f"{ground.urls[0]}/connectors/{name}/status"))
        return len(looks) > STEADY and all(each == looks[-1] for each in looks[-STEADY:])

    wait_until(is_steady, what="the new config to be taken up", poll_s=0.5)


ABORTED = Incident(
    "a RUNNING task whose transaction was aborted at its timeout",
    never_committed,
    (Named("aborted_at_timeout", "{}/0"), Named("interval_exceeds_timeout", "{}")),
    ("eosctl connectors restart {}",),
    by_hand=commit_at_each_poll,
)


def test_a_running_task_that_can_not_write(ground: Ground, unique: str) -> None:
    play(ABORTED, ground, unique)


@contextmanager
def deleted_offsets(ground: Ground, name: str) -> Iterator[None]:
    """The offsets topic lost its start while it was not only compacted; an export was made before."""
    topic = ground.stack.state.topics[ground.group]["offset"]
    admin = AdminClient({"bootstrap.servers": ground.stack.bootstrap_servers})
    with ground.source(name) as source:
        source.stop_and_wait()
        exported = ground.invoke("offsets", "export", "--store", "global", "--connector", name).stdout
        (ground.folder / "offsets.ndjson").write_text(exported)
        partitions = len(admin.list_topics(topic).topics[topic].partitions)
        set_policy(ground, topic, "compact,delete")
        everything = [TopicPartition(topic, each, -1) for each in range(partitions)]
        wait_until(lambda: _are_deleted(admin, everything), what="the broker to take the policy")
        set_policy(ground, topic, "compact")
        yield
        source.set_state("resume")
        source.append("two")
        source.wait_position(8)


def _are_deleted(admin: AdminClient, ends: list[TopicPartition]) -> bool:
    """Delete the records; a broker refuses it until it has heard of a policy that allows it."""
    try:
        for future in admin.delete_records(ends).values():
            future.result(PATIENCE_S)
    except KafkaException as exc:
        if exc.args[0].code() != KafkaError.POLICY_VIOLATION:
            raise
        return False
    return True


def put_back(ground: Ground) -> None:
    path = ground.folder / "offsets.ndjson"
    ground.eosctl("offsets", "import", str(path), "--store", "global")


DELETED = Incident(
    "retention took the offsets of a stopped connector",
    deleted_offsets,
    (Named("offsets_deleted", "{}"),),
    by_hand=put_back,
)


def test_offsets_that_were_there_and_are_not(ground: Ground, unique: str) -> None:
    """The last one: the start of the topic stays where it is."""
    play(DELETED, ground, unique)
