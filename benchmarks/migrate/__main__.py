"""`eosctl offsets migrate` beside the Spark job that a user would write (naive.py), whole processes in turn.

The naive job keeps no backup, decides nothing, compares with nothing and reads nothing back: eosctl does all that in
its time. Then a last run tells where the time goes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer

from benchmarks.offsets_topic import TOPIC, fill, names_of, records_of
from benchmarks.pairs import Run, compare, compile_sources, run_once
from benchmarks.stacks import own_folder, stack_in
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import NewTopic
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient


class Form(NamedTuple):
    """A kind of target: how many partitions its topics have, and from how many sources what goes there comes.

    The topics are there before either job starts; `half` of the keys too, under the new names that they all get. One in
    five of the `connectors` has no records.
    """

    words: str
    partitions: int = 25
    connectors: int = 40
    each: bool = False
    half: bool = False

    def target(self, number: int) -> str:
        """Return what the run of that number writes to: a topic, or a topic for each connector."""
        return f"target-{number}-{{connector}}" if self.each else f"target-{number}"


FORMS = {
    "same": Form("a topic with as many partitions"),
    "other": Form("a topic with 7 partitions", partitions=7),
    "topics": Form("1,000 topics with one partition each", partitions=1, connectors=1250, each=True),
    "renames": Form("a topic that has half of the keys, under new names", half=True),
}


def main() -> None:
    """Start a broker, fill the topic, run the pairs and, but for renames, one run by stages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--form", action="append", choices=list(FORMS), help="repeatable; all of them without")
    arguments = parser.parse_args()
    compile_sources()
    for name in arguments.form or FORMS:
        with own_folder() as folder, stack_in(folder) as stack:
            fill(stack.bootstrap_servers, arguments.records, connectors=FORMS[name].connectors)
            Contest(stack.bootstrap_servers, folder, FORMS[name], arguments.records).run(arguments.runs)


@dataclass(frozen=True, slots=True)
class Contest:
    """eosctl against the naive job on a filled broker, each run into topics of its own."""

    bootstrap: str
    folder: Path
    form: Form
    records: int
    numbers: Iterator[int] = field(default_factory=count)

    def run(self, runs: int) -> None:
        """Print the pairs, and where the time goes."""
        print(
            f"\n{self.records:,} records into {self.form.words}; memory is all processes of a tree, shared pages once"
        )
        compare("eosctl offsets migrate", self.ours, "naive job", self.naive, runs=runs, run=run_tree)
        if not self.form.half:
            print("\nwhere eosctl's time goes")
            stages = [sys.executable, "-m", "benchmarks.migrate.stages", self.bootstrap, TOPIC, self._target()]
            subprocess.run(stages, check=True)

    def ours(self) -> Sequence[str]:
        """Return the line of eosctl."""
        name, form = self._target(), self.form
        to = ["--to", "dedicated", "--dedicated-topic", name] if form.each else ["--to", name]
        connectors = names_of(form.connectors) if form.half else []
        renames = [word for each in connectors for word in ("--rename", f"{each}=new-{each}")]
        return [
            *(sys.executable, "-m", "eosctl", "offsets", "migrate", "--all", *to, *renames, "--yes", "--force-running"),
            *("--conflict", "take-source", "--master", "local[2]", "--snapshot-dir", str(self.folder / "snapshots")),
            *("-b", self.bootstrap, "--offset-topic", TOPIC, "--timeout", "20m"),
        ]

    def naive(self) -> Sequence[str]:
        """Return the line of the naive job."""
        renames = ["new-"] * self.form.half
        return [sys.executable, "-m", "benchmarks.migrate.naive", self.bootstrap, TOPIC, self._target(), *renames]

    def _target(self) -> str:
        form = self.form
        name = form.target(next(self.numbers))
        names = [name.format(connector=each) for each in names_of(form.connectors)] if form.each else [name]
        topics = [NewTopic(each, form.partitions, 1) for each in names]
        settings = ClientSettings(bootstrap_servers=(self.bootstrap,))
        with KafkaTopicClient(settings, deadline=Deadline.after(300)) as store:
            store.create_all(topics)
        if form.half:
            fill_half(self.bootstrap, name, self.records)
        return name


def fill_half(bootstrap: str, topic: str, records: int) -> None:
    """Write every other key, with the values of long ago, under the new name of its connector."""
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2", "linger.ms": 20})
    for key, _value in islice(records_of(records), 0, None, 2):
        while True:
            try:
                producer.produce(topic, key=key.replace(b'["', b'["new-', 1), value=b'{"lsn":0}')
                break
            except BufferError:
                producer.poll(0.5)
    producer.flush(120)


def run_tree(command: Sequence[str]) -> Run:
    """Do as `run_once`, with memory and CPU of the whole tree: the JVM, which nobody waits for, and its workers."""
    over, peak, cpu_s = threading.Event(), [0.0], dict[int, float]()

    def watch() -> None:
        while not over.wait(0.2):
            below = processes_below(os.getpid())
            peak[0] = max(peak[0], sum(_proportional_mib(pid) for pid in below))
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
    """List the processes below `root` now, without itself and the broker."""
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
    """Return user and system time of a process so far, of which the last moments may be missing."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _proportional_mib(pid: int) -> float:
    """Return the proportional set size of a process: of a page that several have, each its share."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) / 1024


if __name__ == "__main__":
    main()
