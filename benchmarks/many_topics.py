"""`offsets migrate` into many new topics: what a topic costs, to go on from to 10,000 of them.

Each connector has ten keys and gets a topic of its own. One broker, two cores for Spark.
docs/background/bulk-at-scale.md has the numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not listed as re-exported
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from benchmarks.migrate.__main__ import run_tree
from benchmarks.odd_worlds import lines
from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack
from tests.migrate.spark.cluster import Cluster

_KEYS_PER_TOPIC = 10


def main() -> None:
    """Starts a broker, and migrates into more and more topics."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, action="append", help="repeatable; 100 and 400 without it")
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument(
        "--transaction-record-bytes", type=int, help="what the broker takes in a record of __transaction_state"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")  # what eosctl keeps goes with the rest
        stack = Stack.up(StackSpec(groups=()), folder / "stack", name="benchmark", environ=os.environ)
        try:
            cluster = Cluster(stack.bootstrap_servers, "source")
            for topics in arguments.topics or (100, 400):
                migrate(cluster, folder, topics, arguments.partitions, arguments.transaction_record_bytes)
        finally:
            stack.down()


def migrate(cluster: Cluster, folder: Path, topics: int, partitions: int, record_bytes: int | None) -> None:
    """One migration, and what its journal and its folder say."""
    source, snapshots, errors = f"source-{topics}", folder / f"snapshots-{topics}", folder / "stderr"
    cluster.create(source, config={"cleanup.policy": "compact"})
    cluster.write(source, lines(_KEYS_PER_TOPIC * topics, connectors=topics))
    if record_bytes is not None:
        _limit(cluster, record_bytes)
    pattern = f"to-{topics}-{{connector}}"
    line = [
        sys.executable, "-m", "eosctl", "offsets", "migrate", "--all", "--dedicated-topic", pattern,
        "--partitions", str(partitions), "--offset-topic", source, "--snapshot-dir", str(snapshots),
        "--master", "local[2]", "-b", cluster.servers, "--timeout", "900", "--yes", "--force-running",
    ]  # fmt: skip
    print(f"\n{topics:,} new topics, {partitions} partitions each, {_KEYS_PER_TOPIC} keys in each", flush=True)
    try:
        run = run_tree(["sh", "-c", 'exec "$@" 2> "$0"', str(errors), *line])
    except subprocess.CalledProcessError as exc:
        print(f"  exit code {exc.returncode}: {errors.read_text()[-800:]}")
        return
    [journal] = snapshots.glob("*/journal.ndjson")
    times = {(each["event"], each.get("stage")): each["time_ms"] for each in map(json.loads, journal.open())}
    spent = [
        f"{stage} {(times['done', stage] - at_ms) / 1000:.1f} s"
        for (event, stage), at_ms in times.items()
        if event == "started"
    ]
    print(f"  {run.wall_s:.1f} s, of these {', '.join(spent)}; CPU {run.cpu_s:.1f} s, {run.peak_mib:,.0f} MiB")
    print(f"  plan file {(journal.parent / 'plan.json').stat().st_size / 1e3:.1f} kB")
    for part in ("source", "decisions", "target-again", "verify-target"):
        size = sum(file.stat().st_size for file in (journal.parent / part).glob("*"))
        print(f"  {part}: {size / topics / _KEYS_PER_TOPIC:.0f} bytes per key")


def _limit(cluster: Cluster, record_bytes: int) -> None:
    """Makes the coordinator's topic take smaller records, as if there were more topics."""
    Producer({"bootstrap.servers": cluster.servers, "transactional.id": "first"}).init_transactions(60)  # makes it
    entry = ConfigEntry("max.message.bytes", str(record_bytes), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "__transaction_state", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": cluster.servers})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(60)


if __name__ == "__main__":
    main()
