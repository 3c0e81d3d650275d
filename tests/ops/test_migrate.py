"""What `offsets migrate` refuses, and when: no Spark, no Kafka, the stages and the topics are stand-ins."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from eosctl.core.migration import MigrationPlan, PlannedTopic, Route, Selection, Tally
from eosctl.core.migration_rules import Policy
from eosctl.core.records import Bounds, Record, TopicDescription
from eosctl.deadline import Clock, Deadline
from eosctl.errors import EosctlError, ExitCode, NotFoundError, RefusedError, StalePlanError, UsageError
from eosctl.ops.app import App
from eosctl.ops.backups import BackupEntry, read_backup
from eosctl.ops.migrate import Allowances, MigrationRequest
from eosctl.ops.migrate_run import Engine, Prepared, migration_from_file, prepared_migration, verify_plan
from eosctl.ops.migrate_stores import source_names, target_name_of
from eosctl.ops.ports import ConnectWorker, TopicStore
from eosctl.profiles import Target

KEY = b'["a",{"f":"x"}]'
DOWN = Allowances(force_running=True)


@dataclass
class Topics:
    """The part of a TopicStore that a migration asks for."""

    there: dict[str, tuple[str, tuple[Bounds, ...]]]
    created: list[str] = field(default_factory=list)
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

    def create(self, topic: str, *, partitions: int, replication_factor: int, config: Mapping[str, str]) -> None:
        assert (replication_factor, config) == (3, {"cleanup.policy": "compact"})
        self.created.append(topic)
        self.there[topic] = (f"id-{topic}", tuple(Bounds(p, 0, 0, 0) for p in range(partitions)))


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
    """A migration of one key of connector `a`; `finds` are the connectors of what was read last."""

    counts: dict[str, int] = field(default_factory=lambda: {"write": 1, "delete": 0, "keep": 0, "conflict": 0})
    finds: list[str] = field(default_factory=lambda: ["a"])
    sends: int = 1
    differing: int = 0
    calls: list[str] = field(default_factory=list)

    def snapshot(self, topics: Sequence[PlannedTopic], folder: Path) -> int:
        self.calls.append(f"snapshot {folder.name} {','.join(topic.name for topic in topics)}")
        return 1

    def connectors_in(self, folder: Path) -> list[str]:
        return self.finds

    def decide(self, folder: Path, plan: MigrationPlan) -> Tally:
        (folder / "decisions").mkdir()
        (folder / "decisions" / "_SUCCESS").touch()
        return Tally(1, 0, 0, 0, 0, 1, self.counts["conflict"], 0, self.counts)

    def sample(self, folder: Path, *, limit: int = 100) -> list[Any]:
        return []

    def overwritten(self, folder: Path) -> Iterator[tuple[Record, bytes | None]]:
        self.calls.append("backup")
        yield Record("offsets-a", 1, -1, -1, KEY, None), b"{}"

    def new_offsets(self, drift: Path, folder: Path, *, side: str) -> list[str]:
        return self.finds

    def write_tasks(self, plan: MigrationPlan) -> int:
        return 2

    def unwritten(self, folder: Path, targets: Sequence[PlannedTopic]) -> int:
        self.calls.append("unwritten")
        return 0 if self.sends else 1

    def write(self, folder: Path, plan: MigrationPlan, *, tasks: int, part: str = "decisions") -> Any:
        self.calls.append(f"write {part} in {tasks}")
        return Counts(sent=self.sends)

    def compare(self, folder: Path, topics: Sequence[PlannedTopic], *, side: str, limit: int = 100) -> Any:
        self.calls.append(f"compare {side}")
        return Counts(differing=self.differing)


@dataclass
class Worker:
    """`GET /connectors?expand=…` of a worker."""

    connectors_there: dict[str, dict[str, object]]
    url: str = "http://w"

    def connectors(self) -> Mapping[str, Mapping[str, object]]:
        return self.connectors_there


def connector(state: str, tasks: int = 0, config: Mapping[str, str] | None = None) -> dict[str, object]:
    return {
        "status": {"connector": {"state": state}, "tasks": [{"id": n} for n in range(tasks)]},
        "info": {"config": config or {}},
    }


@dataclass
class Scene:
    """An App over stand-ins."""

    folder: Path
    topics: Topics = field(
        default_factory=lambda: Topics({"connect-offsets": ("id-global", (Bounds(0, 0, 5, 5), Bounds(1, 0, 2, 2)))})
    )
    stages: Stages = field(default_factory=Stages)
    connectors: dict[str, dict[str, object]] | None = None
    slept_s: float = 0.0

    def sleep(self, wanted_s: float) -> None:
        self.slept_s += wanted_s

    def app(self) -> App:
        urls = () if self.connectors is None else ("http://w",)
        clock = Clock(monotonic_s=lambda: self.slept_s, sleep_s=self.sleep)
        return App(
            Target(connect_urls=urls, group_id="g"),
            Deadline.after(30, clock),
            self.folder,
            clock=clock,
            open_topics=lambda _app: cast(TopicStore, self.topics),
            open_worker=lambda _app, _url: cast(ConnectWorker, Worker(self.connectors or {})),
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

    def apply(self, plan: MigrationPlan, allowances: Allowances = DOWN) -> Any:
        apply = migration_from_file(
            self.app(), plan, self.engine(), allowances=allowances, plan_file=Path("plan.json")
        ).apply
        assert apply is not None
        return apply()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_plan_then_apply(scene: Scene) -> None:
    prepared = scene.prepared()
    assert prepared.report.kind == "offsets-migrate-plan"
    assert prepared.apply is not None
    result = prepared.apply()
    assert result.exit_code is ExitCode.OK
    assert scene.topics.created == ["offsets-a"]
    assert scene.stages.calls == [
        "snapshot source connect-offsets", "snapshot target offsets-a", "backup", "write decisions in 2",
        "compare target",
    ]  # fmt: skip
    backup = Path(str(result.data["backup"]))
    assert read_backup(str(backup)) == [BackupEntry(Record("offsets-a", 1, -1, -1, KEY, None), b"{}", True, "cluster")]
    assert result.data["undo"] == f"eosctl offsets restore {backup}"
    assert not list((scene.folder / "migrations").glob(".planning-*"))


def test_nothing_to_do_is_nothing_to_apply(scene: Scene) -> None:
    scene.stages.counts = {"write": 0, "delete": 0, "keep": 1, "conflict": 0}
    prepared = scene.prepared()
    assert prepared.apply is None
    assert prepared.report.exit_code is ExitCode.OK


def test_undecided_conflicts_are_refused(scene: Scene) -> None:
    scene.stages.counts = {"write": 0, "delete": 0, "keep": 0, "conflict": 1}
    prepared = scene.prepared(policy=Policy.FAIL)
    assert prepared.apply is None
    assert prepared.report.exit_code is ExitCode.REFUSED
    assert "--conflict" in str(prepared.report.problems[0].hint)


def test_counts_that_do_not_add_up_stop_everything(scene: Scene) -> None:
    scene.stages.counts = {"write": 2, "delete": 0, "keep": 0, "conflict": 0}
    with pytest.raises(EosctlError, match="do not add up"):
        scene.prepared()
    assert list((scene.folder / "migrations").iterdir()) == []


def test_an_unconfirmed_record_is_an_error(scene: Scene) -> None:
    scene.stages.sends = 0
    with pytest.raises(EosctlError, match="1 records were to be sent, 0 were confirmed"):
        scene.apply(scene.plan())


def test_a_target_that_differs_afterwards_is_partial(scene: Scene) -> None:
    scene.stages.differing = 1
    assert scene.apply(scene.plan()).exit_code is ExitCode.PARTIAL


def test_missing_source(scene: Scene) -> None:
    with pytest.raises(NotFoundError, match="topic nowhere does not exist"):
        scene.prepared(sources=("nowhere",))


@pytest.mark.parametrize("allowed", [False, True])
def test_open_transaction(scene: Scene, allowed: bool) -> None:
    scene.topics.there["connect-offsets"] = ("id-global", (Bounds(0, 0, 5, 5), Bounds(1, 0, 2, 9)))
    if allowed:
        assert scene.prepared(allow_open_transactions=True).apply is not None
        return
    with pytest.raises(RefusedError, match="connect-offsets-1"):
        scene.prepared()
    assert scene.slept_s > 0, "a transaction of a running task ends in a moment: wait for it"


@pytest.mark.parametrize(
    ("connectors", "allowances", "message"),
    [
        (None, Allowances(), "not known"),
        ({"a": connector("RUNNING", 1)}, Allowances(), r"a \(RUNNING, 1 task\)"),
        ({"a": connector("STOPPED", 1)}, Allowances(), r"a \(STOPPED, 1 task\)"),
        ({"a": connector("PAUSED")}, Allowances(), r"a \(PAUSED, 0 tasks\)"),
        ({"a": connector("STOPPED")}, Allowances(), None),
        ({"b": connector("RUNNING", 1)}, Allowances(), None),
        ({"a": connector("RUNNING", 1)}, Allowances(force_running=True), None),
    ],
)
def test_running_connectors(scene: Scene, connectors: Any, allowances: Allowances, message: str | None) -> None:
    scene.connectors = connectors
    plan = scene.plan()
    if message is None:
        assert scene.apply(plan, allowances).exit_code is ExitCode.OK
        return
    with pytest.raises(RefusedError, match=message):
        scene.apply(plan, allowances)
    assert "write decisions in 2" not in scene.stages.calls


def test_a_renamed_connector_may_not_run_under_its_new_name_either(scene: Scene) -> None:
    scene.connectors = {"a": connector("STOPPED"), "z": connector("RUNNING", 1)}
    prepared = scene.prepared(Allowances(), renames={"a": "z"})
    assert [(p.severity, p.code) for p in prepared.report.problems] == [("warning", "running")]
    assert prepared.apply is not None
    with pytest.raises(RefusedError, match="z "):
        prepared.apply()


def _moved(scene: Scene, topic: str) -> None:
    scene.topics.there[topic] = (f"id-{topic}", (Bounds(0, 0, 6, 6), Bounds(1, 0, 2, 2)))


@pytest.mark.parametrize(
    ("finds", "drift", "stale"),
    [(["a"], frozenset(), True), (["a"], frozenset({"source"}), False), (["other"], frozenset(), False)],
)
def test_source_drift_is_new_offsets_of_the_plans_connectors(
    scene: Scene, finds: list[str], drift: frozenset[str], stale: bool
) -> None:
    """The global topic of a live cluster always moves: only the plan's own connectors count."""
    scene.topics.there["connect-offsets"] = ("id-connect-offsets", scene.topics.there["connect-offsets"][1])
    plan = scene.plan()
    _moved(scene, "connect-offsets")
    scene.stages.finds = finds
    allowances = replace(DOWN, drift=drift)
    if not stale:
        assert scene.apply(plan, allowances).exit_code is ExitCode.OK
        return
    with pytest.raises(StalePlanError, match="the source has new offsets of a"):
        scene.apply(plan, allowances)
    assert "write decisions in 2" not in scene.stages.calls


def test_target_drift(scene: Scene) -> None:
    scene.topics.there["offsets-a"] = ("id-offsets-a", (Bounds(0, 0, 1, 1), Bounds(1, 0, 2, 2)))
    plan = scene.plan()
    _moved(scene, "offsets-a")
    with pytest.raises(StalePlanError, match="the target has new offsets of a"):
        scene.apply(plan)
    assert scene.apply(plan, replace(DOWN, drift=frozenset({"target"}))).exit_code is ExitCode.OK


@pytest.mark.parametrize(
    ("topic", "now", "message"),
    [
        ("connect-offsets", ("another-id", (Bounds(0, 0, 0, 0),)), "was recreated"),
        ("connect-offsets", None, "is gone"),
        ("offsets-a", ("new-id", (Bounds(0, 0, 0, 0),)), "was created"),
    ],
)
def test_other_topics_than_planned(scene: Scene, topic: str, now: Any, message: str) -> None:
    plan = scene.plan()
    scene.topics.there = {name: one for name, one in scene.topics.there.items() if name != topic}
    scene.topics.there |= {} if now is None else {topic: now}
    with pytest.raises(StalePlanError, match=message):
        scene.apply(plan)


def test_another_cluster(scene: Scene) -> None:
    plan = scene.plan()
    scene.topics.cluster = "elsewhere"
    with pytest.raises(StalePlanError, match="cluster"):
        scene.apply(plan)


def test_a_plan_without_its_snapshot(scene: Scene) -> None:
    plan = replace(scene.plan(), snapshot_base=str(scene.folder / "elsewhere"))
    with pytest.raises(NotFoundError, match="snapshot"):
        scene.apply(plan)


@pytest.mark.parametrize(("differing", "exit_code"), [(0, ExitCode.OK), (1, ExitCode.FINDINGS)])
def test_verify(scene: Scene, differing: int, exit_code: ExitCode) -> None:
    plan = scene.plan()
    scene.stages.differing = differing
    report = verify_plan(scene.app(), plan, scene.engine())
    assert (report.kind, report.exit_code) == ("offsets-verify", exit_code)
    assert scene.stages.calls[-2:] == ["compare source", "compare target"]


OWN = {"offsets.storage.topic": "own"}


@pytest.mark.parametrize(
    ("store", "pattern", "connectors", "topic"),
    [
        ("global", None, None, "connect-offsets"),
        ("some-topic", None, None, "some-topic"),
        ("dedicated", "offsets-{connector}", None, "offsets-a"),
        ("dedicated", "offsets-{connector}", {"a": connector("STOPPED", config=OWN)}, "own"),
        ("dedicated", "offsets-{connector}", {"b": connector("STOPPED", config=OWN)}, "offsets-a"),
        ("dedicated", None, {"a": connector("STOPPED", config=OWN)}, "own"),
        ("dedicated", None, {"a": connector("STOPPED")}, UsageError),
        ("dedicated", None, None, UsageError),
        ("dedicated", "offsets", None, UsageError),
    ],
)
def test_target_topics(scene: Scene, store: str, pattern: str | None, connectors: Any, topic: Any) -> None:
    scene.connectors = connectors
    if isinstance(topic, str):
        assert target_name_of(scene.app(), store, pattern)("a") == topic
        return
    with pytest.raises(topic):
        target_name_of(scene.app(), store, pattern)("a")


def test_source_topics_keep_their_order(scene: Scene) -> None:
    scene.connectors = {
        "a": connector("STOPPED", config=OWN),
        "b": connector("STOPPED"),
        "c": connector("STOPPED", config=OWN),
    }
    stores = ("dedicated", "global", "more", "global")
    assert source_names(scene.app(), stores, Selection(connectors=("a",))) == ["own", "connect-offsets", "more"]


def test_routes_are_in_the_plan(scene: Scene) -> None:
    assert scene.plan().routes == (Route("a", "a", "offsets-a"),)
