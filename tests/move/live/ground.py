"""Connectors under load on two sides, moved by `eosctl connectors move` as a process of its own, and counted.

A side is a Connect group that a profile leads to. A writer appends numbered lines to each connector's file all the
time, and a watcher looks at both sides again and again: tasks of both must never be there at once.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka.admin import AdminClient

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError
from eosctl.group.members import connect_group
from eosctl.group.protocol import CONNECTOR_ITSELF
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from eosctl.sandbox.stack import Stack
from tests.conftest import Outcome
from tests.faults.child import Child
from tests.migrate.spark.cluster import Cluster
from tests.move.live.killed import Signalled
from tests.sandbox_fixtures import PATIENCE_S, FileSource, rest, wait_until

_LINES_S, _LOOK_S = 0.04, 0.05


@dataclass(frozen=True)
class Side:
    """A Connect group and its brokers; `profile` leads to it."""

    profile: str
    stack: Stack
    group: str

    @property
    def url(self) -> str:
        """One of its workers."""
        return self.stack.urls(self.group)[0]

    @property
    def cluster(self) -> Cluster:
        """Its brokers, read by plain consumers."""
        return Cluster(self.stack.bootstrap_servers, self.group)

    def settings(self) -> dict[str, Any]:
        """Its profile."""
        return {
            "bootstrap_server": self.stack.bootstrap_servers,
            "group_id": self.group,
            "connect_url": self.stack.urls(self.group),
            "expect": {"kafka_cluster_id": self.stack.state.cluster_id},
            **{f"{kind}_topic": topic for kind, topic in self.stack.state.topics[self.group].items()},
        }

    def names(self) -> list[str]:
        """The connectors that it has."""
        return list(rest(f"{self.url}/connectors"))

    def state(self, name: str) -> str:
        """What REST says of a connector."""
        return str(rest(f"{self.url}/connectors/{name}/status")["connector"]["state"])

    def traces(self, name: str) -> list[str]:
        """The last lines about a connector in the logs of all workers beside its brokers."""
        logs = [Path(node.log).read_text(errors="replace") for node in self.stack.state.of_kind("worker")]
        return [line for log in logs for line in [each for each in log.splitlines() if name in each][-12:]]


@dataclass
class Scene:
    """The sides, and the config file whose profiles lead to them."""

    sides: dict[str, Side]
    folder: Path

    @property
    def config(self) -> Path:
        """The file of profiles."""
        return self.folder / "config.yaml"

    def write_profiles(self) -> None:
        """Makes the config file."""
        profiles = {name: side.settings() for name, side in self.sides.items()}
        self.config.write_text(yaml.safe_dump({"profiles": profiles}))
        self.config.chmod(0o600)

    def flags(self, side: str) -> list[str]:
        """The global options that lead to a side."""
        return ["--config", str(self.config), "-p", side]

    def words(self, side: str, *words: str) -> list[str]:
        """`connectors move WORDS… --yes` on a side."""
        return ["connectors", "move", *words, "--yes", *self.flags(side), "-o", "json"]

    def start(self, side: str, *words: str, at: str, signal_number: int = signal.SIGKILL) -> Signalled:
        """A move as a process that gets a signal at a moment of its own."""
        return Signalled(self.words(side, *words), self.folder, at, signal_number)

    def run(self, side: str, *words: str) -> Outcome:
        """A move as a process that nothing disturbs."""
        return Child(self.words(side, *words), self.folder).wait()

    def move(self, side: str, *words: str) -> Any:
        """The document of a move that does not fail; the audit of both sides is part of one that starts it again."""
        done = self.run(side, *words)
        assert done.exit_code == 0, done.stdout + done.stderr
        found = done.json()
        for each in found["data"]["moves"]:
            assert each["verdict"] == ("exactly_once" if each["direction"] != "delete" else None)
        return found


@dataclass
class Moved:
    """A FileStreamSource that moves, its file, and how many lines the file has."""

    name: str
    path: Path
    topic: str
    lines: int = 0
    written: threading.Event = field(default_factory=threading.Event)

    def on(self, side: Side, name: str | None = None) -> FileSource:
        """It, on that side; `name` where it has another one there."""
        return FileSource(side.url, name or self.name, self.path, self.topic)

    def numbers(self, *sides: Side) -> list[list[int]]:
        """What was delivered on each side, in the order of the topic's one partition; read_committed."""
        found = []
        for side in sides:
            there = self.topic in AdminClient({"bootstrap.servers": side.cluster.servers}).list_topics().topics
            values = [message.value() for message in side.cluster.messages(self.topic)] if there else []
            found.append([int(value or b"-1") for value in values])
        return found

    def assert_all_once(self, *sides: Side) -> list[list[int]]:
        """Ends the load, waits until every line is delivered, and holds each number to be there once and in order.

        The sides are of different brokers: each has a part of the numbers.
        """
        self.written.set()

        def is_all() -> bool:
            return sum(map(len, self.numbers(*sides))) >= self.lines

        def missing() -> list[object]:
            numbers = sorted(set(range(self.lines)).difference(*self.numbers(*sides)))
            return [numbers, *(line for side in sides for line in side.traces(self.name))]

        wait_until(is_all, what=f"{self.lines} lines of {self.name}", scene=missing)
        found = self.numbers(*sides)
        for numbers in found:
            assert all(before < after for before, after in pairwise(numbers)), f"out of order: {self.name}"
        assert sorted(number for numbers in found for number in numbers) == list(range(self.lines))
        return found


@contextmanager
def load(*moved: Moved) -> Iterator[None]:
    """Appends a numbered line to each file all the time, until the block ends or `written` is set."""
    ended = threading.Event()

    def write() -> None:
        files = {each.name: each.path.open("a", encoding="ascii") for each in moved}
        while not ended.is_set():
            for each in moved:
                if not each.written.is_set():
                    files[each.name].write(f"{each.lines:08d}\n")
                    files[each.name].flush()
                    each.lines += 1
            time.sleep(_LINES_S)
        for file in files.values():
            file.close()

    with _beside(write, ended):
        yield


@contextmanager
def _beside(work: Any, ended: threading.Event) -> Iterator[None]:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(PATIENCE_S)


@dataclass(frozen=True)
class Look:
    """What one look at one side saw: the connectors of which it has a task."""

    side: str
    time_s: float
    running: frozenset[str]


class Watcher:
    """A context manager: looks at sides by turns, at what REST and the group's assignment say of tasks."""

    def __init__(self, *sides: Side) -> None:
        self._sides, self._ended = sides, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.looks: list[Look] = []
        self.unseen: list[str] = []

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._ended.set()
        self._thread.join(PATIENCE_S)

    def together(self, *names: str) -> list[tuple[Look, Look, Look]]:
        """The moments at which tasks of two sides were there, under any of the names that it has.

        Two looks at a side, one after the other, had it, and so had one at another side between them.
        """
        found, last = [], dict[str, int]()
        for number, look in enumerate(self.looks):
            before = last.pop(look.side, None)
            if not look.running & set(names):
                continue
            last[look.side] = number
            between = [] if before is None else self.looks[before + 1 : number]
            found += [(self.looks[before or 0], each, look) for each in between if each.running & set(names)]
        return found

    def sides_of(self, *names: str) -> list[str]:
        """The sides that had it, one after the other, as often as it changed."""
        found: list[str] = []
        for look in self.looks:
            if look.running & set(names) and found[-1:] != [look.side]:
                found.append(look.side)
        return found

    def _watch(self) -> None:
        with ExitStack() as opened:
            admins = [opened.enter_context(_admin(side)) for side in self._sides]
            while not self._ended.is_set():
                for side, admin in zip(self._sides, admins, strict=True):
                    try:
                        self.looks.append(Look(side.profile, time.monotonic(), _running(side, admin)))
                    except (OSError, EosctlError) as exc:  # a worker that a test has killed
                        self.unseen.append(f"{side.profile}: {exc}")
                self._ended.wait(_LOOK_S)


def _admin(side: Side) -> NativeTransactionAdmin:
    settings = ClientSettings((side.cluster.servers,))
    return NativeTransactionAdmin(settings, deadline=Deadline.after(10 * PATIENCE_S))


def _running(side: Side, admin: NativeTransactionAdmin) -> frozenset[str]:
    """The connectors with a task that is RUNNING, or that a member of the group holds."""
    told = rest(f"{side.url}/connectors?expand=status")
    states = {name: {task["state"] for task in of_it["status"]["tasks"]} for name, of_it in told.items()}
    held = {work for member in connect_group(admin.describe_group(side.group)).members for work in member.held}
    by_rest = {name for name, found in states.items() if "RUNNING" in found}
    return frozenset(by_rest | {name for name, task in held if task != CONNECTOR_ITSELF})
