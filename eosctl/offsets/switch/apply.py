"""The steps of `offsets switch`, each safe to repeat: after a kill the next run reads the state and goes on from there.

A connector that would read its source anew is not resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from eosctl.app import App
from eosctl.connectors.dedicated import TOPIC_PROPERTY
from eosctl.connectors.look import PAUSED, RUNNING, ConnectorNow, describe_store, look_at, topic_of
from eosctl.connectors.waiting import await_connector, await_state, let_restart_show
from eosctl.core.offsets.names import GLOBAL
from eosctl.core.offsets.views import live
from eosctl.core.wording import counted
from eosctl.errors import EosctlError, RefusedError, StalePlanError
from eosctl.fence.connect import stop_and_fence
from eosctl.foreign import shell_word
from eosctl.offsets.apply import apply_plan
from eosctl.offsets.steps import StepDone, before_the_start, lost_partitions, other_keys_problem, pinned_step
from eosctl.offsets.stores.gather import gather_topics
from eosctl.offsets.switch.plan import (
    CHECK,
    CONFIGURE,
    MERGE,
    RESTART,
    RESUME,
    STOP,
    WATCH,
    SwitchPlan,
    SwitchRequest,
    plan_switch,
    plan_switch_merge,
)
from eosctl.offsets.switch.report import result_report, show_switch
from eosctl.offsets.switch.rights import changed_config
from eosctl.offsets.write_rows import ResultData, ResultSummary
from eosctl.offsets.writes import OffsetWritePlan
from eosctl.plan import Plan
from eosctl.ports import ConnectWorker
from eosctl.report import Report
from eosctl.state.journal import Note, Step, Work, carry_out

_MERGE_ROUNDS = 5
_GOES_ON = "Run the same command again: it goes on from here. --timeout is per step."


def prepare_switch(app: App, request: SwitchRequest) -> Plan:
    """Return the plan to move a connector's offsets; raise as `plan_switch`."""
    plan = plan_switch(app, request)
    question = f"Stop {request.connector} and move its offsets?"
    apply = partial(apply_switch, app, plan) if plan.steps or plan.begun else None
    return Plan(partial(show_switch, app, plan), question, apply, app.target)


def apply_switch(app: App, plan: SwitchPlan) -> Report:
    """Run the steps; stop at the first that fails (exit 7) or at Ctrl-C, and report the steps done before.

    Raises StalePlanError if the connector is no longer as planned, RefusedError while another eosctl moves it.
    """
    work = Work(
        steps=lambda: [_step(app, plan, name) for name in plan.steps],
        journal=plan.journal,
        subject=f"the offsets of connector {plan.connector}",
        recheck=lambda: _require_unchanged(app.with_whole_timeout(), plan),
        begin=lambda: _begin(plan),
    )
    return result_report(app.with_whole_timeout(), plan, carry_out(work))


def _require_unchanged(app: App, plan: SwitchPlan) -> None:
    renewed = plan_switch(app, SwitchRequest(plan.connector, plan.named(plan.target)))
    if (renewed.steps, renewed.now.config, renewed.state) != (plan.steps, plan.now.config, plan.state):
        raise StalePlanError(
            f"{plan.connector} changed since the plan was made; nothing was written", hint="Plan again."
        )


def _begin(plan: SwitchPlan) -> Note:
    facts = {"connector": plan.connector, "origin": plan.origin, "target": plan.target, "state": plan.state}
    return Note("begin", {**facts, "tasks": plan.tasks, "done": plan.done, "deletions": plan.deletions})


def _step(app: App, plan: SwitchPlan, name: str) -> Step[StepDone]:
    return pinned_step(app, name, plan.now.url, lambda pinned: _STEPS[name](pinned, plan))


def _stop(app: App, plan: SwitchPlan) -> StepDone:
    tasks = max(plan.tasks, plan.now.task_count)
    where = plan.tasks_app(app)
    return StepDone(stop_and_fence(app, plan.connector, plan.now.url, tasks=tasks, hint=_GOES_ON, where=where))


def _merge(app: App, plan: SwitchPlan) -> StepDone:
    """Compare the stopped connector's stores, copy what the target lacks, and repeat until it lacks nothing."""

    def compare() -> OffsetWritePlan:
        return plan_switch_merge(
            app, plan.connector, plan.origin, plan.target, at=plan.at, deletions=plan.deletions, settled=True
        )

    reports: list[Report] = []
    for _round in range(_MERGE_ROUNDS):
        merge = compare()
        if not merge.sends():
            return _merged(reports)
        reports.append(apply_plan(plan.offsets_app(app), merge, compare, waits=True))
        if reports[-1].exit_code:
            first = reports[-1].problems[0].message if reports[-1].problems else "the offsets are not as planned"
            raise EosctlError(f"the merge failed: {first}", hint=f"Its {_backups(reports)}")
    raise EosctlError(
        f"{describe_store(plan.origin)} got offsets of {plan.connector} again and again, though it is STOPPED",
        hint="Who writes them? Look for a worker that is in no group any more. Then run the same command again.",
    )


def _backups(reports: Sequence[Report]) -> str:
    *earlier, last = (str(report.data_of(ResultData).backup) for report in reports)
    return f"backups, to restore in this order: {', '.join([last, *earlier[::-1]])}" if earlier else f"backup: {last}"


def _merged(reports: Sequence[Report]) -> StepDone:
    """Report the offsets that all rounds wrote."""
    if not reports:
        return StepDone("the target has all of them")
    first, *later = (report.summary_of(ResultSummary).written for report in reports)
    late = f", {sum(later):,} of them committed meanwhile" if later else ""
    return StepDone(f"{counted(first + sum(later), 'offset')} written and read back{late}", merged=tuple(reports))


def _configure(app: App, plan: SwitchPlan) -> StepDone:
    """Change one property of the present config, and wait until the worker shows it."""
    worker = _worker(app, plan)
    worker.put_connector_config(plan.connector, changed_config(worker.connector_config(plan.connector), plan.target))
    await_connector(
        app,
        plan.connector,
        plan.now.url,
        lambda now: now.store(app) == plan.target,
        doing=f"waiting for the worker to show {TOPIC_PROPERTY}",
        hint=_GOES_ON,
    )
    return StepDone(f"{TOPIC_PROPERTY} {'removed' if plan.target == GLOBAL else f'= {plan.target}'}")


def _check(app: App, plan: SwitchPlan) -> StepDone:
    """Ask Connect itself: the tasks would read a source partition with null from its beginning."""
    shown = _worker(app, plan).offsets(plan.connector)
    if all(entry.get("offset") is not None for entry in shown):
        return StepDone("Connect finds an offset for every source partition that it knows")
    topic = topic_of(app, plan.target)
    store = gather_topics(plan.offsets_app(app), [topic]).stores[topic].of(plan.connector)
    keys = [key for key in store.connectors.get(plan.connector, ()) if live(store.records.get(key.raw)) is not None]
    lost, others = lost_partitions(plan.connector, shown, keys)
    if lost:
        raise RefusedError(
            f"Connect finds no offset for {counted(len(lost), 'source partition')} of {plan.connector} in "
            f"{describe_store(plan.target)}, first {lost[0].get('partition')}: they would be read from their "
            "beginning, so the connector was not resumed",
            hint=f"`eosctl offsets list --connector {shell_word(plan.connector)}` shows what is where. When the target "
            f"has them, run the same command again; `--to {plan.origin}` goes back.",
        )
    problem = other_keys_problem(others)
    return StepDone(problem.message, problems=(problem,))


def _resume(app: App, plan: SwitchPlan) -> StepDone:
    verb = "pause" if plan.state == PAUSED else "resume"
    _worker(app, plan).set_state(plan.connector, verb)
    return StepDone(f"{verb} sent")


def _watch(app: App, plan: SwitchPlan) -> StepDone:
    """Wait until connector and tasks are in their former state (see `_arrive`), and whether they commit."""
    commits = before_the_start(plan.tasks_app(app), plan.connector, topic_of(app, plan.target))
    now, outcome = _arrive(app, plan)
    if not now.tasks or plan.state != RUNNING or RESTART in plan.steps:
        return StepDone(outcome)
    return commits.watch(plan.tasks_app(app), len(now.tasks), outcome)


def _arrive(app: App, plan: SwitchPlan) -> tuple[ConnectorNow, str]:
    """Wait until connector and tasks are in their former state, and describe it; a FAILED one ends the wait.

    A stopped connector gets new tasks when it is started: one that is only paused has none until then, and one that had
    none while it ran may have none again.
    """
    now = await_state(
        app,
        plan.connector,
        plan.now.url,
        plan.state,
        least=1 if plan.state == RUNNING and plan.tasks else 0,
        doing=f"waiting for {plan.connector} to be {plan.state} with all its tasks",
        hint=_GOES_ON,
        failed=f"{plan.connector} FAILED after the switch",
        failed_hint=f"Its offsets are where they should be. Look at the worker's log; `--to {plan.origin}` goes back.",
    )
    without = "without a task as before" if plan.state == RUNNING else "no task until it is resumed"
    return now, f"{plan.state}, {counted(len(now.tasks), 'task') if now.tasks else without}"


def _restart(app: App, plan: SwitchPlan) -> StepDone:
    """Restart the tasks: below 3.9 a task with an unchanged config may keep the former topic (KAFKA-9228)."""
    commits = before_the_start(plan.tasks_app(app), plan.connector, topic_of(app, plan.target))
    _worker(app, plan).restart(plan.connector, only_failed=False)
    let_restart_show(app, plan.connector, plan.now.url, plan.state)
    now, outcome = _arrive(app, plan)
    return commits.watch(plan.tasks_app(app), len(now.tasks), outcome) if now.tasks else StepDone(outcome)


def _worker(app: App, plan: SwitchPlan) -> ConnectWorker:
    return app.worker(plan.now.url)


def _now(app: App, plan: SwitchPlan) -> ConnectorNow:
    return look_at(app, plan.connector, plan.now.url)


_STEPS: Mapping[str, Callable[[App, SwitchPlan], StepDone]] = {
    STOP: _stop,
    MERGE: _merge,
    CONFIGURE: _configure,
    CHECK: _check,
    RESUME: _resume,
    WATCH: _watch,
    RESTART: _restart,
}
