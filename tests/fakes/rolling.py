"""Workers in memory that are restarted one by one, and a driver that does it.

A worker has a file, and runs with what the file said when it was started; a restarted one is another member of the
group. The first in `workers` leads; one that stops loses the lead. `kill_at` breaks the n-th call from outside off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from eosctl.core.client_settings import ClientSettings
from eosctl.core.group_protocol import Assignment, Metadata, encode_assignment, encode_metadata
from eosctl.core.records import TopicDescription, TopicRead
from eosctl.core.transactions import (
    Coordinator,
    KafkaFault,
    RawGroup,
    RawGroupMember,
    TransactionDescription,
    TransactionState,
)
from eosctl.core.upgrade import Mode
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, UnreachableError
from eosctl.events import Event
from eosctl.ops.app import App
from eosctl.ops.upgrade_apply import RollRequest, prepare_roll
from eosctl.ops.upgrade_drivers import Acted, Driver
from eosctl.ops.upgrade_roll import apply_roll
from eosctl.profiles import Target
from eosctl.report import Report
from tests.fakes.clock import FakeTime
from tests.fakes.config_cluster import FakeCluster, FakeTopics, FakeTransactions, FakeWorker
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.faults import KilledError

W1, W2, W3 = "http://w1:8083", "http://w2:8083", "http://w3:8083"
LEADER_ID = "connect-cluster-g"


@dataclass
class RollWorld(FakeCluster):
    """Disabled workers, w1 leading, and a source connector `a` with one task.

    `crashes` are workers whose next start fails. `after_start` runs at each start, with the worker's URL. `frozen` ones
    let every request time out.
    """

    files: dict[str, str] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    starts: list[tuple[str, str]] = field(default_factory=list)
    crashes: set[str] = field(default_factory=set)
    frozen: set[str] = field(default_factory=set)
    traces: dict[str, str] = field(default_factory=dict)
    restarts: list[str] = field(default_factory=list)
    after_start: list[Any] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    after_restart: Any = None
    break_with: type[BaseException] = KilledError
    epoch: int | None = None
    kill_at: int | None = None
    ticks: int = 0
    time: FakeTime = field(default_factory=FakeTime)

    def __post_init__(self) -> None:
        self.workers = dict(self.workers)
        self.files = dict(self.workers)

    def app(self, state_dir: Path) -> App:
        """An App that looks at this world."""
        return App(
            target=Target(client=ClientSettings(("memory:1",)), group_id="g"),
            deadline=Deadline.after(60, self.time.clock()),
            state_dir=state_dir,
            clock=self.time.clock(),
            on_event=self.events.append,
            **self.doors(),
        )

    def doors(self) -> dict[str, Any]:
        return {
            "open_topics": lambda _app: _Topics(self),
            "open_transactions": lambda _app: _Transactions(self),
            "open_worker": lambda _app, url: _Worker(self, url),
            "open_acls": lambda _app: self.acls,
        }

    def tick(self) -> None:
        """One call from outside; the process dies at the `kill_at`-th."""
        self.ticks += 1
        if self.ticks == self.kill_at:
            raise self.break_with

    def stop(self, url: str) -> None:
        """The worker leaves; another one leads, if it did."""
        self.workers = {name: mode for name, mode in self.workers.items() if name != url}
        self._rebalance()

    def start(self, url: str) -> None:
        """The worker joins as a new member, in the mode of its file."""
        if url in self.crashes:
            self.crashes.discard(url)
            raise EosctlError(f"{url} ended: it did not come up")
        self.workers = {**self.workers, url: self.files[url]}
        self.generations[url] = self.generations.get(url, 0) + 1
        self.starts.append((url, self.files[url]))
        modes = set(self.workers.values())
        assert not {"enabled", "disabled"} <= modes, f"enabled beside disabled: {self.workers}"
        self._rebalance()
        for happens in self.after_start:
            happens(url)

    def pod_to_come(self) -> str:
        """The worker whose file was written last, and that is not there."""
        return next(url for url in reversed(self.files) if url not in self.workers)

    def _rebalance(self) -> None:
        """A leader that is not disabled claims its transactional id at every rebalance."""
        if self.workers and next(iter(self.workers.values())) != "disabled":
            self.epoch = 0 if self.epoch is None else self.epoch + 1

    def member_id(self, url: str) -> str:
        """Another one after each start."""
        return f"member {url} {self.generations.get(url, 0)}"


@dataclass
class _Topics(FakeTopics):
    def read(self, topic: str, **how: Any) -> TopicRead:
        _world(self).tick()
        return super().read(topic, **how)


@dataclass
class _Transactions(FakeTransactions):
    def describe_transactions(
        self, transactional_ids: Sequence[str]
    ) -> Mapping[str, TransactionDescription | KafkaFault]:
        _world(self).tick()
        return super().describe_transactions(transactional_ids)

    def _described(self, transactional_id: str) -> TransactionDescription | KafkaFault:
        if transactional_id != LEADER_ID:
            return super()._described(transactional_id)
        epoch = _world(self).epoch
        if epoch is None:
            return KafkaFault(105, "TRANSACTIONAL_ID_NOT_FOUND")
        where, state = Coordinator(1, "h", 1), TransactionState.EMPTY
        return TransactionDescription(transactional_id, where, state, 1, epoch, 60_000, None, ())

    def describe_group(self, group_id: str) -> RawGroup:
        world = _world(self)
        world.tick()
        urls = list(world.workers)
        if not urls or world.group_state != "Stable":
            return RawGroup(group_id, "Empty" if not urls else world.group_state, "connect", "", ())
        members = []
        for url in urls:
            tasks = tuple((name, 0) for name in world.connectors) if url == urls[0] else ()
            assignment = Assignment(2, 0, world.member_id(urls[0]), urls[0], 7, tasks)
            metadata = encode_metadata(Metadata(2, url, 7))
            members.append(RawGroupMember(world.member_id(url), "c", "h", metadata, encode_assignment(assignment)))
        return RawGroup(group_id, "Stable", "connect", "sessioned", tuple(members))


@dataclass
class _Worker(FakeWorker):
    def root(self) -> Mapping[str, str]:
        if self.url not in self.cluster.workers:
            raise UnreachableError(f"the Connect worker at {self.url} can't be reached")
        self._time_out_if_frozen()
        return super().root()

    def _time_out_if_frozen(self) -> None:
        world = _world(self)
        if self.url in world.frozen:
            world.time.now_s += 5
            raise UnreachableError(f"the Connect worker at {self.url} can't be reached: no answer in time")

    def connectors(self) -> Mapping[str, Mapping[str, object]]:
        world = _world(self)
        world.tick()
        self._time_out_if_frozen()
        answer: dict[str, Any] = {}
        for name, entry in super().connectors().items():
            info, status = dict(entry["info"]), dict(entry["status"])  # type: ignore[call-overload]
            info["tasks"] = [{"connector": name, "task": 0}]
            if name in world.traces:
                status["tasks"] = [{"id": 0, "state": "FAILED", "worker_id": "w", "trace": world.traces[name]}]
            answer[name] = {"info": info, "status": status}
        return answer

    def restart(self, connector: str, *, only_failed: bool = True) -> None:
        assert only_failed
        world = _world(self)
        world.restarts.append(connector)
        world.traces.pop(connector, None)
        if world.after_restart:
            world.after_restart(connector)


def _world(door: FakeTopics | FakeTransactions | FakeWorker) -> RollWorld:
    assert isinstance(door.cluster, RollWorld)
    return door.cluster


def topic(name: str, partitions: int) -> TopicDescription:
    """A compacted topic."""
    return TopicDescription(name, "id", partitions, 3, {"cleanup.policy": "compact"})


def world(**modes: str) -> RollWorld:
    """Workers by name, the first leads: `world(w1="disabled", w2="disabled")`."""
    return RollWorld(
        records=config_records(*created("a", 1)),
        topics={CONFIG_TOPIC: topic(CONFIG_TOPIC, 1), "connect-offsets": topic("connect-offsets", 2)},
        connectors={"a": "source"},
        workers={f"http://{name}:8083": mode for name, mode in modes.items()},
    )


@dataclass
class FakeDriver:
    """Restarts workers of the world; `forgets` are workers whose file it does not change."""

    world: RollWorld
    forgets: set[str] = field(default_factory=set)
    name: ClassVar[str] = "sandbox"
    at_once: ClassVar[bool] = False
    waits_for_person: ClassVar[bool] = False

    def files(self, _workers: Sequence[str]) -> Sequence[Path]:
        return ()

    def actions(self, workers: Sequence[str], mode: Mode) -> Sequence[str]:
        return [f"restart {workers[0]} as {mode.value}"]

    def bring(self, _app: App, workers: Sequence[str], mode: Mode) -> Acted:
        (url,) = workers
        self.world.tick()
        self.world.stop(url)
        self.world.tick()
        if url not in self.forgets:
            self.world.files[url] = mode.value
        self.world.tick()
        self.world.start(url)
        self.world.tick()
        return Acted("restarted")


def roll(app: App, driver: Driver, target: Mode | None = Mode.ENABLED, **request: Any) -> Report:
    """What `upgrade apply` does, with a minute for each step."""
    return apply_roll(app, prepare_roll(app, RollRequest(target, settle_timeout_s=60.0, **request), driver))


def outcomes(report: Report) -> list[tuple[object, object, object]]:
    """(mode, worker, outcome) of each row."""
    return [(row["mode"], row["worker"], row["outcome"]) for row in report.rows]
