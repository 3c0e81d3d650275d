"""Three brokers: clusters with which nothing is wrong are quiet, and one broker that is killed is named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.sandbox.servers import process
from eosctl.sandbox.settings import GroupSpec
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.gameday.ground import FINDINGS, OK, Ground
from tests.gameday.incident import Incident, Named, play
from tests.sandbox_fixtures import PATIENCE_S, added_group, mirror_config, wait_until, wait_until_as_before

pytestmark = pytest.mark.live
OF_THREE, KILLED = "game-of-three", "broker-3"


@pytest.fixture(scope="module")
def group(three_brokers: Stack) -> Iterator[Stack]:
    """Three brokers, and an enabled worker."""
    with added_group(three_brokers, GroupSpec(OF_THREE)):
        yield three_brokers


@pytest.fixture
def ground(group: Stack, invoke: Invoke, tmp_path: Path) -> Ground:
    """The group; nothing that doctor says is accepted."""
    return Ground(group, OF_THREE, invoke, tmp_path)


def mirrors(ground: Ground) -> dict[str, dict[str, str]]:
    """MirrorMaker's three connectors, as its documentation has them for exactly-once."""
    settings = ClientSettings(tuple(ground.stack.bootstrap_servers.split(",")))
    with KafkaTopicClient(settings, deadline=Deadline.after(PATIENCE_S)) as store:  # it waits until all know the topic
        store.create(ground.group, partitions=1, replication_factor=3, config={})
    common = mirror_config(ground.stack.bootstrap_servers, [ground.group], tasks=1)
    common |= {name: "3" for name in common if name.endswith("replication.factor")}
    package = common["connector.class"].removesuffix("MirrorSourceConnector")
    others = {
        "heartbeats.topic.replication.factor": "3",
        "checkpoints.topic.replication.factor": "3",
        "groups": ".*",
    }
    return {
        "mirror-source": {**common, "consumer.isolation.level": "read_committed"},
        "mirror-heartbeat": {**common, **others, "connector.class": f"{package}MirrorHeartbeatConnector"},
        "mirror-checkpoint": {**common, **others, "connector.class": f"{package}MirrorCheckpointConnector"},
    }


def test_an_idle_worker(ground: Ground) -> None:
    ground.wait_until_quiet()


def test_sinks_only(ground: Ground) -> None:
    with ground.running({"a-sink": ground.sink()}):
        ground.wait_until_quiet()


def test_mirror_maker_only(ground: Ground) -> None:
    with ground.running(mirrors(ground)):
        ground.wait_until_quiet()


def test_what_asks_every_broker_is_answered(ground: Ground, unique: str) -> None:
    """One DescribeConfigs for all brokers was refused, and gates and checks of every such cluster were unknown."""

    def document(*words: str) -> Any:
        done = ground.invoke(*words, "-o", "json")
        assert done.exit_code == 0, (words, done.stderr)
        return done.json()["data"]

    with ground.source(unique) as source:
        assert document("connectors", "check", "--connector", unique, "--strict")["rows"] == []
        assert document("upgrade", "verify", "--to", "enabled")["rows"] == []
        ground.eosctl("offsets", "switch", "--connector", unique, "--to", f"own-{unique}")
        source.append("two")
        source.wait_position(8)
        assert document("rescue", "--connector", unique, "--dry-run")["summary"]["verdict"] == "healthy"
        _migrate(ground, unique)


def _migrate(ground: Ground, connector: str) -> None:
    """A process of its own, as there is one Spark in each; the new topic has the brokers' number of replicas."""
    ground.eosctl("connectors", "stop", connector)
    words = ["--connector", connector, "--to", f"moved-{connector}", "--partitions", "2", "--yes", "--timeout", "300s"]
    line = [sys.executable, "-m", "eosctl", "offsets", "migrate", *words, "-o", "json", "--master", "local[1]"]
    environ = {**os.environ, "XDG_CONFIG_HOME": str(ground.folder / "config"), "XDG_STATE_HOME": str(ground.folder)}
    done = subprocess.run(line, env=environ, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, (done.stdout, done.stderr)
    summary = json.loads(done.stdout)["data"]["summary"]
    assert (summary["counts"]["write"], summary["verified"]) == (1, 1)


def test_acls_are_missed_added_and_known_to_every_broker(ground: Ground, unique: str) -> None:
    """Brokers hear of an ACL one after the other: whichever is asked has it in the end."""
    scope = ["--connector", unique, "--tasks", "1", "--output-topic", unique, "--principal", f"User:{unique}"]

    def missing() -> int:
        done = ground.invoke("acls", "check", *scope, "-o", "json")
        rows = done.json()["data"]["rows"]
        found = len([row for row in rows if row["code"] == "acl_missing"])
        assert done.exit_code == (FINDINGS if found else OK), (done.stdout, done.stderr)
        return found

    assert missing()
    ground.eosctl("acls", "apply", *scope)
    wait_until(lambda: not missing(), what="the brokers to know the ACLs")

    def planned() -> set[str]:
        again = ground.invoke("acls", "apply", *scope, "--dry-run", "-o", "json")
        return set(envelope_of(again, "acls-apply-plan")["data"]["summary"]["counts"])

    wait_until(lambda: planned() == {"keep"}, what="the broker that is asked now to know them, too")


@contextmanager
def one_broker_killed(ground: Ground, name: str) -> Iterator[None]:
    """What has three replicas goes on."""
    with ground.source(name) as source:
        process.signal_group(ground.stack.node(KILLED).process, signal.SIGKILL)
        try:
            admin = AdminClient({"bootstrap.servers": ground.stack.node("broker-1").address, "log_level": 0})
            wait_until(
                lambda: len(admin.list_topics(timeout=PATIENCE_S).brokers) == 2, what="the brokers to miss the third"
            )
            yield
        finally:
            if not ground.stack.node(KILLED).process.alive():
                start(ground)
            wait_until_as_before(ground.stack)
        source.append("two")
        source.wait_position(8)


def start(ground: Ground) -> None:
    ground.stack.start_node(KILLED)


def test_a_broker_that_was_killed_is_named(ground: Ground, unique: str) -> None:
    named = (Named("broker_down", "broker 3"),)
    play(Incident("one broker of three was killed", one_broker_killed, named, by_hand=start), ground, unique)
