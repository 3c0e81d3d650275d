"""A migration over fakes: the topics of a cluster in memory, and the stages over them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eosctl.app import App
from eosctl.core.allowances import Allowances
from eosctl.core.configs.records import Selection
from eosctl.core.offsets.migration import MigrationPlan, read_plan
from eosctl.deadline import Deadline, Event
from eosctl.migrate.plan import MigrationRequest, snapshot_folder
from eosctl.migrate.run import Engine, migration_from_file, prepared_migration
from eosctl.plan import Plan
from eosctl.ports import ConnectWorker
from eosctl.report import Report
from eosctl.target import Target
from tests.fakes.broker import FakeCluster
from tests.fakes.broker_state import BrokerState
from tests.fakes.clock import FakeTime
from tests.fakes.connect import FakeConnect
from tests.fakes.decided_keys import keep_rows
from tests.fakes.faults import Call
from tests.fakes.stages import FakeStages
from tests.fakes.topics import FakeTopicStore

SOURCE, W = "connect-offsets", "http://w:8083"
KEY = b'["a",{"f":"x"}]'
DOWN = Allowances(force_running=True)


def key_of(connector: str) -> bytes:
    """A key of the connector's; KEY is that of `a`."""
    return b'["%s",{"f":"x"}]' % connector.encode()


def connector(state: str, tasks: int = 0, config: Mapping[str, str] | None = None) -> Mapping[str, Any]:
    """What FakeConnect.add is told of a connector."""
    return {"state": state, "tasks": tasks, "config": config}


class Scene:
    """An App over fakes, with the offsets of connector `a` in the global topic; `calls` are those of the stages."""

    def __init__(self, folder: Path, *, partitions: int = 2) -> None:
        self.folder = folder
        self.brokers = FakeCluster(state=BrokerState(cluster_id="cluster", brokers=3))
        self.topics = FakeTopicStore(self.brokers.state)
        self.stages = FakeStages(self.topics, worth_a_task=1)
        self.connect: FakeConnect | None = None
        self.time = FakeTime(1_700_000_000.0)
        self.clock = self.time.clock()
        self.events: list[Event] = []
        self.calls: list[str] = []
        self.stages.before("*", self._note)
        self.add_topic(SOURCE, partitions)

    def _note(self, call: Call) -> None:
        """What the stages were asked, in words."""
        match call:
            case ("snapshot", (str(side), tuple(topics), tuple(parts))):
                self.calls.append(f"snapshot {side} {','.join(topics)}" + f" in {len(parts)} parts")
            case ("compare", (str(side), bool(since))):
                self.calls.append(f"compare {side}" + (" since the plan" if since else ""))
            case ("write", (str(part), int(tasks))):
                self.calls.append(f"write {part} in {tasks}")
            case ("backup" | "unwritten", _):
                self.calls.append(call.method)

    # -- what is there

    def add_topic(self, topic: str, partitions: int = 2, *keys: bytes) -> None:
        """A topic as the source is, on all three brokers, with these keys."""
        self.brokers.state.add_topic(topic, partitions, replication_factor=3)
        self.put(topic, dict.fromkeys(keys, b"{}"))

    def put(self, topic: str, lines: Mapping[bytes, bytes | None]) -> None:
        """Records where Connect's producer puts them."""
        for key, value in lines.items():
            self.topics.put(topic, key, value)

    def put_all(self, connectors: Iterable[str]) -> None:
        """An offset of each connector in the source."""
        self.put(SOURCE, {key_of(name): b"{}" for name in connectors})

    def put_elsewhere(self, topic: str, key: bytes) -> None:
        """A record on a partition where Connect's producer does not put it."""
        home = self.topics.put(topic, key, b"{}").partition
        self.topics.put(topic, key, b"{}", partition=1 - min(home, 1))

    def lose_decisions(self, plan: MigrationPlan) -> Callable[[], object]:
        """Empties what the plan's snapshot has of them; what is returned brings them back."""
        folder = snapshot_folder(plan) / "decisions"
        kept = folder.rename(folder.with_name("lost"))
        keep_rows(folder, [])
        return lambda: shutil.copytree(kept, folder, dirs_exist_ok=True)

    def place(self, connectors: Mapping[str, Mapping[str, Any]] | None) -> None:
        """A worker with these connectors; None means that there is no worker to ask."""
        self.connect = None if connectors is None else FakeConnect({W: "enabled"}, time=self.time)
        for name, told in (connectors or {}).items():
            assert self.connect is not None
            self.connect.add(name, **told)

    # -- what was done

    @property
    def slept_s(self) -> float:
        return sum(self.time.slept)

    def created(self) -> list[str]:
        """The topics that are there beside the source, in the order of their creation."""
        return [name for name in self.topics.topics if name != SOURCE]

    # -- the migration

    def worker(self, app: App, url: str) -> ConnectWorker:
        """App's door."""
        assert self.connect is not None, "nobody was named"
        return self.connect.open_worker(app, url)

    def app(self) -> App:
        urls = () if self.connect is None else (W,)
        return App(
            Target(connect_urls=urls, group_id="g"),
            Deadline.after(30, self.clock),
            self.folder,
            clock=self.clock,
            on_event=self.events.append,
            open_topics=self.topics.open,
            open_transactions=self.brokers.open_transactions,
            open_worker=self.worker,
        )

    def engine(self) -> Engine:
        @contextmanager
        def opened() -> Iterator[FakeStages]:
            yield self.stages

        return Engine(self.folder / "migrations", open_stages=opened)

    def prepared(self, allowances: Allowances = DOWN, *, prune: bool = False, **request: Any) -> Plan:
        wanted = {"selection": Selection(all_connectors=True), "dedicated_topic": "offsets-{connector}", **request}
        with prepared_migration(
            self.app(), MigrationRequest(**wanted), self.engine(), allowances=allowances, plan_out=None, prune=prune
        ) as prepared:
            return prepared

    def plan(self, **request: Any) -> MigrationPlan:
        return plan_of(self.prepared(**request).report())

    def from_file(self, plan: MigrationPlan, allowances: Allowances = DOWN, **how: bool) -> Plan:
        """As `offsets migrate --plan`; `how` is resume."""
        return migration_from_file(
            self.app(), plan, self.engine(), allowances=allowances, plan_file=Path("plan.json"), **how
        )

    def apply(self, plan: MigrationPlan, allowances: Allowances = DOWN, *, resume: bool = False) -> Report:
        prepared = self.from_file(plan, allowances, resume=resume)
        prepared.report()  # raises what forbids it, as it does before anybody is asked
        assert prepared.apply is not None
        return prepared.apply()


def plan_of(report: Report) -> MigrationPlan:
    """The plan that a report shows."""
    path = Path(str(report.datum("plan_file")))
    return read_plan(path.read_text(), path=str(path))
