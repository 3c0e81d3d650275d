"""A real dedicated MirrorMaker on its way to exactly-once: one process, which no request reaches."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from eosctl.core.records import OutRecord
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.sandbox_fixtures import wait_until

pytestmark = pytest.mark.live

RESTART = """#!/bin/sh
cd {folder}
if [ -f pid ]; then
    kill $(cat pid)
    while kill -0 $(cat pid) 2>/dev/null; do sleep 0.1; done
fi
setsid {java} -Xmx256m @{arguments} org.apache.kafka.connect.mirror.MirrorMaker mm2.properties >> log 2>&1 < /dev/null &
echo $! > pid
"""
PROPERTIES = """clusters = {name}a, {name}b
{name}a.bootstrap.servers = {servers}
{name}b.bootstrap.servers = {servers}
{name}a->{name}b.enabled = true
{name}a.consumer.isolation.level = read_committed
topics = src-{name}
plugin.discovery = service_load
{name}b.plugin.discovery = service_load
refresh.topics.interval.seconds = 1
emit.heartbeats.enabled = false
emit.checkpoints.enabled = false
sync.topic.configs.enabled = false
sync.topic.acls.enabled = false
replication.factor = 1
offset.storage.replication.factor = 1
config.storage.replication.factor = 1
status.storage.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.partitions = 1
status.storage.partitions = 1
{name}b.exactly.once.source.support = disabled
"""


@dataclass(frozen=True, slots=True)
class MirrorMaker:
    """`flags` point eosctl at its group; `restart` is a program that restarts it, with what its `file` says."""

    flags: list[str]
    file: Path
    restart: Path


@pytest.fixture
def mirror_maker(stack: Stack, topics: KafkaTopicClient, unique: str, tmp_path: Path) -> Iterator[MirrorMaker]:
    """A running MirrorMaker that copies a topic with one record."""
    topics.create(f"src-{unique}", partitions=1, replication_factor=1, config={})
    topics.write([OutRecord(f"src-{unique}", b"k", b"v")])
    file, restart, pid = tmp_path / "mm2.properties", tmp_path / "restart", tmp_path / "pid"
    file.write_text(PROPERTIES.format(name=unique, servers=stack.bootstrap_servers))
    arguments = Path(stack.directory) / "java.arguments"
    restart.write_text(RESTART.format(folder=tmp_path, java=stack.state.java, arguments=arguments))
    restart.chmod(0o755)
    flags = ["-b", stack.bootstrap_servers, "-g", f"{unique}a-mm2", "-w", str(file)]
    try:
        subprocess.run([str(restart)], check=True)
        copied = f"{unique}a.src-{unique}"
        wait_until(
            lambda: copied in topics.describe([copied]) and topics.bounds(copied)[0].end,
            what="a copied record",
            timeout_s=240,
        )
        yield MirrorMaker(flags, file, restart)
    finally:
        if pid.exists():
            os.killpg(int(pid.read_text()), signal.SIGKILL)


def test_a_dedicated_mirror_maker_is_brought_to_enabled(mirror_maker: MirrorMaker, invoke: Invoke, unique: str) -> None:
    """It was refused. Its member ids are others after each restart; the file, the claim and the task's id tell."""
    it = mirror_maker
    before = invoke(*it.flags, "workers", "list", "-o", "json").json()["data"]["rows"]
    words = ("upgrade", "apply", "--to", "enabled", "--driver", "command", "--properties-file", str(it.file))
    done = invoke(*it.flags, *words, "--restart-command", str(it.restart), "--yes", "-o", "json")
    assert done.exit_code == 0, (done.stdout, done.stderr)
    rows = done.json()["data"]["rows"]
    assert [(row["mode"], row["outcome"]) for row in rows] == [("preparing", "done"), ("enabled", "done")]
    first, second = (row["detail"] for row in rows)
    assert first.startswith(f"{it.file} says preparing; member {before[0]['member_id']} left, and member ")
    assert first.endswith(f"as the leader it claimed connect-cluster-{unique}a-mm2, as no disabled worker does")
    assert "MirrorSourceConnector/0 took transactional ids, as tasks of an enabled worker do" in second
    assert it.file.read_text() == it.file.read_text().replace("support = disabled", "support = enabled")
    verify = (*it.flags, "upgrade", "verify", "--to", "enabled", "-o", "json")
    # MirrorMaker starts its connectors twice: one look may meet a task between
    wait_until(lambda: invoke(*verify).exit_code == 0, what="an upgrade without findings")
    assert (before[0]["url"], before[0]["mode"]) == (None, "disabled")
