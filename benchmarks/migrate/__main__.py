"""`eosctl offsets migrate` beside the Spark job that a user would write (naive.py), whole processes in turn.

The naive job keeps no backup, decides nothing, compares with nothing and reads nothing back: eosctl does all that in
its time. Goals, as medians of paired ratios: 100 records 0.7 and 8 s, a million 0.6, five million 0.5. Then a last run
tells where the time goes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from benchmarks.pairs import Run, compare, compile_sources, run_once
from benchmarks.read_offsets.__main__ import TOPIC, fill
from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicStore
from eosctl.sandbox.settings import StackSpec
from eosctl.sandbox.stack import Stack


def main() -> None:
    """Starts a broker, fills the topic, runs the pairs and one run by stages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    compile_sources()
    with tempfile.TemporaryDirectory() as name:
        stack = Stack.up(StackSpec(groups=()), Path(name) / "stack", name="benchmark", environ=os.environ)
        try:
            fill(stack.bootstrap_servers, arguments.records)
            contest(stack.bootstrap_servers, Path(name), records=arguments.records, runs=arguments.runs)
        finally:
            stack.down()


def contest(bootstrap: str, folder: Path, *, records: int, runs: int) -> None:
    """eosctl against the naive job, each run into a topic of its own."""
    numbers = count()

    def target() -> str:
        topic = f"target-{next(numbers)}"
        with KafkaTopicStore(ClientSettings(bootstrap_servers=(bootstrap,)), deadline=Deadline.after(60)) as store:
            store.create(topic, partitions=25, replication_factor=1, config={"cleanup.policy": "compact"})
        return topic

    def ours() -> Sequence[str]:
        return [
            sys.executable, "-m", "eosctl", "offsets", "migrate", "--all", "--to", target(), "--yes", "--force-running",
            "--master", "local[2]", "--snapshot-dir", str(folder / "snapshots"), "-b", bootstrap,
            "--offset-topic", TOPIC,
        ]  # fmt: skip

    def naive() -> Sequence[str]:
        return [sys.executable, "-m", "benchmarks.migrate.naive", bootstrap, TOPIC, target()]

    print(f"\n{records:,} records; memory is the sum of a tree's processes, shared pages counted in each")
    compare("eosctl offsets migrate", ours, "naive job", naive, runs=runs, run=run_tree)
    print("\nwhere eosctl's time goes")
    subprocess.run([sys.executable, "-m", "benchmarks.migrate.stages", bootstrap, TOPIC, target()], check=True)


def run_tree(command: Sequence[str]) -> Run:
    """Like `run_once`, with peak memory and CPU of the whole tree: the JVM, which nobody waits for, and its workers."""
    over, peak, cpu_s = threading.Event(), [0.0], dict[int, float]()

    def watch() -> None:
        while not over.wait(0.2):
            below = processes_below(os.getpid())
            peak[0] = max(peak[0], sum(_resident_mib(pid) for pid in below))
            cpu_s.update((pid, max(_cpu_s(pid), cpu_s.get(pid, 0.0))) for pid in below)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        run = run_once(command)
    finally:
        over.set()
        watcher.join()
    return Run(run.wall_s, max(run.cpu_s, sum(cpu_s.values())), peak[0])


def processes_below(root: int) -> list[int]:
    """The processes below `root` now, without itself and the broker."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it ended meanwhile
            continue
    return [pid for pid in parents if _is_below(pid, root, parents)]


def _is_below(pid: int, root: int, parents: dict[int, int]) -> bool:
    while pid in parents and "kafka.Kafka" not in _command_of(pid):
        pid = parents[pid]
        if pid == root:
            return True
    return False


def _command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _cpu_s(pid: int) -> float:
    """User and system time of a process so far, of which the last moments may be missing."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mib(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        return 0.0


if __name__ == "__main__":
    main()
