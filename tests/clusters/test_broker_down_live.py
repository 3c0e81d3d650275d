"""Commands about transactions on three brokers of which one is killed, where partitions have one replica only."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from eosctl.checks.standstill import standstill_findings
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.transactions import Coordinator
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from eosctl.sandbox.servers import process
from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke, Outcome
from tests.contract.clusters import RealProducer
from tests.sandbox_fixtures import PATIENCE_S, sandbox, wait_until

pytestmark = pytest.mark.live
KILLED, PARTITIONS = 3, 6
ONE_REPLICA = {"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"}
IDS = [TransactionalId(f"live-{number}") for number in range(40)]


@dataclass
class Cluster:
    """Three brokers, of which one is killed; `led` are the partitions of topic t that it led, `lost` the ids."""

    stack: Stack
    led: set[int]
    lost: set[TransactionalId]
    invoke: Invoke
    at: int
    """A partition of t that has a leader, and an open transaction."""

    def run(self, *words: str) -> Outcome:
        done: Outcome = self.invoke(*words, "-b", self.stack.bootstrap_servers, "--timeout", "30s", "-o", "json")
        return done

    def rows(self, *words: str, exit_code: int = 7) -> list[Any]:
        """The rows of a document that says what is missing."""
        done = self.run(*words)
        assert done.exit_code == exit_code, done.stderr
        document = done.json()
        if exit_code == 7:
            codes = {error["code"] for error in document["errors"]}
            assert codes & {"not_checked", "failed"}, document["errors"]
        rows: list[Any] = document["data"]["rows"]
        return rows


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Each partition, also of `__transaction_state`, is on one broker."""
    spec = StackSpec(brokers=3, groups=(), broker_config=ONE_REPLICA)
    with sandbox(spec, tmp_path_factory, name="lossy") as started:
        yield started


@pytest.fixture
def cluster(stack: Stack, invoke: Invoke) -> Iterator[Cluster]:
    settings = ClientSettings(tuple(stack.bootstrap_servers.split(",")))
    with KafkaTopicClient(settings, deadline=Deadline.after(PATIENCE_S)) as store:
        store.create("t", partitions=PARTITIONS, replication_factor=1, config={})
    with NativeTransactionAdmin(settings, deadline=Deadline.after(PATIENCE_S)) as admin:
        assert all(answer.fault is None for answer in admin.fence(IDS, transaction_timeout_ms=30_000))
        found = admin.find_coordinators([*IDS, *(TransactionalId(f"open-{number}") for number in range(20))])
        nodes = {each: where.node_id for each, where in found.items() if isinstance(where, Coordinator)}
        metadata = admin._cluster.metadata(["t"])
        leaders = {part.partition_index: part.leader_id for part in metadata.topics[0].partitions}
    at = next(partition for partition, leader in leaders.items() if leader != KILLED)
    opener = next(each for each, node in nodes.items() if each.startswith("open-") and node != KILLED)
    RealProducer(stack.bootstrap_servers, opener).send("t", at, b"key")
    lost = {each for each in IDS if nodes[each] == KILLED}
    led = {partition for partition, leader in leaders.items() if leader == KILLED}
    assert lost
    assert led
    name = f"broker-{KILLED}"
    process.signal_group(stack.node(name).process, signal.SIGKILL)
    stack.stop_node(name)
    try:
        yield Cluster(stack, led, lost, invoke, at)
    finally:
        stack.start_node(name)


def test_every_command_tells_what_is_left_and_what_is_missing(cluster: Cluster) -> None:
    """Each of them waited to the deadline for what does not come, and told nothing of two brokers that answer."""
    left = {*IDS} - cluster.lost
    listed = {row["transactional_id"] for row in cluster.rows("txn", "list")}
    assert left <= listed
    assert not listed & cluster.lost
    described = cluster.rows("txn", "describe", *IDS)
    assert {row["transactional_id"]: row["state"] == "not_checked" for row in described} == {
        each: each in cluster.lost for each in IDS
    }

    hanging = cluster.rows("txn", "hanging", "--topic", "t")
    assert {(row["partition"], row["reason"]) for row in hanging} == {(each, "not_checked") for each in cluster.led}
    producers = cluster.rows("txn", "producers", "--topic", "t")
    assert {row["partition"]: row.get("reason") == "not_checked" for row in producers} == {
        cluster.at: False, **dict.fromkeys(cluster.led, True)
    }  # fmt: skip
    logged = cluster.rows("txn", "log", "--prefix", "live-")
    assert {row["transactional_id"] for row in logged if row["state"] != "not_checked"} == left
    assert any(row["state"] == "not_checked" for row in logged)

    fenced = cluster.rows("fence", *IDS, "--yes")
    assert {row["transactional_id"]: row["outcome"] for row in fenced} == {
        each: "fenced" if each in left else "failed" for each in IDS
    }
    fenced = cluster.rows("fence", "--prefix", "live-", "--yes")
    assert {row["transactional_id"]: row["outcome"] for row in fenced} == dict.fromkeys(left, "fenced")

    refused = cluster.run(
        "txn", "abort", "--topic", "t", "--partition", str(cluster.at), "--start-offset", "0", "--yes"
    )
    assert refused.exit_code == 6
    why = {code for row in refused.json()["data"]["rows"] for code in row["refused"]}
    assert why & {"coordinator_has_it", "coordinator_unread"}, why
    wait_until(
        lambda: standstill(cluster) == told_of(cluster.led), what=f"broker {KILLED} to be gone from the metadata"
    )


def standstill(cluster: Cluster) -> list[tuple[str, object, object]]:
    """What doctor says of topic t, whose partitions have one replica each."""
    settings = ClientSettings(tuple(cluster.stack.bootstrap_servers.split(",")))
    with KafkaTopicClient(settings, deadline=Deadline.after(60)) as store:
        found = standstill_findings(list(store.describe(["t"]).values()))
    return [(each.code, each.evidence.get("broker"), each.evidence.get("partitions")) for each in found]


def told_of(partitions: set[int]) -> list[tuple[str, object, object]]:
    """The broker that is down, and the partitions that are without a leader for it."""
    return [("broker_down", KILLED, None), ("partition_without_leader", None, sorted(partitions))]
