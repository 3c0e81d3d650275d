"""The steps of `connectors move`, each safe to repeat: after a kill the next run looks at both sides and goes on.

The connector never runs on both sides. Before it is started on one, the other is proven to be at rest: STOPPED, or not
there, without a task at any member of its group. A side that can't be asked is not at rest. When it runs, the other
side is looked at once more; should somebody have started it there, it is stopped where it has just arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from eosctl.app import App
from eosctl.connectors.change import POLL_S, await_connector, await_stopped
from eosctl.connectors.look import PAUSED, RUNNING, STOPPED, ConnectorNow
from eosctl.core.clients.hidden_secrets import HIDDEN
from eosctl.core.ids import connector_path, task_transactional_ids
from eosctl.core.transactions import TransactionDescription, TransactionState
from eosctl.core.wording import counted
from eosctl.deadline import Event
from eosctl.errors import (
    AlreadyExistsError,
    ConnectError,
    DeadlineError,
    EosctlError,
    RefusedError,
    StalePlanError,
)
from eosctl.fence.connect import stop_and_fence
from eosctl.foreign import arguments
from eosctl.group.topics import find_config_topic
from eosctl.move import codes
from eosctl.move.journal import Direction, Ends, MoveStep, places_of
from eosctl.move.offsets import Arrival, compare_answer, offsets_topic, plan_arrival
from eosctl.move.plan import MovePlan, plan_move
from eosctl.move.proof import Proof, ends_of, prove
from eosctl.move.rules import shown_settings
from eosctl.move.sides import RestUnknownError, Side, require_at_rest
from eosctl.offsets import codes as offset_codes
from eosctl.offsets.apply import apply_plan
from eosctl.offsets.switch.apply import CommitWatch, before_the_start
from eosctl.offsets.write_rows import ResultData, ResultSummary
from eosctl.offsets.writes import OffsetWritePlan
from eosctl.report import Problem, Report
from eosctl.state.journal import Note, Progress, Step, Work, carry_out, journal_of

_GOES_ON = "Run the same command again: it goes on from here. --timeout is per step."
_ENDS = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT, TransactionState.EMPTY)
_ROUNDS, _COMMIT_ROUNDS = 3, 5


class MoveStepDone(Struct, frozen=True):
    """The result of a step: `written` are the reports of offset writes, `left` the ends of the partitions then."""

    detail: str
    written: tuple[Report, ...] = ()
    left: Ends | None = None
    proof: Proof | None = None
    problems: tuple[Problem, ...] = ()


class _Run:
    """What the steps of one run know of each other."""

    def __init__(self, app: App, plan: MovePlan) -> None:
        self.app, self.plan = app, plan
        known = plan.moved if plan.direction is Direction.THERE else plan.begun
        self.left: Ends | None = None if known is None else known.left
        self.left_ms = 0 if known is None else known.left_ms
        self.arrived: Ends | None = None if known is None else known.arrived
        self.commits: CommitWatch | None = None


def run_move(app: App, plan: MovePlan) -> Progress[MoveStepDone]:
    """Run the steps of a plan; stop at the first that fails or at Ctrl-C.

    Raises StalePlanError if one of the sides is no longer as planned, RefusedError while another eosctl moves it.
    """
    run = _Run(app, plan)
    here, there = plan.here, plan.there
    switch = journal_of(here.app, "offsets-switch", here.connector, cluster_id=here.cluster_id)
    work = Work(
        steps=lambda: [_step(run, step) for step in plan.steps],
        journal=plan.journal,
        subject=f"connector {here.connector} of {here.where}",
        recheck=lambda: _require_unchanged(plan),
        begin=lambda: _begin(plan),
        locks=[
            (there.journal(), f"connector {there.connector} of {there.where}"),
            (switch, f"the offsets of connector {here.connector}"),
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
    if not same or _topic_ids(now) != _topic_ids(plan):
        raise StalePlanError(
            f"{plan.connector} changed on one of the sides since the plan was made; nothing was changed",
            hint="Plan again.",
        )


def _topic_ids(plan: MovePlan) -> Mapping[str, str]:
    writes = None if plan.arrival is None else plan.arrival.writes
    return {} if writes is None else {name: each.topic_id for name, each in writes.found.descriptions.items()}


def _step(run: _Run, step: MoveStep) -> Step[MoveStepDone]:
    def before() -> Note:
        if step is MoveStep.RESUME:
            run.arrived = _arrived(run)
            return Note("start", {"step": step, "arrived": run.arrived})
        return Note("start", {"step": step})

    def act() -> MoveStepDone:
        done = _STEPS[step](run)
        run.app.on_event(Event(f"{run.plan.connector}: {step}: {done.detail}"))
        return done

    def after(done: MoveStepDone) -> Note:
        cut = {} if done.left is None else {"left": done.left}
        return Note("done", {"step": step, "detail": done.detail, **cut})

    return Step(step, act, before=before, after=after)


def _stop(run: _Run) -> MoveStepDone:
    """Stop the connector on the side that it leaves until no member holds a task; then fence their ids."""
    plan, side = run.plan, run.plan.origin
    config = _config_of(plan, side)
    if side.now is None:
        require_at_rest(side, so_that="so nothing was changed")
        return MoveStepDone("it is not there any more")
    where = side.of_tasks(config)
    tasks = max(plan.tasks, side.now.task_count)
    detail = stop_and_fence(side.pinned(), side.connector, side.url, tasks=tasks, hint=_GOES_ON, where=where)
    return MoveStepDone(detail)


def _settle(run: _Run) -> MoveStepDone:
    """Wait until no transaction of its former tasks is open, and take the ends of its partitions."""
    plan, side = run.plan, run.plan.origin
    config = _config_of(plan, side)
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
            raise DeadlineError(f"timed out while waiting for the transaction of {running[0]} to end", hint=_GOES_ON)
    topic = offsets_topic(side, config).topic
    run.left = ends_of(side, config, [*plan.facts.topics, topic])
    run.left_ms = run.app.clock.now_ms()
    return MoveStepDone("no transaction of its tasks is open", left=run.left)


def _create(run: _Run) -> MoveStepDone:
    """Create the connector STOPPED; one that is there already is this move's own, as the plan found."""
    plan, side = run.plan, run.plan.target
    if plan.there.now is not None:
        return MoveStepDone("it is there, STOPPED, from the run before")
    try:
        side.worker().create_connector(side.connector, plan.config, STOPPED)
    except AlreadyExistsError as exc:
        raise RefusedError(
            f"{side.where} got a connector {side.connector} meanwhile", hint="Look whose it is, then run again."
        ) from exc
    hint = _GOES_ON
    doing = f"waiting for {side.connector} to be STOPPED in {side.where}"
    _await_there(side, lambda now: now.state == STOPPED, doing=doing, hint=hint)
    _require_recorded(plan, side)
    return MoveStepDone("created STOPPED")


def _await_there(side: Side, arrived: Callable[[ConnectorNow], bool], *, doing: str, hint: str) -> ConnectorNow:
    """Wait for a connector that a worker may not show at once."""
    app = side.pinned()
    for _ in app.deadline.rounds(POLL_S, least_s=POLL_S):
        now = side.look()
        if now is not None and arrived(now):
            return now
    raise DeadlineError(f"timed out while {doing}", hint=hint)


def _require_recorded(plan: MovePlan, side: Side) -> None:
    """Raise RefusedError unless the group's own config topic has the new connector: only its workers write there."""
    app = side.pinned()
    for _ in app.deadline.half().rounds(POLL_S, least_s=POLL_S):
        with app.topics() as topics:
            found = find_config_topic(app, topics)
        known = None if found is None else found.state.connectors.get(side.connector)
        if known is not None and known.config == dict(plan.config):
            return
    raise RefusedError(
        f"topic {app.target.config_topic} of {side.where} does not have the config that the worker at {side.shown_url} "
        f"took for {side.connector}: it is of another group; it was not started",
        hint=f"Delete it there, and name the worker's group in profile {plan.to}.",
    )


def _offsets(run: _Run) -> MoveStepDone:
    """Write what the other side lacks, and compare again until it lacks nothing."""
    plan = run.plan
    reports: list[Report] = []
    require_at_rest(plan.origin, so_that="so its offsets may move on; none was copied")
    for _round in range(_ROUNDS):
        arrival = _arrival(plan)
        writes = arrival.writes
        if writes is None:
            where = f"{arrival.target} of both sides"
            return MoveStepDone(f"{counted(len(arrival.live()), 'source partition')} in {where}: nothing to copy")
        if not writes.sends():
            written = sum(report.summary_of(ResultSummary).written for report in reports)
            return MoveStepDone(f"{counted(written, 'offset')} written and read back", written=tuple(reports))
        reports.append(apply_plan(arrival.target.app(), writes, lambda: _writes(plan)))
        if reports[-1].exit_code:
            first = reports[-1].problems[0].message if reports[-1].problems else "the offsets are not as planned"
            backup = reports[-1].data_of(ResultData).backup
            raise EosctlError(f"writing the offsets failed: {first}", hint=f"{_GOES_ON} Backup: {backup}")
    raise EosctlError(
        f"the offsets of {plan.origin.connector} in {plan.origin.where} change again and again, though it is STOPPED",
        hint="Who writes them? Look for a worker that is in no group any more. Then run the same command again.",
    )


def _arrival(plan: MovePlan) -> Arrival:
    origin, target = plan.origin, plan.target
    return plan_arrival(
        offsets_topic(origin, _config_of(plan, origin)),
        offsets_topic(target, _config_of(plan, target)),
        overwrite=plan.request.overwrite_newer,
        settled=True,
    )


def _writes(plan: MovePlan) -> OffsetWritePlan:
    writes = _arrival(plan).writes
    assert writes is not None  # noqa: S101 - two topics do not become one
    return writes


def _config_of(plan: MovePlan, side: Side) -> Mapping[str, str]:
    """Return the connector's config on one side; the planned one where it is not there yet."""
    if side.now is not None:
        return side.now.config
    return plan.config


def _check(run: _Run) -> MoveStepDone:
    """Ask the worker for the offsets: it must have every one, with the value that came from the other side.

    Of a deletion: whether the connector runs on the other side, and has committed there.
    """
    plan, side = run.plan, run.plan.target
    if plan.direction is Direction.DELETE:
        return _check_moved(plan)
    arrival = _arrival(plan)
    if arrival.writes is not None and arrival.writes.sends():
        raise RefusedError(
            f"the offsets of {side.connector} in {side.where} are not those that were copied: somebody wrote them since",
            hint=_GOES_ON,
        )
    wrong, unfound = compare_answer(arrival, side.worker().offsets(side.connector))
    if wrong:
        raise RefusedError(
            f"the worker at {side.shown_url} does not find {counted(len(wrong), 'offset')} of {side.connector} as it "
            f"was copied, first {wrong[0]}: it was not started",
            hint=f"`eosctl offsets get {side.flags}--connector {arguments(side.connector)} --rest` compares worker and "
            f"topic. {_GOES_ON}",
        )
    count = counted(len(arrival.live()), "source partition")
    if not unfound:
        return MoveStepDone(f"the worker there finds the offset of {count}")
    keys = counted(len(unfound), "source partition has a key", "source partitions have keys")
    message = f"{keys} in an order that Connect's REST interface can't find; the tasks do"
    return MoveStepDone(message, problems=(Problem(offset_codes.REST_FINDS_OTHER_KEYS, message),))


def _check_moved(plan: MovePlan) -> MoveStepDone:
    there = plan.there
    now = there.look()
    if now is None or now.state != RUNNING or not now.tasks or set(now.tasks) != {RUNNING}:
        state = "not there" if now is None else f"{now.state}, tasks {', '.join(now.tasks) or 'none'}"
        raise RefusedError(
            f"{there.connector} in {there.where} is {state}: what is left here is deleted when it runs there; nothing "
            "was deleted",
            hint=f"See why: `eosctl connectors trace {there.flags}{arguments(there.connector)}`.",
        )
    topic = offsets_topic(there, now.config)
    _found, store, _global = topic.read()
    ends = (plan.moved.arrived if plan.moved is not None else None) or {}
    before = places_of(ends)
    newest = [store.records[key.raw] for key in store.connectors.get(there.connector, ()) if key.raw in store.records]
    since = [record for record in newest if record.offset >= before.get((topic.topic, record.partition), 0)]
    if topic.topic not in ends or not since:
        raise RefusedError(
            f"{there.connector} has not committed an offset in {there.where} since it was started there: that it works "
            "there is not proven; nothing was deleted",
            hint="Run again when it has. If its source is idle, and you know that it works, delete it here by Connect's "
            f"REST interface: DELETE {connector_path(plan.connector)}.",
        )
    return MoveStepDone(f"it runs there, and has committed {counted(len(since), 'source partition')} since")


def _resume(run: _Run) -> MoveStepDone:
    plan, side = run.plan, run.plan.target
    config = _config_of(plan, side)
    run.commits = before_the_start(side.of_tasks(config), side.connector, offsets_topic(side, config).topic)
    verb = "pause" if plan.state == PAUSED else "resume"
    side.worker().set_state(side.connector, verb)
    return MoveStepDone(f"{verb} sent")


def _arrived(run: _Run) -> Ends:
    """Prove that it rests on the side that it leaves, and take the ends of its partitions on the other one."""
    plan, side = run.plan, run.plan.target
    require_at_rest(plan.origin, so_that=f"so it was not started in {side.where}")
    config = _config_of(plan, side)
    return ends_of(side, config, [*plan.facts.topics, offsets_topic(side, config).topic])


def _watch(run: _Run) -> MoveStepDone:
    """Wait until connector and tasks are as they were, and until they commit: RUNNING alone does not prove it."""
    plan, side = run.plan, run.plan.target
    config = _config_of(plan, side)
    app = side.of_tasks(config)
    commits = run.commits or before_the_start(app, side.connector, offsets_topic(side, config).topic)
    least = 1 if plan.state == RUNNING and plan.tasks else 0

    def arrived(now: ConnectorNow) -> bool:
        if "FAILED" in (now.state, *now.tasks):
            raise ConnectError(
                f"{side.connector} FAILED in {side.where}: {now.trace or 'see the worker'}",
                hint=f"`eosctl connectors trace {side.flags}{arguments(side.connector)}` explains it. {_way_back(plan)}",
            )
        complete = len(now.tasks) == max(least, now.task_count) and set(now.tasks) <= {plan.state}
        return now.state == plan.state and complete

    doing = f"waiting for {side.connector} to be {plan.state} in {side.where}"
    now = await_connector(side.pinned(), side.connector, side.url, arrived, doing=doing, hint=_GOES_ON)
    _refuse_both(plan)
    outcome = f"{plan.state}, {counted(len(now.tasks), 'task')}"
    if not now.tasks or plan.state != RUNNING:
        return MoveStepDone(outcome)
    for _ in range(_COMMIT_ROUNDS):
        more, has_committed = commits.wait(app, len(now.tasks))
        if has_committed:
            break
    _refuse_both(plan)
    if has_committed:
        return MoveStepDone(f"{outcome}; {more}")
    problem = Problem(
        offset_codes.NOTHING_COMMITTED_YET,
        f"{side.connector} is RUNNING in {side.where}, which does not prove that it reads its source: {more}",
        hint=offset_codes.NOTHING_COMMITTED_YET.next,
    )
    return MoveStepDone(f"{outcome}; {more}", problems=(problem,))


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
        await_stopped(side.pinned(), side.connector, side.url, hint=_GOES_ON)
        raise RunsOnBothError(
            f"{exc.message}: it was stopped in {side.where}",
            hint=f"Ask who started it. Stop it there, too, and look what both have done (`eosctl audit`, `eosctl "
            f"offsets get`) before one of them is started. {_way_back(plan)}".strip(),
        ) from exc


def _remove(run: _Run) -> MoveStepDone:
    """Delete the connector on the side that it left; its offsets stay there."""
    plan = run.plan
    side = plan.there if plan.direction is Direction.BACK else plan.here
    now = side.look()
    if now is None:
        return MoveStepDone("it is not there any more")
    require_at_rest(side, so_that="so it was not deleted there")
    differing = _differing(plan.config, now.config) if plan.direction is Direction.BACK else []
    if differing:
        message = f"{side.connector} stays STOPPED in {side.where}: its config was changed there ({', '.join(differing)})"
        return MoveStepDone(message, problems=(Problem(codes.LEFT_THERE, message, hint=codes.LEFT_THERE.next),))
    side.worker().delete_connector(side.connector)
    app = side.pinned()
    for _ in app.deadline.rounds(POLL_S, least_s=POLL_S):
        if side.look() is None:
            return MoveStepDone("deleted; its offsets stay")
    raise DeadlineError(f"timed out while waiting for {side.connector} to be deleted in {side.where}", hint=_GOES_ON)


def _differing(planned: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the settings that differ; of hidden ones the journal does not have the value."""
    names = [name for name in sorted({*planned, *now}) if planned.get(name) != now.get(name)]
    return [name for name in names if planned.get(name) != HIDDEN]


def _audit(run: _Run) -> MoveStepDone:
    plan = run.plan
    proof = prove(plan.origin, plan.target, left=run.left, left_ms=run.left_ms, arrived=run.arrived)
    return MoveStepDone(proof.sentence(), proof=proof, problems=proof.problems)


_STEPS: Mapping[MoveStep, Callable[[_Run], MoveStepDone]] = {
    MoveStep.STOP: _stop,
    MoveStep.SETTLE: _settle,
    MoveStep.CREATE: _create,
    MoveStep.OFFSETS: _offsets,
    MoveStep.CHECK: _check,
    MoveStep.RESUME: _resume,
    MoveStep.WATCH: _watch,
    MoveStep.REMOVE: _remove,
    MoveStep.AUDIT: _audit,
}
