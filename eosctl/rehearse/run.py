"""rehearse: starts the sandbox, goes through the upgrade and the faults, and audits the time around each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Protocol

from eosctl.app import App
from eosctl.deadline import Deadline, Event, Standing
from eosctl.errors import EosctlError
from eosctl.foreign import shell_word
from eosctl.plan import Plan
from eosctl.rehearse import codes
from eosctl.rehearse.faults.connectors import Upgrade
from eosctl.rehearse.faults.fault import Fault
from eosctl.rehearse.ground import Ground
from eosctl.rehearse.plan import PlannedRound, RehearsalPlan
from eosctl.rehearse.proof import Audit, FaultAudit, Proof
from eosctl.rehearse.report import result_report, show_plan
from eosctl.rehearse.rows import FaultRow, FaultVerdict, FoundPart
from eosctl.rehearse.stage import RehearsalStage
from eosctl.report import Problem, Report
from eosctl.state.journal import Step, Work, carry_out

OnRow = Callable[[FaultRow], None]
_MS = 1000
_STATES = {
    FaultVerdict.EXACTLY_ONCE: "done",
    FaultVerdict.EXACTLY_ONCE_BY_TRANSACTIONS: "done",
    FaultVerdict.UNPROVEN: "unproven",
}


def prepare_rehearsal(
    app: App, plan: RehearsalPlan, *, environ: Mapping[str, str], audit: Audit, on_row: OnRow
) -> Plan:
    """Plan to rehearse; `on_row` gets each row as it comes. Start nothing yet."""
    apply = partial(apply_rehearsal, app, plan, environ=environ, audit=audit, on_row=on_row)
    question = f"Start the sandbox {plan.sandbox} and rehearse {plan.connector_name}?"
    return Plan(partial(show_plan, plan), question, apply, app.target)


def apply_rehearsal(
    app: App, plan: RehearsalPlan, *, environ: Mapping[str, str], audit: Audit, on_row: OnRow
) -> Report:
    """Go through the rehearsal; Ctrl-C or a fault without recovery ends it with what was seen until then."""
    return rehearse_on(RehearsalStage(app, plan, environ), app, plan, audit=audit, on_row=on_row)


def rehearse_on(stage: AnyStage, app: App, plan: RehearsalPlan, *, audit: Audit, on_row: OnRow) -> Report:
    """Go through the rehearsal on a stage, which is closed at the end."""
    rehearsal = Rehearsal(app, plan, stage, Proof(audit, plan), on_row)
    problems = list[Problem]()
    try:
        progress = carry_out(Work(steps=rehearsal.steps, recheck=lambda: None))
    finally:
        problems += _close(stage, plan)
    return result_report(plan, rehearsal.rows, progress, problems=problems)


def _close(stage: AnyStage, plan: RehearsalPlan) -> list[Problem]:
    """Close the stage; report a sandbox that was not stopped, without losing the rows."""
    try:
        stage.close()
    except (EosctlError, OSError, KeyboardInterrupt) as exc:
        why = exc.message if isinstance(exc, EosctlError) else str(exc) or "interrupted"
        hint = f"Stop it with: eosctl sandbox down --name {shell_word(plan.sandbox)}"
        return [Problem(codes.SANDBOX_LEFT, f"the sandbox {plan.sandbox} was not stopped: {why}", hint)]
    return []


class AnyStage(Protocol):
    """A stage for faults: a sandbox."""

    @property
    def ground(self) -> Ground: ...

    def open(self) -> None:
        """Start, and return when every task of the connector runs; raise EosctlError."""

    def close(self) -> None:
        """End what was started."""


class Rehearsal:
    """One rehearsal, and its progress."""

    def __init__(self, app: App, plan: RehearsalPlan, stage: AnyStage, proof: Proof, on_row: OnRow) -> None:
        self._app, self._plan, self._stage, self._proof, self._on_row = app, plan, stage, proof, on_row
        self._states: dict[str, str] = {}
        self._round = 0
        self.rows: list[FaultRow] = []

    def steps(self) -> Iterator[Step[None]]:
        """Yield the start, the upgrade, and round after round of faults."""
        yield Step("the start", self._stage.open)
        minutes = self._plan.request.minutes
        over = Deadline.after((minutes or 0) * 60, self._app.clock)
        for planned in self._plan.rounds():
            self._begin_round(planned)
            if self._plan.upgrades and self._round == 1:
                yield Step(Upgrade.name, partial(self._rehearse, Upgrade))
            for each in planned:
                if self._round > 1 and over.expired():
                    return
                yield Step(each.kind.name, partial(self._go_through, each))
            if over.expired():
                return

    def _begin_round(self, planned: list[PlannedRound]) -> None:
        self._round += 1
        upgrade = [Upgrade.name] if self._plan.upgrades and self._round == 1 else []
        self._states = dict.fromkeys([*upgrade, *(each.kind.name for each in planned)], "to come")
        self._show("")

    def _go_through(self, planned: PlannedRound) -> None:
        self._stage.ground.choose = random.Random(planned.seed)  # noqa: S311 - no secret
        self._app.clock.sleep_s(planned.pause_s)
        self._rehearse(planned.kind)

    def _rehearse(self, kind: type[Fault]) -> None:
        """Rehearse one row; try a fault that did not hit once more.

        Raises EosctlError, with the row made, if the tasks do not run again.
        """
        clock, ground = self._app.clock, self._stage.ground
        ground.notes.clear()
        ground.await_snapshot()
        self._proof.before(ground, leaves_mode=kind.leaves_mode)
        for is_last in (False, True):
            ground.begin_fault()
            at_ms, began_s = clock.now_ms(), clock.monotonic_s()
            try:
                well_s = self._happen(kind())
            except EosctlError as exc:
                self._add(_not_recovered(kind.name, at_ms, ground, exc))
                raise
            if is_last or not ground.missed:
                break
            ground.note(f"it did not hit ({'; '.join(ground.missed)}), so it was tried once more")
        recovered_ms = int((well_s - began_s) * _MS)
        if kind.leaves_mode:
            self._proof.enabled(ground, at_ms + recovered_ms)
            ground.note("transactions are audited from when all workers were enabled, values over the whole run")
        self._show(kind.name, "auditing")
        self._add(_row(kind.name, at_ms, recovered_ms, ground, self._proof.of(ground)))

    def _happen(self, fault: Fault) -> float:
        """Carry out the fault until all is well again, and return when that was; undo it even if it only half began.

        At Ctrl-C that is for a sandbox that is kept: else nothing of it will be left.
        """
        ground = self._stage.ground
        try:
            self._show(fault.name, "injecting")
            fault.inject(ground)
        except (EosctlError, KeyboardInterrupt) as exc:
            if self._plan.request.keep or isinstance(exc, EosctlError):
                with suppress(Exception):  # what it was ended by matters more
                    fault.undo(ground)
            raise
        self._show(fault.name, "undoing")
        fault.undo(ground)
        self._show(fault.name, "recovering")
        well_s = ground.await_well(within_s=self._app.deadline.timeout_s, ready=lambda: fault.recovered(ground))
        fault.verify(ground)
        return well_s

    def _add(self, row: FaultRow) -> None:
        self.rows.append(row)
        self._on_row(row)
        state = _STATES.get(row.verdict, "failed")
        self._show(row.fault, state, f"{row.fault}: {row.verdict}")

    def _show(self, name: str, state: str = "", words: str = "") -> None:
        """Report the table, and a sentence for output without a table."""
        if name:
            self._states[name] = state
        standings = tuple(Standing(fault, f"round {self._round}", each) for fault, each in self._states.items())
        words = words or (f"{name}: {state}" if name else "")
        self._app.on_event(Event(words, standings=standings, heading="FAULT"))


def _row(name: str, at_ms: int, recovered_ms: int, ground: Ground, audited: FaultAudit) -> FaultRow:
    return FaultRow(
        fault=name,
        at_ms=at_ms,
        recovered_ms=recovered_ms,
        verdict=audited.verdict,
        why=audited.why,
        evidence="; ".join([*ground.notes, audited.why]),
        findings=list(audited.findings),
        window=audited.window,
    )


def _not_recovered(name: str, at_ms: int, ground: Ground, why: EosctlError) -> FaultRow:
    finding = FoundPart(
        code=codes.TASKS_NOT_RUNNING, severity="error", subject=ground.connector, message=why.message, evidence={}
    )
    return FaultRow(
        fault=name,
        at_ms=at_ms,
        recovered_ms=None,
        verdict=FaultVerdict.NOT_RECOVERED,
        why=why.message,
        evidence="; ".join([*ground.notes, why.message]),
        findings=[finding],
        window=None,
    )
