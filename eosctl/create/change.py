"""`connectors apply`: creates a connector that is not there, and changes the config of one that is.

A change is refused where the connector would start over, or may skip records. After it, what the tasks commit shows
whether they went on from the offsets that were there.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.look import PAUSED, STOPPED, look_at, reach_worker, require_stable_group
from eosctl.connectors.validity import require_valid_config
from eosctl.core.allowances import Waiver
from eosctl.core.configs.records import OFFSETS_TOPIC
from eosctl.core.offsets.names import GLOBAL
from eosctl.core.offsets.records import json_text
from eosctl.core.versions import kafka_version
from eosctl.core.wording import counted, rfc3339
from eosctl.core.workers.access import CONNECTOR_CONFIG
from eosctl.create import codes
from eosctl.create.change_steps import (
    COMPARE,
    CONFIGURE,
    LOOK,
    RESTART,
    RUNS,
    WATCH,
    ApplyPlan,
    Offset,
    committed,
    unfinished_apply,
)
from eosctl.create.create import CreateRequest, prepare_create
from eosctl.create.journal import RESUME, journal_of_create, unfinished_create
from eosctl.create.looks import require_plugin
from eosctl.create.place import strimzi_problems
from eosctl.create.rows import CONNECTORS_APPLY_PLAN, CONNECTORS_APPLY_RESULT, AppliedData, AppliedSummary
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, ExitCode, RefusedError, StalePlanError
from eosctl.foreign import arguments, shell_words
from eosctl.offsets.configs.diff import diff_config
from eosctl.offsets.configs.rows import CONNECTORS_DIFF, ConfigDiffData, PartitionRow
from eosctl.offsets.history.config_changes import PartitionStatus
from eosctl.offsets.steps import Outcome, StepDone, pinned_step, step_outcomes
from eosctl.offsets.switch.rows import StepRow
from eosctl.output.rows import Kind
from eosctl.plan import Plan
from eosctl.report import Problem, Report
from eosctl.state.journal import Note, Progress, Step, Work, carry_out, journal_of

_RESTARTS_BY_ITSELF_SINCE = (3, 9)
_SEEN_BY = "`eosctl connectors diff` shows which source partitions the new config names."


def prepare_apply(app: App, request: CreateRequest) -> Plan:
    """Return the plan to create the connector, or to change its config; raises as `prepare_create` and `plan_apply`.

    A run of `connectors create` that was cut off is continued.
    """
    name = request.definition.name
    cluster_id = require_stable_group(app)
    worker = reach_worker(app, cluster_id)
    entry = worker.connectors.get(name)
    if entry is None:
        return prepare_create(app, request)
    begun = unfinished_create(journal_of_create(app, name, cluster_id=cluster_id))
    is_left = begun is not None and (entry.state == STOPPED or RESUME in begun.started)
    if is_left and dict(entry.config) == dict(request.definition.config):
        return prepare_create(app, request)
    plan = plan_apply(app, request, url=worker.url, version=worker.version, cluster_id=cluster_id)
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
    journal = journal_of(app, "connectors-apply", name, cluster_id=cluster_id)
    restarts = [RESTART] if (kafka_version(version) or (0, 0)) < _RESTARTS_BY_ITSELF_SINCE else []
    runs = now.state not in (STOPPED, PAUSED)
    if dict(now.config) == dict(config):
        begun = unfinished_apply(journal)
        left = (*restarts, WATCH) if begun is not None and runs else ()
        return ApplyPlan(
            request, now, version, cluster_id, Report(CONNECTORS_DIFF, data=_nothing()), left, journal, begun
        )
    worker = app.worker(url)
    require_plugin(worker, request.definition)
    app.target.connect.require_trust(worker.url, CONNECTOR_CONFIG)
    hint = "The connector's own checks ask its source: see whether that can be reached. Correct the config, run again."
    require_valid_config(worker, name, config, hint=hint)
    target = replace(app.target, connect_urls=(url,))
    diff = diff_config(replace(app, target=target), request.definition)
    steps = (CONFIGURE, *restarts, WATCH, COMPARE) if runs else (CONFIGURE,)
    plan = ApplyPlan(request, now, version, cluster_id, diff, steps, journal)
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
    meant = [each for each in properties if each.may_skip and each is not moved]
    if meant and plan.diff.rows and not waived.may_skip:
        return RefusedError(
            f"{', '.join(each.name for each in meant)}: {meant[0].meaning} Nothing was changed",
            hint=f"{Waiver.MAY_SKIP} changes it all the same.",
        )
    return None


def apply_change(app: App, plan: ApplyPlan) -> Report:
    """Change the config, wait until the tasks run again, and see what they commit.

    Exit 7 if a step fails: a worker that did not answer, or refused, may change the config later. Exit 7, too, if
    whether it goes on is not seen; 3 if all source partitions are new. Raises StalePlanError if the config was changed
    since the plan was made, and what reading the committed offsets raises: then nothing was asked of a worker.
    """
    before: dict[str, Offset] = {}

    def recheck() -> None:
        _require_unchanged(app.with_whole_timeout(), plan)
        if COMPARE in plan.steps:
            before.update(committed(app.with_whole_timeout(), plan.name))

    work = Work(
        steps=lambda: [_step(app, plan, name, before) for name in plan.steps],
        recheck=recheck,
        journal=plan.journal,
        subject=f"connector {plan.name}",
        begin=lambda: _begin(plan),
    )
    progress = carry_out(work)
    report = _result(app, plan, progress)
    if progress.error is not None:
        problems = [*report.problems, Problem.of(progress.error), _left(app, plan)]
        return replace(report, problems=problems, exit_code=progress.exit_code(touched=True))
    found = {each.code for each in report.problems if each.severity == "error"}
    if codes.ALL_PARTITIONS_NEW in found:
        return replace(report, exit_code=ExitCode.FINDINGS)
    return replace(report, exit_code=ExitCode.PARTIAL) if codes.PARTITIONS_NOT_SEEN in found else report


def _begin(plan: ApplyPlan) -> Note | None:
    if plan.begun is not None:
        return None
    return Note("begin", {"connector": plan.name, "unknown": bool(plan.partitions(PartitionStatus.UNKNOWN))})


def _require_unchanged(app: App, plan: ApplyPlan) -> None:
    now = look_at(app, plan.name, plan.now.url)
    if dict(now.config) != dict(plan.now.config) or (now.state == STOPPED) != (plan.now.state == STOPPED):
        raise StalePlanError(
            f"{plan.name} was changed since the plan was made; nothing was changed here", hint="Plan again."
        )


def _step(app: App, plan: ApplyPlan, name: str, before: dict[str, Offset]) -> Step[StepDone]:
    return pinned_step(app, name, plan.now.url, lambda pinned: RUNS[name](pinned, plan, before))


def show_apply(app: App, plan: ApplyPlan) -> Report:
    """Report the settings that change, and what becomes of the source partitions."""
    rows = [_row(plan, step, "planned") for step in plan.steps]
    return _report(app, plan, CONNECTORS_APPLY_PLAN, rows, problems=_warnings(plan))


def _warnings(plan: ApplyPlan) -> list[Problem]:
    wanted = plan.request.definition.state
    problems = [*(each.as_warning() for each in plan.diff.problems), *strimzi_problems(plan.request.definition)]
    if plan.begun is not None and plan.steps:
        message = f"changing the config of {plan.name} was begun at {rfc3339(plan.begun.time_ms)} and not finished"
        problems.append(Problem(codes.CREATE_UNFINISHED, message).as_warning())
    if plan.steps and WATCH not in plan.steps:
        message = f"{plan.name} is {plan.now.state}: whether it goes on with the new config shows when it is resumed"
        problems.append(Problem(codes.NOT_WATCHED, message, codes.NOT_WATCHED.next))
    if wanted is not None and wanted != plan.now.state:
        message = f"{plan.request.definition.source} says {wanted}, and {plan.name} is {plan.now.state}, which it stays"
        problems.append(Problem(codes.STATE_STAYS, message, codes.STATE_STAYS.next))
    return problems


def _result(app: App, plan: ApplyPlan, progress: Progress[StepDone]) -> Report:
    rows = [_row(plan, *each) for each in step_outcomes(plan.steps, progress)]
    problems = [*_warnings(plan), *(problem for done in progress.done.values() for problem in done.problems)]
    return _report(app, plan, CONNECTORS_APPLY_RESULT, rows, problems=problems)


def _left(app: App, plan: ApplyPlan) -> Problem:
    """Report which config the connector was left with, as far as a worker shows it."""
    patient = replace(app, deadline=Deadline.after(min(5.0, app.deadline.timeout_s), app.clock))
    try:
        now = look_at(patient, plan.name, plan.now.url)
        known = {"has the new config": plan.config, "still has its former config": plan.now.config}
        which = next((words for words, each in known.items() if dict(each) == dict(now.config)), "has another config")
        present = f"{which}, and is {now.state}"
    except (EosctlError, KeyboardInterrupt):
        present = "is in an unknown state"
    return Problem(
        codes.CREATE_UNFINISHED,
        f"the work is not finished: {plan.name} {present}",
        hint=f"{LOOK} {arguments(plan.name)}",
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
