"""Workers in memory that are restarted one by one, and a driver that does it.

A worker has a file, and runs with what the file said when it was started.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.errors import EosctlError, ExitCode
from eosctl.report import Report
from eosctl.upgrade.drivers import Driver, DriverResult
from eosctl.upgrade.roll.prepare import RollRequest, prepare_roll
from eosctl.upgrade.roll.roll import apply_roll
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.clock import FakeTime
from tests.fakes.config_topic import created
from tests.fakes.connectors import FakeConnector
from tests.fakes.faults import Call, Kill, KilledError
from tests.fakes.world import CONFIGS, OFFSETS, World

W1, W2, W3 = "http://w1:8083", "http://w2:8083", "http://w3:8083"
LEADER_ID = "connect-cluster-g"
SETTLED_S = 2.0
"""After so long a group has rebalanced, and balanced what its members own."""


@dataclass
class RollWorld(World):
    """Workers by their files, the first leads, and a source connector `a` with one task.

    A task that starts takes its id when `id_after_s` have passed: REST calls it RUNNING before.
    `crashes` are workers whose next start fails. `after_start` runs when a worker joins, with its URL. `starts` and
    `restarts` are what was started and restarted. `kill` is told of calls to Kafka and Connect, and by the driver.
    """

    modes: dict[str, str] = field(default_factory=dict)
    cluster_id: str = "cluster-1"
    time: FakeTime = field(default_factory=FakeTime)
    files: dict[str, str] = field(default_factory=dict)
    starts: list[tuple[str, str]] = field(default_factory=list)
    restarts: list[str] = field(default_factory=list)
    crashes: set[str] = field(default_factory=set)
    after_start: list[Callable[[str], object]] = field(default_factory=list)
    kill: Kill = field(default_factory=Kill)
    id_after_s: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.files = dict(self.modes)
        for name, partitions in ((CONFIGS, 1), (OFFSETS, 2)):
            self.topics.add_topic(name, partitions, {"cleanup.policy": "compact"})
            self.topics.topics[name].replication_factor = 3
        for key, value in created("a", 1):
            self.keep_config(key, value)
        self.topics.state.settings |= {"super.users": "", "allow.everyone.if.no.acl.found": ""}
        self.connect.add("a")
        self._claim(Call("rebalance"))
        self._take_id(Call("start_task", ("a", 0)))
        self.connect.before("start_worker", self._start)
        self.connect.after("join", self._joined)
        self.connect.after("rebalance", self._claim)
        self.connect.after("start_task", self._take_id)
        self.connect.after("restart", lambda call: self.restarts.append(str(call.what[1])))
        for faults, calls in (
            (self.topics, ("read",)),
            (self.brokers.calls, ("describe_transactions", "describe_group")),
            (self.connect, ("connectors", "restart")),
        ):
            for call in calls:
                faults.before(call, self.kill.tick)

    @property
    def workers(self) -> Mapping[str, str]:
        """URL -> mode of the members."""
        return self.connect.modes

    @property
    def connector(self) -> FakeConnector:
        return self.connect.connectors["a"]

    def stop(self, url: str) -> None:
        """The worker leaves; another one leads, if it did."""
        self.connect.stop_worker(url)

    def start(self, url: str) -> None:
        """The worker comes up in the mode of its file."""
        self.connect.start_worker(url, self.files[url])

    def settle(self) -> None:
        """Some seconds in which nothing is asked."""
        self.time.sleep(SETTLED_S)

    def pod_to_come(self) -> str:
        """The worker whose file was written last, and that is not there."""
        there = {**self.connect.starting, **self.workers}
        return next(url for url in reversed(self.files) if url not in there)

    def hold_task(self, state: str) -> Callable[[], None]:
        """From now on the task is seen in this state, whatever is done; returns what lets it go."""
        held = [state]

        def hold(_call: Call | None = None) -> None:
            for task in self.connector.tasks.values() if held else ():
                task.state = held[0]

        def let_go() -> None:
            held.clear()
            self.connector.heal()

        hold()
        for event in ("start_task", "rebalance", "stop_worker"):
            self.connect.after(event, hold)
        return let_go

    def _start(self, call: Call) -> None:
        url = str(call.what[0])
        if url in self.crashes:
            self.crashes.discard(url)
            raise EosctlError(f"{url} ended: it did not come up")
        self.starts.append((url, self.files[url]))

    def _joined(self, call: Call) -> None:
        modes = set(self.workers.values())
        assert not {"enabled", "disabled"} <= modes, f"enabled beside disabled: {self.workers}"
        for happens in self.after_start:
            happens(str(call.what[0]))

    def _take_id(self, call: Call) -> None:
        """A task of an enabled worker initialises its transactional id."""
        name, number = call.what
        url = self.connect.connectors[str(name)].tasks[int(str(number))].url

        def take() -> None:
            known = self.topics.state.transactions.setdefault(f"g-{name}-{number}", FakeTransaction(2, -1))
            known.producer_epoch += 1

        if self.workers.get(url) == "enabled" and self.id_after_s:
            self.time.later(self.id_after_s, take)
        elif self.workers.get(url) == "enabled":
            take()

    def _claim(self, _call: Call) -> None:
        """A leader that is not disabled claims its transactional id at every rebalance."""
        if self.workers and self.workers[self.connect.leader] != "disabled":
            known = self.topics.state.transactions.setdefault(LEADER_ID, FakeTransaction(1, -1))
            known.producer_epoch += 1


def world(**modes: str) -> RollWorld:
    """Workers by name, the first leads: `world(w1="disabled", w2="disabled")`."""
    return RollWorld({f"http://{name}:8083": mode for name, mode in modes.items()})


@dataclass
class FakeDriver:
    """Restarts workers of the world; `forgets` are those whose file it does not change, `checked` what it looked at."""

    world: RollWorld
    forgets: set[str] = field(default_factory=set)
    checked: list[tuple[str, ...]] = field(default_factory=list)
    name: ClassVar[str] = "sandbox"
    at_once: ClassVar[bool] = False
    waits_for_person: ClassVar[bool] = False

    def files(self, _workers: Sequence[str]) -> Sequence[Path]:
        return ()

    def actions(self, workers: Sequence[str], mode: Mode) -> Sequence[str]:
        return [f"restart {workers[0]} as {mode.value}"]

    def check(self, _app: App, workers: Sequence[str]) -> None:
        self.checked.append(tuple(workers))

    def set_alone(self, _app: App, worker: str, mode: Mode) -> DriverResult:
        self.world.kill.tick()
        self.world.files[worker] = mode.value
        return DriverResult("configured")

    def bring(self, _app: App, workers: Sequence[str], mode: Mode) -> DriverResult:
        (url,) = workers
        self.world.kill.tick()
        self.world.stop(url)
        self.world.kill.tick()
        if url not in self.forgets:
            self.world.files[url] = mode.value
        self.world.kill.tick()
        self.world.start(url)
        self.world.kill.tick()
        return DriverResult("restarted")


def roll(app: App, driver: Driver, target: Mode | None = Mode.ENABLED, **request: Any) -> Report:
    """What `upgrade apply` does, with a minute for each step."""
    return apply_roll(app, prepare_roll(app, RollRequest(target, settle_timeout_s=60.0, **request), driver))


def came_to_its_end(app: App, driver: Driver, target: Mode, **request: Any) -> bool:
    """Whether the roll was neither killed nor interrupted."""
    try:
        return roll(app, driver, target, **request).exit_code is not ExitCode.INTERRUPTED
    except (KilledError, KeyboardInterrupt):
        return False


def outcomes(report: Report) -> list[tuple[object, object, object]]:
    """(mode, worker, outcome) of each row."""
    return [(row.mode, row.worker, row.outcome) for row in report.rows]
