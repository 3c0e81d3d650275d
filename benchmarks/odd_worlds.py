"""`offsets migrate` and `offsets merge` where not all is as usual: is what they leave right, and what does it cost?

Each world is one source topic, moved by both commands into empty topics. What is there in the end is compared with the
newest value of each key that was written, and every key must be there once. On one broker, with two cores for Spark.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not listed as re-exported
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from benchmarks.kafka import kafka_jars
from benchmarks.migrate.__main__ import run_tree
from benchmarks.stacks import own_folder, stack_in
from eosctl.core.offsets.names import partition_for
from eosctl.machine.java import require_java
from eosctl.sandbox.stack import Stack
from tests.migrate.spark.cluster import Cluster, Line

COMMANDS = ("migrate", "merge")
_LOOK_S, _PATIENCE_S = 0.5, 120.0


@dataclass(frozen=True, slots=True)
class Ground:
    """A broker of our own, and the topics of the world that is on."""

    stack: Stack
    source: str
    target: str
    partitions: int

    def admin(self) -> AdminClient:
        """Make librdkafka's client."""
        return AdminClient({"bootstrap.servers": self.stack.bootstrap_servers})


@dataclass(frozen=True, slots=True)
class World:
    """`lines` are the records of the source; `meanwhile` is around the run of a command."""

    lines: Callable[[], Iterator[Line]]
    partitions: int = 25
    config: tuple[tuple[str, str], ...] = ()
    meanwhile: Callable[[Ground], AbstractContextManager[None]] = lambda _ground: nullcontext()


def lines(keys: int, *, connectors: int = 4, value_bytes: int = 20, versions: int = 1) -> Iterator[Line]:
    """Yield so many keys, each so often, the last version of each with a number of its own."""
    for number in range(keys * versions):
        key = b'["c%d",{"file":"f%d"}]' % (number % keys % connectors, number % keys)
        yield key, b'{"position":%d}' % number + b" " * (value_bytes - 20)


@contextmanager
def throttled(ground: Ground) -> Iterator[None]:
    """Give every client a quota, as an admin may."""
    _configs(ground, "--add-config", "producer_byte_rate=200000,consumer_byte_rate=400000")
    try:
        yield
    finally:
        _configs(ground, "--delete-config", "producer_byte_rate,consumer_byte_rate")


def _configs(ground: Ground, *change: str) -> None:
    """Run Kafka's own tool: librdkafka's admin client knows no quotas."""
    java = require_java(os.environ)
    class_path = os.pathsep.join(map(str, kafka_jars(java)))
    where = ["--bootstrap-server", ground.stack.bootstrap_servers, "--entity-type", "clients", "--entity-default"]
    tool = [str(java.executable), "-cp", class_path, "kafka.admin.ConfigCommand", *where, "--alter", *change]
    subprocess.run(tool, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextmanager
def restarted(ground: Ground) -> Iterator[None]:
    """Stop and start the broker when the first records are in the target."""
    cluster = Cluster(ground.stack.bootstrap_servers, ground.source)

    def restart() -> bool:
        """Return whether it is done."""
        if not cluster.grows(ground.target):
            return False
        ground.stack.restart_node("broker-1")
        print("  the broker was restarted", flush=True)
        return True

    with _again_and_again(restart):
        yield


@contextmanager
def compacted(ground: Ground) -> Iterator[None]:
    """Run the cleaner over and over, and move the first offsets of the partitions."""
    admin, sizes = ground.admin(), cycle(("0.8", "0.9"))
    consumer = Consumer({"bootstrap.servers": ground.stack.bootstrap_servers, "group.id": "benchmark"})
    places = [TopicPartition(ground.source, number) for number in range(ground.partitions)]
    ends = {place.partition: consumer.get_watermark_offsets(place, timeout=_PATIENCE_S)[1] for place in places}
    consumer.close()
    begins = dict.fromkeys(ends, 0)

    def clean() -> bool:
        """Delete versions that a later one supersedes: the last of four is in the last quarter. Never be done."""
        entry = ConfigEntry(
            "log.cleaner.io.buffer.load.factor", next(sizes), incremental_operation=AlterConfigOpType.SET
        )
        broker = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
        for future in admin.incremental_alter_configs([broker]).values():
            future.result(_PATIENCE_S)
        for number, end in ends.items():
            begins[number] = min(begins[number] + end // 20, end // 2)
        wanted = [TopicPartition(ground.source, number, begin) for number, begin in begins.items()]
        for deleted in admin.delete_records(wanted).values():
            deleted.result(_PATIENCE_S)
        return False

    with _again_and_again(clean):
        yield
    print(f"  partition 0 began at 0, and then at {begins[0]} of {ends[0]}", flush=True)


@contextmanager
def _again_and_again(do: Callable[[], bool]) -> Iterator[None]:
    """Call `do` in a thread of its own until it returns True, or the block ends."""
    over, failed = threading.Event(), list[Exception]()

    def go_on() -> None:
        try:
            while not over.wait(_LOOK_S) and not do():
                pass
        except Exception as exc:
            failed.append(exc)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if failed:
        raise failed[0]


WORLDS = {
    "a client that is over its quota": World(lambda: lines(40_000), meanwhile=throttled),
    "a broker that is restarted in the middle": World(lambda: lines(100_000), meanwhile=restarted),
    "a topic with 1,000 partitions": World(lambda: lines(100_000), partitions=1_000),
    "10,000 connectors": World(lambda: lines(100_000, connectors=10_000)),
    "one connector with all the keys": World(lambda: lines(200_000, connectors=1)),
    "values of 1 MB": World(
        lambda: lines(40, value_bytes=1_000_000), config=(("max.message.bytes", "2000000"),)
    ),
    "compaction meanwhile": World(
        lambda: lines(25_000, versions=4),
        config=(("segment.bytes", "1048576"), ("min.cleanable.dirty.ratio", "0.001"), ("max.compaction.lag.ms", "1")),
        meanwhile=compacted,
    ),
}  # fmt: skip


def main() -> None:
    """Start a broker and go through the worlds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="the worlds whose name has this text (repeatable)")
    parser.add_argument("--command", choices=COMMANDS, action="append", help="repeatable; both without it")
    arguments = parser.parse_args()
    wanted = [name for name in WORLDS if not arguments.only or any(text in name for text in arguments.only)]
    with own_folder() as folder, stack_in(folder) as stack:
        failed = [world for world in wanted if not visit(world, stack, folder, arguments.command or COMMANDS)]
    if failed:
        sys.exit(f"not as they should be: {', '.join(failed)}")


def visit(name: str, stack: Stack, folder: Path, commands: Sequence[str]) -> bool:
    """Fill the source of one world, and move it by each command; return whether all is right."""
    world, source = WORLDS[name], f"source-{list(WORLDS).index(name)}"
    cluster = Cluster(stack.bootstrap_servers, source)
    config = {"cleanup.policy": "compact", **dict(world.config)}
    if world.meanwhile is compacted:
        config["cleanup.policy"] = "compact,delete"  # whose first offset may be moved by an admin
    cluster.create(source, partitions=world.partitions, config=config)
    cluster.write(source, world.lines())
    expected = {(partition_for(key, world.partitions), key): value for key, value in dict(world.lines()).items()}
    print(f"\n{name}: {len(expected):,} keys", flush=True)
    right = True
    for command in commands:
        target, errors = f"{source}-{command}", folder / "stderr"
        cluster.create(target, partitions=world.partitions, config={"cleanup.policy": "compact", **dict(world.config)})
        words = [*_words(command, source, target, folder), "-b", stack.bootstrap_servers, "--timeout", "900"]
        line = [sys.executable, "-m", "eosctl", "offsets", *words, "--yes", "--force-running"]
        try:
            with world.meanwhile(Ground(stack, source, target, world.partitions)):
                run = run_tree(["sh", "-c", 'exec "$@" 2> "$0"', str(errors), *line])
        except subprocess.CalledProcessError as exc:
            right = False
            print(f"  {command:8} exit code {exc.returncode}: {errors.read_text()[-1000:]}", flush=True)
            continue
        told = "right" if _is_right(cluster, target, expected) else "WRONG"
        right = right and told == "right"
        print(f"  {command:8} {told}, {run.wall_s:.1f} s, CPU {run.cpu_s:.1f} s, {run.peak_mib:,.0f} MiB", flush=True)
    return right


def _words(command: str, source: str, target: str, folder: Path) -> list[str]:
    if command == "merge":
        return ["merge", "--all", "--from", source, "--into", "global", "--offset-topic", target]
    where = ["--master", "local[2]", "--snapshot-dir", str(folder / "snapshots")]
    return ["migrate", "--all", "--to", target, "--offset-topic", source, *where]


def _is_right(cluster: Cluster, target: str, expected: dict[tuple[int, bytes], bytes | None]) -> bool:
    """Return whether each key is there once, at home, with its newest value."""
    found = [(message.partition(), message.key(), message.value()) for message in cluster.messages(target)]
    there = {(partition, key): value for partition, key, value in found}
    if len(found) != len(expected):
        print(f"  {len(found):,} records for {len(expected):,} keys")
    return there == expected and len(found) == len(expected)


if __name__ == "__main__":
    main()
