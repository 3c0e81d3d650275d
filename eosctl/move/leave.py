"""The steps of a move that take a connector away from one side, and put it, STOPPED, with its offsets on the other."""

from __future__ import annotations

from contextlib import ExitStack

from msgspec.structs import replace

from eosctl.connectors.look import STOPPED
from eosctl.connectors.waiting import POLL_S
from eosctl.core.ids import offsets_transactional_id, task_transactional_ids
from eosctl.core.transactions import KafkaFault, TransactionDescription, TransactionState
from eosctl.core.wording import counted
from eosctl.create.steps import create_stopped
from eosctl.errors import DeadlineError, EosctlError, RefusedError
from eosctl.fence.connect import stop_and_fence
from eosctl.fence.rules import FENCE_TRANSACTION_TIMEOUT_MS
from eosctl.move.offsets import offsets_topic
from eosctl.move.plan import MovePlan
from eosctl.move.proof import ends_of
from eosctl.move.run import GOES_ON, MoveRun, MoveStepDone, arrival_of, config_of, placement_of
from eosctl.move.sides import Side, require_at_rest
from eosctl.offsets.apply import apply_plan
from eosctl.offsets.write_rows import ResultData, ResultSummary
from eosctl.offsets.writes import offsets_journal
from eosctl.report import Report

_ENDS = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT, TransactionState.EMPTY)
_ROUNDS = 3


def stop(run: MoveRun) -> MoveStepDone:
    """Stop the connector on the side that it leaves until no member holds a task; then fence their ids."""
    plan, side = run.plan, run.plan.origin
    config = config_of(plan, side)
    if side.now is None:
        require_at_rest(side, so_that="so nothing was changed")
        return MoveStepDone("it is not there any more")
    if plan.begun is None and side.now.state != STOPPED:
        _refuse_stopped_since(side)
    where = side.of_tasks(config)
    tasks = max(plan.tasks, side.now.task_count)
    detail = stop_and_fence(side.pinned(), side.connector, side.url, tasks=tasks, hint=GOES_ON, where=where)
    return MoveStepDone(detail)


def _refuse_stopped_since(side: Side) -> None:
    """Raise RefusedError if somebody else has stopped it since the plan was made: it may be on another way already."""
    now = side.look()
    if now is not None and now.state == STOPPED:
        raise RefusedError(
            f"{side.connector} was stopped in {side.where} since the plan was made, and not by this command; nothing "
            "was changed",
            hint="Ask who stopped it, and why: another eosctl may be moving it elsewhere. Then run the same command "
            "again.",
        )


def settle(run: MoveRun) -> MoveStepDone:
    """Wait until no transaction of its former tasks is open, and take the ends of its partitions."""
    plan, side = run.plan, run.plan.origin
    config = config_of(plan, side)
    ids = task_transactional_ids(side.group_id, side.connector, plan.tasks)
    app = side.of_tasks(config)
    with app.transactions() as admin:
        for _ in app.deadline.rounds(POLL_S, least_s=POLL_S):
            found = admin.describe_transactions(ids) if ids else {}
            running = [each for each, state in found.items()
                       if isinstance(state, TransactionDescription) and state.state not in _ENDS]  # fmt: skip
            if not running:
                break
        else:
            raise DeadlineError(f"timed out while waiting for the transaction of {running[0]} to end", hint=GOES_ON)
    topic = offsets_topic(side, config).topic
    left = ends_of(side, config, [*plan.facts.topics, topic])
    known = run.handover
    stopped_before = known.left is not None and (side.now is None or side.now.state == STOPPED)
    left_ms = known.left_ms if stopped_before else run.app.clock.now_ms()
    run.handover = replace(known, left=left, left_ms=left_ms)
    unseen = [state for state in found.values() if isinstance(state, KafkaFault) and not state.is_unknown_id]
    if unseen:
        some = f"{counted(len(unseen), 'transactional id')} can't be described ({unseen[0]})"
        detail = f"whether a transaction is open is not seen: {some}; its offsets show it"
        return MoveStepDone(detail, left=left, left_ms=left_ms)
    return MoveStepDone("no transaction of its tasks is open", left=left, left_ms=left_ms)


def create(run: MoveRun) -> MoveStepDone:
    """Create the connector STOPPED; one that is there already is this move's own, as the plan found."""
    done = create_stopped(run.plan.target.pinned(), placement_of(run.plan))
    return MoveStepDone(done.detail, problems=done.problems)


def offsets(run: MoveRun) -> MoveStepDone:
    """Write what the other side lacks, and compare again until it lacks nothing."""
    plan = run.plan
    reports: list[Report] = []
    _end_cut_off_write(plan)
    require_at_rest(plan.origin, so_that="so its offsets may move on; none was copied")
    for _round in range(_ROUNDS):
        arrival = arrival_of(plan)
        writes = arrival.writes
        if not writes.sends() and not reports:
            return MoveStepDone(f"{arrival.target} has all of them")
        if not writes.sends():
            written = sum(report.summary_of(ResultSummary).written for report in reports)
            return MoveStepDone(f"{counted(written, 'offset')} written and read back", written=tuple(reports))
        reports.append(apply_plan(arrival.target.app(), writes, lambda: arrival_of(plan).writes, waits=True))
        if reports[-1].exit_code:
            first = reports[-1].problems[0].message if reports[-1].problems else "the offsets are not as planned"
            backup = reports[-1].data_of(ResultData).backup
            raise EosctlError(f"writing the offsets failed: {first}", hint=f"{GOES_ON} Backup: {backup}")
    raise EosctlError(
        f"the offsets of {plan.origin.connector} in {plan.origin.where} change again and again, though it is STOPPED",
        hint="Who writes them? Look for a worker that is in no group any more. Then run the same command again.",
    )


def _end_cut_off_write(plan: MovePlan) -> None:
    """Abort the transaction that a killed eosctl left open on the target side: it hides offsets, and the next write
    under its id would abort it, too.
    """
    app = plan.target.of_tasks(config_of(plan, plan.target))
    own = offsets_transactional_id(app.target.group_id)
    with ExitStack() as held:
        admin = held.enter_context(app.transactions())
        journal = offsets_journal(app, admin.cluster_id())
        held.enter_context(journal.hold("the offsets of that cluster", until=app.deadline.half()))
        state = admin.describe_transactions([own])[own]
        if isinstance(state, KafkaFault):
            if state.is_unknown_id:
                return
            raise EosctlError(f"whether a transaction of {own} is open is not known: {state}", hint=GOES_ON)
        if state.state in _ENDS:
            return
        for answer in admin.fence([own], transaction_timeout_ms=FENCE_TRANSACTION_TIMEOUT_MS):
            if answer.fault is not None:
                raise EosctlError(f"the open transaction of {own} can't be ended: {answer.fault}", hint=GOES_ON)
