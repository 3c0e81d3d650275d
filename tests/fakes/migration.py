"""A migration of one key over stand-ins: topics that only have bounds, and stages that only count."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from eosctl.core.migration import MigrationPlan, Parts, PlannedTopic, Selection, Tally
from eosctl.core.migration_results import Snapshot
from eosctl.core.record_file import record_line
from eosctl.core.records import Bounds, NewTopic, Record, TopicDescription
from eosctl.deadline import Clock, Deadline
from eosctl.errors import EosctlError
from eosctl.events import Event
from eosctl.ops.app import App
from eosctl.ops.migrate import Allowances, MigrationRequest
from eosctl.ops.migrate_run import Engine, Prepared, migration_from_file, prepared_migration
from eosctl.ops.ports import ConnectWorker, TopicStore
from eosctl.profiles import Target
from tests.fakes.clock import FakeTime
from tests.fakes.connect import FakeConnect

KEY, W = b'["a",{"f":"x"}]', "http://w:8083"
DOWN = Allowances(force_running=True)


@dataclass
class Topics:
    """The part of a TopicStore that a migration asks for; `requests` has the number of topics of each creation."""

    there: dict[str, tuple[str, tuple[Bounds, ...]]]
    created: list[str] = field(default_factory=list)
    refuses: dict[str, EosctlError] = field(default_factory=dict)
    requests: list[int] = field(default_factory=list)
    cluster: str = "cluster"

    def __enter__(self) -> Topics:
        return self

    def __exit__(self, *_exc: object) -> None:
        pass

    def cluster_id(self) -> str:
        return self.cluster

    def describe(self, topics: Collection[str]) -> Mapping[str, TopicDescription]:
        known = {name: self.there[name] for name in topics if name in self.there}
        return {name: TopicDescription(name, one[0], len(one[1]), 3) for name, one in known.items()}

    def bounds(self, topic: str) -> tuple[Bounds, ...]:
        return self.there[topic][1]

    def bounds_of(self, topics: Collection[str]) -> Mapping[str, tuple[Bounds, ...]]:
        return {topic: self.bounds(topic) for topic in topics}

    def create_all(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> Mapping[str, EosctlError]:
        assert all(new.config == {"cleanup.policy": "compact"} for new in topics)
        refused = {new.topic: self.refuses[new.topic] for new in topics if new.topic in self.refuses}
        if not validate_only:
            self.requests.append(len(topics))
            for new in topics:
                if new.topic not in refused:
                    self._create(new)
        return refused

    def _create(self, new: NewTopic) -> None:
        self.created.append(new.topic)
        self.there[new.topic] = (f"id-{new.topic}", tuple(Bounds(p, 0, 0, 0) for p in range(new.partitions)))


@dataclass(frozen=True)
class Counts:
    """SentCounts and Comparison in one, without importing Spark."""

    sent: int = 0
    topics: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    last_offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)
    transactions: int = 1
    compared: int = 1
    differing: int = 0
    mismatches: tuple[Any, ...] = ()

    def records(self) -> int:
        return self.sent


@dataclass
class Stages:
    """A migration of one key of connector `a`; `finds` are the connectors of what was read last.

    `scattered` names the sides, `source` or `target`, on which keys are in two places.
    """

    counts: dict[str, int] = field(default_factory=lambda: {"write": 1, "delete": 0, "keep": 0, "conflict": 0})
    finds: list[str] = field(default_factory=lambda: ["a"])
    sends: int = 1
    differing: int = 0
    calls: list[str] = field(default_factory=list)
    scattered: set[str] = field(default_factory=set)

    def least_parts(self, records: int) -> int:
        return 2

    def snapshot(self, topics: Sequence[PlannedTopic], folder: Path, *, parts: Parts = ()) -> Snapshot:
        in_parts = f" in {len(parts)} parts" if parts else ""
        self.calls.append(f"snapshot {folder.name} {','.join(topic.name for topic in topics)}{in_parts}")
        return Snapshot(frozenset(self.finds), folder.name not in self.scattered)

    def decide(self, folder: Path, plan: MigrationPlan) -> Tally:
        (folder / "decisions").mkdir()
        (folder / "decisions" / "_SUCCESS").touch()
        return Tally(1, 0, 0, 0, 0, 1, self.counts["conflict"], 0, self.counts)

    def sample(self, folder: Path, *, limit: int = 100) -> list[Any]:
        return []

    def backup(self, folder: Path, plan: MigrationPlan) -> Iterator[bytes]:
        self.calls.append("backup")
        before = Record("offsets-a", 1, -1, -1, KEY, None)
        yield f"{record_line(before, {'written': '{}', 'cluster_id': 'cluster'})}\n".encode()

    def new_offsets(self, drift: Path, folder: Path, *, side: str) -> list[str]:
        return self.finds

    def write_tasks(self, plan: MigrationPlan) -> int:
        return 2

    def unwritten(self, folder: Path, targets: Sequence[PlannedTopic]) -> int:
        self.calls.append("unwritten")
        return 0 if self.sends else 1

    def write(self, folder: Path, plan: MigrationPlan, *, tasks: int, records: int, part: str = "decisions") -> Any:
        self.calls.append(f"write {part} in {tasks}")
        return Counts(sent=self.sends)

    def compare(
        self, folder: Path, topics: Sequence[PlannedTopic], *, side: str, parts: Parts = (), limit: int = 100
    ) -> Any:
        self.calls.append(f"compare {side}{' in parts' if parts else ''}")
        return Counts(differing=self.differing)


def connector(state: str, tasks: int = 0, config: Mapping[str, str] | None = None) -> Mapping[str, Any]:
    """What FakeConnect.add is told of a connector."""
    return {"state": state, "tasks": tasks, "config": config}


@dataclass
class Scene:
    """An App over stand-ins."""

    folder: Path
    topics: Topics = field(
        default_factory=lambda: Topics({"connect-offsets": ("id-global", (Bounds(0, 0, 5, 5), Bounds(1, 0, 2, 2)))})
    )
    stages: Stages = field(default_factory=Stages)
    connect: FakeConnect | None = None
    time: FakeTime = field(default_factory=FakeTime)
    events: list[Event] = field(default_factory=list)

    @property
    def slept_s(self) -> float:
        return sum(self.time.slept)

    def place(self, connectors: Mapping[str, Mapping[str, Any]] | None) -> None:
        """A worker with these connectors; None means that there is no worker to ask."""
        self.connect = None if connectors is None else FakeConnect({W: "enabled"}, time=self.time)
        for name, told in (connectors or {}).items():
            assert self.connect is not None
            self.connect.add(name, **told)

    def worker(self, app: App, url: str) -> ConnectWorker:
        """App's door."""
        assert self.connect is not None, "nobody was named"
        return self.connect.open_worker(app, url)

    def app(self) -> App:
        urls = () if self.connect is None else (W,)
        clock = replace(Clock(), monotonic_s=lambda: self.time.now_s, sleep_s=self.time.sleep)
        return App(
            Target(connect_urls=urls, group_id="g"),
            Deadline.after(30, clock),
            self.folder,
            clock=clock,
            on_event=self.events.append,
            open_topics=lambda _app: cast(TopicStore, self.topics),
            open_worker=self.worker,
        )

    def engine(self) -> Engine:
        @contextmanager
        def opened(_records: int) -> Iterator[Any]:
            yield self.stages

        return Engine(self.folder / "migrations", open_stages=opened)

    def prepared(self, allowances: Allowances = DOWN, **request: Any) -> Prepared:
        wanted = {"selection": Selection(all_connectors=True), "dedicated_topic": "offsets-{connector}", **request}
        with prepared_migration(
            self.app(), MigrationRequest(**wanted), self.engine(), allowances=allowances, plan_out=None
        ) as prepared:
            return prepared

    def plan(self) -> MigrationPlan:
        from eosctl.core.migration import read_plan

        path = Path(str(self.prepared().report.data["plan_file"]))
        return read_plan(path.read_text(), path=str(path))

    def apply(self, plan: MigrationPlan, allowances: Allowances = DOWN, *, resume: bool = False) -> Any:
        apply = migration_from_file(
            self.app(), plan, self.engine(), allowances=allowances, plan_file=Path("plan.json"), resume=resume
        ).apply
        assert apply is not None
        return apply()
