"""The steps of a move that start a connector where it has arrived, and end it where it came from.

Before it is started, the other side is proven to be at rest: STOPPED, or not there, without a task at any member of its
group. When it runs, the other side is looked at once more; should somebody have started it there, it is stopped where
it has just arrived.
"""

from __future__ import annotations

from collections.abc import Mapping

from eosctl.connectors.look import PAUSED, RUNNING
from eosctl.connectors.waiting import POLL_S, await_state, await_stopped
from eosctl.core.clients.logins import HIDDEN
from eosctl.core.ids import connector_path
from eosctl.core.wording import counted
from eosctl.create.steps import check_offsets
from eosctl.errors import DeadlineError, RefusedError
from eosctl.move import codes
from eosctl.move.journal import Direction, Ends, MoveStep, places_of
from eosctl.move.offsets import Arrival, offsets_topic
from eosctl.move.plan import MovePlan
from eosctl.move.proof import ends_of, prove
from eosctl.move.run import GOES_ON, MoveRun, MoveStepDone, arrival_of, config_of, placement_of
from eosctl.move.sides import RestUnknownError, require_at_rest
from eosctl.offsets.steps import before_the_start
from eosctl.report import Problem

_COMMIT_ROUNDS = 5


def check(run: MoveRun) -> MoveStepDone:
    """Ask the worker for the offsets: it must have every one, with the value that came from the other side.

    Of a deletion: whether the connector runs on the other side, and has committed there.
    """
    plan = run.plan
    if plan.direction is Direction.DELETE:
        return _check_moved(plan)
    arrival = _require_copied(plan)
    done = check_offsets(arrival.target.app(), placement_of(plan))
    return MoveStepDone(done.detail, problems=done.problems)


def _require_copied(plan: MovePlan) -> Arrival:
    """Return the offsets of both sides; raise RefusedError where they differ: somebody wrote since they were copied."""
    arrival, side = arrival_of(plan), plan.target
    if arrival.writes.sends():
        raise RefusedError(
            f"the offsets of {side.connector} in {side.where} are not those of {plan.origin.where}: somebody wrote "
            "since they were copied, so it was not started",
            hint=GOES_ON,
        )
    return arrival


def _check_moved(plan: MovePlan) -> MoveStepDone:
    there = plan.there
    now = there.look()
    if now is None or now.state != RUNNING or not now.tasks or set(now.tasks) != {RUNNING}:
        state = "not there" if now is None else f"{now.state}, tasks {', '.join(now.tasks) or 'none'}"
        raise RefusedError(
            f"{there.connector} in {there.where} is {state}: what is left here is deleted when it runs there; nothing "
            "was deleted",
            hint=f"See why: `{there.command('trace')}`.",
        )
    topic = offsets_topic(there, now.config)
    _found, store, _global = topic.read()
    ends = plan.moved.arrived if plan.moved is not None else None
    before = places_of(ends or {})  # a topic that was not there then began at 0
    newest = [store.records[key.raw] for key in store.connectors.get(there.connector, ()) if key.raw in store.records]
    since = [record for record in newest if record.offset >= before.get((topic.topic, record.partition), 0)]
    if ends is None or not since:
        raise RefusedError(
            f"{there.connector} has not committed an offset in {there.where} since it was started there: that it works "
            "there is not proven; nothing was deleted",
            hint="Run again when it has. If its source is idle, and you know that it works, delete it here by REST: "
            f"DELETE {connector_path(plan.connector)}; --delete then ends the journal.",
        )
    return MoveStepDone(f"it runs there, and has committed {counted(len(since), 'source partition')} since")


def prepare_start(run: MoveRun) -> Ends:
    """Return the ends of its partitions on the side that it moves to; last of all, prove that it rests on the other.

    Nothing comes between that look and its start but the entry in the journal. The offsets are compared once more: it
    is at rest, too, when somebody has run it and stopped it again, as while this machine slept.
    """
    plan, side = run.plan, run.plan.target
    config = config_of(plan, side)
    topic = offsets_topic(side, config).topic
    run.commits = before_the_start(side.of_tasks(config), side.connector, topic)
    ends = ends_of(side, config, [*plan.facts.topics, topic])
    if MoveStep.CHECK in plan.steps:
        _require_copied(plan)
    require_at_rest(plan.origin, so_that=f"so it was not started in {side.where}")
    return ends


def resume(run: MoveRun) -> MoveStepDone:
    """Ask for the state that it is to have; see `prepare_start`."""
    plan, side = run.plan, run.plan.target
    verb = "pause" if plan.state == PAUSED else "resume"
    side.worker().set_state(side.connector, verb)
    return MoveStepDone(f"{verb} sent")


def watch(run: MoveRun) -> MoveStepDone:
    """Wait until connector and tasks are as they were, and until they commit: RUNNING alone does not prove it."""
    plan, side = run.plan, run.plan.target
    config = config_of(plan, side)
    app = side.of_tasks(config)
    commits = run.commits or before_the_start(app, side.connector, offsets_topic(side, config).topic)
    now = await_state(
        side.pinned(),
        side.connector,
        side.url,
        plan.state,
        least=1 if plan.state == RUNNING and plan.tasks else 0,
        doing=f"waiting for {side.connector} to be {plan.state} in {side.where}",
        hint=GOES_ON,
        failed=f"{side.connector} FAILED in {side.where}",
        failed_hint=f"`{side.command('trace')}` shows why. {_way_back(plan)}",
    )
    _refuse_both(plan)
    outcome = f"{plan.state}, {counted(len(now.tasks), 'task')}"
    if not now.tasks or plan.state != RUNNING:
        return MoveStepDone(outcome)
    for _ in range(_COMMIT_ROUNDS - 1):
        if commits.wait(app, len(now.tasks))[1]:
            break
    done = commits.watch(app, len(now.tasks), outcome)
    _refuse_both(plan)
    return MoveStepDone(done.detail, problems=done.problems)


def _way_back(plan: MovePlan) -> str:
    return "" if plan.direction is Direction.BACK else f"Back: {plan.command('--back')}"


class RunsOnBothError(RefusedError):
    """The connector was started where it had been stopped, while it ran where it moved to."""

    code = codes.RUNS_ON_BOTH


def _refuse_both(plan: MovePlan) -> None:
    """Stop the connector where it has just arrived, and raise RunsOnBothError, if it runs where it came from."""
    left, side = plan.origin, plan.target
    try:
        require_at_rest(left, so_that=f"while it runs in {side.where}")
    except RestUnknownError:
        raise
    except RefusedError as exc:
        side.worker().set_state(side.connector, "stop")
        await_stopped(side.pinned(), side.connector, side.url, hint=GOES_ON)
        raise RunsOnBothError(
            f"{exc.message}: it was stopped in {side.where}",
            hint="Ask who started it. Stop it there, too, and look what both have done (`eosctl audit`, `eosctl "
            f"offsets get`) before one of them is started. {_way_back(plan)}".strip(),
        ) from exc


def remove(run: MoveRun) -> MoveStepDone:
    """Delete the connector on the side that it left; its offsets stay there."""
    plan = run.plan
    side = plan.there if plan.direction is Direction.BACK else plan.here
    now = side.look()
    if now is None:
        return MoveStepDone("it is not there any more")
    require_at_rest(side, so_that="so it was not deleted there")
    differing = _differing(plan.config, now.config) if plan.direction is Direction.BACK else []
    if differing:
        message = (
            f"{side.connector} stays STOPPED in {side.where}: its config was changed there ({', '.join(differing)})"
        )
        return MoveStepDone(message, problems=(Problem(codes.LEFT_THERE, message, hint=codes.LEFT_THERE.next),))
    side.worker().delete_connector(side.connector)
    app = side.pinned()
    for _ in app.deadline.rounds(POLL_S, least_s=POLL_S):
        if side.look() is None:
            return MoveStepDone("deleted; its offsets stay")
    raise DeadlineError(f"timed out while waiting for {side.connector} to be deleted in {side.where}", hint=GOES_ON)


def _differing(planned: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the settings that differ; of hidden ones the journal does not have the value."""
    names = [name for name in sorted({*planned, *now}) if planned.get(name) != now.get(name)]
    return [name for name in names if planned.get(name) != HIDDEN]


def audit(run: MoveRun) -> MoveStepDone:
    """Audit both sides; what is not proven is a problem, and no failure of the move."""
    plan = run.plan
    proof = prove(plan.origin, plan.target, run.handover)
    return MoveStepDone(proof.sentence(), proof=proof, problems=proof.problems)
