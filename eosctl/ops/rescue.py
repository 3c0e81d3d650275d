"""rescue: does in seconds what Connect's own fencing round can't finish in its 90, and restarts the failed tasks.

Only for that one case, which `core.rescue` recognises. Every step can be repeated, so that running the command again
after an interruption goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from eosctl.connect.worker_url import parse_worker_url
from eosctl.core.connect_group import STABLE
from eosctl.core.ids import task_transactional_ids
from eosctl.core.rescue import CURE, ROUND_S, Diagnosis, SeenTask, Verdict, diagnose
from eosctl.core.transactions import KafkaFault, TransactionDescription
from eosctl.core.wording import counted
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, ExitCode, InterruptedByUserError, RefusedError, StalePlanError
from eosctl.events import Event
from eosctl.ops.app import App
from eosctl.ops.fence import FencePlan, apply_fence, plan_fence
from eosctl.ops.fence_gather import FenceRequest
from eosctl.ops.fence_routes import leader_worker
from eosctl.ops.task_count_record import Scene, find_connector, newest_record, with_whole_timeout, write_record
from eosctl.ops.task_counts import read_config_topic
from eosctl.ops.workers import read_group, running_tasks
from eosctl.report import Problem, Report, Row

_STILL_S = 5.0  # Connect's round fences one id a second and coordinator
_POLL_S = 0.5

Touched = Mapping[str, tuple[int, int] | None]
"""Transactional id -> producer id and epoch; None for an id that no coordinator knows."""


@dataclass(frozen=True, slots=True)
class Patient:
    """The connector, its tasks, and what is wrong with it.

    `round_over` tells whether all tasks are on the leader: then they failed with the round, which is over. A follower
    gives up after 30 s, while the leader goes on. `committed_ms` is when the newest task set was written, or -1.
    """

    scene: Scene
    tasks: Sequence[SeenTask]
    diagnosis: Diagnosis
    round_over: bool
    committed_ms: int


@dataclass(frozen=True, slots=True)
class RescuePlan:
    """The steps that heal the patient; none for a healthy one."""

    connector: str
    patient: Patient
    fence: FencePlan | None = None

    @property
    def verdict(self) -> Verdict:
        """What the diagnosis came to."""
        return self.patient.diagnosis.verdict


def plan_rescue(app: App, connector: str) -> RescuePlan:
    """Examines the connector; raises RefusedError, with what was seen, where this is not a case for rescue."""
    patient = _examine(app, connector)
    if patient.diagnosis.verdict is Verdict.OTHER:
        raise RefusedError(
            f"this is no case for rescue: {connector} has {patient.diagnosis.seen}",
            hint="rescue is for a connector all of whose tasks are FAILED in zombie fencing. If some still wait for a "
            f"round (REST calls them RUNNING), let it end; or stop the connector, wait {ROUND_S:g} s, and use "
            f"`eosctl task-counts write {connector} --count 0`, which fences too. Else read the tasks' traces.",
        )
    fence = plan_fence(app, FenceRequest(connector=connector)) if patient.diagnosis.verdict is Verdict.FENCE else None
    return RescuePlan(connector, patient, fence)


def _examine(app: App, name: str) -> Patient:
    group, _cluster_id = read_group(app)
    if group.state != STABLE:
        raise RefusedError(
            f"the group {group.group_id} is {group.state}, so no task can be restarted; nothing was written",
            hint="Start its workers, or wait for the rebalance to end, and run again.",
        )
    with app.topics() as store:
        topic = read_config_topic(app, store)
    connector = find_connector(topic, name)
    statuses = running_tasks(app).get(name, ())
    tasks = [SeenTask(each.task, each.state, each.worker_id, each.trace) for each in statuses]
    leader = parse_worker_url(group.leader_url).text if group.leader_url else ""
    commit = next((record for record in topic.read.records if record.offset == connector.commit_offset), None)
    return Patient(
        scene=Scene(topic.cluster_id, connector, newest_record(topic, connector), group.state, group.leader_url),
        tasks=tasks,
        diagnosis=diagnose(connector, tasks),
        round_over=all(leader.partition("://")[2] == task.worker for task in tasks),
        committed_ms=-1 if commit is None else commit.timestamp_ms,
    )


@dataclass(slots=True)
class _Step:
    """One step: `run` returns what to say of it when it is done, and raises what kept it from being done."""

    action: str
    detail: str
    run: Callable[[], str]
    outcome: str = "planned"

    def as_row(self, number: int) -> Row:
        """The row of rescue-plan and rescue-result."""
        return {"step": number, "action": self.action, "detail": self.detail, "outcome": self.outcome}


def show_rescue(app: App, plan: RescuePlan) -> Report:
    """The steps to come."""
    report = _report(app, "rescue-plan", plan, _steps(app, plan, {}), data={})
    return replace(report, problems=plan.fence.problems if plan.fence else ())


def apply_rescue(app: App, plan: RescuePlan) -> Report:
    """Runs the steps in order and ends at the first that fails; raises StalePlanError if the connector has changed."""
    _recheck(with_whole_timeout(app), plan)
    data: dict[str, object] = {}
    steps = _steps(app, plan, data)
    problems: list[Problem] = []
    code = ExitCode.OK
    for step in steps:
        app.on_event(Event(f"{step.action}: {step.detail}"))
        try:
            step.detail, step.outcome = step.run(), "done"
        except EosctlError as error:
            step.outcome = "failed"
            problems.append(Problem(error.code, f"{step.action}: {error.message}", error.hint))
            problems.append(Problem("rescue_again", "the steps after it were not done", "Run the same command again."))
            partial = any(each.outcome == "done" for each in steps) and error.exit_code is not ExitCode.INTERRUPTED
            code = ExitCode.PARTIAL if partial else error.exit_code
            break
    report = _report(app, "rescue-result", plan, steps, data=data)
    return replace(report, problems=problems, exit_code=code)


def _recheck(app: App, plan: RescuePlan) -> None:
    now, then = _examine(app, plan.connector), plan.patient
    if (now.scene, now.diagnosis.verdict) != (then.scene, then.diagnosis.verdict):
        raise StalePlanError(
            f"since the plan was made, {plan.connector} changed: it has {now.diagnosis.seen}; no record was written",
            hint="Run again to see what there is to do now.",
        )


def _steps(app: App, plan: RescuePlan, data: dict[str, object]) -> list[_Step]:
    """The steps of the plan, each with a deadline of its own; `data` takes what they leave behind."""
    if plan.verdict is Verdict.HEALTHY:
        return []
    patient, steps = plan.patient, []
    failed = [task.task for task in patient.tasks if task.state == "FAILED"]
    fence = plan.fence
    if fence is not None:
        count = patient.scene.connector.task_count or 0
        if not patient.round_over:
            doing = f"until no round runs on the leader ({ROUND_S:g} s after the task commit, and ids at rest)"
            steps.append(_Step("wait", doing, lambda: _await_round_end(app, plan)))
        steps.append(_Step("fence", counted(len(fence.wanted()), "recorded id"), lambda: _fence(app, fence, data)))
        steps.append(_Step("write", f"the task-count record {count}", lambda: _write(app, plan, count, data)))
    before: dict[str, tuple[int, int] | None] = {}
    steps.append(_Step("restart", counted(len(failed), "failed task"), lambda: _restart(app, plan, failed, before)))
    steps.append(
        _Step("watch", "until each task runs under its own id", lambda: _watch(with_whole_timeout(app), plan, before))
    )
    return steps


def _await_round_end(app: App, plan: RescuePlan) -> str:
    """Waits until a round can't touch an id any more: it would fence tasks that have just started."""
    assert plan.fence is not None  # noqa: S101 - only planned with it
    began_s = app.clock.monotonic_s()
    age_s = app.clock.now_s() - plan.patient.committed_ms / 1000
    left_s = min(max(0.0, ROUND_S - age_s), ROUND_S)
    patient_app = replace(app, deadline=Deadline.after(2 * ROUND_S + app.deadline.timeout_s, app.clock))
    patient_app.deadline.sleep(left_s)
    ids = plan.fence.wanted()
    touched = _touched(patient_app, ids)
    while True:
        patient_app.deadline.sleep(_STILL_S)
        now = _touched(patient_app, ids)
        if now == touched:
            return f"waited {app.clock.monotonic_s() - began_s:.0f} s: no id was touched in the last {_STILL_S:g} s"
        patient_app.deadline.check("waiting for the leader's fencing round to end")
        touched = now


def _touched(app: App, ids: Sequence[str]) -> Touched:
    with app.transactions() as admin:
        described = admin.describe_transactions(ids)
    return {transactional_id: _epoch(described.get(transactional_id)) for transactional_id in ids}


def _epoch(state: TransactionDescription | KafkaFault | None) -> tuple[int, int] | None:
    return (state.producer_id, state.producer_epoch) if isinstance(state, TransactionDescription) else None


def _fence(app: App, plan: FencePlan, data: dict[str, object]) -> str:
    result = apply_fence(with_whole_timeout(app), plan)
    data["fence"] = {"rows": list(result.rows), "summary": dict(result.summary)}
    if result.exit_code is ExitCode.INTERRUPTED:
        raise InterruptedByUserError("interrupted while fencing; no record was written")
    if result.exit_code is not ExitCode.OK:
        errors = "; ".join(problem.message for problem in result.problems if problem.severity == "error")
        raise EosctlError(f"not every recorded id is fenced: {errors}", hint="See `eosctl fence --connector`.")
    counts = result.summary["counts"]
    assert isinstance(counts, dict)  # noqa: S101 - fence_report makes it
    return ", ".join(f"{counted(count, 'id')} {name}" for name, count in counts.items()) or "no id to fence"


def _write(app: App, plan: RescuePlan, count: int, data: dict[str, object]) -> str:
    _recheck(with_whole_timeout(app), plan)  # a record for another task set would be a false one
    written = write_record(with_whole_timeout(app), plan.patient.scene, count, name="rescue")
    data["backup"] = written.backup
    if written.outcome != "written":
        reason = written.failure.message if written.failure else "something else was written at the same time"
        raise EosctlError(f"the task-count record is {written.outcome}: {reason}")
    assert written.now is not None  # noqa: S101 - what was written was read
    return f"the task-count record {count} is at offset {written.now.record_offset}, after the task commit"


def _restart(app: App, plan: RescuePlan, failed: Sequence[int], before: dict[str, tuple[int, int] | None]) -> str:
    """Asks the leader to restart the failed tasks; `before` takes the state of their ids at that moment."""
    app = with_whole_timeout(app)
    ids = task_transactional_ids(app.target.require_group_id(), plan.connector, max(failed) + 1)
    before.update(_touched(app, [ids[task] for task in failed]))
    leader_worker(app).restart(plan.connector, only_failed=True)
    return counted(len(failed), "failed task")


def _watch(app: App, plan: RescuePlan, before: Touched) -> str:
    """Waits for tasks that REST calls RUNNING and that have taken their ids: RUNNING alone is said too early."""
    began_s = app.clock.monotonic_s()
    while True:
        tasks = running_tasks(app).get(plan.connector, ())
        failed = [task for task in tasks if task.state == "FAILED"]
        if tasks and all(task.state == "RUNNING" for task in tasks):
            now = _touched(app, list(before))
            idle = [each for each, epoch in now.items() if epoch is None or epoch == before[each]]
            if not idle:
                return f"RUNNING: {counted(len(tasks), 'task')}, seen after {app.clock.monotonic_s() - began_s:.1f} s"
            waiting = f"{counted(len(idle), 'task')} without the id that is theirs"
        else:
            waiting = f"{len(failed)} of {counted(len(tasks), 'task')} FAILED"
        app.deadline.check(f"waiting for the tasks to run: {waiting}")
        app.deadline.sleep(_POLL_S)


def _report(app: App, kind: str, plan: RescuePlan, steps: Sequence[_Step], *, data: Mapping[str, object]) -> Report:
    config = plan.patient.scene.connector.config or {}
    cure = {name: value for name, value in CURE.items() if steps and str(config.get(name)) != value}
    return Report(
        kind=kind,
        rows=[step.as_row(number) for number, step in enumerate(steps, start=1)],
        summary={"connector": plan.connector, "verdict": plan.verdict.value, "tasks": len(plan.patient.tasks)},
        data={"seen": plan.patient.diagnosis.seen, "cure": cure, **data},
        target={"kafka_cluster_id": plan.patient.scene.cluster_id, "group_id": app.target.group_id},
    )
