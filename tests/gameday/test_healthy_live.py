"""Clusters with which nothing is wrong: doctor has neither an error nor a warning, and exits with 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not listed as re-exported

from eosctl.sandbox.settings import Eos, GroupSpec
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.gameday.ground import ONE_BROKER, Ground
from tests.sandbox_fixtures import added_group, mirror_config, rest, wait_until

pytestmark = pytest.mark.live
NEVER = "never-enabled"
OF_THREE = "game-of-three"


@pytest.fixture(scope="module")
def of_three(three_brokers: Stack) -> Iterator[Stack]:
    """Three brokers, and an enabled worker in the group OF_THREE."""
    with added_group(three_brokers, GroupSpec(OF_THREE)):
        yield three_brokers


@contextmanager
def running(ground: Ground, configs: Mapping[str, Mapping[str, str]]) -> Iterator[None]:
    """These connectors run with all their tasks meanwhile."""
    with ExitStack() as stack:
        for name, config in configs.items():
            at = f"{ground.urls[0]}/connectors/{name}"
            rest(f"{at}/config", "PUT", dict(config))
            stack.callback(rest, at, "DELETE")
        for name in configs:
            wait_until(partial(_runs, ground, name), what=f"{name} to run")
        yield


def _runs(ground: Ground, name: str) -> bool:
    """Without consumer groups there is no task of mirror-checkpoint."""
    status = rest(f"{ground.urls[0]}/connectors/{name}/status")
    running = {part["state"] for part in (status["connector"], *status["tasks"])} == {"RUNNING"}
    return running and (bool(status["tasks"]) or name == "mirror-checkpoint")


def sink(ground: Ground) -> dict[str, str]:
    """Writes a topic to a file."""
    return {
        "connector.class": "FileStreamSink",
        "tasks.max": "1",
        "topics": f"in-{ground.group}",
        "file": str(ground.folder / "out"),
    }


def source(ground: Ground) -> dict[str, str]:
    """Writes the lines of a file to a topic."""
    path = ground.folder / "in"
    path.write_text("one\n")
    return {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(path), "topic": f"in-{ground.group}"}


def mirrors(ground: Ground) -> dict[str, dict[str, str]]:
    """MirrorMaker's three connectors, as its documentation has them for exactly-once."""
    admin = AdminClient({"bootstrap.servers": ground.stack.bootstrap_servers})
    admin.create_topics([NewTopic(ground.group, 1, 3)])[ground.group].result(30)
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


def test_two_idle_workers_on_one_broker(ground: Ground) -> None:
    ground.wait_until_quiet()


def test_one_idle_worker_on_three_brokers(of_three: Stack, invoke: Invoke, tmp_path: Path) -> None:
    Ground(of_three, OF_THREE, invoke, tmp_path).wait_until_quiet()


def test_sinks_only(of_three: Stack, invoke: Invoke, tmp_path: Path) -> None:
    ground = Ground(of_three, OF_THREE, invoke, tmp_path)
    with running(ground, {"a-sink": sink(ground)}):
        ground.wait_until_quiet()


def test_mirror_maker_only(of_three: Stack, invoke: Invoke, tmp_path: Path) -> None:
    ground = Ground(of_three, OF_THREE, invoke, tmp_path)
    with running(ground, mirrors(ground)):
        ground.wait_until_quiet()


def test_never_exactly_once(game_stack: Stack, invoke: Invoke, tmp_path: Path) -> None:
    with added_group(game_stack, GroupSpec(NEVER, (Eos.DISABLED,))):
        ground = Ground(game_stack, NEVER, invoke, tmp_path, ONE_BROKER)
        with running(ground, {"a-source": source(ground), "a-sink": sink(ground)}):
            ground.wait_until_quiet()
