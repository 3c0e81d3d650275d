"""Reports moves: the plans and the progress of one or several connectors, as rows of steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.audit.rows import Verdict
from eosctl.connectors.look import PAUSED, STOPPED
from eosctl.core.offsets.views import KeyAction
from eosctl.core.wording import counted, rfc3339
from eosctl.errors import EosctlError, ExitCode
from eosctl.foreign import Lines
from eosctl.move import codes
from eosctl.move.journal import Direction, MoveStep
from eosctl.move.offsets import Arrival
from eosctl.move.plan import MovePlan
from eosctl.move.rows import (
    CONNECTORS_MOVE_PLAN,
    CONNECTORS_MOVE_RESULT,
    MoveData,
    MovedSetting,
    MoveOutcome,
    MovePart,
    MoveRow,
    MoveSummary,
    SidePart,
)
from eosctl.move.rules import resolved_there, shown_settings
from eosctl.move.run import MoveStepDone
from eosctl.move.sides import Side
from eosctl.offsets.write_rows import ActionCounts, ResultData, topic_parts
from eosctl.output.rows import Kind
from eosctl.report import Problem, Report
from eosctl.state.journal import Progress


class Stays(Struct, frozen=True):
    """A connector that is left out, or can't be moved, and why."""

    connector: str
    why: str
    error: EosctlError | None = None


class MoveDone(Struct, frozen=True):
    """A plan with what became of it; None before it is carried out, or where another connector's failure ended all."""

    plan: MovePlan
    progress: Progress[MoveStepDone] | None = None


def show_moves(app: App, moves: Sequence[MovePlan | Stays]) -> Report:
    """Report the plans."""
    done = [each if isinstance(each, Stays) else MoveDone(each) for each in moves]
    return _report(app, CONNECTORS_MOVE_PLAN, done, planned=True)


def moves_report(app: App, moves: Sequence[MoveDone | Stays]) -> Report:
    """Report what was done; the worst of all connectors is the exit code."""
    report = _report(app, CONNECTORS_MOVE_RESULT, moves, planned=False)
    return replace(report, exit_code=_exit_code(moves))


def _exit_code(moves: Sequence[MoveDone | Stays]) -> ExitCode:
    """Return 130 after Ctrl-C, 7 where a connector did not move or nothing is proven, 3 for a verdict of no."""
    done = [each for each in moves if isinstance(each, MoveDone)]
    progress = [each.progress for each in done if each.progress is not None]
    refused = [each.error for each in moves if isinstance(each, Stays) and each.error is not None]
    if any(each.interrupted for each in progress) or any(each.exit_code is ExitCode.INTERRUPTED for each in refused):
        return ExitCode.INTERRUPTED
    if refused or len(progress) < len(done) or any(each.error is not None for each in progress):
        return ExitCode.PARTIAL
    verdicts = {proof.verdict for each in progress for step in each.done.values() if (proof := step.proof) is not None}
    if Verdict.NOT_EXACTLY_ONCE in verdicts:
        return ExitCode.FINDINGS
    return ExitCode.PARTIAL if Verdict.UNPROVEN in verdicts else ExitCode.OK


def _report(app: App, kind: Kind, moves: Sequence[MoveDone | Stays], *, planned: bool) -> Report:
    rows = [row for each in moves for row in _rows(each, planned=planned)]
    plans = [each for each in moves if isinstance(each, MoveDone)]
    parts = [_part(each) for each in plans]
    undone = ("planned", "not_reached", "failed")
    return Report(
        kind=kind,
        rows=rows,
        summary=MoveSummary(
            connectors=len(moves),
            steps=sum(row.step is not None for row in rows),
            to_do=sum(row.outcome in undone for row in rows),
            left_out=sum(isinstance(each, Stays) for each in moves),
        ),
        data=MoveData(moves=parts, undo=parts[0].undo if len(parts) == 1 else None),
        target={
            "kafka_cluster_id": next((each.plan.here.cluster_id for each in plans), None),
            "group_id": app.target.group_id,
        },
        problems=_distinct(problem for each in moves for problem in _problems(each, planned=planned)),
    )


def _distinct(problems: Iterable[Problem]) -> list[Problem]:
    """Return each problem once: what is wrong with a side is the same for all connectors that go there."""
    return list({(each.code, each.message): each for each in problems}.values())


def _rows(move: MoveDone | Stays, *, planned: bool) -> list[MoveRow]:
    if isinstance(move, Stays):
        outcome: MoveOutcome = "left_out" if move.error is None else "refused"
        return [_bare_row(move.connector, outcome, move.why)]
    plan, progress = move.plan, move.progress
    rows = []
    for step in _in_order(plan):
        if step not in plan.steps:
            rows.append(_row(plan, step, "done_before"))
        elif planned:
            rows.append(_row(plan, step, "planned"))
        elif progress is not None and step in progress.done:
            rows.append(_row(plan, step, "done", progress.done[step].detail))
        elif progress is not None and progress.failed == step and progress.error is not None:
            rows.append(_row(plan, step, "failed", progress.error.message))
        else:
            rows.append(_row(plan, step, "not_reached"))
    if not plan.steps:
        rows.append(_bare_row(plan.connector, "done_before", _nothing_left(plan)))
    return rows


def _bare_row(connector: str, outcome: MoveOutcome, detail: str) -> MoveRow:
    return MoveRow(
        connector=connector, step=None, side=None, outcome=outcome, action=None, before=None, after=None, detail=detail
    )


def _nothing_left(plan: MovePlan) -> str:
    there = f"{plan.there.connector} in {plan.there.where}"
    words = {
        Direction.THERE: f"it has moved to {there}",
        Direction.BACK: "it is back",
        Direction.DELETE: "it is deleted here",
    }
    return words[plan.direction]


def _in_order(plan: MovePlan) -> list[MoveStep]:
    return [*plan.done, *plan.steps]


def _problems(move: MoveDone | Stays, *, planned: bool) -> list[Problem]:
    if isinstance(move, Stays):
        return [] if move.error is None else [Problem.of(move.error)]
    plan, progress = move.plan, move.progress
    if planned or progress is None:
        return [*_earlier(plan), *plan.problems]
    found = [problem for step in progress.done.values() for problem in step.problems]
    if progress.error is not None:
        found += [Problem.of(progress.error), _unfinished(plan)]
    return [*_earlier(plan), *plan.problems, *found, *progress.problems]


def _earlier(plan: MovePlan) -> list[Problem]:
    begun = plan.begun
    if begun is None or begun.ended:
        return []
    done = ", ".join(dict.fromkeys(begun.done)) or "nothing"
    message = (
        f"{begun.direction.words} of {plan.connector} (profile {plan.to}) was begun at {rfc3339(begun.began_ms)} and "
        f"not finished; done then: {done}; the connector was {begun.state}"
    )
    return [Problem(codes.MOVE_UNFINISHED, message).as_warning()]


def _unfinished(plan: MovePlan) -> Problem:
    """Report where both sides were left, and the ways to go on from there."""
    on = f"Go on: {plan.command('--resume')}"
    back = f"Go back: {plan.command('--back')}"
    message = f"the move of {plan.connector} is not finished: {_left(plan.here, 'here')}; {_left(plan.there, 'there')}"
    return Problem(codes.MOVE_UNFINISHED, message, hint=Lines.of(on, back) if plan.direction is Direction.THERE else on)


def _left(side: Side, word: str) -> str:
    """Describe how the connector is on a side now; a worker that did not answer may still not."""
    try:
        now = side.look_soon()
    except (EosctlError, KeyboardInterrupt) as exc:
        return f"{word} its state is unknown ({exc.message if isinstance(exc, EosctlError) else 'interrupted'})"
    return f"{word} it is {'not there' if now is None else now.state}"


def _row(plan: MovePlan, step: MoveStep, outcome: MoveOutcome, detail: str | None = None) -> MoveRow:
    side, before, after, action = _wording(plan)[step]
    of_here = None if side is None else side.profile is None
    return MoveRow(
        connector=plan.connector,
        step=step,
        side=None if of_here is None else "here" if of_here else "there",
        outcome=outcome,
        action=action,
        before=before,
        after=after,
        detail=detail,
    )


_Words = tuple[Side | None, str | None, str | None, str]


def _wording(plan: MovePlan) -> Mapping[MoveStep, _Words]:
    """Return, for each step, the side, the state before and after, and the action, in words."""
    origin, target = plan.origin, plan.target
    verb = "pause" if plan.state == PAUSED else "resume"
    state = None if origin.now is None else origin.now.state
    writes = None if plan.arrival is None else _to_write(plan.arrival)
    left = plan.there if plan.direction is Direction.BACK else plan.here
    check = (
        "ask whether it runs there and has committed"
        if plan.direction is Direction.DELETE
        else "ask the worker for its offsets: each must be the one that was copied"
    )
    return {
        MoveStep.STOP: (origin, state, STOPPED, "stop it, wait until it has no task, fence its ids"),
        MoveStep.SETTLE: (origin, None, None, "wait for its last commit"),
        MoveStep.CREATE: (target, None, STOPPED, "create it STOPPED"),
        MoveStep.OFFSETS: (target, writes, None, "give it the offsets of the other side"),
        MoveStep.CHECK: (plan.there if plan.direction is Direction.DELETE else target, None, None, check),
        MoveStep.RESUME: (target, STOPPED, plan.state, f"{verb} it, once it is at rest on the other side"),
        MoveStep.WATCH: (target, None, plan.state, f"wait until it is {plan.state} and commits"),
        MoveStep.REMOVE: (left, left.now.state if left.now else None, None, "delete it; its offsets stay"),
        MoveStep.AUDIT: (None, None, None, "audit both sides: up to the stop, and since the start"),
    }


def _to_write(arrival: Arrival) -> str:
    return f"{counted(len(arrival.writes.sends()), 'offset')} to write"


def _part(move: MoveDone) -> MovePart:
    plan, progress = move.plan, move.progress
    done = {} if progress is None else progress.done
    proof = done[MoveStep.AUDIT].proof if MoveStep.AUDIT in done else None
    arrival = plan.arrival
    writes = None if arrival is None else arrival.writes
    reports = done[MoveStep.OFFSETS].written if MoveStep.OFFSETS in done else ()
    is_there = plan.direction is Direction.THERE
    return MovePart(
        connector=plan.connector,
        direction=plan.direction,
        here=_side(plan, plan.here, plan.facts.plugin_here),
        there=_side(plan, plan.there, plan.facts.plugin_there),
        state=plan.state,
        settings=_settings(plan),
        resolved_there=resolved_there(plan.config) if is_there else [],
        topics=list(plan.facts.topics),
        offsets=None
        if writes is None
        else ActionCounts(**{action.value: writes.writes.actions[action] for action in KeyAction}),
        source_partitions=None if arrival is None else len(arrival.live()),
        creates=[] if writes is None else topic_parts(writes.creates),
        backups=[str(report.data_of(ResultData).backup) for report in reports],
        verdict=None if proof is None else proof.verdict,
        audits=[] if proof is None else list(proof.audits),
        journal=str(plan.journal.path),
        undo=plan.command("--back") if is_there else None,
        kept_elsewhere=_kept_elsewhere(plan) if is_there and plan.steps else None,
    )


def _settings(plan: MovePlan) -> list[MovedSetting]:
    config = {} if plan.here.now is None else plan.here.now.config
    before = shown_settings({name: config[name] for name in plan.settings if name in config})
    return [
        MovedSetting(name=name, before=before.get(name), after=value)
        for name, value in shown_settings(plan.settings).items()
    ]


def _side(plan: MovePlan, side: Side, plugin: str | None) -> SidePart:
    arrival = plan.arrival
    topics = {} if arrival is None else {each.side.profile: each.topic for each in (arrival.origin, arrival.target)}
    return SidePart(
        profile=side.profile,
        kafka_cluster_id=side.cluster_id,
        group_id=side.group_id,
        connector=side.connector,
        state=None if side.now is None else side.now.state,
        version=side.version,
        plugin_version=plugin,
        offsets_topic=topics.get(side.profile),
    )


def _kept_elsewhere(plan: MovePlan) -> str:
    """Describe what to do by hand: a tool that applies the config here would start it here again."""
    return (
        f"if the config of {plan.connector} is kept elsewhere too (Git, Terraform, a Kubernetes resource), move it to "
        f"{plan.there.where} there, too: the next apply would start the connector on this side again"
    )
