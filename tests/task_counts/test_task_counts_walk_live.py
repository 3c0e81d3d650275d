"""A connector of several tasks on two real workers: what `task-counts show` says beforehand is what they then do.

What they did is read from `__transaction_state`: a round of Connect's leaves a timeout of 90000 on each id it fences,
a task that starts its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import OutRecord
from eosctl.core.transactions import CURE
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.sandbox.operations import Zombie
from eosctl.sandbox.settings import GroupSpec, StackSpec
from eosctl.sandbox.stack import Stack
from tests.sandbox_fixtures import PATIENCE_S, has_ended, mirror_config, rest, wait_until

pytestmark = pytest.mark.live

GROUP, NAME, TASK_TIMEOUT_MS = "walk", "mirror", 60_000
TOPICS = ("src0", "src1", "src2")
HIGHEST = 6


@dataclass
class Walk:
    """The connector on its group, and eosctl to look at it."""

    stack: Stack
    invoke: Any
    logged: dict[str, int] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.stack.urls(GROUP)[0]

    def run(self, *words: str) -> Any:
        """The data of a command that exits 0."""
        where = ("-b", self.stack.bootstrap_servers, "-u", self.url, "-g", GROUP, "--config-topic", f"{GROUP}-configs")
        outcome = self.invoke(*words, "-o", "json", *where)
        assert outcome.exit_code == 0, outcome.stdout + outcome.stderr
        return outcome.json()["data"]

    def show(self) -> Any:
        """The connector's row."""
        (row,) = self.run("task-counts", "show", NAME)["rows"]
        return row

    def ids(self, count: int) -> list[str]:
        return [f"{GROUP}-{NAME}-{task}" for task in range(count)]

    def put(self, tasks: int, **more: str) -> None:
        config = {**mirror_config(self.stack.bootstrap_servers, TOPICS, tasks=tasks), **CURE, **more}
        rest(f"{self.url}/connectors/{NAME}/config", "PUT", config)

    def set_state(self, verb: str) -> None:
        rest(f"{self.url}/connectors/{NAME}/{verb}", "PUT")

    def stop(self) -> None:
        self.set_state("stop")
        wait_until(lambda: has_ended(self.status()) and self.show()["target_state"] == "STOPPED", what="the stop")

    def status(self) -> Any:
        return rest(f"{self.url}/connectors/{NAME}/status")

    def task_states(self) -> list[str]:
        return [task["state"] for task in self.status()["tasks"]]

    def touched_since(self) -> dict[str, list[int]]:
        """Each id's timeouts in the records that its coordinator has written since `mark`, in order."""
        touched: dict[str, list[int]] = {}
        for row in self.run("txn", "log", *self.ids(HIGHEST), "--all-records")["rows"]:
            if row["offset"] >= self.logged.get(row["transactional_id"], 0):
                touched.setdefault(row["transactional_id"], []).append(row["transaction_timeout_ms"])
        return touched

    def mark(self) -> None:
        """What the coordinators have written so far belongs to the step before."""
        rows = self.run("txn", "log", *self.ids(HIGHEST), "--all-records")["rows"]
        self.logged = {row["transactional_id"]: row["offset"] + 1 for row in rows}

    def settle(self, tasks: int) -> dict[str, list[int]]:
        """Waits until `tasks` tasks have taken their ids and the record says so; what was touched for that."""

        def settled() -> Any:
            touched = self.touched_since()
            started = all(TASK_TIMEOUT_MS in touched.get(each, []) for each in self.ids(tasks))
            row = self.show()
            recorded = (row["recorded"], row["task_count"], row["pending_fencing"]) == (tasks, tasks, False)
            return started and recorded and self.task_states() == ["RUNNING"] * tasks and touched

        touched: dict[str, list[int]] = wait_until(settled, what=f"{tasks} tasks to run under their ids")
        return touched


@pytest.fixture
def walk(tmp_path: Path, invoke: Any) -> Iterator[Walk]:
    """Three source topics with a record each, and two enabled workers."""
    spec = StackSpec(groups=(GroupSpec(GROUP, (Mode.ENABLED, Mode.ENABLED)),))
    stack = Stack.up(spec, tmp_path / "stack", name="walk", environ=os.environ)
    try:
        settings = ClientSettings(bootstrap_servers=(stack.bootstrap_servers,))
        with KafkaTopicClient(settings, deadline=Deadline.after(PATIENCE_S)) as topics:
            for name in TOPICS:
                topics.create(name, partitions=1, replication_factor=1, config={})
            topics.write([OutRecord(name, b"k", b"v", partition=0) for name in TOPICS])
        yield Walk(stack, invoke)
    finally:
        stack.down()


def fenced(touched: dict[str, list[int]]) -> list[str]:
    """The ids that a round of Connect's has fenced."""
    return sorted(each for each, timeouts in touched.items() if 90_000 in timeouts)


def test_what_show_says_beforehand_is_what_the_workers_do(walk: Walk) -> None:
    walk.put(3)
    assert fenced(walk.settle(3)) == [], "no record, so nobody was fenced"

    for tasks, more in ((2, {}), (1, {}), (1, {"poll.timeout.ms": "900"}), (3, {})):
        before = walk.show()
        assert (before["would_fence"], before["pending_fencing"], before["findings"]) == ([], False, [])
        predicted = before["after_next_commit"]["would_fence"]
        assert predicted == walk.ids(before["recorded"])
        if (before["recorded"], tasks) == (1, 1):
            assert "if the new set has one task, that task does it" in before["after_next_commit"]["reason"]
            predicted = []
        walk.mark()
        walk.put(tasks, **more)
        assert fenced(walk.settle(tasks)) == predicted, f"{before['recorded']} -> {tasks}"

    walk.mark()
    walk.stop()
    now = walk.show()
    assert (now["pending_fencing"], now["would_fence"], now["would_write"]) == (True, walk.ids(3), 0)
    assert fenced(walk.touched_since()) == [], "fencing is due, and waits for tasks to start"

    rest(f"{walk.url}/connectors/{NAME}", "DELETE")
    wait_until(lambda: walk.show()["target_state"] is None, what="the deletion")
    left = walk.show()
    assert (left["recorded"], left["would_fence"]) == (3, [])
    assert [finding["code"] for finding in left["findings"]] == ["orphan"]
    predicted = left["after_next_commit"]["would_fence"]
    assert (predicted, fenced(walk.touched_since())) == (walk.ids(3), [])

    walk.mark()
    walk.put(1)
    assert fenced(walk.settle(1)) == predicted, "the record of the deleted one was used"
    raise_the_record(walk)


def raise_the_record(walk: Walk) -> None:
    """Tasks 1 to 5 ran somewhere else, say; the record of 1 would leave them alone."""
    with ExitStack() as zombies:
        holders = [
            zombies.enter_context(Zombie(walk.stack.bootstrap_servers, each, topic=TOPICS[0], record=b"zombie"))
            for each in walk.ids(HIGHEST)[1:]
        ]
        (finding,) = walk.show()["findings"]
        assert (finding["code"], finding["severity"]) == ("too_low", "error")
        walk.stop()
        (row,) = walk.run("task-counts", "write", NAME, "--count", str(HIGHEST), "--yes")["rows"]
        assert (row["outcome"], row["after"]["task_count"]) == ("written", HIGHEST)
        predicted = walk.show()["after_next_commit"]["would_fence"]
        assert predicted == walk.ids(HIGHEST)
        walk.mark()
        walk.set_state("resume")
        assert fenced(walk.settle(1)) == predicted
        assert {zombie.commit() for zombie in holders} == {"_FENCED"}
    assert walk.show()["findings"] == []
