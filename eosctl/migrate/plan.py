"""`offsets migrate`: planning with Spark, and comparing a plan with the present offsets; `apply` carries it out.

The plan fixes what is read and written. Between plan and apply only records of the plan's own connectors count as
drift, because the global offsets topic of a live cluster never stands still.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.core.configs.records import Selection
from eosctl.core.offsets.migration import (
    ONE_PART,
    PART_BYTES,
    Comparison,
    ConnectorRoute,
    DecidedKey,
    MigrationPlan,
    Parts,
    PlannedTopic,
    SentCounts,
    Snapshot,
    Tally,
    check_renames,
    parts_of,
    plan_file_text,
    plan_routes,
    with_sample,
)
from eosctl.core.offsets.views import Policy
from eosctl.core.records import Record
from eosctl.core.wording import rfc3339
from eosctl.deadline import Event
from eosctl.errors import NotFoundError, RefusedError
from eosctl.machine.files import own_folder, sync_directory
from eosctl.migrate.report import plan_row
from eosctl.migrate.stores import AS_SOURCE, TopicSize, planned_targets, refuse_reading_what_is_written, target_name_of
from eosctl.migrate.topics import (
    NOTHING_SENT,
    LastOffsets,
    expected_records,
    grown_since,
    hidden_offsets,
    present_topics,
    refuse_open_transactions,
    some,
)
from eosctl.report import plain
from eosctl.state.backups import write_blocks
from eosctl.state.work_folders import work_folder

if TYPE_CHECKING:
    from eosctl.engine.columns import Table


class MigrationRequest(Struct, frozen=True):
    """The migration to plan.

    Stores are `global`, `dedicated` or a topic; `dedicated_topic` may contain `{connector}`. `new_topics` is the size
    of missing targets.
    """

    sources: tuple[str, ...] = ("global",)
    target: str = "dedicated"
    selection: Selection = field(default_factory=Selection)
    renames: Mapping[str, str] = {}
    policy: Policy = Policy.KEEP_TARGET
    dedicated_topic: str | None = None
    new_topics: TopicSize = AS_SOURCE
    allow_open_transactions: bool = False


class MigrationStages(Protocol):
    """The stages on Spark that this module needs: `eosctl.migrate.spark.job.MigrationJob` is the real one."""

    def least_parts(self, records: int) -> int: ...
    def snapshot(
        self,
        topics: Sequence[PlannedTopic],
        folder: Path,
        *,
        parts: Parts = ONE_PART,
        renames: Mapping[str, str] | None = None,
    ) -> Snapshot: ...
    def decide(self, folder: Path, plan: MigrationPlan) -> Tally: ...
    def find_stale(self, folder: Path) -> int: ...
    def stale(self, folder: Path) -> Iterator[Record]: ...
    def sample(self, folder: Path, *, limit: int = 100) -> list[DecidedKey]: ...
    def backup(self, folder: Path, plan: MigrationPlan) -> Iterator[Table]: ...
    def new_offsets(self, drift: Path, folder: Path, plan: MigrationPlan, *, side: str) -> list[str]: ...
    def newer(self, drift: Path, folder: Path) -> int: ...
    def write_tasks(self, plan: MigrationPlan) -> int: ...
    def unwritten(self, folder: Path, plan: MigrationPlan, targets: Sequence[PlannedTopic], into: Path) -> int: ...
    def write(
        self, decisions: Path, plan: MigrationPlan, *, tasks: int, records: int, timestamp_ms: int | None = None
    ) -> SentCounts: ...
    def compare(
        self,
        folder: Path,
        plan: MigrationPlan,
        topics: Sequence[PlannedTopic],
        *,
        side: str,
        since: bool = False,
        limit: int = 100,
    ) -> Comparison: ...


OpenStages = Callable[[], AbstractContextManager[MigrationStages]]


class Migration(Struct, frozen=True):
    """Planning and comparing with one set of stages; `snapshots` is the folder of snapshot folders."""

    app: App
    stages: MigrationStages
    snapshots: Path

    def plan(self, request: MigrationRequest, sources: Sequence[PlannedTopic]) -> MigrationPlan:
        """Read both sides, decide on each key, and keep the snapshot under the plan's name."""
        with work_folder(self.snapshots, ".planning-") as draft:
            plan = self._plan(request, sources, draft)
            write_blocks(draft / "plan.json", [plan_file_text(plan).encode()])
            if not snapshot_folder(plan).exists():  # else an equal plan was made before, and its folder is as good
                draft.rename(snapshot_folder(plan))
                sync_directory(self.snapshots)
        return plan

    def _plan(self, request: MigrationRequest, sources: Sequence[PlannedTopic], draft: Path) -> MigrationPlan:
        records = expected_records(sources)
        parts = parts_of(sources, records=records, least=self.stages.least_parts(records))
        read_source = partial(self.stages.snapshot, sources, draft / "source", renames=request.renames)
        read = read_source(parts=parts)
        routes, targets = self._routes(request, read, sources)
        read_target = partial(self.stages.snapshot, targets, draft / "target")
        there = read_target(parts=parts)
        most = max(read.most_bytes(), there.most_bytes())
        if most > PART_BYTES:
            self.app.on_event(Event(f"a part of the work has {most >> 20:,} MiB: all is read again in smaller parts"))
            parts = parts_of(sources, records=records, least=len(parts) * -(-most // PART_BYTES))
            read, there = read_source(parts=parts), read_target(parts=parts)
        in_place = there.in_place
        if not in_place:
            self.app.on_event(Event(_SCATTERED.format(topics=some([topic.name for topic in targets])), warning=True))
        plan = MigrationPlan(
            cluster_id=targets[0].cluster_id,
            group_id=self.app.target.group_id,
            policy=request.policy,
            sources=tuple(sources),
            targets=tuple(targets),
            routes=routes,
            tally=_NOTHING,
            snapshot_base=str(self.snapshots.resolve()),
            overrides=(Waiver.ALLOW_OPEN_TRANSACTIONS.word,) if request.allow_open_transactions else (),
            parts=parts,
            planned_at=rfc3339(self.app.clock.now_ms()) or "",
        )
        plan = replace(plan, tally=replace(self.stages.decide(draft, plan), records=read.records))
        plan.tally.check()
        if not in_place and plan.target_file() is None:
            plan = replace(plan, stale_copies=self.stages.find_stale(draft))
        return with_sample(plan, [plain(plan_row(key)) for key in self.stages.sample(draft)])

    def _routes(
        self, request: MigrationRequest, read: Snapshot, sources: Sequence[PlannedTopic]
    ) -> tuple[tuple[ConnectorRoute, ...], list[PlannedTopic]]:
        """Return where the offsets of each connector go, and the topics or the file that they go to."""
        there = {name for name in read.connectors if any(source.gives(name) for source in sources)}
        connectors = request.selection.choose(there)
        check_renames(request.renames, connectors)
        routes = plan_routes(
            connectors, request.renames, target_name_of(self.app, request.target, request.dedicated_topic)
        )
        names = sorted({route.target_topic for route in routes})
        targets = planned_targets(self.app.with_whole_timeout(), names, sources=sources, size=request.new_topics)
        refuse_reading_what_is_written(routes, sources, targets)
        refuse_open_transactions(targets, allowed=request.allow_open_transactions)
        return routes, targets

    def compare(
        self, plan: MigrationPlan, side: str, *, since: bool = False, after: LastOffsets = NOTHING_SENT
    ) -> Comparison:
        """Read one side again, up to now, and compare it with the plan's decisions; `after` as in `present_topics`.

        With `since`, only the target's records since the plan are read, if it has only grown and they suffice to tell
        that it is as planned: a tombstone may be compacted away before it is looked for.
        """
        app = self.app.with_whole_timeout()
        planned = plan.targets if side == "target" else plan.sources
        now = present_topics(app, planned, after=after)
        grown = grown_since(planned, now) if since and not plan.stale_copies else None
        folder, compared = existing_snapshot(plan), None
        if grown is not None:
            compared = self.stages.compare(folder, plan, grown, side=side, since=True)
        if compared is None or compared.differing:
            compared = self.stages.compare(folder, plan, now, side=side)
        return replace(compared, hidden=hidden_offsets(app, now, plan.connectors_of(side), side=side))


_SCATTERED = (
    "keys in {topics} lie on partitions other than their own; migrate writes each where its newest record is; "
    "`eosctl offsets lint --store TOPIC` gives the repair"
)
_NOTHING = Tally(
    records=0, older=0, unowned=0, not_selected=0, superseded=0, keys=0, conflicts=0, scattered=0, counts={}
)


def snapshot_folder(plan: MigrationPlan) -> Path:
    """Return the folder of the records and decisions of `plan`."""
    return Path(plan.snapshot_base) / plan.name()


def existing_snapshot(plan: MigrationPlan) -> Path:
    """Return the snapshot folder; raises NotFoundError if it is gone, RefusedError if it can't be used."""
    folder = snapshot_folder(plan)
    if not (folder / "decisions" / "_SUCCESS").exists():
        raise NotFoundError(
            f"the plan's snapshot is not in {folder}", hint="Apply where the plan was made, or plan again."
        )
    try:
        return own_folder(folder)
    except OSError as exc:
        hint = getattr(exc, "hint", "Check its rights.")
        raise RefusedError(f"the plan's snapshot can't be used: {exc.strerror or exc}", hint=hint) from exc


def spark_stages(
    app: App,
    *,
    snapshots: Path,
    master: str = "local[*,4]",
    conf: Mapping[str, str] | None = None,
    profiles: Sequence[str] = (),
) -> OpenStages:
    """Return a function that opens MigrationJobs on Spark `master` with the user's Spark `conf`.

    Spark's log goes to `snapshots`/spark.log. The jobs can reach the clusters of `profiles` too.
    """

    @contextmanager
    def opened() -> Iterator[MigrationStages]:
        from eosctl.migrate.spark.start import spark_job

        others = {name: app.elsewhere(name).target.require_client() for name in profiles}
        app.on_event(Event("starting Spark"))
        with spark_job(
            app.target.client, snapshots=snapshots, master=master, conf=conf or {}, others=others,
            on_progress=lambda *progress: app.on_event(Event(*progress)),
        ) as job:  # fmt: skip
            yield job

    return opened
