"""The roll of `upgrade apply`: one worker at a time, the leader last, and the first gate that fails ends it.

A step is in the journal before it begins, when its driver has done its part, and after its gates passed. What was done
stays done: a roll that stops leaves a cluster that runs, and says how to go on and how to go back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from shlex import quote

from eosctl.core.connect_group import EMPTY
from eosctl.core.mirror_maker_nodes import KnownNodes
from eosctl.core.upgrade import Mode
from eosctl.core.wording import counted
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, InterruptedByUserError, RefusedError, StalePlanError
from eosctl.events import Event, OnEvent
from eosctl.ops.app import App
from eosctl.ops.plan import Plan
from eosctl.ops.upgrade_apply import (
    PreparedRoll,
    accept_hint,
    blocking_modes,
    known_nodes,
    losses,
    prepare_roll,
)
from eosctl.ops.upgrade_back import TOUCHED_HINT, touched_by_others
from eosctl.ops.upgrade_claim import GroupClaim, claim_group, require_ours
from eosctl.ops.upgrade_drivers import Acted, OwnsWorkers, SetsAlone
from eosctl.ops.upgrade_journal import Brought, Memory, OpenStep
from eosctl.ops.upgrade_look import GroupLook, look, with_driver_files
from eosctl.ops.upgrade_owned import already_made, made_before, require_kept, taken_back_error, with_platform
from eosctl.ops.upgrade_report import plan_report, question, result_report
from eosctl.ops.upgrade_settle import await_calm, await_settled, read_claim, read_ids, standings
from eosctl.ops.upgrade_step import Before, Expected, Settled, StepOutcome, look_app, members_of, owners_of
from eosctl.ops.upgrade_undo import origin_of, resume_command
from eosctl.ops.workers import GroupObservation, observe_workers
from eosctl.report import Report


@dataclass(slots=True)
class _Run:
    """A roll under way: `memory` and `outcomes` grow; `view` is the last look at the whole group.

    `members` are all members as the roll left them; `renamed` tells the new URLs of workers that came back elsewhere.
    """

    app: App
    roll: PreparedRoll
    view: GroupLook
    memory: Memory
    claim: GroupClaim
    members: Mapping[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    outcomes: list[StepOutcome] = field(default_factory=list)

    @property
    def names(self) -> Mapping[str, str]:
        """All members by name, as they were last."""
        return self.members or self.view.members

    @property
    def look_s(self) -> float:
        """How long a look may take: as --timeout says, and longer where the last one took more than half of that."""
        return max(self.app.deadline.timeout_s, 2 * self.view.took_s)


def prepare_upgrade(app: App, roll: PreparedRoll, *, watching: bool) -> Plan:
    """The plan to go through the passes of `roll`; `watching`: somebody else changes the workers."""
    may_apply = (roll.steps() or roll.gone or roll.begun) and not roll.blocking
    apply = partial(apply_roll, app, roll) if may_apply else None
    return Plan(partial(plan_report, app, roll), question(roll, watching=watching), apply, app.target)


def apply_roll(app: App, roll: PreparedRoll) -> Report:
    """Goes through the passes; a step that fails ends it with everything before it done and said.

    Raises StalePlanError where the group is no longer as planned, RefusedError while another eosctl is at work on it,
    InterruptedByUserError on Ctrl-C.
    """
    with roll.journal.hold(f"the upgrade of group {app.target.group_id}"):
        app = replace(app, on_event=sentences(app.on_event)).with_whole_timeout()
        claim = claim_group(app)
        _require_unchanged(app, roll)
        _write_begin(roll)
        run = _Run(app, roll, roll.view, roll.memory, claim)
        failure: EosctlError | None = None
        try:
            _roll(run)
        except EosctlError as exc:
            failure = exc
        except KeyboardInterrupt as exc:
            raise _interrupted(run) from exc
        left_open = roll.journal.close("stopped", message=failure.message) if failure else roll.journal.close()
        report = result_report(app, roll, run.outcomes, failure, gates=run.view.gates)
        return replace(report, problems=[*report.problems, *left_open])


def sentences(on_event: OnEvent) -> OnEvent:
    """A listener that leaves progress out: the bars of each look would pile up on a terminal."""
    return lambda event: on_event(event) if event.done is None else None


def _require_unchanged(app: App, roll: PreparedRoll) -> None:
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


def _nobody_there(run: _Run) -> bool:
    """Whether an upgrade left nobody behind who could be asked, and this is the first step to bring them back."""
    first = not [each for each in run.outcomes if each.outcome == "done"]
    return first and run.view.group.state == EMPTY and "group_stable" in run.roll.mended


def _told(modes: Sequence[Mode]) -> str:
    return ", ".join(mode.value for mode in modes) or "none"


def _write_begin(roll: PreparedRoll) -> None:
    if roll.begun is not None:
        roll.journal.write(
            "resume",
            driver=roll.driver.name,
            driver_options=list(roll.request.driver_options),
            accepted_gates=sorted(roll.request.accepted),
            gone=sorted(roll.gone),
        )
        return
    roll.journal.write(
        "begin",
        target=roll.target.value,
        origin=origin_of(worker.mode for worker in roll.plan.workers),
        driver=roll.driver.name,
        digest=(roll.request.plan or roll.plan).digest(),
        connectors=dict(roll.connectors),
        losses=list(losses(roll)),
        driver_options=list(roll.request.driver_options),
        accepted_gates=sorted(roll.request.accepted),
        gone=sorted(roll.gone),
        way_back=roll.lenience.way_back,
        mirror_maker=roll.mirror_maker,
        excused=[list(work) for work in sorted(roll.excused)],
        **({"place": roll.place} if roll.place else {}),
    )


def _interrupted(run: _Run) -> InterruptedByUserError:
    done = [f"{', '.join(each.workers)} {each.mode.value}" for each in run.outcomes if each.outcome == "done"]
    under_way = [", ".join(each.workers) for each in run.outcomes if each.outcome == "failed"]
    return InterruptedByUserError(
        f"interrupted; done before: {'; '.join(done) or 'nothing'}"
        + (f"; under way: {under_way[0]}" if under_way else ""),
        hint=f"Go on from here: {resume_command(run.roll)}\n`eosctl upgrade status` shows where it stands.",
    )


def _roll(run: _Run) -> None:
    open_step = run.roll.open
    if open_step is not None:
        _step(run, open_step.mode, open_step.workers, again=open_step)
    for each in run.roll.passes:
        pending = {run.renamed.get(name, name) for name in each.workers}
        _barrier(run, each.mode, pending)
        for name in sorted(pending & run.roll.dead - run.view.members.keys()):
            _set_alone(run, each.mode, name)
            pending.remove(name)
        while pending:
            workers = tuple(sorted(pending)) if run.roll.driver.at_once else (_next(run, each.mode, pending),)
            _step(run, each.mode, workers)
            pending -= set(workers)
    if run.outcomes:
        require_kept(look_app(run.app, run.look_s), run.roll.driver, run.outcomes[-1].mode)
    elif run.roll.begun is not None:
        require_kept(look_app(run.app, run.look_s), run.roll.driver, run.roll.target, resumed=True)


def _barrier(run: _Run, mode: Mode, pending: set[str]) -> None:
    """What must be true of all workers before the first of them gets `mode`; raises RefusedError."""
    app, roll = look_app(run.app, run.look_s), run.roll
    before = [each for each, _worker in roll.begun.steps] if roll.begun else []
    if run.outcomes:
        require_kept(app, roll.driver, run.outcomes[-1].mode, then=mode)
    elif before and before[-1] is Mode.PREPARING is not mode:  # else this run sets it anew
        require_kept(app, roll.driver, Mode.PREPARING, then=mode, resumed=True)
    view = run.view = look(
        with_driver_files(app, roll.driver),
        roll.target,
        run.memory,
        lenience=roll.lenience,
        nodes=KnownNodes(run.names),
    )
    done = [*before, *(each.mode for each in run.outcomes)]
    seen = view.observation.workers
    workers = with_platform(app, roll.driver, done[-1], seen) if done else already_made(app, roll.driver, seen)
    refusals = blocking_modes(workers, mode)
    stopping = view.stopping(but=roll.mended if _nobody_there(run) else frozenset({"no_mixed_modes"}))
    refusals += [f"gate {gate.id} {gate.verb}: {gate.evidence}" for gate in stopping]
    ours = {*(worker.name for worker in roll.plan.workers), *run.renamed.values()}
    strangers = sorted(view.members.keys() - ours)
    if strangers and not run.roll.driver.at_once:
        refusals.append(f"{', '.join(strangers)} joined the group since the plan was made")
    if refusals:
        raise RefusedError(
            f"no worker may become {mode.value} now: {'; '.join(refusals)}",
            hint="Fix that; --resume then goes on, and gives a worker that lacks it the pass before first."
            + (f" {accept_hint(stopping)}" if stopping else ""),
        )
    _require_untouched(run, view.members)
    words = f"pass {mode.value}: {counted(len(pending), 'worker')}"
    ordered = sorted(pending, key=lambda name: (name == view.group.leader_name, name))
    run.app.on_event(Event(words, standings=standings(ordered, mode, "to come")))


def _next(run: _Run, mode: Mode, pending: set[str]) -> str:
    """The next worker: the leader, as it is now, comes last; while a group rebalances nobody knows who leads."""
    app = replace(run.app, deadline=Deadline.after(run.roll.request.settle_timeout_s, run.app.clock))
    group = await_calm(app, tuple(sorted(pending)), mode, look_s=run.look_s).named_as(KnownNodes(run.names))
    return min(pending, key=lambda name: (name == group.leader_name, name))


def _step(run: _Run, mode: Mode, workers: tuple[str, ...], *, again: OpenStep | None = None) -> None:
    """Brings `workers` to `mode` and waits for the gates; the outcome stays `failed` until they have passed.

    `again` is what a run that was cut off has left of this step.
    """
    former = {new: name for name, new in run.renamed.items()}
    outcome = StepOutcome(
        mode, tuple(former.get(name, name) for name in workers), "failed", backups=again.backups if again else ()
    )
    run.outcomes.append(outcome)
    app = replace(run.app, deadline=Deadline.after(_timeout_s(run, workers), run.app.clock))
    try:
        before, acted = _act(run, outcome.with_backups(app, run.roll.journal), mode, workers, again=again)
        outcome.name_backup(acted)
        settled = _settle(run, app, _expected(run, mode, workers, before=before, acted=acted))
    except EosctlError as exc:
        outcome.detail = exc.message
        app.on_event(Event("", standings=standings(workers, mode, "failed")))
        raise
    at_once = run.roll.driver.at_once
    run.roll.journal.write(
        "done",
        members=dict(settled.members),
        evidence=list(settled.evidence),
        at_once=at_once,
        renamed=dict(settled.renamed),
    )
    brought = {name: Brought(mode, member_id) for name, member_id in settled.members.items()}
    run.memory = run.memory.without(settled.renamed).after(brought, at_once=at_once)
    run.members = settled.everybody
    run.renamed |= {former.get(name, name): new for name, new in settled.renamed.items()}
    outcome.outcome, outcome.detail = "done", "; ".join(settled.evidence)
    surplus = max(0, len(settled.members) - len(workers)) if at_once else 0
    outcome.joined = tuple(sorted(settled.members.keys() - set(workers))[:surplus])
    words = f"{', '.join(workers)}: {mode.value}, everything as before"
    run.app.on_event(Event(words, standings=standings(workers, mode, "done")))


def _settle(run: _Run, app: App, expected: Expected) -> Settled:
    """Waits for the gates; a step that fails because somebody has taken back what it set says so."""
    try:
        return await_settled(app, expected)
    except EosctlError as exc:
        cause: EosctlError | None = None
        with suppress(EosctlError):
            cause = taken_back_error(look_app(run.app, run.look_s), run.roll.driver, expected.mode)
        raise cause or exc from exc


def _set_alone(run: _Run, mode: Mode, worker: str) -> None:
    """Sets the mode of a worker that is no member: whenever it starts again, it must not be what it was before."""
    driver = run.roll.driver
    if not isinstance(driver, SetsAlone):
        raise TypeError(f"{driver.name} can't set the mode of a worker that is down")
    outcome = StepOutcome(mode, (worker,), "failed")
    run.outcomes.append(outcome)
    app = replace(run.app, deadline=Deadline.after(_timeout_s(run, (worker,)), run.app.clock))
    try:
        acted = driver.set_alone(app, worker, mode)
    except EosctlError as exc:
        outcome.detail = f"it is no member of the group, and could not be given {mode.value}: {exc.message}"
        raise RefusedError(
            f"{worker}: {outcome.detail}",
            hint=f"--accept-gone {quote(worker)} goes on without it, if it is gone for good.",
        ) from exc
    outcome.name_backup(acted)
    run.roll.journal.write("configured", worker=worker, mode=mode.value, words=acted.words)
    run.memory = replace(run.memory, next_start={**run.memory.next_start, worker: frozenset({mode})})
    outcome.outcome, outcome.detail = "done", f"{acted.words}; it is no member of the group, and was not started"
    words = f"{worker}: {outcome.detail}"
    run.app.on_event(Event(words, standings=standings((worker,), mode, "done")))


def _timeout_s(run: _Run, workers: tuple[str, ...]) -> float:
    """How long a step may take: each of its workers has --settle-timeout, also where all of a pass are one step."""
    return run.roll.request.settle_timeout_s * (max(1, len(workers)) if run.roll.driver.at_once else 1)


def _require_untouched(run: _Run, members: Mapping[str, str]) -> None:
    """Raises RefusedError where the group is not as this roll left it, and looks at it again from now on.

    Where a controller restarts workers, it may also do so when nobody asked for it.
    """
    before, run.members = run.members, members
    if run.roll.driver.at_once or not before:
        return
    anew = [f"{url} joined anew" for url, member_id in members.items() if before.get(url, member_id) != member_id]
    changes = [*anew, *(f"{url} joined" for url in members if url not in before)]
    changes += [f"{url} left" for url in before if url not in members]
    if changes:
        raise RefusedError(touched_by_others(", ".join(changes)), hint=TOUCHED_HINT)


def _act(run: _Run, app: App, mode: Mode, workers: tuple[str, ...], *, again: OpenStep | None) -> tuple[Before, Acted]:
    """Lets the driver do its part, unless a run that was killed had come further; a step that failed is done again."""
    roll = run.roll
    if again is not None and again.restarted and roll.begun is not None and roll.begun.stopped is None:
        before, acted = Before(dict(again.members)), Acted(again.words)
        if not roll.driver.waits_for_person:
            return before, acted
    else:
        look_s = run.look_s
        as_it_is = again or _nobody_there(run)
        group = observe_workers(look_app(app, look_s)) if as_it_is else await_calm(app, workers, mode, look_s=look_s)
        group = group.named_as(known_nodes(run.memory, again.members, workers) if again else KnownNodes(run.names))
        at_once = roll.driver.at_once
        if again is None:
            _require_untouched(run, members_of(group))
        members = _members(group, again, at_once=at_once)
        before = Before(
            members,
            read_claim(look_app(app, look_s), group),
            {} if at_once else {url: each for url, each in members_of(group).items() if url not in workers},
            read_ids(look_app(app, look_s), group) if mode is Mode.ENABLED else {},
            owners_of(group),
        )
        require_ours(look_app(app, look_s), run.claim)
        roll.journal.write("start", mode=mode.value, workers=list(workers), members=members, at_once=at_once)
        words = f"{', '.join(workers)}: restarting as {mode.value}"
        app.on_event(Event(words, standings=standings(workers, mode, "restarting")))
    if again is not None and made_before(look_app(app, run.look_s), roll.driver, mode, again.members.values()):
        acted = Acted(f"the pods were made as {mode.value} before this run")
    else:
        acted = roll.driver.bring(app, workers, mode)
    roll.journal.write("restarted", words=acted.words, backup=acted.backup)
    return before, acted


def _members(group: GroupObservation, again: OpenStep | None, *, at_once: bool) -> dict[str, str | None]:
    """All members (URL -> id), those too that a step which was cut off has stopped.

    Where a controller restarts all of them, those before the step count: it may have come further meanwhile.
    """
    if again is not None and at_once:
        return dict(again.members)
    there: dict[str, str | None] = {**members_of(group)}
    gone = [name for name in (again.members if again else ()) if name not in there]
    return {**dict.fromkeys(gone), **there}


def _expected(run: _Run, mode: Mode, workers: tuple[str, ...], *, before: Before, acted: Acted) -> Expected:
    roll = run.roll
    timeout_s = _timeout_s(run, workers)
    return Expected(
        workers=workers,
        mode=mode,
        before=before,
        connectors=roll.connectors,
        excused=roll.excused,
        fenceable=frozenset(workers)
        | {name for name, it in run.memory.brought.items() if it.mode is not Mode.DISABLED},
        words=acted.words,
        settle_timeout_s=timeout_s,
        patience_s=None if roll.driver.waits_for_person else timeout_s,
        look_s=run.look_s,
        at_once=roll.driver.at_once,
        count=roll.driver.expected if isinstance(roll.driver, OwnsWorkers) else None,
        files=tuple(roll.driver.files(workers)),
        mirror_maker=roll.mirror_maker,
        alike=known_nodes(run.memory, before.members).alike,
    )
