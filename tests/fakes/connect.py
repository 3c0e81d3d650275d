"""Connect in memory: a group's connectors, and how they come from one state to the next.

What is asked of it is accepted at once and seen later, as Connect does it. tests/contract/test_connect_worker.py,
test_connect_group.py and test_group_changes.py hold it to real workers; `connect_worker` is its REST interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from eosctl.app import App
from eosctl.core.workers.url import parse_worker_url
from eosctl.deadline import Deadline
from eosctl.group.protocol import CONNECTOR_ITSELF, Work
from tests.fakes.connect_group import LAG_S, FakeMembers
from tests.fakes.connect_worker import FakeConnectWorker
from tests.fakes.connectors import (
    FILE_SOURCE,
    PAUSED,
    SHOWN,
    STARTED,
    STOPPED,
    FakeConnector,
    FakeTask,
    MemoryOffsets,
    SourceOffsets,
)

CLUSTER_ID = "cluster-1"
SESSION_KEY = b"0123456789abcdef0123456789abcdef"


@dataclass
class FakeConnect(FakeMembers):
    """One Connect group.

    The calls that Faults knows are those of ConnectWorker, with the worker's URL and what was given; events beside
    those of FakeMembers are `start_connector` (name) and `start_task` (name, task). `keep_config` gets the records that
    the herder writes into the config topic. `lacking` are the plugins that a member (by URL) does not have,
    `plugin_versions` those that it has in another version, None for one that it can't load. `forwarded`
    are other ways to a member: URL -> the member's; `hidden` are URLs that lead nowhere from here. `fenced` are the
    connectors whose fencing was asked for, and signed. `objections` are what connectors now have against a config of
    theirs, by property, say that the database does not answer; `definitions` what a validation tells of a property.
    `clocks_ahead_s` is how far a member's clock is ahead of ours, None where its answers bear no date.
    """

    connectors: dict[str, FakeConnector] = field(default_factory=dict)
    plugins: list[Mapping[str, object]] = field(
        default_factory=lambda: [{"class": FILE_SOURCE, "type": "source", "version": "4.3.1"}]
    )
    lacking: dict[str, set[str]] = field(default_factory=dict)
    plugin_versions: dict[str, dict[str, str | None]] = field(default_factory=dict)
    version: str = "4.3.1"
    kafka_cluster_id: str = CLUSTER_ID
    health: str = "healthy"
    session_key: bytes = SESSION_KEY
    offsets: SourceOffsets = field(default_factory=MemoryOffsets)
    keep_config: Callable[[str, object], object] = lambda _key, _value: None
    forwarded: dict[str, str] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    opened: list[str] = field(default_factory=list, repr=False)
    fenced: list[str] = field(default_factory=list)
    objections: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, Mapping[str, str]] = field(default_factory=dict)
    clocks_ahead_s: dict[str, float | None] = field(default_factory=dict)
    ignores_initial_state: bool = False

    def open_worker(self, app: App, url: str) -> FakeConnectWorker:
        """App's door; `opened` keeps the URLs as they were given, credentials included."""
        self.opened.append(url)
        return self.worker(parse_worker_url(url).text, app.deadline)

    def worker(self, url: str | None = None, deadline: Deadline | None = None) -> FakeConnectWorker:
        """The REST interface at a URL; None means the leader's."""
        return FakeConnectWorker(self, url or self.leader, deadline or Deadline.after(60, self.time.clock()))

    def add(
        self,
        name: str,
        config: Mapping[str, str] | None = None,
        *,
        state: str = "RUNNING",
        tasks: int | None = None,
        failed: tuple[int, ...] = (),
    ) -> FakeConnector:
        """A connector that reached its state long ago; STOPPED means no tasks, else as many as it may have."""
        made = FakeConnector({"connector.class": FILE_SOURCE, "name": name, **(config or {})}, state=state)
        made.target = next((target for target, shown in SHOWN.items() if shown == state), STARTED)
        made.task_count = tasks if tasks is not None else 0 if state == "STOPPED" else made.most_tasks()
        self.connectors[name] = made
        made.url = self.owner(name, CONNECTOR_ITSELF)
        for number in range(made.task_count):
            made.tasks[number] = FakeTask(SHOWN[made.target], self.owner(name, number))
        made.write()
        if failed:
            made.fail(*failed)
        return made

    def own(self, url: str, *work: Work) -> None:
        super().own(url, *work)
        for name, number in work:
            if number in self.connectors[name].tasks:
                self.connectors[name].tasks[number].url = url

    # -- what REST asks for

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Creates or changes it; tasks are made of a config only where the connector is started."""
        complete = {**config, "name": name}
        known = self.connectors.setdefault(name, FakeConnector(complete))
        known.config, known.reconfigured = complete, True
        self.keep_config(f"connector-{name}", {"properties": complete})
        if known.state:
            self.time.later(LAG_S, partial(setattr, known, "state", "UNASSIGNED"))
        self.rebalance(2 * LAG_S)

    def create(self, name: str, config: Mapping[str, str], state: str) -> None:
        """Creates it in a state, which is written first; `ignores_initial_state` are workers as before 3.7."""
        target = STARTED if self.ignores_initial_state else next(each for each in SHOWN if SHOWN[each] == state)
        if not self.ignores_initial_state:
            told = {"state": STARTED if target == STARTED else PAUSED, "state.v2": target}
            self.keep_config(f"target-state-{name}", told)
        self.connectors[name] = FakeConnector({**config, "name": name}, target=target)
        self.put(name, config)

    def delete(self, name: str) -> None:
        """It is gone at once; what its tasks still do is not."""
        gone = self.connectors.pop(name)
        for key in (f"connector-{name}", f"target-state-{name}"):
            self.keep_config(key, None)
        for number, task in gone.tasks.items():
            self.take((name, number), task.url)
        self.rebalance()

    def set_target(self, name: str, target: str) -> None:
        """What stop, pause and resume write; STOPPED takes the tasks away first."""
        connector = self.connectors[name]
        if target == STOPPED:
            connector.task_count = 0
            self._commit(name, connector)
            self.rebalance()
        connector.target = target
        self.keep_config(
            f"target-state-{name}", {"state": STARTED if target == STARTED else PAUSED, "state.v2": target}
        )
        if target != STOPPED:
            self.time.later(LAG_S, partial(self._reach_target, name))

    def restart(self, name: str, *, only_failed: bool) -> None:
        """Soon: until then REST shows what it showed."""
        connector = self.connectors[name]
        numbers = connector.failed() if only_failed else list(connector.tasks)
        itself = connector.state == "FAILED" or not only_failed
        self.keep_config(f"restart-connector-{name}", {"include-tasks": True, "only-failed": only_failed})
        self.time.later(LAG_S, partial(connector.show_restart, numbers, itself=itself))
        self.time.later(2 * LAG_S, partial(self._restarted, name, numbers))

    def fence(self, name: str) -> None:
        """Connect's own fencing of the tasks before; a record that follows the newest commit says that it is done."""
        connector = self.connectors[name]
        if connector.fencing_due:
            connector.fencing_due = False
            self.keep_config(f"tasks-fencing-{name}", {"task-count": connector.task_count})

    # -- what comes of it

    def work(self) -> list[Work]:
        return [
            (name, number)
            for name, connector in self.connectors.items()
            for number in range(CONNECTOR_ITSELF, connector.task_count)
        ]

    def bring_work(self) -> None:
        for name, connector in list(self.connectors.items()):
            self._end_tasks(name, connector)
            self._start_tasks(name, connector)
            self._reach_target(name)

    def ended(self, work: Work, url: str) -> None:
        """Its worker says what became of the task, which brings back a status that was taken away."""
        name, number = work
        with self.event("end_task", *work):
            connector = self.connectors.get(name)
            if connector is not None and number != CONNECTOR_ITSELF and url != self.leader:
                connector.tasks[number] = FakeTask("UNASSIGNED", url)

    def left(self, url: str) -> None:
        for connector in self.connectors.values():
            for task in connector.tasks.values():
                if task.url == url:
                    task.state, task.trace = "UNASSIGNED", ""
            if connector.url == url:
                connector.state = "UNASSIGNED"

    def statuses(self) -> dict[bytes, Mapping[str, object]]:
        """The records of the status topic, which REST's answer is made of."""
        found: dict[bytes, Mapping[str, object]] = {}
        for name, connector in self.connectors.items():
            status: Any = connector.expanded(name)["status"]
            told = {f"status-connector-{name}": status["connector"]}
            told |= {f"status-task-{name}-{task['id']}": task for task in status["tasks"]}
            found |= {key.encode(): {"generation": 1, "version": self.version, **each} for key, each in told.items()}
        return found

    def _end_tasks(self, name: str, connector: FakeConnector) -> None:
        """The leader takes away the status of tasks that are no more."""
        for number in [number for number in connector.tasks if number >= connector.task_count]:
            task = connector.tasks.pop(number)
            if task.state != "UNASSIGNED":
                self.take((name, number), task.url)

    def _start_tasks(self, name: str, connector: FakeConnector) -> None:
        """New tasks, and those that have another owner now."""
        owners = {number: self.owner(name, number) for number in range(connector.task_count)}
        due = [
            number
            for number, url in owners.items()
            if url and (number in connector.to_start or connector.tasks.get(number, _NONE).needs_start(url))
        ]
        if due and connector.type == "source" and "enabled" in self.modes.values():
            self.fence(name)
        for number in due:
            self._start_task(name, number)

    def _start_task(self, name: str, number: int) -> None:
        connector = self.connectors[name]
        connector.tasks[number] = FakeTask(SHOWN[connector.target], self.owner(name, number))
        connector.to_start.discard(number)
        connector.write()
        with self.event("start_task", name, number):
            pass

    def _restarted(self, name: str, numbers: list[int]) -> None:
        connector = self.connectors.get(name)
        if connector is None:
            return
        if connector.state == "RESTARTING":
            connector.state, connector.trace = SHOWN[connector.target], ""
            connector.url = self.owner(name, CONNECTOR_ITSELF)
        for number in numbers:
            if number < connector.task_count:
                self._start_task(name, number)

    def _reach_target(self, name: str) -> None:
        """The connector's worker does what the target state says, once it is not busy with tasks that end."""
        connector = self.connectors.get(name)
        owner = self.owner(name, CONNECTOR_ITSELF)
        if connector is None or self.rebalancing or not owner or owner in self._ending.values():
            return
        starts = connector.state != "RUNNING" or connector.reconfigured
        connector.state, connector.trace, connector.url = SHOWN[connector.target], "", owner
        if connector.target == STARTED and starts:
            self._start_connector(name, connector)
        elif connector.target == PAUSED:
            for task in connector.tasks.values():
                task.state = task.state if task.state == "FAILED" else "PAUSED"

    def _start_connector(self, name: str, connector: FakeConnector) -> None:
        """New tasks where there are none, or the config is a new one; else those that are paused go on."""
        with self.event("start_connector", name):
            if connector.reconfigured or not connector.task_count:
                connector.reconfigured, connector.task_count = False, connector.most_tasks()
                connector.to_start = set(range(connector.task_count))
                self._commit(name, connector)
                self.rebalance()
                return
            for number, task in connector.tasks.items():
                if task.state == "PAUSED":
                    self._start_task(name, number)

    def _commit(self, name: str, connector: FakeConnector) -> None:
        """A new set of tasks, in the config topic."""
        for number in range(connector.task_count):
            self.keep_config(f"task-{name}-{number}", {"properties": connector.config})
        self.keep_config(f"commit-{name}", {"tasks": connector.task_count})
        connector.fencing_due = True


_NONE = FakeTask("", "")
