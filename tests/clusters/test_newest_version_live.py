"""What Kafka 4.4 brought: workers that may create no topics, and plugins that need classes which it moved."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from zipfile import ZipFile

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not listed as re-exported

from eosctl.sandbox.downloads.jars import cache_dir, path_in
from eosctl.sandbox.downloads.moved_classes import renamed
from eosctl.sandbox.settings import GroupSpec, read_lock
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.gameday.ground import ONE_BROKER, Ground
from tests.gameday.incident import Incident, Named, play
from tests.sandbox_fixtures import PATIENCE_S, FileSource, added_group, rest, wait_until

pytestmark = pytest.mark.live
STRICT, OLD_SOURCE = "strict", "com.acme.file.OldSourceConnector"


def old_plugin(folder: Path) -> Path:
    """A plugin of a user that was built for Kafka 4.3: its file connectors under the names of somebody else."""
    plugin = folder / "plugins" / "old"
    plugin.mkdir(parents=True)
    (jar,) = [each for each in read_lock("4.4.0") if each.artifact == "connect-file"]
    with ZipFile(path_in(cache_dir(os.environ) / "jars", jar)) as source, ZipFile(plugin / "old.jar", "w") as target:
        classes = [name.removesuffix(".class") for name in source.namelist() if name.endswith(".class")]
        others = {name.encode(): _of_acme(name).encode() for name in classes}
        for name in classes:
            target.writestr(f"{_of_acme(name)}.class", renamed(source.read(f"{name}.class"), others))
        for kind in ("source.SourceConnector", "sink.SinkConnector"):
            service = f"META-INF/services/org.apache.kafka.connect.{kind}"
            named = [name.replace(".", "/") for name in source.read(service).decode().split() if "FileStream" in name]
            target.writestr(service, "\n".join(_of_acme(name).replace("/", ".") for name in named))
    return plugin.parent


def _of_acme(name: str) -> str:
    return name.replace("org/apache/kafka/connect", "com/acme").replace("FileStream", "Old")


@pytest.fixture(scope="module")
def group(newest_stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A worker that creates no topics, and has that plugin."""
    spec = GroupSpec(
        STRICT,
        worker_config={
            "internal.topics.automatic.creation.enable": "false",
            "plugin.path": str(old_plugin(tmp_path_factory.mktemp("old"))),
        },
    )
    admin, compacted = AdminClient({"bootstrap.servers": newest_stack.bootstrap_servers}), {"cleanup.policy": "compact"}
    topics = spec.topics()
    partitions = {topics["config"]: 1, topics["offset"]: 25, topics["status"]: 5}
    made = admin.create_topics([NewTopic(name, count, 1, config=compacted) for name, count in partitions.items()])
    for each in made.values():
        each.result(PATIENCE_S)
    with added_group(newest_stack, spec):
        yield newest_stack


@pytest.fixture
def ground(group: Stack, invoke: Invoke, tmp_path: Path) -> Ground:
    """The group, with its worker's file; what is said of the plugin is no incident here."""
    (node,) = [node for node in group.state.of_kind("worker") if node.group_id == STRICT]
    more = {"worker_config": [node.config]}
    return Ground(group, STRICT, invoke, tmp_path, (*ONE_BROKER, "plugin_not_loaded", "plugin_not_for_kafka"), more)


@contextmanager
def own_topic_missing(ground: Ground, name: str, *, has_offsets: bool) -> Iterator[None]:
    """A connector gets an offsets topic of its own, which is not there; it may have offsets in the global one."""
    path = ground.folder / f"{name}.txt"
    path.write_text("one\n")
    source = FileSource(ground.urls[0], name, path, f"topic-{name}")
    try:
        if has_offsets:
            source.put()
            source.wait_position(4)
        source.put(**{"offsets.storage.topic": f"own-{name}"})
        wait_until(lambda: source.rest("/status")["connector"]["state"] == "FAILED", what="the connector to fail")
        yield
        source.append("two")
        source.wait_position(8)
    finally:
        rest(f"{source.url}/connectors/{name}", "DELETE")


NOTHING_THERE = Incident(
    "no task may create its offsets topic",
    partial(own_topic_missing, has_offsets=False),
    (Named("topic_missing", "own-{}", follows=("internal_topic_missing",)),),
    ("kafka-topics.sh", "eosctl connectors restart --failed {}"),
)
WITH_OFFSETS = Incident(
    "no task may create the offsets topic to which a connector moves",
    partial(own_topic_missing, has_offsets=True),
    (Named("offsets_hidden", "{}", follows=("topic_missing", "internal_topic_missing")),),
    ("eosctl connectors stop {}", "eosctl offsets merge --connector {}", "eosctl connectors resume {}"),
)


@pytest.mark.parametrize("incident", [NOTHING_THERE, WITH_OFFSETS], ids=str)
def test_a_topic_that_nobody_creates_is_one_finding_whose_commands_heal(
    ground: Ground, unique: str, incident: Incident
) -> None:
    """It was a warning that said that a task creates it, beside a FAILED task of an unknown cause."""
    play(incident, ground, unique)


def test_a_plugin_for_an_older_kafka_breaks_and_is_named(ground: Ground) -> None:
    """Kafka's own connectors run in the same worker, and no class is there under its old name for others."""
    (listed,) = [each for each in rest(f"{ground.urls[0]}/connector-plugins") if each["class"] == OLD_SOURCE]
    assert "version" not in listed
    (worker,) = ground.invoke("workers", "probe", "-o", "json").json()["data"]["rows"]
    assert (worker["version"], worker["mode"]) == ("4.4.0", "enabled")
    document = ground.invoke("doctor", "-o", "json").json()["data"]
    told = [row["message"] for row in document["ignored"] if row["code"] == "plugin_not_loaded"]
    assert [OLD_SOURCE in message and "AppInfoParser" in message for message in told if "Source" in message] == [True]
