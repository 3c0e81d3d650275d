"""The steps of a roll: a restart of some workers, and the mode of a worker that is down.

A restart is in the journal before it begins, when its driver has done its part, and after its gates passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline, Event
from eosctl.errors import EosctlError, RefusedError
from eosctl.foreign import shell_word
from eosctl.group.gather import observe_workers
from eosctl.group.members import EMPTY, KnownNodes
from eosctl.group.observed import GroupObservation
from eosctl.state.journal import Note, Step
from eosctl.upgrade.drivers import DriverResult, OwnsWorkers, SetsAlone
from eosctl.upgrade.look import Brought, GroupLook, Memory, OpenStep, known_nodes
from eosctl.upgrade.roll.owned import made_before, taken_back_error
from eosctl.upgrade.roll.prepare import PreparedRoll
from eosctl.upgrade.roll.settle import await_calm, await_settled, read_claim, read_ids, standings
from eosctl.upgrade.roll.step import (
    TOUCHED_HINT,
    Before,
    Expected,
    GroupClaim,
    LeaderClaim,
    Settled,
    StepOutcome,
    look_app,
    members_of,
    owners_of,
    require_ours,
    touched_by_others,
)


@dataclass(slots=True)
class Run:
    """A roll under way: `memory` and `outcomes` grow; `view` is the last look at the whole group.

    `members` are all members as the roll left them; `renamed` reports the new URLs of workers that came back elsewhere.
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
        """The time for one look, in seconds: --timeout, or more if the last one took more than half of that."""
        return max(self.app.deadline.timeout_s, 2 * self.view.took_s)


def is_first_after_empty(run: Run) -> bool:
    """Decide whether an upgrade left no member to ask, and this is the first step to bring workers back."""
    first = not [each for each in run.outcomes if each.outcome == "done"]
    return first and run.view.group.state == EMPTY and "group_stable" in run.roll.mended


def restart(run: Run, mode: Mode, workers: tuple[str, ...], *, again: OpenStep | None = None) -> Iterator[Step[str]]:
    """Bring `workers` to `mode` and wait for the gates; the outcome stays `failed` until they have passed.

    `again` is what a run that was cut off has left of this step.
    """
    former = {new: name for name, new in run.renamed.items()}
    names = tuple(former.get(name, name) for name in workers)
    before = [each.backups for each in run.outcomes if (each.mode, each.workers) == (mode, names)]  # its mode was set
    backups = again.backups if again else before[-1] if before else ()
    outcome = StepOutcome(mode, names, "failed", backups=backups)
    run.outcomes.append(outcome)
    app = replace(run.app, deadline=Deadline.after(_timeout_s(run, workers), run.app.clock))
    this = _Restart(run, outcome.with_backups(app, run.roll.journal), outcome, workers, again)
    yield Step(f"{', '.join(workers)} {mode.value}", this.bring, this.begin, this.end)
    settled, at_once = this.settled, run.roll.driver.at_once
    brought = {name: Brought(mode, member_id) for name, member_id in settled.members.items()}
    run.memory = run.memory.without(settled.renamed).after(brought, at_once=at_once)
    run.members = settled.everybody
    run.renamed |= {former.get(name, name): new for name, new in settled.renamed.items()}
    outcome.outcome, outcome.detail = "done", "; ".join(settled.evidence)
    surplus = max(0, len(settled.members) - len(workers)) if at_once else 0
    outcome.joined = tuple(sorted(settled.members.keys() - set(workers))[:surplus])
    words = f"{', '.join(workers)}: {mode.value}, everything as before"
    run.app.on_event(Event(words, standings=standings(workers, mode, "done")))


def _settle(run: Run, app: App, expected: Expected) -> Settled:
    """Wait for the gates; if the step fails because somebody reverted what it set, raise that as the error."""
    try:
        return await_settled(app, expected)
    except EosctlError as exc:
        cause: EosctlError | None = None
        with suppress(EosctlError):
            cause = taken_back_error(look_app(run.app, run.look_s), run.roll.driver, expected.mode)
        raise cause or exc from exc


def set_alone(run: Run, mode: Mode, worker: str) -> Iterator[Step[str]]:
    """Set the mode of a worker that is not a member: when it starts again, it must not be in its former mode."""
    driver = run.roll.driver
    if not isinstance(driver, SetsAlone):
        raise TypeError(f"{driver.name} can't set the mode of a worker that is down")
    outcome = StepOutcome(mode, (worker,), "failed")
    run.outcomes.append(outcome)

    acted = DriverResult("")

    def configure() -> str:
        nonlocal acted
        app = replace(run.app, deadline=Deadline.after(_timeout_s(run, (worker,)), run.app.clock))
        try:
            acted = driver.set_alone(app, worker, mode)
        except EosctlError as exc:
            outcome.detail = f"it is no member of the group, and could not be given {mode.value}: {exc.message}"
            raise RefusedError(
                f"{worker}: {outcome.detail}",
                hint=f"{Waiver.ACCEPT_GONE} {shell_word(worker)} goes on without it, if it is gone for good.",
            ) from exc
        outcome.name_backup(acted)
        return acted.words

    def note(words: str) -> Note:
        return Note("configured", {"worker": worker, "mode": mode.value, "words": words})

    yield Step(f"{worker} {mode.value}", configure, after=note)
    run.memory = replace(run.memory, next_start={**run.memory.next_start, worker: frozenset({mode})})
    outcome.outcome, outcome.detail = "done", f"{acted.words}; it is no member of the group, and was not started yet"
    run.app.on_event(Event(f"{worker}: {outcome.detail}", standings=standings((worker,), mode, "done")))


def _timeout_s(run: Run, workers: tuple[str, ...]) -> float:
    """Return how long a step may take: --settle-timeout for each of its workers, even if a whole pass is one step."""
    return run.roll.request.settle_timeout_s * (max(1, len(workers)) if run.roll.driver.at_once else 1)


def require_as_left(run: Run, members: Mapping[str, str]) -> None:
    """Raise RefusedError if the group is not as this roll left it; remember the members for the next check.

    If a controller restarts workers, it may also do so for reasons of its own.
    """
    before, run.members = run.members, members
    if run.roll.driver.at_once or not before:
        return
    anew = [f"{url} joined again" for url, member_id in members.items() if before.get(url, member_id) != member_id]
    changes = [*anew, *(f"{url} joined" for url in members if url not in before)]
    changes += [f"{url} left" for url in before if url not in members]
    if changes:
        raise RefusedError(touched_by_others(", ".join(changes)), hint=TOUCHED_HINT)


@dataclass(slots=True)
class _Restart:
    """The restart of some workers: what there was `before` it, and how it `settled`; `app` has the time of one step.

    `again` is what a run that was cut off has left of it.
    """

    run: Run
    app: App
    outcome: StepOutcome
    workers: tuple[str, ...]
    again: OpenStep | None
    before: Before = field(init=False)
    settled: Settled = field(init=False)

    def begin(self) -> Note | None:
        """Look at the group before the restart; return None if a killed run had come further."""
        again, run, further = self.again, self.run, self._further
        if further is not None:
            # whether the leader had claimed its id before is unknown; that it has by now is asked all the same
            self.before = Before(dict(further.members), LeaderClaim(None, None, seen=False))
            return None
        mode, at_once, look_s = self.outcome.mode, run.roll.driver.at_once, run.look_s
        as_it_is = again or is_first_after_empty(run)
        look = look_app(self.app, look_s)
        group = observe_workers(look) if as_it_is else await_calm(self.app, self.workers, mode, look_s=look_s)
        group = group.named_as(known_nodes(run.memory, again.members, self.workers) if again else KnownNodes(run.names))
        if again is None:
            require_as_left(run, members_of(group))
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
        """Let the driver bring the workers, and wait for the gates; return the evidence of the modes."""
        acted = self._act()
        self.outcome.name_backup(acted)
        self.settled = _settle(self.run, self.app, self._expected(acted))
        return "; ".join(self.settled.evidence)

    def end(self, _evidence: str) -> Note:
        """Return what the journal keeps of the workers."""
        settled = self.settled
        facts = {"members": dict(settled.members), "evidence": list(settled.evidence)}
        return Note("done", {**facts, "at_once": self.run.roll.driver.at_once, "renamed": dict(settled.renamed)})

    @property
    def _further(self) -> OpenStep | None:
        """The step of a killed run whose driver was done; None for a step that failed, which is repeated."""
        begun = self.run.roll.begun
        if self.again is None or begun is None:
            return None
        return self.again if self.again.restarted and begun.stopped is None else None

    def _act(self) -> DriverResult:
        """Let the driver bring the workers; do not repeat what is known to be done."""
        roll, mode, further = self.run.roll, self.outcome.mode, self._further
        if further is not None and not roll.driver.waits_for_person:
            return DriverResult(further.words)
        if further is None:
            words = f"{', '.join(self.workers)}: restarting as {mode.value}"
            self.app.on_event(Event(words, standings=standings(self.workers, mode, "restarting")))
        acted = self._made_before() or roll.driver.bring(self.app, self.workers, mode)
        roll.journal.write("restarted", words=acted.words, backup=acted.backup)
        return acted

    def _made_before(self) -> DriverResult | None:
        """Return what a controller did of a step that was cut off, if it has brought every pod to the mode."""
        again, driver, mode = self.again, self.run.roll.driver, self.outcome.mode
        if again is None:
            return None
        look = look_app(self.app, self.run.look_s)
        is_made = made_before(look, driver, mode, again.members.values())
        return DriverResult(f"the pods were made as {mode.value} before this run") if is_made else None

    def _expected(self, acted: DriverResult) -> Expected:
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
    """Return all members (URL -> id), with those that a cut-off step has stopped.

    If a controller restarts all of them, those before the step count: it may have come further meanwhile.
    """
    if again is not None and at_once:
        return dict(again.members)
    there: dict[str, str | None] = {**members_of(group)}
    gone = [name for name in (again.members if again else ()) if name not in there]
    return {**dict.fromkeys(gone), **there}
