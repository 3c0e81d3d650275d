"""`connectors create`: a new connector, with its offsets in place before it starts. Journaled, and safe to repeat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import asdict, replace

from eosctl.app import App
from eosctl.connectors.definition import ConnectorDefinition
from eosctl.connectors.look import RUNNING, STOPPED, describe_store
from eosctl.core.allowances import NOTHING_WAIVED, Allowances
from eosctl.core.clients.hidden_secrets import hide_secrets
from eosctl.core.wording import counted, rfc3339
from eosctl.create import codes
from eosctl.create.given import GivenOffsets
from eosctl.create.journal import (
    CHECK,
    CREATE,
    RESUME,
    STEPS,
    WATCH,
    WRITE,
    UnfinishedCreate,
    journal_of_create,
    refuse_without_offsets,
    unfinished_create,
)
from eosctl.create.place import ConnectorPlacement, kept_keys, plan_placement, refuse_running_origin
from eosctl.create.rows import CONNECTORS_CREATE_PLAN, CONNECTORS_CREATE_RESULT, PlacedData, PlacedSummary, Start
from eosctl.create.steps import (
    check_offsets,
    commits_before,
    create_stopped,
    fence_former,
    missing_offsets,
    resume,
    watch,
    write_offsets,
)
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, ExitCode, RefusedError, StalePlanError
from eosctl.foreign import arguments
from eosctl.group.gather import read_group
from eosctl.offsets.rows import MOST_ROWS
from eosctl.offsets.steps import CommitWatch, Outcome, StepDone, pinned_step, step_outcomes
from eosctl.offsets.switch.rows import StepRow
from eosctl.offsets.write_rows import CopiedRow, ResultData, WrittenRow, topic_parts, write_row
from eosctl.output.rows import Kind
from eosctl.plan import Plan
from eosctl.report import Problem, Report
from eosctl.state.journal import Journal, Note, Progress, Step, Work, carry_out

_LOOK_S = 5.0


class CreateRequest(Struct, frozen=True):
    """The connector, its offsets if any are given, and whether it stays STOPPED."""

    definition: ConnectorDefinition
    given: GivenOffsets | None = None
    stopped: bool = False
    allowances: Allowances = NOTHING_WAIVED


class CreatePlan(Struct, frozen=True):
    """The `steps` that are to be done of a placement, those that a former run did, and its journal."""

    placement: ConnectorPlacement
    steps: tuple[str, ...]
    done: tuple[str, ...]
    begun: UnfinishedCreate | None
    journal: Journal

    def problems(self) -> list[Problem]:
        """Return the warnings of the plan."""
        return [*_earlier(self), *self.placement.problems]


def prepare_create(app: App, request: CreateRequest) -> Plan:
    """Return the plan to create a connector; raises as `plan_create`."""
    plan = plan_create(app, request)
    apply = partial(apply_create, app, plan, request)
    question = f"Create {request.definition.name}?" if plan.begun is None else f"Go on creating {plan.placement.name}?"
    return Plan(partial(show_create, app, plan), question, apply, app.target, plan.placement.refusal)


def plan_create(app: App, request: CreateRequest) -> CreatePlan:
    """Plan the steps; raise as `plan_placement`, and RefusedError where the connector was started in between."""
    name = request.definition.name
    _group, cluster_id = read_group(app)
    journal = journal_of_create(app, name, cluster_id=cluster_id)
    begun = unfinished_create(journal)
    state = STOPPED if request.stopped else None
    placement = plan_placement(
        app, request.definition, request.given, state=state, allowances=request.allowances, ours=begun is not None
    )
    entry = placement.site.connectors.get(name)
    if entry is None and name not in placement.site.configured:
        begun = None  # what that run has made, if anything, is deleted
    if request.given is None:
        refuse_without_offsets(name, begun)
    steps = [CREATE, *([WRITE] if request.given is not None else []), CHECK]
    if placement.state != STOPPED:
        steps += [RESUME, WATCH]
    if entry is not None and entry.state != STOPPED:
        if begun is None or RESUME not in begun.started:
            raise RefusedError(
                f"connector {name} is {entry.state}: it was started before it was seen to have its offsets",
                hint=f"Stop it (`eosctl connectors stop {arguments(name)}`), then run again.",
            )
        steps = [WATCH] if placement.state != STOPPED else []
        placement = replace(placement, offsets=None, refusal=None)  # it has moved on from them
    done = tuple(step for step in (() if begun is None else begun.done) if step not in steps)
    return CreatePlan(placement, tuple(steps), done, begun, journal)


def apply_create(app: App, plan: CreatePlan, request: CreateRequest) -> Report:
    """Run the steps; stop at the first that fails (exit 7) or at Ctrl-C, and report the steps done before.

    Raises RefusedError where a check fails now, and while another eosctl creates it.
    """
    placement = plan.placement
    work = Work(
        steps=lambda: _steps(app, plan),
        journal=plan.journal,
        subject=f"connector {placement.name}",
        recheck=lambda: _require_unchanged(app.with_whole_timeout(), plan, request),
        begin=lambda: None if plan.begun else _begin(placement),
    )
    return result_report(app.with_whole_timeout(), plan, carry_out(work))


def _begin(placement: ConnectorPlacement) -> Note:
    origin = None if placement.given is None else placement.given.origin
    return Note("begin", {"connector": placement.name, "state": placement.state, "origin": origin})


def _require_unchanged(app: App, plan: CreatePlan, request: CreateRequest) -> None:
    given = None if request.given is None else request.given.renewed(app, request.definition.name)
    renewed = plan_create(app, replace(request, given=given))
    if renewed.placement.refusal is not None:
        raise renewed.placement.refusal
    before, now = plan.placement.offsets, renewed.placement.offsets
    is_same = before is now or (before is not None and now is not None and before.writes == now.writes)
    if renewed.steps != plan.steps or not is_same:
        raise StalePlanError(
            f"{plan.placement.name}, or its offsets, changed since the plan was made; nothing was written",
            hint="Plan again.",
        )


def _write(app: App, placement: ConnectorPlacement) -> StepDone:
    """Fence former tasks of that name, then write the given offsets."""
    fenced, problems = fence_former(app, placement)
    done = write_offsets(app, placement, placement.given)
    detail = ", ".join(filter(None, (done.detail, fenced)))
    return replace(done, detail=detail, problems=(*done.problems, *problems))


def _check(app: App, placement: ConnectorPlacement) -> StepDone:
    """Check that Connect finds the offsets of the store, and then that these are the given ones, as they are now.

    Raises RefusedError where the connector that had them was started since, or somebody wrote others.
    """
    done, given = check_offsets(app, placement), placement.given
    if given is not None:
        now = given.renewed(app, placement.name)
        running = refuse_running_origin(placement.name, now, placement.allowances)
        if running is not None:
            raise running
        if missing_offsets(app, placement, given if now.running else now).sends():
            raise RefusedError(
                f"the offsets of {placement.name} are not those of {given.origin} any more: a task has committed, or "
                "somebody wrote; it was not started",
                hint="Plan again: run the same command.",
            )
    return done


def _steps(app: App, plan: CreatePlan) -> list[Step[StepDone]]:
    """Return the steps; a watch knows what was there before."""
    placement, url = plan.placement, plan.placement.site.url
    before: list[CommitWatch | None] = []

    def resumed(app: App) -> StepDone:
        before.append(commits_before(app, placement))
        return resume(app, placement)

    def watched(app: App) -> StepDone:
        return watch(app, placement, before[0] if before else commits_before(app, placement))

    runs: Mapping[str, Callable[[App], StepDone]] = {
        CREATE: lambda app: create_stopped(app, placement),
        WRITE: lambda app: _write(app, placement),
        CHECK: lambda app: _check(app, placement),
        RESUME: resumed,
        WATCH: watched,
    }
    return [pinned_step(app, name, url, runs[name]) for name in plan.steps]


def show_create(app: App, plan: CreatePlan) -> Report:
    """Report the plan, and an earlier run that was cut off."""
    rows = [_row(plan, step, "done_before" if step in plan.done else "planned") for step in _in_order(plan)]
    return _report(app, plan, CONNECTORS_CREATE_PLAN, rows, problems=plan.problems())


def result_report(app: App, plan: CreatePlan, progress: Progress[StepDone]) -> Report:
    """Report every step, also of a run that failed or was interrupted; exit 7 if a step failed."""
    done = progress.done
    rows = [_row(plan, *each) for each in step_outcomes(_in_order(plan), progress, before=plan.done)]
    problems = [*plan.problems(), *(problem for step_done in done.values() for problem in step_done.problems)]
    if progress.error is not None:
        problems += [Problem.of(progress.error), _unfinished(app, plan)]
    problems += progress.problems
    written = done[WRITE].merged if WRITE in done else ()
    report = _report(app, plan, CONNECTORS_CREATE_RESULT, rows, problems=problems, written=written)
    errors = {each.code for each in problems if each.severity == "error"}
    if progress.error is None and codes.ALL_PARTITIONS_NEW in errors:
        return replace(report, exit_code=ExitCode.FINDINGS)
    return replace(report, exit_code=progress.exit_code(touched=True))


def _unfinished(app: App, plan: CreatePlan) -> Problem:
    """Report the state that the connector was left in, and the way to go on from there."""
    name = plan.placement.name
    patient = replace(app, deadline=Deadline.after(min(_LOOK_S, app.deadline.timeout_s), app.clock))
    try:
        entry = patient.worker(plan.placement.site.url).connectors().get(name)
        present = "does not exist" if entry is None else f"is {entry.state}"
    except (EosctlError, KeyboardInterrupt) as exc:
        why = exc.message if isinstance(exc, EosctlError) else "interrupted"
        present = f"is in an unknown state ({why})"
    return Problem(
        codes.CREATE_UNFINISHED,
        f"the work is not finished: {name} {present}, and is to be {plan.placement.state} in the end",
        codes.CREATE_UNFINISHED.next,
    )


def _earlier(plan: CreatePlan) -> list[Problem]:
    if plan.begun is None:
        return []
    message = (
        f"creating {plan.placement.name} was begun at {rfc3339(plan.begun.time_ms)} and not finished; done then: "
        f"{', '.join(plan.begun.done) or 'nothing'}"
    )
    return [Problem(codes.CREATE_UNFINISHED, message).as_warning()]


def _in_order(plan: CreatePlan) -> list[str]:
    return [step for step in STEPS if step in plan.steps or step in plan.done]


def _row(plan: CreatePlan, step: str, outcome: Outcome, detail: str | None = None) -> StepRow:
    placement = plan.placement
    count = len(placement.offsets.sends()) if placement.offsets is not None else 0
    before, after, action = {
        CREATE: (None, STOPPED, "create it STOPPED, and wait until it is"),
        WRITE: (
            None,
            None,
            f"write {counted(count, 'offset')} to {describe_store(placement.store)}, and read them back",
        ),
        CHECK: (None, None, "ask Connect for its offsets: none may be missing"),
        RESUME: (STOPPED, placement.state, "resume it" if placement.state == RUNNING else "pause it"),
        WATCH: (None, placement.state, f"wait until connector and tasks are {placement.state}"),
    }[step]
    return StepRow(step=step, action=action, before=before, after=after, outcome=outcome, detail=detail)


def _report(
    app: App,
    plan: CreatePlan,
    kind: Kind,
    rows: Sequence[StepRow],
    *,
    problems: Sequence[Problem],
    written: Sequence[Report] = (),
) -> Report:
    placement, offsets = plan.placement, plan.placement.offsets
    planned = [] if offsets is None else [write_row(write) for write, _outcome in offsets.writes.first(MOST_ROWS)]
    shown = [row for report in written for row in report.rows_of(WrittenRow)] or planned
    backup = next((report.data_of(ResultData).backup for report in written), None)
    start: Start = "given" if placement.given is not None else "left" if placement.left else "beginning"
    start = "unknown" if placement.elsewhere else start
    return Report(
        kind=kind,
        rows=rows,
        summary=PlacedSummary(
            connector=placement.name,
            steps=len(rows),
            to_do=sum(row.outcome in ("planned", "not_reached", "failed") for row in rows),
            offsets=placement.left if offsets is None else len(kept_keys(offsets)),
        ),
        data=PlacedData(
            connector=placement.name,
            state=placement.state,
            config=hide_secrets(placement.definition.config),
            starts=start,
            origin=None if placement.given is None else placement.given.origin,
            store=placement.store,
            writes=[CopiedRow(**asdict(row)) for row in shown],
            creates=[] if offsets is None else topic_parts(offsets.creates),
            backup=backup,
            journal=str(plan.journal.path),
            overrides=placement.allowances.names(),
        ),
        target={"kafka_cluster_id": placement.site.cluster_id, "group_id": app.target.group_id},
        problems=problems,
    )
