"""The steps of `rescue`, each with a timeout of its own, each safe to repeat after a kill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.holders import connector_statuses
from eosctl.core.ids import ProducerId, TransactionalId, task_transactional_ids
from eosctl.core.transactions import ROUND_S, KafkaFault, TransactionDescription
from eosctl.core.wording import counted
from eosctl.deadline import Deadline, Event
from eosctl.errors import EosctlError, ExitCode, InterruptedByUserError
from eosctl.fence.plan import apply_fence
from eosctl.fence.rows import fence_part
from eosctl.group.absent import leader_worker
from eosctl.plan import Plan
from eosctl.report import Json, Report
from eosctl.rescue.plan import (
    FENCE,
    RESTART,
    WAIT,
    WATCH,
    WRITE,
    IdStates,
    RescuePlan,
    describe_step,
    plan_rescue,
    recorded_count,
    require_unchanged,
    unfinished_rescue,
)
from eosctl.rescue.rows import RescueOutput, result_report, show_rescue
from eosctl.state.journal import Note, Step, Work, carry_out
from eosctl.task_counts.guards import write_record
from eosctl.task_counts.write import differs_problem

_STILL_S = 5.0  # Connect's round fences one id a second and coordinator
_POLL_S = 0.5


def prepare_rescue(app: App, connector: str) -> Plan:
    """Prepare the plan to heal a connector; raise as `plan_rescue`."""
    plan = plan_rescue(app, connector)
    apply = partial(apply_rescue, app, plan) if plan.steps else None
    return Plan(partial(show_rescue, app, plan), f"Rescue {connector}?", apply, app.target)


def apply_rescue(app: App, plan: RescuePlan) -> Report:
    """Run the steps in order until one fails; Ctrl-C ends it too, with the same report.

    Raises StalePlanError if the connector has changed, RefusedError while another eosctl rescues it.
    """
    output = RescueOutput()
    work = Work(
        steps=lambda: [_step(app, plan, name, output) for name in plan.steps],
        journal=plan.state.journal,
        subject=f"connector {plan.connector}",
        recheck=lambda: require_unchanged(app.with_whole_timeout(), plan),
        begin=lambda: Note("begin", {"connector": plan.connector, "commit_offset": _commit_offset(plan)}),
    )
    return result_report(app, plan, carry_out(work), output=output)


def _commit_offset(plan: RescuePlan) -> int | None:
    return plan.state.scene.connector.commit_offset


def _step(app: App, plan: RescuePlan, name: str, output: RescueOutput) -> Step[str]:
    """Return one step, with the whole timeout; record in `output` what the step leaves behind, even if it fails."""

    def before() -> Note:
        app.on_event(Event(f"{name}: {describe_step(plan, name)}"))
        facts = _BEFORE[name](app.with_whole_timeout(), plan) if name in _BEFORE else {}
        return Note("start", {"step": name, **facts})

    return Step(
        name,
        run=lambda: _RUN[name](app.with_whole_timeout(), plan, output),
        before=before,
        after=lambda detail: Note("done", {"step": name, "detail": detail}),
    )


def _wait(app: App, plan: RescuePlan, _output: RescueOutput) -> str:
    """Wait until no fencing round touches an id any more: it would fence tasks that have just started."""
    began_s = app.clock.monotonic_s()
    age_s = app.clock.now_s() - plan.state.scene.committed_ms / 1000
    left_s = min(max(0.0, ROUND_S - age_s), ROUND_S)
    patient_app = replace(app, deadline=Deadline.after(2 * ROUND_S + app.deadline.timeout_s, app.clock))
    patient_app.deadline.sleep(left_s)
    ids = plan.fence.wanted() if plan.fence else []
    ids_app = plan.state.app_of_ids(patient_app)
    states = _id_states(ids_app, ids)
    while True:
        patient_app.deadline.sleep(_STILL_S)
        now = _id_states(ids_app, ids)
        if now == states:
            return f"waited {app.clock.monotonic_s() - began_s:.0f} s: no id was touched in the last {_STILL_S:g} s"
        patient_app.deadline.check("waiting for the leader's fencing round to end")
        states = now


def _id_states(app: App, ids: Sequence[TransactionalId]) -> IdStates:
    """Return the state of each id; raises EosctlError for one that its coordinator does not report."""
    with app.transactions() as admin:
        described = admin.describe_transactions(ids)
    return {transactional_id: _epoch(transactional_id, described[transactional_id]) for transactional_id in ids}


def _epoch(
    transactional_id: TransactionalId, state: TransactionDescription | KafkaFault
) -> tuple[ProducerId, int] | None:
    if isinstance(state, TransactionDescription):
        return state.producer_id, state.producer_epoch
    if not state.is_unknown_id:
        raise EosctlError(f"the state of {transactional_id} is not known: {state}")
    return None


def _fence(app: App, plan: RescuePlan, output: RescueOutput) -> str:
    assert plan.fence is not None  # noqa: S101 - only planned with it
    result = apply_fence(app, plan.fence)
    output.fence = fence_part(result)
    if result.exit_code is ExitCode.INTERRUPTED:
        raise InterruptedByUserError("interrupted while fencing; no record was written")
    if result.exit_code is not ExitCode.OK:
        errors = "; ".join(problem.message for problem in result.problems if problem.severity == "error")
        raise EosctlError(f"not every recorded id is fenced: {errors}", hint="See `eosctl fence --connector`.")
    counts = output.fence.summary.counts
    return ", ".join(f"{counted(count, 'id')} {name}" for name, count in counts.items()) or "no id to fence"


def _still_the_same(app: App, plan: RescuePlan) -> Mapping[str, Json]:
    require_unchanged(app, plan)  # a record for another task set would be a false one
    return {}


def _write(app: App, plan: RescuePlan, output: RescueOutput) -> str:
    count = recorded_count(plan)
    written = write_record(app.with_whole_timeout(), plan.state.scene, count, name="rescue")
    output.backup = written.backup
    if written.outcome != "written":
        reason = written.failure.message if written.failure else "something else was written at the same time"
        error = InterruptedByUserError if written.interrupted else EosctlError
        hint = differs_problem(plan.connector).hint if written.outcome == "differs" else None
        raise error(f"the task-count record is {written.outcome.replace('_', ' ')}: {reason}", hint=hint)
    if written.interrupted:
        raise InterruptedByUserError("interrupted when the record was written")
    assert written.now is not None  # noqa: S101 - what was written was read
    return f"the task-count record {count} is at offset {written.now.record_offset}, after the task commit"


def _ids_before(app: App, plan: RescuePlan) -> Mapping[str, Json]:
    """Return the state of the failed tasks' ids, by which `_watch` detects the tasks that have taken theirs."""
    failed = plan.state.failed()
    ids = task_transactional_ids(app.target.require_group_id(), plan.connector, max(failed) + 1)
    before = _id_states(plan.state.app_of_ids(app), [ids[task] for task in failed])
    return {"restarted": {each: None if epoch is None else list(epoch) for each, epoch in before.items()}}


def _restart(app: App, plan: RescuePlan, _output: RescueOutput) -> str:
    """Have the leader restart the failed tasks."""
    leader_worker(app).restart(plan.connector, only_failed=True)
    return counted(len(plan.state.failed()), "failed task")


def _watch(app: App, plan: RescuePlan, _output: RescueOutput) -> str:
    """Wait until all tasks are RUNNING in REST and have taken their ids: REST reports RUNNING too early."""
    begun = unfinished_rescue(plan.state.journal, plan.state.scene.connector)
    before = (begun.restarted if begun else None) or {}
    began_s = app.clock.monotonic_s()
    for _ in app.deadline.rounds(_POLL_S, least_s=_POLL_S):
        entry = connector_statuses(app).get(plan.connector)
        tasks = entry.tasks if entry is not None else ()
        failed = [task for task in tasks if task.state == "FAILED"]
        if tasks and all(task.state == "RUNNING" for task in tasks):
            waiting = _waiting_for_ids(plan.state.app_of_ids(app), before)
            if not waiting:
                return f"RUNNING: {counted(len(tasks), 'task')}, seen after {app.clock.monotonic_s() - began_s:.1f} s"
        else:
            waiting = f"{len(failed)} of {counted(len(tasks), 'task')} FAILED"
    raise app.deadline.passed(f"waiting for the tasks to run: {waiting}")


def _waiting_for_ids(app: App, before: IdStates) -> str:
    """Return how many tasks have not taken their ids since `before`, or why that is not known; empty if all have."""
    try:
        now = _id_states(app, list(before))
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return exc.message
    idle = [each for each, epoch in now.items() if epoch is None or epoch == before[each]]
    return f"{counted(len(idle), 'task')} without the id that is theirs" if idle else ""


_BEFORE: Mapping[str, Callable[[App, RescuePlan], Mapping[str, Json]]] = {
    WRITE: _still_the_same,
    RESTART: _ids_before,
}
"""The observations just before a step, for the entry of its beginning."""

_RUN: Mapping[str, Callable[[App, RescuePlan, RescueOutput], str]] = {
    WAIT: _wait,
    FENCE: _fence,
    WRITE: _write,
    RESTART: _restart,
    WATCH: _watch,
}
