"""Carries out moves: the steps of each connector under the locks of both sides, each step in the journal.

Each step is safe to repeat: after a kill the next run looks at both sides and goes on. The connector never runs on both
sides (see `arrive`). A side that can't be asked is never taken to be at rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.look import named_cluster_id, reach_worker
from eosctl.core.configs.records import Selection
from eosctl.core.wording import counted
from eosctl.deadline import Event
from eosctl.errors import EosctlError, ExitCode, InterruptedByUserError, NotFoundError, StalePlanError
from eosctl.move import arrive, leave
from eosctl.move.journal import Direction, MoveStep
from eosctl.move.plan import MovePlan, MoveRequest, plan_move
from eosctl.move.report import MoveDone, Stays, moves_report, show_moves
from eosctl.move.rules import shown_settings
from eosctl.move.run import MoveRun, MoveStepDone
from eosctl.plan import Plan
from eosctl.report import Report
from eosctl.state.journal import Note, Progress, Step, Work, carry_out


def prepare_move(app: App, selection: Selection, request: MoveRequest, *, keep_going: bool = False) -> Plan:
    """Return the plan for the selected connectors; raise as `plan_move` for one, and for several without `keep_going`.

    Of several, sinks are left out, and connectors that have no move to go on with, or to go back from.
    """
    selection.check()
    if len(selection.connectors) == 1:
        moves: list[MovePlan | Stays] = [plan_move(app, selection.connectors[0], request)]
    else:
        plan = partial(plan_move, seen={})  # what is done with each looks anew
        moves = [_planned(app, plan, *each, request, keep_going=keep_going) for each in _selected(app, selection)]
    plans = [each for each in moves if isinstance(each, MovePlan)]
    open_ones = [each for each in plans if each.is_open]
    apply = partial(apply_moves, app, moves, keep_going=keep_going) if open_ones else None
    return Plan(partial(show_moves, app, moves), _question(open_ones, request), apply, app.target)


def _question(plans: Sequence[MovePlan], request: MoveRequest) -> str:
    whom = plans[0].connector if len(plans) == 1 else counted(len(plans), "connector")
    direction = plans[0].direction if plans else request.direction
    if direction is Direction.DELETE:
        return f"Delete {whom} here?"
    return f"Stop {whom} there and bring it back?" if direction is Direction.BACK else f"Stop {whom} here and move it?"


def _selected(app: App, selection: Selection) -> list[tuple[str, str]]:
    """Return the selected connectors of the group with their types, sorted by name."""
    entries = reach_worker(app, named_cluster_id(app)).connectors
    if not entries:
        raise NotFoundError("the group has no connector")
    return [(name, entries[name].type) for name in selection.choose(entries)]


def _planned(
    app: App,
    plan: Callable[[App, str, MoveRequest], MovePlan],
    connector: str,
    kind: str,
    request: MoveRequest,
    *,
    keep_going: bool,
) -> MovePlan | Stays:
    if kind == "sink":
        return Stays(connector, "a sink connector: its place is the offsets of its consumer group")
    try:
        return plan(app.with_whole_timeout(), connector, request)
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        if isinstance(exc, NotFoundError) and (request.resume or request.direction is not Direction.THERE):
            return Stays(connector, exc.message)
        if not keep_going:
            raise
        return Stays(connector, exc.message, exc)


def apply_moves(app: App, moves: Sequence[MovePlan | Stays], *, keep_going: bool = False) -> Report:
    """Move one connector after the other; stop at the first that fails, unless to keep going, and at Ctrl-C.

    Raises StalePlanError and RefusedError as `run_move`, for a single connector.
    """
    done: list[MoveDone | Stays] = []
    over = False
    for each in moves:
        if isinstance(each, Stays):
            done.append(each)
            continue
        if over:
            done.append(MoveDone(each))
            continue
        try:
            progress = run_move(app, each)
        except (EosctlError, KeyboardInterrupt) as exc:
            if len(moves) == 1:
                raise
            error = exc if isinstance(exc, EosctlError) else InterruptedByUserError("interrupted before it was begun")
            done.append(Stays(each.connector, error.message, error))
            over = not keep_going or error.exit_code is ExitCode.INTERRUPTED
            continue
        done.append(MoveDone(each, progress))
        over = progress.interrupted or (progress.error is not None and not keep_going)
    return moves_report(app, done)


def run_move(app: App, plan: MovePlan) -> Progress[MoveStepDone]:
    """Run the steps of a plan; stop at the first that fails or at Ctrl-C.

    Raises StalePlanError if one of the sides is no longer as planned, RefusedError while another eosctl moves it.
    """
    run = MoveRun.of(app, plan)
    here, there = plan.here, plan.there
    work = Work(
        steps=lambda: [_step(run, step) for step in plan.steps],
        journal=plan.journal,
        subject=f"connector {here.connector} of {here.where}",
        recheck=lambda: _require_unchanged(plan),
        begin=lambda: _begin(plan),
        locks=[
            (there.journal(), f"connector {there.connector} of {there.where}"),
            (here.switch_journal(), f"the offsets of connector {here.connector}"),
        ],
    )
    return carry_out(work)


def _begin(plan: MovePlan) -> Note:
    there = plan.there
    settings = plan.settings if plan.moved is None else plan.moved.settings
    return Note(
        "begin",
        {
            "direction": plan.direction,
            "to": plan.to,
            "name": there.connector,
            "cluster_id": there.cluster_id,
            "group_id": there.group_id,
            "state": plan.state,
            "tasks": plan.tasks,
            "settings": shown_settings(settings),
        },
    )


def _require_unchanged(plan: MovePlan) -> None:
    """Raise StalePlanError unless both sides are as they were when the plan was made."""
    now = plan_move(plan.here.app.with_whole_timeout(), plan.connector, plan.request)
    same = (now.steps, now.state, now.config, now.moved, now.begun) == (
        plan.steps, plan.state, plan.config, plan.moved, plan.begun,
    )  # fmt: skip
    if not same or _configs(now) != _configs(plan) or _topic_ids(now) != _topic_ids(plan):
        raise StalePlanError(
            f"{plan.connector} changed on one of the sides since the plan was made; nothing was changed",
            hint="Plan again.",
        )


def _configs(plan: MovePlan) -> list[Mapping[str, str] | None]:
    return [None if side.now is None else side.now.config for side in (plan.here, plan.there)]


def _topic_ids(plan: MovePlan) -> Mapping[str, str]:
    found = {} if plan.arrival is None else plan.arrival.writes.found.descriptions
    return {name: each.topic_id for name, each in found.items()}


def _step(run: MoveRun, step: MoveStep) -> Step[MoveStepDone]:
    def before() -> Note:
        if step is MoveStep.RESUME:
            run.handover = replace(run.handover, arrived=arrive.prepare_start(run))
            return Note("start", {"step": step, "arrived": run.handover.arrived})
        return Note("start", {"step": step})

    def act() -> MoveStepDone:
        done = _STEPS[step](run)
        run.app.on_event(Event(f"{run.plan.connector}: {step}: {done.detail}"))
        return done

    def after(done: MoveStepDone) -> Note:
        cut = {} if done.left is None else {"left": done.left, "left_ms": done.left_ms}
        return Note("done", {"step": step, "detail": done.detail, **cut})

    return Step(step, act, before=before, after=after)


_STEPS: Mapping[MoveStep, Callable[[MoveRun], MoveStepDone]] = {
    MoveStep.STOP: leave.stop,
    MoveStep.SETTLE: leave.settle,
    MoveStep.CREATE: leave.create,
    MoveStep.OFFSETS: leave.offsets,
    MoveStep.CHECK: arrive.check,
    MoveStep.RESUME: arrive.resume,
    MoveStep.WATCH: arrive.watch,
    MoveStep.REMOVE: arrive.remove,
    MoveStep.AUDIT: arrive.audit,
}
