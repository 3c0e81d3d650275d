"""A migration of two connectors that can be killed at every step there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.allowances import Allowances
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.views import Policy
from eosctl.core.records import Record
from eosctl.engine.backups.file import open_backup
from eosctl.report import Report
from tests.fakes.faults import Call, Kill, KilledError
from tests.fakes.migration import DOWN, SOURCE, Scene

PARTITIONS, TASKS = 3, 2
KEYS = {b'["%s",{"p":%d}]' % (name, number): b'{"n":%d}' % number for name in (b"a", b"b") for number in range(3)}
KEPT = b'["a",{"p":99}]'
OLD, GONE = b'["a",{"p":0}]', b'["a",{"p":98}]'
COPIES = {key: (partition_for(key, PARTITIONS) + 1) % PARTITIONS for key in (OLD, GONE)}


class KillableScene(Scene):
    """A plan of its own over fakes: `run` ends it at a step, with `kill.error`; `fenced` are ids.

    With `copies` the target has older values of two keys, one of which is written and one deleted, on another partition
    than the newer ones.
    """

    def __init__(self, folder: Path, *, copies: bool = False) -> None:
        super().__init__(folder, partitions=PARTITIONS)
        self.kill, self.fenced = Kill(), list[str]()
        self.add_topic("offsets-a", PARTITIONS)
        self.put(SOURCE, KEYS)
        if copies:
            self.put(SOURCE, {GONE: None})
            for key, place in COPIES.items():
                self.topics.put("offsets-a", key, b'{"n":-2}', partition=place)
            self.put("offsets-a", {GONE: b'{"n":-1}'})
        self.put("offsets-a", {KEPT: b'{"n":99}', OLD: b'{"n":-1}'})
        self.planned = self.plan(policy=Policy.TAKE_SOURCE)
        self._count_steps()

    def _count_steps(self) -> None:
        for each in ("snapshot", "kept", "unwritten", "record", "compare"):
            self.stages.before(each, self.kill.tick)
        self.stages.after("transaction", self.kill.tick)
        for each in ("record", "write"):
            self.topics.before(each, self.kill.tick)
        self.topics.after("write", self.kill.tick)
        self.topics.before("create", self.kill.tick)
        self.topics.after("create", self.kill.tick)
        self.brokers.calls.before("fence", self._fences)
        now_s = self.clock.now_s

        def ticking_s() -> float:
            self.kill.tick()  # each line of the journal begins with the time
            return now_s()

        self.clock = replace(self.clock, now_s=ticking_s)

    def _fences(self, call: Call) -> None:
        self.kill.tick()
        self.fenced.append(str(call.what[0]))

    def run(self, *, resume: bool = False, allowances: Allowances = DOWN, steps: int | None = None) -> Report:
        """Applies the plan; after so many `steps` it ends with `kill.error`."""
        self.kill.at, self.kill.ticks = None if steps is None else steps + 1, 0
        return self.apply(self.planned, allowances, resume=resume)

    def killed_after(self, steps: int, *, resume: bool = False) -> None:
        with pytest.raises(KilledError):
            self.run(steps=steps, resume=resume)

    def committed(self, topic: str) -> dict[bytes, Record]:
        return {record.key or b"": record for record in self.topics.read(topic).records}

    def open_ids(self) -> list[str]:
        """The ids of the writers that have a transaction open."""
        return [name for name, known in self.brokers.state.transactions.items() if known.state == "Ongoing"]

    def target(self) -> dict[bytes, tuple[int, bytes | None]]:
        found = {**self.committed("offsets-a"), **self.committed("offsets-b")}
        return {key: (record.partition, record.value) for key, record in found.items()}

    def live(self, topic: str) -> dict[tuple[bytes | None, int], bytes]:
        """What has a value, by key and partition."""
        last = {(record.key, record.partition): record.value for record in self.topics.read(topic).records}
        return {place: value for place, value in last.items() if value is not None}

    def plan_folder(self) -> Path:
        return Path(self.planned.snapshot_base) / self.planned.name()

    def backup(self) -> list[str]:
        return b"".join(open_backup(self.backup_file()).lines()).decode().splitlines()

    def backup_file(self) -> Path:
        return self.plan_folder() / "backup.parquet"


def someone_writes_once(scene: KillableScene) -> None:
    """Lets somebody else write into the target as soon as the next write is over."""
    lines = {OLD: b'{"n":1000}'}

    def write(_call: Call) -> None:
        scene.put("offsets-a", lines)
        lines.clear()

    scene.stages.after("write", write)


EXPECTED = {key: (partition_for(key, PARTITIONS), value) for key, value in {KEPT: b'{"n":99}', **KEYS}.items()}


def backup_rows(path: object) -> list[dict[str, Any]]:
    """What a migration's backup keeps."""
    return [row for batch in open_backup(str(path)).batches() for row in batch.to_pylist()]
