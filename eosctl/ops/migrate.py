"""`offsets migrate`: plan with Spark, apply the plan, verify it.

What is read and written is fixed by the plan; between plan and apply only records of the plan's own connectors count
as drift, because the global offsets topic of a live cluster never stands still.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from eosctl.core.migration import (
    MigrationPlan,
    PlannedTopic,
    Selection,
    Tally,
    check_renames,
    plan_file_text,
    plan_routes,
    with_sample,
)
from eosctl.core.migration_rules import Policy
from eosctl.core.record_file import encode_bytes, record_line
from eosctl.core.records import Record
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, NotFoundError, RefusedError, StalePlanError
from eosctl.events import Event
from eosctl.ops.app import App
from eosctl.ops.backups import write_lines
from eosctl.ops.migrate_report import Applied, plan_row
from eosctl.ops.migrate_stores import target_topic_of
from eosctl.ops.migrate_topics import (
    create_missing,
    moved_topics,
    planned_targets,
    planned_topic,
    refuse_open_transactions,
    some,
    wait_until_visible,
)
from eosctl.ops.ports import TopicStore

if TYPE_CHECKING:
    from eosctl.spark.job import Comparison, DecidedKey, SentCounts


@dataclass(frozen=True, slots=True)
class MigrationRequest:
    """What to migrate. Stores are `global`, `dedicated` or a topic; `dedicated_topic` may contain `{connector}`."""

    sources: tuple[str, ...] = ("global",)
    target: str = "dedicated"
    selection: Selection = field(default_factory=Selection)
    renames: Mapping[str, str] = field(default_factory=dict)
    policy: Policy = Policy.KEEP_TARGET
    dedicated_topic: str | None = None
    allow_open_transactions: bool = False


@dataclass(frozen=True, slots=True)
class Allowances:
    """Safety checks that the user waived by name; they are listed in the plan or the result."""

    workers_down: bool = False
    force_running: bool = False
    open_transactions: bool = False
    drift: frozenset[str] = frozenset()

    def names(self) -> list[str]:
        """The flags, for reports."""
        given = {
            "workers-down": self.workers_down,
            "force-running": self.force_running,
            "allow-open-transactions": self.open_transactions,
        }
        return [name for name, is_given in given.items() if is_given] + [
            f"accept-drift {d}" for d in sorted(self.drift)
        ]


class MigrationStages(Protocol):
    """What this module needs of Spark: `eosctl.spark.job.MigrationJob` is the real one."""

    def snapshot(self, topics: Sequence[PlannedTopic], folder: Path) -> int: ...
    def connectors_in(self, folder: Path) -> list[str]: ...
    def decide(self, folder: Path, plan: MigrationPlan) -> Tally: ...
    def sample(self, folder: Path, *, limit: int = 100) -> list[DecidedKey]: ...
    def overwritten(self, folder: Path) -> Iterator[tuple[Record, bytes | None]]: ...
    def write(self, folder: Path, plan: MigrationPlan) -> SentCounts: ...
    def compare(self, folder: Path, topics: Sequence[PlannedTopic], *, side: str, limit: int = 100) -> Comparison: ...


OpenStages = Callable[[int], AbstractContextManager[MigrationStages]]
"""Opens the stages for about so many records."""


@dataclass(frozen=True, slots=True)
class Migration:
    """Plans, applies and verifies with one set of stages; `snapshots` is the folder of snapshot folders."""

    app: App
    stages: MigrationStages
    snapshots: Path

    def plan(self, request: MigrationRequest, sources: Sequence[PlannedTopic]) -> MigrationPlan:
        """Reads both sides, decides per key, and keeps the snapshot under the plan's name."""
        self.snapshots.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".planning-", dir=self.snapshots))
        try:
            plan = self._plan(request, sources, draft)
            (draft / "plan.json").write_text(plan_file_text(plan), encoding="utf-8")
            if not snapshot_folder(plan).exists():  # else an equal plan was made before, and its folder is as good
                draft.rename(snapshot_folder(plan))
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return plan

    def _plan(self, request: MigrationRequest, sources: Sequence[PlannedTopic], draft: Path) -> MigrationPlan:
        self.stages.snapshot(sources, draft / "source")
        connectors = request.selection.choose(self.stages.connectors_in(draft / "source"))
        check_renames(request.renames, connectors)
        routes = plan_routes(
            connectors, request.renames, target_topic_of(self.app, request.target, request.dedicated_topic)
        )
        with fresh(self.app).topics() as topics:
            targets = planned_targets(topics, sorted({route.target_topic for route in routes}), like=sources[0])
            refuse_open_transactions(targets, allowed=request.allow_open_transactions)
            cluster_id = topics.cluster_id()
        self.stages.snapshot(targets, draft / "target")
        plan = MigrationPlan(
            cluster_id=cluster_id,
            group_id=self.app.target.group_id,
            policy=request.policy,
            sources=tuple(sources),
            targets=tuple(targets),
            routes=routes,
            tally=_NOTHING,
            snapshot_base=str(self.snapshots.resolve()),
            overrides=("allow-open-transactions",) if request.allow_open_transactions else (),
        )
        plan = replace(plan, tally=self.stages.decide(draft, plan))
        plan.tally.check()
        return with_sample(plan, [plan_row(key) for key in self.stages.sample(draft)])

    def apply(self, plan: MigrationPlan, allowances: Allowances) -> Applied:
        """Writes what the plan says after checking that it still holds and keeping a backup, and reads it back.

        Raises RefusedError or StalePlanError before anything was written.
        """
        folder = existing_snapshot(plan)
        if plan.tally.counts.get("conflict"):
            raise RefusedError(
                f"{plan.tally.counts['conflict']} keys are in conflict; nothing was written",
                hint="Decide with --conflict keep-target, take-source or newest, and plan again.",
            )
        with fresh(self.app).topics() as topics:
            self._refuse_drift(topics, plan, folder, allowances)
        backup = self._keep_backup(plan, folder)
        with fresh(self.app).topics() as topics:
            created = create_missing(topics, plan) if plan.tally.to_write() else ()
        sent = self.stages.write(folder, plan)
        if sent.records() != plan.tally.to_write():
            raise EosctlError(
                f"{plan.tally.to_write()} records were to be sent, {sent.records()} were confirmed",
                hint=f"Compare with: eosctl offsets verify {folder / 'plan.json'}",
            )
        with fresh(self.app).topics() as topics:
            wait_until_visible(fresh(self.app), topics, sent.last_offsets)
        return Applied(sent, self.compare(plan, "target"), created, backup, tuple(allowances.names()))

    def _keep_backup(self, plan: MigrationPlan, folder: Path) -> Path:
        """What `offsets restore` takes, synced; streamed, so that its size does not matter."""
        path = folder / "backup.ndjson"
        lines = (
            record_line(before, {"written": encode_bytes(written), "cluster_id": plan.cluster_id})
            for before, written in self.stages.overwritten(folder)
        )
        write_lines(path, lines)
        return path

    def compare(self, plan: MigrationPlan, side: str) -> Comparison:
        """Reads one side again, up to now, and compares it with the plan's decisions."""
        wanted = plan.targets if side == "target" else plan.sources
        with fresh(self.app).topics() as topics:
            there = topics.describe([topic.name for topic in wanted])
            now = [planned_topic(topics, description) for _name, description in sorted(there.items())]
        return self.stages.compare(existing_snapshot(plan), now, side=side)

    def _refuse_drift(self, topics: TopicStore, plan: MigrationPlan, folder: Path, allowances: Allowances) -> None:
        if topics.cluster_id() != plan.cluster_id:
            raise StalePlanError(
                f"the plan is for cluster {plan.cluster_id}, this is {topics.cluster_id()}", hint="Check -b."
            )
        for side, wanted in (("source", plan.sources), ("target", plan.targets)):
            moved = moved_topics(topics, wanted, allow_open_transactions=allowances.open_transactions)
            if not moved or side in allowances.drift:
                continue
            self.stages.snapshot(moved, folder / f"drift-{side}")
            names = {route.connector if side == "source" else route.target_connector for route in plan.routes}
            drifted = sorted(names & set(self.stages.connectors_in(folder / f"drift-{side}")))
            if drifted:
                raise StalePlanError(
                    f"the {side} has new offsets of {some(drifted)} since the plan was made; nothing was written",
                    hint=f"Stop these connectors and plan again, or name it: --accept-drift {side}.",
                )


_NOTHING = Tally(
    records=0, older=0, nobodys=0, not_selected=0, superseded=0, keys=0, conflicts=0, scattered=0, counts={}
)


def fresh(app: App) -> App:
    """`app` with its whole timeout again: Spark's stages and the user's thinking do not count against Kafka's."""
    return replace(app, deadline=Deadline.after(app.deadline.timeout_s, app.clock))


def snapshot_folder(plan: MigrationPlan) -> Path:
    """Where the records and decisions of `plan` are kept."""
    return Path(plan.snapshot_base) / plan.name()


def existing_snapshot(plan: MigrationPlan) -> Path:
    """Like `snapshot_folder`; raises NotFoundError when it is gone."""
    folder = snapshot_folder(plan)
    if not (folder / "decisions" / "_SUCCESS").exists():
        raise NotFoundError(
            f"the plan's snapshot is not in {folder}", hint="Apply where the plan was made, or plan again."
        )
    return folder


def spark_stages(
    app: App, *, snapshots: Path, master: str = "local[*]", conf: Mapping[str, str] | None = None
) -> OpenStages:
    """Opens MigrationJobs on Spark `master` with the user's Spark `conf`; Spark's log goes to `snapshots`/spark.log."""

    @contextmanager
    def opened(expected_records: int) -> Iterator[MigrationStages]:
        from eosctl.kafka.librdkafka import client_properties
        from eosctl.ops.migrate_spark import spark_job

        client = client_properties(app.target.require_client())
        app.on_event(Event("starting Spark"))
        with spark_job(
            client, snapshots=snapshots, master=master, conf=conf or {}, expected_records=expected_records,
            on_progress=lambda doing, done, total: app.on_event(Event(doing, done, total, "tasks")),
        ) as job:  # fmt: skip
            yield job

    return opened
