"""A migration whose driver is killed with -9, on a real broker: resumed, it ends as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from eosctl.core.migration import MigrationPlan, Selection, read_plan
from eosctl.core.murmur2 import partition_for
from eosctl.deadline import Clock
from eosctl.errors import ExitCode
from eosctl.ops.migrate import MigrationRequest, snapshot_folder
from eosctl.ops.migrate_journal import Stage, migration_journal, read_past
from eosctl.ops.migrate_run import Engine, migration_from_file, prepared_migration
from tests.conftest import Invoke
from tests.sandbox_fixtures import wait_until
from tests.spark.cluster import DOWN, PARTITIONS, Cluster, app

pytestmark = [pytest.mark.live, pytest.mark.spark]

KEYS = {b'["c",{"file":"f%d"}]' % number: b'{"position":%d}' % number for number in range(20_000)}
PATIENCE_S = 300.0
OLD = {b'["c",{"file":"f7"}]': b'{"position":-7}'}


@contextmanager
def driver(cluster: Cluster, plan_file: Path, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """`eosctl offsets migrate --plan … --yes` in a session of its own, of which nothing is left after the block."""
    command = [sys.executable, "-m", "eosctl", "offsets", "migrate", "--plan", str(plan_file), "--yes", *flags]
    command += ["--force-running", "--master", "local[2]", "-b", cluster.servers, "--offset-topic", cluster.name]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
        wait_until(lambda: not _session_of(process.pid), what="Spark's processes to end", timeout_s=PATIENCE_S)


def _session_of(leader: int) -> list[str]:
    """What still runs of a session: Spark's Python daemon has a process group of its own."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _parent, _group, session = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it ended meanwhile
            continue
        if int(session) == leader and state != "Z":
            found.append(stat.parent.name)
    return found


def kill_when(process: subprocess.Popen[bytes], there: Callable[[], Any], *, what: str) -> None:
    """Kills the driver's process group at once when `there()`."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not there():
        assert process.poll() is None, f"the driver ended before {what}: {process.returncode}"
        assert time.monotonic() < deadline_s, f"waited {PATIENCE_S} s for {what}"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)


def test_killed_twice_resumed_and_taken_back(cluster: Cluster, engine: Engine, tmp_path: Path, invoke: Invoke) -> None:
    """First when the first records of its transactions are there, then before the verification."""
    target = f"{cluster.name}-c"
    cluster.create(cluster.name, target)
    cluster.write(cluster.name, KEYS.items())
    cluster.write(target, OLD.items())
    plan, plan_file = _planned(cluster, engine, tmp_path, target)
    folder = snapshot_folder(plan)
    journal = migration_journal(folder, Clock())

    events = tmp_path / "events"
    events.mkdir()
    logged = ["--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir={events.as_uri()}"]

    with driver(cluster, plan_file, *logged) as process:
        kill_when(process, _grows(cluster, target), what="the first records")
    assert Stage.VERIFY not in read_past(journal).started
    assert list(events.iterdir()), "--conf did not arrive"
    with driver(cluster, plan_file, "--resume") as process:
        kill_when(process, lambda: Stage.WRITE in read_past(journal).done, what="the end of the write")
    assert not read_past(journal).ended

    apply = migration_from_file(
        app(cluster, tmp_path), plan, engine, allowances=DOWN, plan_file=plan_file, resume=True
    ).apply
    assert apply is not None
    result = apply()
    assert (result.exit_code, result.problems) == (ExitCode.OK, ())
    assert result.summary["verified"] == len(KEYS)
    assert "backup" in str(result.data["skipped"])
    expected = {key: (partition_for(key, PARTITIONS), value) for key, value in {**OLD, **KEYS}.items()}
    assert cluster.committed(target) == expected

    taken_back = invoke(
        *("offsets", "restore", str(folder / "backup.ndjson"), "--yes", "--force-running", "-b", cluster.servers),
        *("--offset-topic", cluster.name),
    )
    assert taken_back.exit_code == 0, taken_back.stderr
    assert {key: value for key, (_, value) in cluster.committed(target).items() if value is not None} == OLD


def _planned(cluster: Cluster, engine: Engine, folder: Path, target: str) -> tuple[MigrationPlan, Path]:
    from eosctl.core.migration_rules import Policy

    wanted = MigrationRequest(target=target, selection=Selection(all_connectors=True), policy=Policy.TAKE_SOURCE)
    path = folder / "plan.json"
    with prepared_migration(app(cluster, folder), wanted, engine, allowances=DOWN, plan_out=path):
        return read_plan(path.read_text(), path=str(path)), path


def _grows(cluster: Cluster, topic: str) -> Callable[[], bool]:
    """Whether there are new records, those of open transactions too."""
    consumer = Consumer({"bootstrap.servers": cluster.servers, "group.id": "test"})

    def end() -> int:
        return sum(consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30)[1] for p in range(PARTITIONS))

    before = end()
    return lambda: end() > before
