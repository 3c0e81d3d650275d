"""The rows and the report of `rescue`: the steps that heal a connector, and their outcomes.

Plan and result are both rows of steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import UNSET, UnsetType, structs
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.wording import rfc3339
from eosctl.fence.connect import cure_of
from eosctl.fence.rows import FencePart
from eosctl.group.observation.holders import override_policy
from eosctl.output.cells import format_cell, summary_lines
from eosctl.output.rows import Kind, Printed, Text, plan_and_result
from eosctl.report import Problem, Report
from eosctl.rescue import codes
from eosctl.rescue.plan import STEPS, RescuePlan, describe_step
from eosctl.state.journal import Progress


class RescueRow(Printed):
    """A step of the rescue."""

    step: Annotated[int, "Its number, the same in plan and result."]
    action: Annotated[str, "What it does: `wait`, `fence`, `write`, `restart` or `watch`."]
    detail: Annotated[str, "What it will do it to, or what came of it."]
    outcome: Annotated[str, "Whether it is `planned`, `done`, `failed`, or `done_before` by a run that was cut off."]


class RescueSummary(Printed):
    """The connector, and its diagnosis."""

    connector: Annotated[str, "The connector."]
    verdict: Annotated[str, "What can be done: `fence`, `restart`, `watch`, or nothing where it is `healthy`."]
    tasks: Annotated[int, "How many tasks it has."]


class RescueData(Printed):
    """The facts behind the verdict, and the settings that prevent a recurrence."""

    seen: Annotated[str, "What was seen of its tasks and its task-count record."]
    cure: Annotated[dict[str, str], "Settings that make Connect's own fencing fast enough."]
    journal: Annotated[str, "The file that the steps are written down in."]


class RescueResultData(RescueData, kw_only=True):
    """The same, and what the steps left behind."""

    fence: Annotated[FencePart | None, "The ids that were fenced."] | UnsetType = UNSET
    backup: Annotated[str | None, "The file that holds the former record."] | UnsetType = UNSET


def _lines(report: Report) -> Iterator[str]:
    """Yield the observation, the summary, and the settings that prevent a recurrence."""
    data = report.data_of(RescueData)
    yield f"seen: {format_cell(data.seen)}"
    yield from summary_lines(report)
    if data.cure:
        in_config = all(name.startswith("admin.override.") for name in data.cure)
        where = "the connector's config" if in_config else "the workers' files, whose policy refuses overrides"
        yield f"so that it does not come back, put into {where}:"
        yield from (f"  {name}={value}" for name, value in data.cure.items())


_TEXT = Text(
    columns=("step", "action", "detail", "outcome"), lines=_lines, empty="There is nothing to rescue: all tasks run."
)
RESCUE_PLAN, RESCUE_RESULT = plan_and_result(
    "rescue",
    "What would heal the connector.",
    "What was done to heal the connector.",
    row=RescueRow,
    summary=RescueSummary,
    data=RescueData,
    text=_TEXT,
    result={"data": RescueResultData},
)


@dataclass(slots=True)
class RescueOutput:
    """The files and fenced ids that steps leave behind, even failed ones."""

    fence: FencePart | UnsetType = UNSET
    backup: str | UnsetType | None = UNSET


def show_rescue(app: App, plan: RescuePlan) -> Report:
    """Report the steps to come, and what an earlier run has done."""
    outcomes = {step: ("planned", describe_step(plan, step)) for step in plan.steps}
    problems = [*_earlier(plan), *(plan.fence.problems if plan.fence else ())]
    return _report(app, RESCUE_PLAN, plan, outcomes, data=_data(app, plan), problems=problems)


def result_report(app: App, plan: RescuePlan, progress: Progress[str], *, output: RescueOutput) -> Report:
    """Report the outcome of every step."""
    outcomes = {step: ("planned", describe_step(plan, step)) for step in plan.steps}
    outcomes |= {step: ("done", detail) for step, detail in progress.done.items()}
    problems, error = _earlier(plan), progress.error
    if progress.failed is not None:
        outcomes[progress.failed] = ("failed", describe_step(plan, progress.failed))
    if error is not None:
        during = f"{progress.failed}: " if progress.failed else ""
        problems.append(Problem(error.code, during + error.message, error.hint))
        problems.append(Problem(codes.RESCUE_AGAIN, "the steps after it were not done", codes.RESCUE_AGAIN.next))
    problems += progress.problems
    data = RescueResultData(**structs.asdict(_data(app, plan)), fence=output.fence, backup=output.backup)
    report = _report(app, RESCUE_RESULT, plan, outcomes, data=data, problems=problems)
    return replace(report, exit_code=progress.exit_code(touched=bool(progress.done)))


def _earlier(plan: RescuePlan) -> list[Problem]:
    """Return the problem that an earlier run was interrupted, if there is still something to do."""
    begun = plan.state.begun
    if begun is None or not plan.steps:
        return []
    message = (
        f"a rescue of {plan.connector} was begun at {rfc3339(begun.began_ms)} and not finished; "
        f"done then: {', '.join(begun.done) or 'nothing'}"
    )
    return [Problem(codes.RESCUE_UNFINISHED, message)]


def _rows(plan: RescuePlan, outcomes: Mapping[str, tuple[str, str]]) -> Sequence[RescueRow]:
    """Return the steps in order, including an earlier run's; the numbers are the same in plan and result."""
    before = plan.state.begun.done if plan.state.begun and plan.steps else {}
    known = {**{step: ("done_before", detail) for step, detail in before.items()}, **outcomes}
    steps = [step for step in STEPS if step in known]
    return [
        RescueRow(step=number, action=step, detail=known[step][1], outcome=known[step][0])
        for number, step in enumerate(steps, start=1)
    ]


def _report(
    app: App,
    kind: Kind,
    plan: RescuePlan,
    outcomes: Mapping[str, tuple[str, str]],
    *,
    data: RescueData,
    problems: Sequence[Problem],
) -> Report:
    return Report(
        kind=kind,
        rows=_rows(plan, outcomes),
        summary=RescueSummary(connector=plan.connector, verdict=plan.verdict.value, tasks=len(plan.state.tasks)),
        data=data,
        target={"kafka_cluster_id": plan.state.scene.cluster_id, "group_id": app.target.group_id},
        problems=problems,
    )


def _data(app: App, plan: RescuePlan) -> RescueData:
    config = plan.state.scene.connector.config or {}
    policy = override_policy([worker.properties.values for worker in app.target.worker_configs])
    cure = {name: value for name, value in cure_of(policy).items() if plan.steps and str(config.get(name)) != value}
    return RescueData(seen=plan.state.diagnosis.seen, cure=cure, journal=str(plan.state.journal.path))
