"""What `eosctl offsets` does in one process, beside `ConsoleConsumer`, and beside the migration of the same.

The topic has as many keys as records, of 32 connectors, in 25 partitions, half of them in transactions. `merge` goes
into a topic that is there and empty; `import` reads the file of an export into such a topic, where `ConsoleProducer`
writes the same keys and values from text, and neither plans nor reads back; `restore` takes back a migration into a
topic that had half of the keys; `tuned` is `export` beside a consumer in Java that reads as fast as it can (needs a
JDK); `headers` is `export` of records with a header each beside the same without. Memory is that of all processes of a
tree for `import`, `merge` and `restore`, of the largest one for the others. On a busy machine compare the CPU.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from keyword import iskeyword
from pathlib import Path
from shlex import join, quote

from benchmarks.kafka import CONSUMER, compile_java, kafka_jars
from benchmarks.migrate.__main__ import run_tree
from benchmarks.offsets_topic import TOPIC, fill
from benchmarks.pairs import compare, compile_sources, elsewhere, run_once
from benchmarks.stacks import own_folder, stack_in
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.records import OutRecord
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.machine.java import Java, require_java

_HERE = Path(__file__).parent
_CONNECTORS = 32
_CONTESTS = ("export", "headers", "list", "import", "merge", "restore", "tuned")
_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"


def main() -> None:
    """Start a broker, fill the topic and run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--per-batch", type=int, default=10_000, help="records in a batch at most (tasks write few)")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", choices=_CONTESTS, action="append", help="repeatable; all of them without it")
    arguments = parser.parse_args()
    compile_sources()
    java = require_java(os.environ)
    jars = kafka_jars(java)
    with own_folder() as folder, stack_in(folder) as stack:
        elsewhere(fill_keys, stack.bootstrap_servers, arguments.keys, arguments.per_batch)
        contest = Contest(stack.bootstrap_servers, folder, java, jars, arguments.keys, arguments.runs)
        for each in arguments.only or _CONTESTS:
            print(f"\n{each}: {arguments.keys:,} keys")
            getattr(contest, f"{each}_" if iskeyword(each) else each)()


def fill_keys(bootstrap: str, keys: int, per_batch: int = 10_000, *, topic: str = TOPIC, traced: bool = False) -> None:
    """Fill a topic with as many keys as records."""
    fill(bootstrap, keys, _records(keys), per_batch=per_batch, topic=topic, traced=traced)


def _records(keys: int) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield a record for each key, keys and values as a Debezium-like source has them."""
    for number in range(keys):
        key = b'["inventory-source-%02d",{"database":"shop","table":"orders_%07d"}]' % (number % _CONNECTORS, number)
        yield key, b'{"lsn":%d,"txId":%d,"snapshot":false}' % (9 * number, number)


@dataclass(frozen=True, slots=True)
class Contest:
    """A filled broker, and who competes on it."""

    bootstrap: str
    folder: Path
    java: Java
    jars: list[Path]
    keys: int
    runs: int
    numbers: Iterator[int] = field(default_factory=count)

    def export(self) -> None:
        """Export every record of the topic to a file; the rival reads them to nowhere."""
        self._pairs("offsets export --all-records", self.export_line, "ConsoleConsumer", self._console())

    def headers(self) -> None:
        """Export the newest of each key, and every record, of records with a header each, beside the same without."""
        traced = "connect-offsets-traced"
        elsewhere(partial(fill_keys, topic=traced, traced=True), self.bootstrap, self.keys)
        for name, more in (("newest of each key", ()), ("--all-records", ("--all-records",))):
            print(f"offsets export, {name}")
            compare(
                "with a header each", partial(self._export, traced, *more),
                "without", partial(self._export, TOPIC, *more), runs=self.runs, run=run_once,
            )  # fmt: skip

    def list(self) -> None:
        """List every key to a file; the rival prints the values to one."""
        ours = self._eosctl("list", "-o", "ndjson", "--offset-topic", TOPIC)
        compare(
            "offsets list -o ndjson", lambda: self._to_file(ours),
            "ConsoleConsumer > file", lambda: self._to_file(self._console()), runs=self.runs, run=run_once,
        )  # fmt: skip

    def import_(self) -> None:
        """Import into topics that are there and empty, beside what writes keys and values, and no more."""
        file, text = self.folder / "import.ndjson", self.folder / "import.txt"
        how = ("--yes", "--force-running")
        run_once(self._eosctl("export", "--store", TOPIC, str(file)))
        text.write_bytes(b"".join(b"%s\t%s\n" % record for record in _records(self.keys)))
        compare(
            "offsets import", lambda: self._eosctl("import", str(file), "--store", self.new_target(), *how),
            "ConsoleProducer", lambda: _from_file(self._producer(self.new_target()), text),
            runs=self.runs, run=run_tree,
        )  # fmt: skip

    def merge(self) -> None:
        """Merge into a topic that is there, beside the migration into one, and beside only reading the source."""
        compare(
            "offsets merge", lambda: self.merge_line(self.new_target()),
            "offsets migrate", lambda: self._migrate(self.new_target()), runs=self.runs, run=run_tree,
        )  # fmt: skip
        compare(
            "offsets merge", lambda: self.merge_line(self.new_target()),
            "ConsoleConsumer", self._console, runs=self.runs, run=run_tree,
        )  # fmt: skip

    def restore(self) -> None:
        """Migrate over half of the keys; then restore that, and migrate again, in turn on one topic."""
        target, theirs = self.new_target(), self._migrate
        self._fill_half(target)
        run_once(theirs(target, "--conflict", "take-source"))
        compare(
            "offsets restore", lambda: self._eosctl("restore", self._newest_backup(), "--yes", "--force-running"),
            "offsets migrate", lambda: theirs(target, "--conflict", "take-source"),
            runs=self.runs, run=run_tree,
        )  # fmt: skip

    def tuned(self) -> None:
        """Export beside a consumer that reads as fast as it can; last, as it ends the benchmark without a JDK."""
        self._pairs("offsets export --all-records", self.export_line, "tuned Java", self._tuned())

    def export_line(self) -> Sequence[str]:
        """Return the line of an export of all records."""
        return self._export(TOPIC, "--all-records")

    def _export(self, store: str, *how: str) -> Sequence[str]:
        return self._eosctl("export", "--store", store, *how, str(self._new_file()))

    def _to_file(self, command: Sequence[str]) -> Sequence[str]:
        return ["sh", "-c", f"exec {join(command)} > {quote(str(self._new_file()))}"]

    def _new_file(self) -> Path:
        """Remove the old file: to write over it takes longer, as the file system frees what it had."""
        file = self.folder / "output"
        file.unlink(missing_ok=True)
        return file

    def _pairs(self, name: str, ours: Callable[[], Sequence[str]], theirs_name: str, theirs: Sequence[str]) -> None:
        compare(name, ours, theirs_name, lambda: theirs, runs=self.runs, run=run_once)

    def _console(self) -> Sequence[str]:
        return [
            str(self.java.executable), "-Xshare:auto", "-Xmx512M", "-cp", os.pathsep.join(map(str, self.jars)),
            CONSUMER, "--bootstrap-server", self.bootstrap, "--topic", TOPIC, "--from-beginning",
            "--max-messages", str(self.keys), "--isolation-level", "read_committed",
        ]  # fmt: skip

    def _producer(self, target: str) -> Sequence[str]:
        return [
            str(self.java.executable), "-Xshare:auto", "-Xmx512M", "-cp", os.pathsep.join(map(str, self.jars)),
            _PRODUCER, "--bootstrap-server", self.bootstrap, "--topic", target,
            "--reader-property", "parse.key=true", "--command-property", "acks=all",
        ]  # fmt: skip

    def _tuned(self) -> Sequence[str]:
        class_path = os.pathsep.join([str(self.folder), *map(str, self.jars)])
        compile_java(_HERE / "ReadTopic.java", java=self.java, class_path=class_path, directory=self.folder)
        return [
            str(self.java.executable), "-Xshare:auto", "-Xmx512M", "-XX:+UseSerialGC", "-cp", class_path,
            "ReadTopic", self.bootstrap, TOPIC, str(self.keys),
        ]  # fmt: skip

    def _eosctl(self, *words: str) -> Sequence[str]:
        return [sys.executable, "-m", "eosctl", "offsets", *words, "-b", self.bootstrap, "--timeout", "900"]

    def merge_line(self, target: str) -> Sequence[str]:
        """Return the line of a merge into `target`."""
        wanted = ("merge", "--all", "--from", TOPIC, "--into", "global", "--offset-topic", target)
        return self._eosctl(*wanted, "--yes", "--force-running")

    def _migrate(self, target: str, *more: str) -> Sequence[str]:
        where = ("--master", "local[2]", "--snapshot-dir", str(self.folder / "snapshots"))
        wanted = ("migrate", "--all", "--to", target, "--offset-topic", TOPIC, *where, *more)
        return self._eosctl(*wanted, "--yes", "--force-running")

    def new_target(self) -> str:
        """Create a topic; return its name."""
        topic = f"target-{next(self.numbers)}"
        with KafkaTopicClient(
            ClientSettings(bootstrap_servers=(self.bootstrap,)), deadline=Deadline.after(60)
        ) as store:
            store.create(topic, partitions=25, replication_factor=1, config={"cleanup.policy": "compact"})
        return topic

    def _fill_half(self, target: str) -> None:
        """Write every second key, with a value that the source has not."""
        records = (OutRecord(target, key, b'{"lsn":-1}') for key, _value in islice(_records(self.keys), 0, None, 2))
        settings = ClientSettings(bootstrap_servers=(self.bootstrap,))
        with KafkaTopicClient(settings, deadline=Deadline.after(600)) as store:
            store.write(records, transactional_id=TransactionalId("benchmark-half"))

    def _newest_backup(self) -> str:
        found = (self.folder / "snapshots").glob("**/backup.*")
        return str(max(found, key=lambda path: path.stat().st_mtime))


def _from_file(command: Sequence[str], path: Path) -> Sequence[str]:
    return ["sh", "-c", f"exec {join(command)} < {quote(str(path))}"]


if __name__ == "__main__":
    main()
