"""One migration, applied many times from the same plan: killed with -9 at random moments, resumed, and compared.

What makes the same plan hold again: all that it writes to are topics that it creates, so they are deleted, and its
snapshot folder is put back as it was after planning.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from tests.migrate.spark.cluster import Cluster, Line
from tests.migrate.spark.driver import kill_driver, migrate_command
from tests.migrate.spark.warm_jvm import WarmJvm
from tests.sandbox_fixtures import PATIENCE_S

CONNECTORS = 4
_PATIENCE_S = 300.0
State = dict[tuple[str, int, bytes], bytes | None]
"""(topic, partition, key) -> value of the newest committed record."""


def source_lines(records: int) -> Iterator[Line]:
    """One in five keys is there twice, one record in eleven is a tombstone, and one is as large as brokers take it."""
    for number in range(records):
        key = b'["c%d",{"file":"f%d"}]' % (number % CONNECTORS, number % (records * 4 // 5))
        yield key, None if number % 11 == 0 else b'{"position":%d}' % number
    yield b'["c0",{"file":"large"}]', b"{}".ljust(1_000_000)


@dataclass(frozen=True)
class Moment:
    """So far (`share`, 0 to 1) into a stage; where a run has that one behind it, into the next one that it has not."""

    stage: str
    share: float


@dataclass
class KilledMoves:
    """From the cluster's global topic to one topic per connector, which begin with its name.

    `jvm` runs what is not killed; with `whole`, what is killed has a JVM of its own, which is killed too. `after` and
    `took_s` are those of an undisturbed run: what it leaves, and the seconds of each stage.
    """

    cluster: Cluster
    folder: Path
    jvm: WarmJvm
    whole: bool = False
    flags: tuple[str, ...] = ()
    after: State = field(init=False)
    took_s: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self.prefix = f"{self.cluster.name}-to"
        state = {"XDG_STATE_HOME": str(self.folder / "state")}
        self.warm: Mapping[str, str] = {**self.jvm.environ, **state}
        self.cold: Mapping[str, str] = {**os.environ, **state}
        self._plan()
        self._run(*self._apply())
        self.after = self.state()
        times_s = {(line["event"], line.get("stage")): line["time_ms"] / 1000 for line in self.journal()}
        started = [str(stage) for event, stage in times_s if event == "started"]
        self.took_s = {stage: times_s["done", stage] - times_s["started", stage] for stage in started}

    def _plan(self) -> None:
        pattern = f"{self.prefix}-{{connector}}"
        data = self._run(
            "--all", "--dedicated-topic", pattern, "--plan-out", str(self.folder / "plan.json"),
            "--snapshot-dir", str(self.folder / "snapshots"), *self.flags,
        )  # fmt: skip
        self.snapshot = Path(data["snapshot"])
        self.as_planned = self.folder / "as-planned"
        shutil.copytree(self.snapshot, self.as_planned)

    def _apply(self) -> list[str]:
        resume = ["--resume"] if self.journal() else []
        return ["--plan", str(self.snapshot / "plan.json"), "--yes", "--force-running", *resume]

    def _run(self, *arguments: str) -> Any:
        """The document's data of a run that must end well."""
        line = [*migrate_command(self.cluster, *arguments), "-o", "json"]
        done = subprocess.run(line, env=self.warm, capture_output=True, text=True, timeout=2 * _PATIENCE_S)
        assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr}"
        return json.loads(done.stdout)["data"]

    def journal(self) -> list[Mapping[str, Any]]:
        """The whole lines of the plan's journal: one may be half written."""
        try:
            lines = (self.snapshot / "journal.ndjson").read_text().split("\n")[:-1]
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines]

    def state(self) -> State:
        """What is in the target topics now."""
        topics = AdminClient({"bootstrap.servers": self.cluster.servers}).list_topics(timeout=PATIENCE_S).topics
        return {
            (topic, partition, key): value
            for topic in topics
            if topic.startswith(self.prefix)
            for (partition, key), value in self.cluster.per_partition(topic).items()
        }

    def is_over(self) -> bool:
        """Whether the apply has come to its end."""
        return any(line["event"] == "end" for line in self.journal())

    def moments(self, rng: random.Random) -> Iterator[Moment]:
        """Without end: each stage once, in any order, and again."""
        stages = list(self.took_s)
        while True:
            yield from (Moment(stage, rng.random()) for stage in rng.sample(stages, len(stages)))

    def start_over(self) -> None:
        """As after planning: without the topics, the journal and the backup."""
        self.cluster.delete(*{topic for topic, _, _ in self.after})
        shutil.rmtree(self.snapshot)
        shutil.copytree(self.as_planned, self.snapshot)

    def killed_and_resumed(self, moments: Iterable[Moment]) -> list[str]:
        """Kills the apply at the first moment, its --resume at the next one, …, and then resumes it to its end.

        Returns a line for each kill, and fails unless there is in the end what an undisturbed run leaves. A moment that
        comes too late is the last one.
        """
        self.start_over()
        told = [self._kill(moment) for moment in moments if not self.is_over()]
        started_s = time.monotonic()
        summary = self._run(*self._apply())["summary"]
        now = self.state()
        assert now == self.after, f"{_difference(now, self.after)} after {told}"
        assert summary["sent"] + summary["already_written"] == len(self.after), (summary, told)
        told[-1] += f"; sent {summary['sent']} of {len(self.after)}, resumed in {time.monotonic() - started_s:.1f} s"
        return told

    def _kill(self, moment: Moment) -> str:
        journal, stages = self.journal(), list(self.took_s)
        done = {line["stage"] for line in journal if line["event"] == "done"}
        left = [stage for stage in stages[stages.index(moment.stage) :] if stage not in done] or stages[-1:]
        killed = kill_driver(
            self.cluster,
            self._apply(),
            lambda: _started_in(self.journal(), left[0]) > _started_in(journal, left[0]),
            after_s=moment.share * self.took_s[left[0]],
            environ=self.cold if self.whole else self.warm,
        )
        self.jvm.end_spark()
        killed, there = killed and not self.is_over(), self.state()
        strange = {key: value for key, value in there.items() if self.after.get(key, b"") != value}
        assert not strange, f"not the plan's, after {moment}: {strange}"
        last = self.journal()[-1]
        where = " ".join(str(last[name]) for name in ("event", "stage") if name in last)
        told = f"{moment.share:.2f} into {left[0]}: {'killed' if killed else 'too late'} after '{where}'"
        return f"{told}, {len(there)} keys visible"


def _started_in(journal: Iterable[Mapping[str, Any]], stage: str) -> int:
    return sum((line["event"], line.get("stage")) == ("started", stage) for line in journal)


def _difference(now: State, after: State) -> str:
    missing, other = after.keys() - now.keys(), {key for key, value in now.items() if after.get(key, b"") != value}
    return f"{len(missing)} keys missing {sorted(missing)[:3]}, {len(other)} others {sorted(other)[:3]}"
