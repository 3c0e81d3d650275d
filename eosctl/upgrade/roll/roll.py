"""The roll of `upgrade apply`: one worker at a time, the leader last, and the first gate that fails ends it.

What was done stays done: a roll that stops leaves a cluster that runs, and says how to go on and how to go back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.wording import counted
from eosctl.core.workers.modes import Mode, blocking_modes
from eosctl.deadline import Deadline, Event, OnEvent
from eosctl.errors import RefusedError, StalePlanError
from eosctl.group.members import KnownNodes
from eosctl.group.observation.rules import STARTING
from eosctl.plan import Plan
from eosctl.report import Problem, Report
from eosctl.state.journal import Note, Progress, Step, Work, carry_out
from eosctl.upgrade import codes
from eosctl.upgrade.drivers import OwnsWorkers
from eosctl.upgrade.gate import Gate
from eosctl.upgrade.look import GroupLook, accept_hint, look, with_driver_files
from eosctl.upgrade.roll.owned import already_made, require_kept, with_platform
from eosctl.upgrade.roll.prepare import PreparedRoll, losses, prepare_roll
from eosctl.upgrade.roll.report import plan_report, question, result_report
from eosctl.upgrade.roll.restart import Run, is_first_after_empty, require_as_left, restart, set_alone
from eosctl.upgrade.roll.settle import await_calm, standings
from eosctl.upgrade.roll.step import claim_group, look_app
from eosctl.upgrade.roll.undo import origin_of

_POLL_S = 1.0


def prepare_upgrade(app: App, roll: PreparedRoll, *, watching: bool) -> Plan:
    """Plan the passes of `roll`; `watching`: somebody else changes the workers."""
    may_apply = (roll.steps() or roll.gone or roll.begun) and not roll.blocking
    apply = partial(apply_roll, app, roll) if may_apply else None
    return Plan(partial(plan_report, app, roll), question(roll, watching=watching), apply, app.target)


def apply_roll(app: App, roll: PreparedRoll) -> Report:
    """Go through the passes; a failed step or Ctrl-C ends them, and what was done before is kept and reported.

    Raises StalePlanError if the group is no longer as planned, RefusedError while another eosctl works on it.
    """
    app = replace(app, on_event=sentences(app.on_event)).with_whole_timeout()
    run = Run(app, roll, roll.view, roll.memory)
    work = Work(
        steps=lambda: _steps(run),
        journal=roll.journal,
        subject=f"the upgrade of group {app.target.group_id}",
        recheck=lambda: _recheck(run),
        begin=lambda: _begin(roll),
        close=lambda progress: _close(run, progress),
    )
    progress = carry_out(work)
    return result_report(app, roll, run.outcomes, progress, gates=run.view.gates)


def _close(run: Run, progress: Progress[str]) -> list[Problem]:
    """Close the journal; after Ctrl-C leave it as it is, like after a kill: the driver may have done its part."""
    journal, error = run.roll.journal, progress.error
    if error is None:
        return journal.close()
    if progress.failed is not None:
        at = run.outcomes[-1]
        at.detail = at.detail or error.message
        if not progress.interrupted:
            workers = [run.renamed.get(name, name) for name in at.workers]
            run.app.on_event(Event("", standings=standings(workers, at.mode, "failed")))
    return [] if progress.interrupted else journal.close("stopped", message=error.message)


def sentences(on_event: OnEvent) -> OnEvent:
    """Return a listener that omits progress: the bars of each look would pile up on a terminal."""
    return lambda event: on_event(event) if event.done is None else None


def _recheck(run: Run) -> None:
    """Claim the group; raise StalePlanError if it is no longer as planned."""
    app, roll = run.app, run.roll
    run.claim = claim_group(app)
    renewed = prepare_roll(app, roll.request, roll.driver)
    difference = roll.plan.difference(renewed.plan)
    comes_and_goes = roll.begun is not None and isinstance(roll.driver, OwnsWorkers)
    if comes_and_goes:  # a controller is still at work on what the run before began
        modes = [[each.mode for each in plan.passes] for plan in (roll.plan, renewed.plan)]
        difference = None if modes[0] == modes[1] else f"the passes were {_told(modes[0])} and are {_told(modes[1])}"
    if difference is not None or renewed.open != roll.open:
        raise StalePlanError(
            f"the group changed since the plan was shown: {difference}; nothing was written", hint="Run again."
        )
    if roll.open is None and not comes_and_goes and roll.view.members != renewed.view.members:
        raise StalePlanError(
            "workers were restarted, joined or left since the plan was shown; nothing was written", hint="Run again."
        )
    if renewed.blocking:
        gate = renewed.blocking[0]
        raise RefusedError(f"gate {gate.id} {gate.verb}: {gate.evidence}; nothing was written")


def _told(modes: Sequence[Mode]) -> str:
    return ", ".join(mode.value for mode in modes) or "none"


def _begin(roll: PreparedRoll) -> Note:
    given = {
        "driver": roll.driver.name,
        "driver_options": list(roll.request.driver_options),
        "accepted_gates": sorted(roll.request.accepted),
        "gone": sorted(roll.gone),
    }
    if roll.begun is not None:
        return Note("resume", given)
    facts = {
        "target": roll.target.value,
        "origin": origin_of(worker.mode for worker in roll.plan.workers),
        "digest": (roll.request.plan or roll.plan).digest(),
        "connectors": dict(roll.connectors),
        "losses": list(losses(roll)),
        "way_back": roll.risks.way_back,
        "mirror_maker": roll.mirror_maker,
        "excused": [list(work) for work in sorted(roll.excused)],
    }
    return Note("begin", {**facts, **given, **({"place": roll.place} if roll.place else {})})


def _steps(run: Run) -> Iterator[Step[str]]:
    """Restart one worker after the other, pass by pass; choose the next when the one before has settled.

    Workers that had died are started at the end: no worker has another mode then, even if they fail.
    """
    open_step = run.roll.open
    if open_step is not None:
        yield from restart(run, open_step.mode, open_step.workers, again=open_step)
    for each in run.roll.passes:
        pending = {run.renamed.get(name, name) for name in each.workers}
        _barrier(run, each.mode, pending)
        for name in sorted(pending & run.roll.dead - run.view.members.keys()):
            yield from set_alone(run, each.mode, name)
            pending.remove(name)
        while pending:
            workers = tuple(sorted(pending)) if run.roll.driver.at_once else (_next(run, each.mode, pending),)
            yield from restart(run, each.mode, workers)
            pending -= set(workers)
    for name in sorted(run.roll.dead - run.names.keys()):
        yield from restart(run, run.roll.target, (name,))
    if run.outcomes:
        require_kept(look_app(run.app, run.look_s), run.roll.driver, run.outcomes[-1].mode)
    elif run.roll.begun is not None:
        require_kept(look_app(run.app, run.look_s), run.roll.driver, run.roll.target, resumed=True)


def _barrier(run: Run, mode: Mode, pending: set[str]) -> None:
    """Check what must be true of all workers before the first of them gets `mode`; raise RefusedError."""
    app, roll = look_app(run.app, run.look_s), run.roll
    before = [each for each, _worker in roll.begun.steps] if roll.begun else []
    if run.outcomes:
        require_kept(app, roll.driver, run.outcomes[-1].mode, then=mode)
    elif before and before[-1] is Mode.PREPARING is not mode:  # else this run sets it anew
        require_kept(app, roll.driver, Mode.PREPARING, then=mode, resumed=True)
    view = run.view = _look_between_passes(run, app)
    done = [*before, *(each.mode for each in run.outcomes)]
    seen = view.observation.workers
    workers = with_platform(app, roll.driver, done[-1], seen) if done else already_made(app, roll.driver, seen)
    refusals = blocking_modes(workers, mode)
    stopping = view.stopping(but=roll.mended if is_first_after_empty(run) else frozenset({codes.NO_MIXED_MODES}))
    refusals += [f"gate {gate.id} {gate.verb}: {gate.evidence}" for gate in stopping]
    ours = {*(worker.name for worker in roll.plan.workers), *run.renamed.values()}
    strangers = sorted(view.members.keys() - ours)
    if strangers and not run.roll.driver.at_once:
        refusals.append(f"{', '.join(strangers)} joined the group since the plan was made")
    if refusals:
        raise RefusedError(
            f"no worker may become {mode.value} now: {'; '.join(refusals)}",
            hint="Fix this and --resume; workers that missed the earlier pass get it first."
            + (f" {accept_hint(stopping)}" if stopping else ""),
        )
    require_as_left(run, view.members)
    words = f"pass {mode.value}: {counted(len(pending), 'worker')}"
    ordered = sorted(pending, key=lambda name: (name == view.group.leader_name, name))
    run.app.on_event(Event(words, standings=standings(ordered, mode, "to come")))


def _look_between_passes(run: Run, app: App) -> GroupLook:
    """Look at the whole group, repeatedly while what stops the roll may pass by itself after a restart.

    MirrorMaker writes its connectors' configs when it has started, and each of them starts a second time then.
    """
    roll = run.roll
    patience = Deadline.after(roll.request.settle_timeout_s, run.app.clock)
    spoken = ""
    while True:
        here = with_driver_files(app.with_whole_timeout(), roll.driver)
        view = look(here, roll.target, run.memory, risks=roll.risks, nodes=KnownNodes(run.names))
        if not (run.outcomes and _may_pass(view)) or patience.expired():
            return view
        waiting = "; ".join(f"gate {gate.id} {gate.verb}: {gate.evidence}" for gate in _stopping(view))
        if waiting != spoken:
            spoken = waiting
            run.app.on_event(Event(f"waiting: {waiting}"))
        patience.sleep(_POLL_S)


def _stopping(view: GroupLook) -> list[Gate]:
    return view.stopping(but=frozenset({codes.NO_MIXED_MODES}))


def _may_pass(view: GroupLook) -> bool:
    """Decide whether something stops the roll, and all of it may be unknown only because of a recent restart."""
    seen = view.observation
    states = {state for each in seen.connectors or () for state in each.unhealthy_parts().values()}
    passing = {
        codes.CONNECTORS_HEALTHY: bool(states) and states <= STARTING,
        codes.GROUP_STABLE: True,
        codes.MEMBERS_KNOWN: not any(each.mode is Mode.ABSENT or each.doubt for each in seen.workers),
        codes.WORKER_HEALTH: all(each.health != "unhealthy" for each in seen.workers),
    }
    stopping = _stopping(view)
    return bool(stopping) and all(gate.status == "unknown" or passing.get(gate.id, False) for gate in stopping)


def _next(run: Run, mode: Mode, pending: set[str]) -> str:
    """Return the next worker, the leader last; wait for a stable group, as a rebalance hides the leader."""
    app = replace(run.app, deadline=Deadline.after(run.roll.request.settle_timeout_s, run.app.clock))
    group = await_calm(app, tuple(sorted(pending)), mode, look_s=run.look_s).named_as(KnownNodes(run.names))
    return min(pending, key=lambda name: (name == group.leader_name, name))
