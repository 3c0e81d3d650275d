"""The roll of `upgrade apply`: one worker at a time, the leader last, and the first gate that fails ends it.

A step is in the journal before it begins, when its driver has done its part, and after its gates passed. What was done
stays done: a roll that stops leaves a cluster that runs, and says how to go on and how to go back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from shlex import quote

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.core.wording import counted
from eosctl.core.workers.modes import Mode, blocking_modes
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, RefusedError, StalePlanError
from eosctl.events import Event, OnEvent
from eosctl.group.gather import GroupObservation, observe_workers
from eosctl.group.members import EMPTY
from eosctl.group.mirror_makers import KnownNodes
from eosctl.plan import Plan
from eosctl.report import Problem, Report
from eosctl.state.steps import Note, Progress, Step, Work, carry_out
from eosctl.upgrade.drivers import Acted, OwnsWorkers, SetsAlone
from eosctl.upgrade.look import GroupLook, accept_hint, look, with_driver_files
from eosctl.upgrade.roll.back import TOUCHED_HINT, touched_by_others
from eosctl.upgrade.roll.claim import GroupClaim, claim_group, require_ours
from eosctl.upgrade.roll.journal import Brought, Memory, OpenStep, known_nodes
from eosctl.upgrade.roll.owned import already_made, made_before, require_kept, taken_back_error, with_platform
from eosctl.upgrade.roll.prepare import PreparedRoll, losses, prepare_roll
from eosctl.upgrade.roll.rows import plan_report, question, result_report
from eosctl.upgrade.roll.settle import await_calm, await_settled, read_claim, read_ids, standings
from eosctl.upgrade.roll.step import Before, Expected, Settled, StepOutcome, look_app, members_of, owners_of
from eosctl.upgrade.roll.undo import origin_of


@dataclass(slots=True)
class _Run:
    """A roll under way: `memory` and `outcomes` grow; `view` is the last look at the whole group.

    `members` are all members as the roll left them; `renamed` tells the new URLs of workers that came back elsewhere.
    """

    app: App
    roll: PreparedRoll
    view: GroupLook
    memory: Memory
    claim: GroupClaim = field(init=False)
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
    """Goes through the passes; a step that fails, and Ctrl-C, end it with everything before it done and said.

    Raises StalePlanError where the group is no longer as planned, RefusedError while another eosctl is at work on it.
    """
    app = replace(app, on_event=sentences(app.on_event)).with_whole_timeout()
    run = _Run(app, roll, roll.view, roll.memory)
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


def _close(run: _Run, progress: Progress[str]) -> list[Problem]:
    """After Ctrl-C the journal stays as it is, like after a kill: the driver may have done its part."""
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
    """A listener that leaves progress out: the bars of each look would pile up on a terminal."""
    return lambda event: on_event(event) if event.done is None else None


def _recheck(run: _Run) -> None:
    """Claims the group, and raises where it is no longer as planned."""
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


def _nobody_there(run: _Run) -> bool:
    """Whether an upgrade left nobody behind who could be asked, and this is the first step to bring them back."""
    first = not [each for each in run.outcomes if each.outcome == "done"]
    return first and run.view.group.state == EMPTY and "group_stable" in run.roll.mended


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
        "way_back": roll.lenience.way_back,
        "mirror_maker": roll.mirror_maker,
        "excused": [list(work) for work in sorted(roll.excused)],
    }
    return Note("begin", {**facts, **given, **({"place": roll.place} if roll.place else {})})


def _steps(run: _Run) -> Iterator[Step[str]]:
    """One worker after the other, pass by pass; who is next is seen when the one before has settled."""
    open_step = run.roll.open
    if open_step is not None:
        yield from _restart(run, open_step.mode, open_step.workers, again=open_step)
    for each in run.roll.passes:
        pending = {run.renamed.get(name, name) for name in each.workers}
        _barrier(run, each.mode, pending)
        for name in sorted(pending & run.roll.dead - run.view.members.keys()):
            yield _set_alone(run, each.mode, name)
            pending.remove(name)
        while pending:
            workers = tuple(sorted(pending)) if run.roll.driver.at_once else (_next(run, each.mode, pending),)
            yield from _restart(run, each.mode, workers)
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


def _restart(run: _Run, mode: Mode, workers: tuple[str, ...], *, again: OpenStep | None = None) -> Iterator[Step[str]]:
    """Brings `workers` to `mode` and waits for the gates; the outcome stays `failed` until they have passed.

    `again` is what a run that was cut off has left of this step.
    """
    former = {new: name for name, new in run.renamed.items()}
    outcome = StepOutcome(
        mode, tuple(former.get(name, name) for name in workers), "failed", backups=again.backups if again else ()
    )
    run.outcomes.append(outcome)
    app = replace(run.app, deadline=Deadline.after(_timeout_s(run, workers), run.app.clock))
    restart = _Restart(run, outcome.with_backups(app, run.roll.journal), outcome, workers, again)
    yield Step(f"{', '.join(workers)} {mode.value}", restart.bring, restart.begin, restart.end)
    settled, at_once = restart.settled, run.roll.driver.at_once
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


def _set_alone(run: _Run, mode: Mode, worker: str) -> Step[str]:
    """Sets the mode of a worker that is no member: whenever it starts again, it must not be what it was before."""
    driver = run.roll.driver
    if not isinstance(driver, SetsAlone):
        raise TypeError(f"{driver.name} can't set the mode of a worker that is down")
    outcome = StepOutcome(mode, (worker,), "failed")
    run.outcomes.append(outcome)

    def configure() -> str:
        app = replace(run.app, deadline=Deadline.after(_timeout_s(run, (worker,)), run.app.clock))
        try:
            acted = driver.set_alone(app, worker, mode)
        except EosctlError as exc:
            outcome.detail = f"it is no member of the group, and could not be given {mode.value}: {exc.message}"
            raise RefusedError(
                f"{worker}: {outcome.detail}",
                hint=f"{Waiver.ACCEPT_GONE} {quote(worker)} goes on without it, if it is gone for good.",
            ) from exc
        outcome.name_backup(acted)
        return acted.words

    def end(words: str) -> Note:
        run.memory = replace(run.memory, next_start={**run.memory.next_start, worker: frozenset({mode})})
        outcome.outcome, outcome.detail = "done", f"{words}; it is no member of the group, and was not started"
        run.app.on_event(Event(f"{worker}: {outcome.detail}", standings=standings((worker,), mode, "done")))
        return Note("configured", {"worker": worker, "mode": mode.value, "words": words})

    return Step(f"{worker} {mode.value}", configure, after=end)


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


@dataclass(slots=True)
class _Restart:
    """The restart of some workers: what there was `before` it, and how it `settled`; `app` has the time of one step.

    `again` is what a run that was cut off has left of it.
    """

    run: _Run
    app: App
    outcome: StepOutcome
    workers: tuple[str, ...]
    again: OpenStep | None
    before: Before = field(init=False)
    settled: Settled = field(init=False)

    def begin(self) -> Note | None:
        """Looks at what there is before the restart; None where a run that was killed had come further."""
        again, run = self.again, self.run
        if again is not None and self._came_further(again):
            self.before = Before(dict(again.members))
            return None
        mode, at_once, look_s = self.outcome.mode, run.roll.driver.at_once, run.look_s
        as_it_is = again or _nobody_there(run)
        look = look_app(self.app, look_s)
        group = observe_workers(look) if as_it_is else await_calm(self.app, self.workers, mode, look_s=look_s)
        group = group.named_as(known_nodes(run.memory, again.members, self.workers) if again else KnownNodes(run.names))
        if again is None:
            _require_untouched(run, members_of(group))
        members = _members(group, again, at_once=at_once)
        self.before = Before(
            members,
            read_claim(look_app(self.app, look_s), group),
            {} if at_once else {url: each for url, each in members_of(group).items() if url not in self.workers},
            read_ids(look_app(self.app, look_s), group) if mode is Mode.ENABLED else {},
            owners_of(group),
        )
        require_ours(look_app(self.app, look_s), run.claim)
        return Note(
            "start", {"mode": mode.value, "workers": list(self.workers), "members": members, "at_once": at_once}
        )

    def bring(self) -> str:
        """Lets the driver do its part, and waits for the gates; returns what the modes are taken from."""
        acted = self._act()
        self.outcome.name_backup(acted)
        self.settled = _settle(self.run, self.app, self._expected(acted))
        return "; ".join(self.settled.evidence)

    def end(self, _evidence: str) -> Note:
        """What is remembered of the workers."""
        settled = self.settled
        facts = {"members": dict(settled.members), "evidence": list(settled.evidence)}
        return Note("done", {**facts, "at_once": self.run.roll.driver.at_once, "renamed": dict(settled.renamed)})

    def _came_further(self, again: OpenStep) -> bool:
        """Whether a run that was killed had the driver's part done; a step that failed is done again."""
        begun = self.run.roll.begun
        return again.restarted and begun is not None and begun.stopped is None

    def _act(self) -> Acted:
        again, roll, mode, app = self.again, self.run.roll, self.outcome.mode, self.app
        if again is not None and self._came_further(again):
            if not roll.driver.waits_for_person:
                return Acted(again.words)
        else:
            words = f"{', '.join(self.workers)}: restarting as {mode.value}"
            app.on_event(Event(words, standings=standings(self.workers, mode, "restarting")))
        look = look_app(app, self.run.look_s)
        if again is not None and made_before(look, roll.driver, mode, again.members.values()):
            acted = Acted(f"the pods were made as {mode.value} before this run")
        else:
            acted = roll.driver.bring(app, self.workers, mode)
        roll.journal.write("restarted", words=acted.words, backup=acted.backup)
        return acted

    def _expected(self, acted: Acted) -> Expected:
        run, roll, driver = self.run, self.run.roll, self.run.roll.driver
        timeout_s = _timeout_s(run, self.workers)
        modern = {name for name, it in run.memory.brought.items() if it.mode is not Mode.DISABLED}
        return Expected(
            workers=self.workers,
            mode=self.outcome.mode,
            before=self.before,
            connectors=roll.connectors,
            excused=roll.excused,
            fenceable=frozenset(self.workers) | modern,
            words=acted.words,
            settle_timeout_s=timeout_s,
            patience_s=None if driver.waits_for_person else timeout_s,
            look_s=run.look_s,
            at_once=driver.at_once,
            count=driver.expected if isinstance(driver, OwnsWorkers) else None,
            files=tuple(driver.files(self.workers)),
            mirror_maker=roll.mirror_maker,
            alike=known_nodes(run.memory, self.before.members).alike,
        )


def _members(group: GroupObservation, again: OpenStep | None, *, at_once: bool) -> dict[str, str | None]:
    """All members (URL -> id), those too that a step which was cut off has stopped.

    Where a controller restarts all of them, those before the step count: it may have come further meanwhile.
    """
    if again is not None and at_once:
        return dict(again.members)
    there: dict[str, str | None] = {**members_of(group)}
    gone = [name for name in (again.members if again else ()) if name not in there]
    return {**dict.fromkeys(gone), **there}
