"""`connectors apply`: creates a connector that is not there, and changes the config of one that is.

A change is refused where the connector would start over, or may skip records. After it, what the tasks commit shows
whether they went on from the offsets that were there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.look import PAUSED, RUNNING, STOPPED, ConnectorNow, look_at, reach_worker, require_stable_group
from eosctl.connectors.validity import require_valid_config
from eosctl.connectors.waiting import POLL_S, await_connector, await_state
from eosctl.core.allowances import Waiver
from eosctl.core.configs.records import OFFSETS_TOPIC
from eosctl.core.offsets.names import DEDICATED, GLOBAL
from eosctl.core.offsets.records import json_text
from eosctl.core.versions import kafka_version
from eosctl.core.wording import counted
from eosctl.core.workers.access import CONNECTOR_CONFIG
from eosctl.create import codes
from eosctl.create.create import CreateRequest, prepare_create, unfinished_create
from eosctl.create.looks import require_plugin
from eosctl.create.rows import (
    CONNECTORS_APPLY_PLAN,
    CONNECTORS_APPLY_RESULT,
    AppliedData,
    AppliedSummary,
)
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, ExitCode, RefusedError, StalePlanError
from eosctl.foreign import arguments, shell_word, shell_words
from eosctl.offsets import codes as offset_codes
from eosctl.offsets.configs.diff import diff_config
from eosctl.offsets.configs.rows import CONNECTORS_DIFF, ConfigDiffData, PartitionRow
from eosctl.offsets.history.config_changes import PartitionStatus
from eosctl.offsets.steps import Outcome, StepDone, pinned_step, step_outcomes
from eosctl.offsets.stores.gather import gather_stores
from eosctl.offsets.switch.rows import StepRow
from eosctl.output.rows import Kind
from eosctl.plan import Plan
from eosctl.report import Problem, Report
from eosctl.state.journal import Progress, Step, Work, carry_out, journal_of

CONFIGURE, RESTART, WATCH, COMPARE = STEPS = ("configure", "restart", "watch", "compare")
_RESTARTS_BY_ITSELF_SINCE = (3, 9)
_RESTART_SHOWS_S, _COMMITS_S = 3.0, 10.0
_AGAIN = "Look at it: eosctl connectors trace"
_SEEN_BY = "`eosctl connectors diff` shows which source partitions the new config names."
Offset = tuple[object, tuple[int, int]]
"""A source partition, and partition and offset of its newest record."""


class ApplyPlan(Struct, frozen=True):
    """A change of a live connector's config; `diff` compares both. No `steps`: the config is the same."""

    request: CreateRequest
    now: ConnectorNow
    version: str
    cluster_id: str
    diff: Report
    steps: tuple[str, ...]
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


def prepare_apply(app: App, request: CreateRequest) -> Plan:
    """Return the plan to create the connector, or to change its config; raises as `prepare_create` and `plan_apply`.

    A run of `connectors create` that was cut off is continued.
    """
    name = request.definition.name
    cluster_id = require_stable_group(app)
    url, root = reach_worker(app, cluster_id)
    entry = app.worker(url).connectors().get(name)
    if entry is None:
        return prepare_create(app, request)
    begun = unfinished_create(journal_of(app, "connectors-create", name, cluster_id=cluster_id))
    if begun is not None and dict(entry.config) == dict(request.definition.config):
        return prepare_create(app, request)
    plan = plan_apply(app, request, url=url, version=root["version"], cluster_id=cluster_id)
    apply = partial(apply_change, app, plan) if plan.steps else None
    return Plan(partial(show_apply, app, plan), f"Change the config of {name}?", apply, app.target, plan.refusal)


def plan_apply(app: App, request: CreateRequest, *, url: str, version: str, cluster_id: str) -> ApplyPlan:
    """Compare the config with the live one, and decide whether the connector may get it; write nothing.

    Raises RefusedError for offsets, which only a new connector can be given so, and a config that Connect would reject.
    """
    name, config = request.definition.name, request.definition.config
    if request.given is not None:
        raise RefusedError(
            f"connector {name} exists: only a new one is given offsets; nothing was written",
            hint=f"Stop it, then `eosctl offsets import` or `set`: eosctl connectors stop {arguments(name)}.",
        )
    now = look_at(app, name, url)
    if dict(now.config) == dict(config):
        return ApplyPlan(request, now, version, cluster_id, Report(CONNECTORS_DIFF, data=_nothing()), ())
    worker = app.worker(url)
    require_plugin(worker, request.definition)
    app.target.connect.require_trust(worker.url, CONNECTOR_CONFIG)
    hint = "The connector's own checks ask its source: see whether that can be reached. Correct the config, run again."
    require_valid_config(worker, name, config, hint=hint)
    target = replace(app.target, connect_urls=(url,))
    diff = diff_config(replace(app, target=target), request.definition)
    steps = [CONFIGURE]
    if now.state not in (STOPPED, PAUSED):
        if (kafka_version(version) or (0, 0)) < _RESTARTS_BY_ITSELF_SINCE:
            steps.append(RESTART)
        steps += [WATCH, COMPARE]
    plan = ApplyPlan(request, now, version, cluster_id, diff, tuple(steps))
    return replace(plan, refusal=_refusal(plan))


def _nothing() -> ConfigDiffData:
    return ConfigDiffData(properties=[], errors=None)


def _refusal(plan: ApplyPlan) -> RefusedError | None:
    """Return the refusal of a change with which the connector starts over, may skip records, or may do so."""
    waived = plan.request.allowances
    fresh, unknown = plan.partitions(PartitionStatus.NEW), plan.partitions(PartitionStatus.UNKNOWN)
    properties = plan.diff.data_of(ConfigDiffData).properties
    moved = next((each for each in properties if each.name == OFFSETS_TOPIC), None)
    if fresh and not waived.read_again:
        to = GLOBAL if moved is None or moved.after is None else str(moved.after)
        switch = shell_words("eosctl", "offsets", "switch", "--connector", plan.name, "--to", to)
        hint = f"{_SEEN_BY} {Waiver.READ_AGAIN} changes it all the same."
        return RefusedError(
            f"{plan.name} would read {counted(len(fresh), 'source partition')} from the beginning, first "
            f"{json_text(fresh[0].source_partition)}; nothing was changed",
            hint=hint if moved is None else f"`{switch}` moves its offsets along. {hint}",
        )
    if unknown and not waived.unknown_partitions:
        return RefusedError(
            f"whether {plan.name} goes on from {counted(len(unknown), 'source partition')} is not known, first "
            f"{json_text(unknown[0].source_partition)} ({unknown[0].why}); nothing was changed",
            hint=f"{_SEEN_BY} {Waiver.UNKNOWN_PARTITIONS} changes it, and sees what it commits then.",
        )
    meant = [each for each in properties if each.meaning is not None and each is not moved]
    if meant and plan.diff.rows and not waived.may_skip:
        return RefusedError(
            f"{', '.join(each.name for each in meant)}: {meant[0].meaning} Nothing was changed",
            hint=f"{Waiver.MAY_SKIP} changes it all the same.",
        )
    return None


def apply_change(app: App, plan: ApplyPlan) -> Report:
    """Change the config, wait until the tasks run again, and see what they commit.

    Exit 7 if a step fails, or if whether it goes on is not seen; 3 if all source partitions are new. Raises
    StalePlanError if the config was changed since the plan was made.
    """
    before: dict[str, Offset] = {}
    work = Work(
        steps=lambda: [_step(app, plan, name, before) for name in plan.steps],
        recheck=lambda: _require_unchanged(app.with_whole_timeout(), plan),
    )
    progress = carry_out(work)
    report = _result(app, plan, progress)
    if progress.error is not None:
        return replace(report, exit_code=progress.exit_code(touched=bool(progress.done)))
    found = {each.code for each in report.problems if each.severity == "error"}
    if codes.ALL_PARTITIONS_NEW in found:
        return replace(report, exit_code=ExitCode.FINDINGS)
    return replace(report, exit_code=ExitCode.PARTIAL) if codes.PARTITIONS_NOT_SEEN in found else report


def _require_unchanged(app: App, plan: ApplyPlan) -> None:
    now = look_at(app, plan.name, plan.now.url)
    if dict(now.config) != dict(plan.now.config) or (now.state == STOPPED) != (plan.now.state == STOPPED):
        raise StalePlanError(
            f"{plan.name} was changed since the plan was made; nothing was changed here", hint="Plan again."
        )


def committed(app: App, name: str) -> Mapping[str, Offset]:
    """Return the offsets of a connector in the store that its tasks use, by the identity of their keys."""
    found = gather_stores(app, connectors=(name,))
    store = found.rows(name)[DEDICATED if found.has_own(name) else GLOBAL]
    keys = store.connectors.get(name, ())
    return {
        key.identity: (key.partition, (store.records[key.raw].partition, store.records[key.raw].offset)) for key in keys
    }


def _step(app: App, plan: ApplyPlan, name: str, before: dict[str, Offset]) -> Step[StepDone]:
    return pinned_step(app, name, plan.now.url, lambda pinned: _STEPS[name](pinned, plan, before))


def _configure(app: App, plan: ApplyPlan, before: dict[str, Offset]) -> StepDone:
    """Put the config, and wait until the worker shows it; `before` gets the offsets that were committed until then."""
    if COMPARE in plan.steps:
        before.update(committed(app, plan.name))
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


def _restart(app: App, plan: ApplyPlan, _before: dict[str, Offset]) -> StepDone:
    """Restart the tasks: below 3.9 a task whose own config is the same may keep what is Connect's (KAFKA-9228)."""
    app.worker(plan.now.url).restart(plan.name, only_failed=False)
    return StepDone("restart sent")


def _watch_tasks(app: App, plan: ApplyPlan, _before: dict[str, Offset]) -> StepDone:
    """Wait until connector and tasks run again; for a moment REST shows them as they were before."""
    soon = Deadline.after(min(_RESTART_SHOWS_S, app.deadline.remaining_s() / 2), app.clock)
    for _ in soon.rounds(POLL_S):
        if {RUNNING} != set(look_at(app, plan.name, plan.now.url).tasks):
            break

    now = await_state(
        app,
        plan.name,
        plan.now.url,
        RUNNING,
        least=1,
        doing=f"waiting for {plan.name} to run with the new config",
        hint=_shows_later(plan),
        failed=f"{plan.name} FAILED with the new config",
        failed_hint=f"Apply the former config again, or correct it. {_AGAIN} {arguments(plan.name)}",
    )
    return StepDone(f"RUNNING, {counted(len(now.tasks), 'task')}")


def _compare(app: App, plan: ApplyPlan, before: dict[str, Offset]) -> StepDone:
    """See which source partitions the tasks commit: RUNNING does not show whether they went on or started over.

    A commit before the tasks run again may be the last one of the former tasks.
    """
    patience = Deadline.after(min(_COMMITS_S, app.deadline.remaining_s() / 2), app.clock)
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
        return StepDone(detail, problems=tuple(_of_fresh(plan, fresh, had=bool(before), gone_on=bool(gone_on))))
    certain = not plan.partitions(PartitionStatus.UNKNOWN)
    problem = Problem(
        offset_codes.NOTHING_COMMITTED_YET if certain else codes.PARTITIONS_NOT_SEEN,
        f"{plan.name} is RUNNING, and has committed nothing since it runs with the new config",
        hint="An idle source commits nothing. If this one is not idle, see the worker's log; `eosctl offsets list "
        f"--connector {shell_word(plan.name)}` shows how old its offsets are.",
    )
    return StepDone("nothing committed yet", problems=(problem,))


def _of_fresh(plan: ApplyPlan, fresh: Collection[object], *, had: bool, gone_on: bool) -> list[Problem]:
    """Return the problem of source partitions that are new since the change, if the connector had any before."""
    if not fresh or not had:
        return []
    first = json_text(next(iter(fresh)))
    if gone_on or plan.partitions(PartitionStatus.STAYS):
        message = f"{counted(len(fresh), 'source partition')} of {plan.name} had no offset before, first {first}"
        return [Problem(codes.SOME_PARTITIONS_NEW, message, codes.SOME_PARTITIONS_NEW.next)]
    message = (
        f"all source partitions that {plan.name} has committed since its config was changed are new, first {first}"
    )
    return [Problem(codes.ALL_PARTITIONS_NEW, message, codes.ALL_PARTITIONS_NEW.next)]


_STEPS: Mapping[str, Callable[[App, ApplyPlan, dict[str, Offset]], StepDone]] = {
    CONFIGURE: _configure,
    RESTART: _restart,
    WATCH: _watch_tasks,
    COMPARE: _compare,
}


def _shows_later(plan: ApplyPlan) -> str:
    return f"The config was changed, and may show its effect later. {_AGAIN} {arguments(plan.name)}"


def show_apply(app: App, plan: ApplyPlan) -> Report:
    """Report the settings that change, and what becomes of the source partitions."""
    rows = [_row(plan, step, "planned") for step in plan.steps]
    return _report(app, plan, CONNECTORS_APPLY_PLAN, rows, problems=_warnings(plan))


def _warnings(plan: ApplyPlan) -> list[Problem]:
    wanted = plan.request.definition.state
    problems = [each.as_warning() for each in plan.diff.problems]
    if wanted is not None and wanted != plan.now.state:
        message = f"{plan.request.definition.source} says {wanted}, and {plan.name} is {plan.now.state}, which it stays"
        problems.append(Problem(codes.STATE_STAYS, message, codes.STATE_STAYS.next))
    return problems


def _result(app: App, plan: ApplyPlan, progress: Progress[StepDone]) -> Report:
    rows = [_row(plan, *each) for each in step_outcomes(plan.steps, progress)]
    problems = [*_warnings(plan), *(problem for done in progress.done.values() for problem in done.problems)]
    if progress.error is not None:
        problems += [Problem.of(progress.error), _left(app, plan)]
    return _report(app, plan, CONNECTORS_APPLY_RESULT, rows, problems=problems)


def _left(app: App, plan: ApplyPlan) -> Problem:
    """Report which config the connector was left with."""
    patient = replace(app, deadline=Deadline.after(min(5.0, app.deadline.timeout_s), app.clock))
    try:
        now = look_at(patient, plan.name, plan.now.url)
        which = "has the new config" if dict(now.config) == dict(plan.config) else "has its former config"
        present = f"{which}, and is {now.state}"
    except (EosctlError, KeyboardInterrupt):
        present = "is in an unknown state"
    return Problem(
        codes.CREATE_UNFINISHED,
        f"the work is not finished: {plan.name} {present}",
        hint=f"{_AGAIN} {arguments(plan.name)}",
    )


def _row(plan: ApplyPlan, step: str, outcome: Outcome, detail: str | None = None) -> StepRow:
    changed = len(plan.diff.data_of(ConfigDiffData).properties)
    action = {
        CONFIGURE: f"change {counted(changed, 'setting')} of its config",
        RESTART: f"restart its tasks, which Kafka {plan.version} may not do itself",
        WATCH: "wait until connector and tasks are RUNNING",
        COMPARE: "see which source partitions it commits",
    }[step]
    return StepRow(step=step, action=action, before=None, after=None, outcome=outcome, detail=detail)


def _report(app: App, plan: ApplyPlan, kind: Kind, rows: list[StepRow], *, problems: list[Problem]) -> Report:
    properties = plan.diff.data_of(ConfigDiffData).properties
    partitions = list(plan.diff.rows_of(PartitionRow))
    return Report(
        kind=kind,
        rows=rows,
        summary=AppliedSummary(
            connector=plan.name,
            state=plan.now.state,
            steps=len(rows),
            to_do=sum(row.outcome in ("planned", "not_reached", "failed") for row in rows),
            properties=len(properties),
        ),
        data=AppliedData(
            connector=plan.name,
            properties=properties,
            partitions=partitions,
            overrides=plan.request.allowances.names(),
        ),
        target={"kafka_cluster_id": plan.cluster_id, "group_id": app.target.group_id},
        problems=problems,
    )
