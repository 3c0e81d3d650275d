"""rescue as a whole: plan and result as rows of steps, and the run through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eosctl.core.fencing_pace import cure_of
from eosctl.core.override_policy import override_policy
from eosctl.errors import EosctlError, ExitCode, InterruptedByUserError
from eosctl.ops.app import App
from eosctl.ops.rescue import STEPS, RescuePlan, require_unchanged
from eosctl.ops.rescue_steps import describe_step, run_step
from eosctl.report import Problem, Report, Row, rfc3339


def show_rescue(app: App, plan: RescuePlan) -> Report:
    """The steps to come, and what an earlier run has done."""
    said = {step: ("planned", describe_step(plan, step)) for step in plan.steps}
    problems = [*_earlier(plan), *(plan.fence.problems if plan.fence else ())]
    return _report(app, "rescue-plan", plan, said, data={}, problems=problems)


def apply_rescue(app: App, plan: RescuePlan) -> Report:
    """Runs the steps in order and ends at the first that fails; Ctrl-C ends it too, with the same report.

    Raises StalePlanError if the connector has changed, RefusedError while another eosctl rescues it.
    """
    with plan.patient.journal.hold(f"connector {plan.connector}"):
        require_unchanged(app.with_whole_timeout(), plan)
        plan.patient.journal.write(
            "begin", connector=plan.connector, commit_offset=plan.patient.scene.connector.commit_offset
        )
        return _run(app, plan)


def _run(app: App, plan: RescuePlan) -> Report:
    data: dict[str, object] = {}
    said = {step: ("planned", describe_step(plan, step)) for step in plan.steps}
    problems, code = _earlier(plan), ExitCode.OK
    for step in plan.steps:
        try:
            said[step] = ("done", run_step(app, plan, step, data))
        except (EosctlError, KeyboardInterrupt) as exc:
            error = exc if isinstance(exc, EosctlError) else InterruptedByUserError("interrupted")
            began = step != plan.steps[0]
            code = ExitCode.PARTIAL if began and error.exit_code is not ExitCode.INTERRUPTED else error.exit_code
            said[step] = ("failed", describe_step(plan, step))
            problems.append(Problem(error.code, f"{step}: {error.message}", error.hint))
            problems.append(Problem("rescue_again", "the steps after it were not done", "Run the same command again."))
            break
    else:
        problems += plan.patient.journal.close()
    return replace(_report(app, "rescue-result", plan, said, data=data, problems=problems), exit_code=code)


def _earlier(plan: RescuePlan) -> list[Problem]:
    """What the journal tells of a run that was cut off, where there is still something to do."""
    begun = plan.patient.begun
    if begun is None or not plan.steps:
        return []
    message = (
        f"a rescue of {plan.connector} was begun at {rfc3339(begun.began_ms)} and not finished; "
        f"done then: {', '.join(begun.done) or 'nothing'}"
    )
    return [Problem("rescue_unfinished", message, severity="warning")]


def _rows(plan: RescuePlan, said: Mapping[str, tuple[str, str]]) -> Sequence[Row]:
    """Steps in order, those of an earlier run included; the numbers are the same in plan and result."""
    before = plan.patient.begun.done if plan.patient.begun and plan.steps else {}
    known = {**{step: ("done_before", detail) for step, detail in before.items()}, **said}
    steps = [step for step in STEPS if step in known]
    return [
        {"step": number, "action": step, "detail": known[step][1], "outcome": known[step][0]}
        for number, step in enumerate(steps, start=1)
    ]


def _report(
    app: App,
    kind: str,
    plan: RescuePlan,
    said: Mapping[str, tuple[str, str]],
    *,
    data: Mapping[str, object],
    problems: Sequence[Problem],
) -> Report:
    config = plan.patient.scene.connector.config or {}
    policy = override_policy([worker.properties.values for worker in app.target.worker_configs])
    cure = {name: value for name, value in cure_of(policy).items() if plan.steps and str(config.get(name)) != value}
    return Report(
        kind=kind,
        rows=_rows(plan, said),
        summary={"connector": plan.connector, "verdict": plan.verdict.value, "tasks": len(plan.patient.tasks)},
        data={"seen": plan.patient.diagnosis.seen, "cure": cure, "journal": str(plan.patient.journal.path), **data},
        target={"kafka_cluster_id": plan.patient.scene.cluster_id, "group_id": app.target.group_id},
        problems=problems,
    )
