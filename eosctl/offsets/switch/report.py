"""Reports `offsets switch` as a whole: plan and result as rows of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import asdict, replace

from eosctl.app import App
from eosctl.connectors.dedicated import TOPIC_PROPERTY
from eosctl.connectors.look import PAUSED, STOPPED, describe_store, look_at, switch_command
from eosctl.core.offsets.names import GLOBAL
from eosctl.core.wording import counted, rfc3339
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError
from eosctl.foreign import Lines
from eosctl.offsets import codes
from eosctl.offsets.steps import Outcome, StepDone, step_outcomes
from eosctl.offsets.switch.plan import (
    CHECK,
    CONFIGURE,
    MERGE,
    RESTART,
    RESUME,
    STEPS,
    STOP,
    WATCH,
    SwitchPlan,
)
from eosctl.offsets.switch.rows import (
    OFFSETS_SWITCH_PLAN,
    OFFSETS_SWITCH_RESULT,
    ConfigChange,
    StepRow,
    SwitchData,
    SwitchSummary,
)
from eosctl.offsets.write_rows import CopiedRow, ResultData, WriteRow, WrittenRow, topic_parts, write_row
from eosctl.output.rows import Kind
from eosctl.report import Problem, Report
from eosctl.state.journal import Progress

_LOOK_S = 5.0
"""The time to read the connector's state after a failure: a worker that did not answer may still not."""


def show_switch(app: App, plan: SwitchPlan) -> Report:
    """Report the plan, and an earlier run that was cut off."""
    rows = [_row(plan, step, "done_before" if step in plan.done else "planned") for step in _in_order(plan)]
    return _report(app, plan, OFFSETS_SWITCH_PLAN, rows, problems=[*_earlier(plan), *plan.problems()])


def result_report(app: App, plan: SwitchPlan, progress: Progress[StepDone]) -> Report:
    """Report every step, also of a run that failed or was interrupted; exit 7 if a step failed."""
    done = progress.done
    rows = [_row(plan, *each) for each in step_outcomes(_in_order(plan), progress, before=plan.done)]
    problems = [*_earlier(plan), *(problem for step_done in done.values() for problem in step_done.problems)]
    if progress.error is not None:
        problems += [Problem.of(progress.error), _unfinished_problem(app, plan)]
    problems += progress.problems
    merged = done[MERGE].merged if MERGE in done else ()
    report = _report(app, plan, OFFSETS_SWITCH_RESULT, rows, problems=problems, merged=merged)
    return replace(report, exit_code=progress.exit_code(touched=True))


def _unfinished_problem(app: App, plan: SwitchPlan) -> Problem:
    """Report the state that the connector was left in, and the two ways to go on from there."""
    patient = replace(app, deadline=Deadline.after(min(_LOOK_S, app.deadline.timeout_s), app.clock))
    try:
        now = look_at(patient, plan.connector, plan.now.url)
        present = f"the connector is {now.state} and keeps its offsets in {describe_store(now.store(app))}"
    except (EosctlError, KeyboardInterrupt) as exc:
        why = exc.message if isinstance(exc, EosctlError) else "interrupted"
        present = f"the state of the connector is unknown ({why})"
    return Problem(
        codes.SWITCH_UNFINISHED,
        f"the switch of {plan.connector} is not finished: {present}; it is to be {plan.state} in the end",
        hint=_next_commands(plan),
    )


def _next_commands(plan: SwitchPlan) -> str:
    on = f"Run it again to go on: {_command(plan, plan.target)}"
    return on if plan.origin == plan.target else Lines.of(on, f"Go back: {_command(plan, plan.origin)}")


def _report(
    app: App,
    plan: SwitchPlan,
    kind: Kind,
    rows: Sequence[StepRow],
    *,
    problems: Sequence[Problem],
    merged: Sequence[Report] = (),
) -> Report:
    merge = plan.merge
    planned = [write_row(write) for write in merge.writes] if merge else []
    backups = [str(report.data_of(ResultData).backup) for report in merged]
    first, *later = [report.rows_of(WrittenRow) for report in merged] or [[]]
    came = [row for rows_of_round in later for row in rows_of_round if row.outcome == "written"]
    copied: Sequence[WriteRow] = [*first, *came] if merged else planned
    one_way = plan.at is not None and plan.origin == GLOBAL
    data = SwitchData(
        connector=plan.connector,
        origin=plan.origin,
        to=plan.target,
        state=plan.state,
        config=ConfigChange(
            property=TOPIC_PROPERTY,
            before=plan.now.config.get(TOPIC_PROPERTY),
            after=None if plan.target == GLOBAL else plan.target,
        ),
        kept_elsewhere=_kept_elsewhere(plan) if plan.steps else None,
        writes=[CopiedRow(**asdict(row)) for row in copied],
        creates=topic_parts(merge.creates) if merge else [],
        backup=backups[0] if backups else None,
        backups=backups,
        journal=str(plan.journal.path),
        undo=_command(plan, plan.origin) if plan.origin != plan.target and not one_way else None,
    )
    return Report(
        kind=kind,
        rows=rows,
        summary=SwitchSummary(
            steps=len(rows), to_do=sum(row.outcome in ("planned", "not_reached", "failed") for row in rows)
        ),
        data=data,
        target={"kafka_cluster_id": plan.cluster_id, "group_id": app.target.group_id},
        problems=problems,
    )


def _kept_elsewhere(plan: SwitchPlan) -> str:
    """Describe the change to make by hand: applying the config from elsewhere would undo the switch."""
    wanted = f"remove {TOPIC_PROPERTY}" if plan.target == GLOBAL else f"set {TOPIC_PROPERTY}={plan.target}"
    return (
        f"if the config of {plan.connector} is kept elsewhere too (Git, Terraform, a Kubernetes resource), {wanted} "
        "there: the next apply would take the connector back to old offsets"
    )


def _command(plan: SwitchPlan, to: str) -> str:
    return switch_command(plan.connector, plan.named(to))


def _earlier(plan: SwitchPlan) -> list[Problem]:
    begun = plan.begun
    if begun is None:
        return []
    message = (
        f"a switch of {plan.connector} from {begun.origin} to {begun.target} was begun at {rfc3339(begun.began_ms)} "
        f"and not finished; done then: {', '.join(begun.done) or 'nothing'}; the connector was {begun.state}"
    )
    if plan.state != begun.state:
        message += f", and is {plan.state} now, which it stays"
    return [Problem(codes.SWITCH_UNFINISHED, message).as_warning()]


def _in_order(plan: SwitchPlan) -> list[str]:
    return [step for step in STEPS if step in plan.steps or step in plan.done]


def _row(plan: SwitchPlan, step: str, outcome: Outcome, detail: str | None = None) -> StepRow:
    before, after, action = _wording(plan)[step]
    return StepRow(step=step, action=action, before=before, after=after, outcome=outcome, detail=detail)


def _wording(plan: SwitchPlan) -> Mapping[str, tuple[str | None, str | None, str]]:
    """Return, for each step, the state before and after, and the action, in words."""
    now = plan.now
    verb = "pause" if plan.state == PAUSED else "resume"
    writes = f"{counted(len(plan.merge.sends()), 'offset')} to write" if plan.merge else None
    return {
        STOP: (now.state, STOPPED, "stop the connector and wait until it has no task"),
        MERGE: (writes, None, f"give {describe_store(plan.target)} what {describe_store(plan.origin)} has"),
        CONFIGURE: (plan.origin, plan.target, f"change {TOPIC_PROPERTY} in its config"),
        CHECK: (None, None, "ask Connect for its offsets: none may be null"),
        RESUME: (STOPPED, plan.state, f"{verb} the connector"),
        WATCH: (None, plan.state, f"wait until connector and tasks are {plan.state}"),
        RESTART: (None, plan.state, f"restart its tasks, which Kafka {plan.version} may not do itself"),
    }
