"""`task-counts write`: plan, fence the recorded ids, keep a backup, write the record, read it back.

The most dangerous write there is: a record that is newer than the newest task commit tells the leader that nobody is
left to fence. So the ids that it would have fenced are fenced here first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from msgspec import Struct, structs
from msgspec.structs import asdict, replace

from eosctl.app import App
from eosctl.connectors.dedicated import cluster_of_ids
from eosctl.core.allowances import Waiver
from eosctl.core.configs.fold import ConnectorState
from eosctl.core.configs.records import task_count_key
from eosctl.core.configs.view import stop_and_resume
from eosctl.core.wording import counted
from eosctl.errors import ExitCode, StalePlanError
from eosctl.fence.plan import FencePlan, apply_fence, plan_recorded
from eosctl.fence.rows import fence_part
from eosctl.foreign import arguments, shell_word
from eosctl.output.rows import Kind
from eosctl.plan import Plan
from eosctl.report import Problem, Report
from eosctl.state.journal import Progress, Step, Work, carry_out
from eosctl.task_counts import codes
from eosctl.task_counts.guards import (
    RecordWrite,
    Scene,
    is_recorded,
    observe_for_write,
    refuse_implausible,
    refuse_left_out,
    refuse_running_round,
    write_record,
)
from eosctl.task_counts.rules import fencing_decision
from eosctl.task_counts.write_rows import (
    TASK_COUNTS_WRITE_PLAN,
    TASK_COUNTS_WRITE_RESULT,
    CountPlanData,
    CountWriteRow,
    RecordAfter,
    RecordBefore,
    WriteData,
    WriteResultData,
    WriteSummary,
    decisions,
    with_record,
)

_Record = TypeVar("_Record", RecordBefore, RecordAfter)


class WriteRequest(Struct, frozen=True):
    """The record to write; `fence` False leaves the ids of the old record as they are."""

    connector: str
    count: int
    fence: bool = True


class TaskCountWritePlan(Struct, frozen=True):
    """The record and ids to write and fence, and the facts behind that decision."""

    request: WriteRequest
    scene: Scene
    fence: FencePlan | None
    problems: tuple[Problem, ...] = ()

    @property
    def changes_something(self) -> bool:
        """True if the record, or its order, would change."""
        return not is_recorded(self.scene.connector, self.request.count)


def plan_write(app: App, request: WriteRequest) -> TaskCountWritePlan:
    """Read topic, group and coordinators, and plan the write.

    Raises NotFoundError for an unknown connector; RefusedError if its tasks write to a Kafka cluster that eosctl can't
    reach, while it has tasks, while the group is neither Stable nor Empty, while a fencing round of the leader is seen,
    and for a record that would leave out ids that are alive. If the record already has this count, there is nothing to
    do, whether tasks run or not.
    """
    scene = observe_for_write(app, request.connector, count=request.count)
    at = cluster_of_ids(app, request.connector, scene.connector.config)
    there = app if at is None else at.app(app)
    fence = None
    if is_recorded(scene.connector, request.count):
        refuse_left_out(app, request.connector, request.count, fenced=(), there=there)
        return TaskCountWritePlan(request, scene, fence)
    refuse_running_round(app, scene, there=there)
    if request.fence and scene.connector.task_count_record:
        refuse_implausible(scene.connector)
        fence = plan_recorded(app, scene.connector)
    refuse_left_out(app, request.connector, request.count, fenced=fence.wanted() if fence else (), there=there)
    problems = [*_not_fenced(request, scene), *(fence.problems if fence else ())]
    return TaskCountWritePlan(request, scene, fence, tuple(problems))


def _not_fenced(request: WriteRequest, scene: Scene) -> list[Problem]:
    recorded = scene.connector.task_count_record
    if request.fence or not recorded:
        return []
    due = fencing_decision(scene.connector).fence_count > 0
    lost = "; fencing is due, and with this record the leader takes it as done" if due else ""
    stay = counted(recorded, "recorded id stays as it is", "recorded ids stay as they are")
    return [
        Problem(
            codes.NOT_FENCED,
            f"{Waiver.NO_FENCE}: {stay}{lost}",
            hint=f"eosctl fence --connector {shell_word(request.connector)} --tasks {recorded}",
        )
    ]


def _connect_can(request: WriteRequest, scene: Scene) -> list[Problem]:
    """Suggest Connect's own way: for a stopped connector the leader fences and writes a record on request."""
    due = fencing_decision(scene.connector)
    if not due.fence_count or scene.connector.target_state != "STOPPED" or scene.leader_url is None:
        return []
    return [
        Problem(
            codes.CONNECT_CAN,
            f"Connect can do this itself: its leader ({scene.leader_url}) would fence "
            f"{counted(due.fence_count, 'recorded id')} and write a record of {due.writes}",
            hint=f"eosctl fence --connector {shell_word(request.connector)} --via connect",
        )
    ]


def prepare_write(app: App, request: WriteRequest) -> Plan:
    """Plan to write the record; raise as `plan_write`."""
    plan = plan_write(app, request)
    question = f"Write a task-count record of {request.count} for {request.connector}?"
    apply = partial(apply_write, app, plan) if plan.changes_something else None
    return Plan(partial(show_write, app, plan), question, apply, app.target)


def show_write(app: App, plan: TaskCountWritePlan) -> Report:
    """Report the plan: the record before and after, and the leader's decision with each."""
    after = with_record(plan.scene.connector, plan.request.count)
    outcome = "would_write" if plan.changes_something else "unchanged"
    problems = (*plan.problems, *_connect_can(plan.request, plan.scene))
    undo = undo_command(plan.scene, plan.request) if plan.changes_something else None
    data = CountPlanData(**asdict(_data(app, plan)), undo=undo)
    return _report(app, TASK_COUNTS_WRITE_PLAN, plan, after, outcome, problems, data=data)


@dataclass(slots=True)
class _WriteProgress:
    """The progress of the steps."""

    fenced: Report | None = None
    written: RecordWrite | None = None

    @property
    def fencing_failed(self) -> bool:
        """True if an id is not fenced, so that nothing may be written."""
        return self.fenced is not None and self.fenced.exit_code is not ExitCode.OK


def apply_write(app: App, plan: TaskCountWritePlan) -> Report:
    """Fence, write and read back if the plan still holds; raise StalePlanError or RefusedError before that.

    After Ctrl-C and errors the report says what was done until then. The deadline starts anew: the time in which a
    person read the plan does not count.
    """
    app, done = app.with_whole_timeout(), _WriteProgress()
    progress = carry_out(Work(lambda: _steps(app, plan, done), recheck=lambda: _recheck(app, plan.scene)))
    return _result(app, plan, done, progress)


def _steps(app: App, plan: TaskCountWritePlan, done: _WriteProgress) -> Iterator[Step[None]]:
    fence = plan.fence

    def write() -> None:
        if fence is not None:
            _recheck(app, plan.scene)  # fencing many ids takes a while
        done.written = write_record(app, plan.scene, plan.request.count, name="task-counts-write")

    if fence is not None:

        def fence_ids() -> None:
            done.fenced = apply_fence(app, fence)

        yield Step("fence", fence_ids)
    if not done.fencing_failed:
        yield Step("write", write)


def _result(app: App, plan: TaskCountWritePlan, done: _WriteProgress, progress: Progress[None]) -> Report:
    fenced, written = done.fenced, done.written
    after: ConnectorState | None = plan.scene.connector
    outcome, data = "not_written", WriteResultData(**asdict(_data(app, plan, fenced)))
    if plan.fence is not None and fenced is None:
        data = structs.replace(data, fenced_before=False)
    problems, code = list(plan.problems), progress.exit_code(touched=fenced is not None)
    if progress.error is not None:
        problems.append(Problem.of(progress.error))
    if fenced is not None and done.fencing_failed:
        problems += [problem for problem in fenced.problems if problem.severity == "error"]
        problems.append(Problem(codes.NOT_WRITTEN, "not every recorded id is fenced, so the record was not written"))
        code = fenced.exit_code
    if written is not None:
        after, outcome = written.now, written.outcome
        data = structs.replace(data, backup=written.backup, undo=undo_command(plan.scene, plan.request))
        code = ExitCode.OK if written.outcome == "written" else ExitCode.PARTIAL
        if written.outcome == "differs":
            problems.append(differs_problem(plan.scene.connector.name))
        if written.failure is not None:
            problems.append(Problem.of(written.failure))
            code = ExitCode.INTERRUPTED if written.interrupted else code
    report = _report(app, TASK_COUNTS_WRITE_RESULT, plan, after, outcome, problems, data=data)
    return replace(report, exit_code=code)


def differs_problem(connector: str) -> Problem:
    """Report that a leader may have written between the last look and the commit, which can't be prevented."""
    show = f"eosctl task-counts show {arguments(connector)}"
    return Problem(
        codes.RECORD_DIFFERS,
        f"something else was written to the config topic at the same moment as the record of {connector}",
        hint=f"See what there is now: `{show}`. {stop_and_resume(connector)}: the leader then writes its own.",
    )


def _recheck(app: App, then: Scene) -> None:
    now = observe_for_write(app, then.connector.name)
    if then.cluster_id != now.cluster_id:
        raise StalePlanError(f"the plan was made for cluster {then.cluster_id}, this is {now.cluster_id}")
    if then.connector != now.connector or then.group_state != now.group_state:
        raise StalePlanError(
            f"connector {then.connector.name} or its group changed since the plan was made; no record was written",
            hint="Plan again.",
        )


def undo_command(scene: Scene, request: WriteRequest) -> str | None:
    """Return the command that writes the old count again; None without a record, as that can't be written."""
    count = scene.connector.task_count_record
    if count is None:
        return None
    return f"eosctl task-counts write --count {count} {arguments(request.connector)}"


def _report(
    app: App,
    kind: Kind,
    plan: TaskCountWritePlan,
    after: ConnectorState | None,
    outcome: str,
    problems: Sequence[Problem],
    *,
    data: WriteData,
) -> Report:
    before = plan.scene.connector
    row = CountWriteRow(
        connector=before.name,
        key=task_count_key(before.name).decode(),
        before=_record(before, RecordBefore),
        after=None if after is None else _record(after, RecordAfter),
        decision_before=decisions(before),
        decision_after=None if after is None else decisions(after),
        outcome=outcome,
    )
    return Report(
        kind=kind,
        rows=[row],
        summary=WriteSummary(fences=len(plan.fence.wanted()) if plan.fence else 0, outcome=outcome),
        data=data,
        target={"kafka_cluster_id": plan.scene.cluster_id, "group_id": app.target.group_id},
        problems=problems,
    )


def _data(app: App, plan: TaskCountWritePlan, fenced: Report | None = None) -> WriteData:
    shown = fenced or (plan.fence.report(app) if plan.fence else None)
    return WriteData(
        fenced_before=plan.request.fence and (fenced is None or fenced.exit_code is ExitCode.OK),
        overrides=[] if plan.request.fence else [Waiver.NO_FENCE.word],
        fence=None if shown is None else fence_part(shown),
    )


def _record(connector: ConnectorState, record: type[_Record]) -> _Record | None:
    if connector.task_count_record is None:
        return None
    return record(task_count=connector.task_count_record, offset=connector.record_offset)
