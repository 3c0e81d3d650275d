"""The plan of `connectors apply` to change a live connector's config, and its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from eosctl.app import App
from eosctl.connectors.look import RUNNING, ConnectorNow
from eosctl.connectors.waiting import POLL_S, await_connector, await_state, let_restart_show
from eosctl.core.offsets.names import DEDICATED, GLOBAL
from eosctl.core.wording import counted, rfc3339
from eosctl.create import codes
from eosctl.create.create import CreateRequest
from eosctl.create.steps import COMMITS_S, new_partitions
from eosctl.deadline import Deadline
from eosctl.errors import RefusedError
from eosctl.foreign import arguments, shell_word
from eosctl.offsets import codes as offset_codes
from eosctl.offsets.configs.rows import ConfigDiffData, PartitionRow
from eosctl.offsets.history.config_changes import PartitionStatus
from eosctl.offsets.steps import StepDone
from eosctl.offsets.stores.gather import gather_stores
from eosctl.report import Problem, Report
from eosctl.state.journal import EndEntry, Journal

CONFIGURE, RESTART, WATCH, COMPARE = ("configure", "restart", "watch", "compare")
LOOK = "Look at it: eosctl connectors trace"
Offset = tuple[object, tuple[int, int]]
"""A source partition, and partition and offset of its newest record."""


class UnfinishedApply(Struct, frozen=True):
    """A run that was begun and not ended; `unknown`: whether the connector goes on was to be seen by its commits."""

    time_ms: int
    unknown: bool = False


_ENTRIES: Mapping[str, type[UnfinishedApply | EndEntry]] = {"begin": UnfinishedApply, "end": EndEntry}


def unfinished_apply(journal: Journal) -> UnfinishedApply | None:
    """Return the run in progress, as far as the file shows; raise EosctlError."""
    last = next(reversed(journal.read(_ENTRIES)), None)
    return last if isinstance(last, UnfinishedApply) else None


class ApplyPlan(Struct, frozen=True):
    """A change of a live connector's config; `diff` compares both.

    Without the step `configure` the config is the same, and what is left to do of a run that was cut off, `begun`, is
    done: its commits before are not known any more.
    """

    request: CreateRequest
    now: ConnectorNow
    version: str
    cluster_id: str
    diff: Report
    steps: tuple[str, ...]
    journal: Journal
    begun: UnfinishedApply | None = None
    refusal: RefusedError | None = None

    @property
    def name(self) -> str:
        """The connector's name."""
        return self.request.definition.name

    @property
    def config(self) -> Mapping[str, str]:
        """The config that it gets."""
        return self.request.definition.config

    def partitions(self, *statuses: PartitionStatus) -> list[PartitionRow]:
        """Return the source partitions that have one of these statuses under the new config."""
        return [row for row in self.diff.rows_of(PartitionRow) if row.status in statuses]


def committed(app: App, name: str) -> Mapping[str, Offset]:
    """Return the offsets of a connector in the store that its tasks use, by the identity of their keys."""
    found = gather_stores(app, connectors=(name,))
    store = found.rows(name)[DEDICATED if found.has_own(name) else GLOBAL]
    keys = store.connectors.get(name, ())
    return {
        key.identity: (key.partition, (store.records[key.raw].partition, store.records[key.raw].offset)) for key in keys
    }


def _configure(app: App, plan: ApplyPlan, _before: Mapping[str, Offset]) -> StepDone:
    """Put the config, and wait until the worker shows it."""
    app.worker(plan.now.url).put_connector_config(plan.name, plan.config)
    await_connector(
        app,
        plan.name,
        plan.now.url,
        lambda now: dict(now.config) == dict(plan.config),
        doing="waiting for the worker to show the config",
        hint=_shows_later(plan),
    )
    changed = len(plan.diff.data_of(ConfigDiffData).properties)
    return StepDone(f"{counted(changed, 'setting')} changed")


def _restart(app: App, plan: ApplyPlan, _before: Mapping[str, Offset]) -> StepDone:
    """Restart the tasks: below 3.9 a task whose own config is the same may keep what is Connect's (KAFKA-9228)."""
    app.worker(plan.now.url).restart(plan.name, only_failed=False)
    return StepDone("restart sent")


def _watch_tasks(app: App, plan: ApplyPlan, _before: Mapping[str, Offset]) -> StepDone:
    """Wait until connector and tasks run again; for a moment REST shows them as they were before."""
    let_restart_show(app, plan.name, plan.now.url, RUNNING)
    now = await_state(
        app,
        plan.name,
        plan.now.url,
        RUNNING,
        least=1,
        doing=f"waiting for {plan.name} to run with the new config",
        hint=_shows_later(plan),
        failed=f"{plan.name} FAILED with the new config",
        failed_hint=f"Apply the former config again, or correct it. {LOOK} {arguments(plan.name)}",
    )
    unseen = _not_compared(plan) if COMPARE not in plan.steps else ()
    return StepDone(f"RUNNING, {counted(len(now.tasks), 'task')}", problems=unseen)


def _not_compared(plan: ApplyPlan) -> tuple[Problem, ...]:
    """Return the problem of a run that was cut off: what was committed before the change is not known any more."""
    if plan.begun is None or not plan.begun.unknown:
        return ()
    message = (
        f"whether {plan.name} goes on from its offsets was not seen: the run that changed its config at "
        f"{rfc3339(plan.begun.time_ms)} was cut off"
    )
    return (Problem(codes.PARTITIONS_NOT_SEEN, message, codes.PARTITIONS_NOT_SEEN.next),)


def _compare(app: App, plan: ApplyPlan, before: Mapping[str, Offset]) -> StepDone:
    """See which source partitions the tasks commit: RUNNING does not show whether they went on or started over.

    `before` are the offsets that were committed before the config was changed.
    A commit before the tasks run again may be the last one of the former tasks.
    """
    patience = Deadline.after(min(COMMITS_S, app.deadline.remaining_s() / 2), app.clock)
    at_start = committed(app, plan.name)
    fresh: list[object] = []
    gone_on = 0
    for _ in patience.rounds(POLL_S):
        now = committed(app, plan.name)
        fresh = [partition for each, (partition, _place) in now.items() if each not in before]
        gone_on = sum(each in before and at_start.get(each) != found for each, found in now.items())
        if gone_on:
            break
    if fresh or gone_on:
        detail = f"{gone_on} of the former source partitions went on, {counted(len(fresh), 'new one')} committed"
        goes_on = bool(gone_on or plan.partitions(PartitionStatus.STAYS))
        new = new_partitions(plan.name, fresh, goes_on=goes_on, since="its config was changed") if before else []
        return StepDone(detail, problems=tuple(new))
    certain = not plan.partitions(PartitionStatus.UNKNOWN)
    problem = Problem(
        offset_codes.NOTHING_COMMITTED_YET if certain else codes.PARTITIONS_NOT_SEEN,
        f"{plan.name} is RUNNING, and has committed nothing since its config was changed",
        hint="An idle source commits nothing. If this one is not idle, see the worker's log; `eosctl offsets list "
        f"--connector {shell_word(plan.name)}` shows how old its offsets are.",
    )
    return StepDone("nothing committed yet", problems=(problem,))


RUNS: Mapping[str, Callable[[App, ApplyPlan, Mapping[str, Offset]], StepDone]] = {
    CONFIGURE: _configure,
    RESTART: _restart,
    WATCH: _watch_tasks,
    COMPARE: _compare,
}


def _shows_later(plan: ApplyPlan) -> str:
    return f"The config was changed, and may show its effect later. {LOOK} {arguments(plan.name)}"
