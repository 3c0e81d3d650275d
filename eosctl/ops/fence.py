"""fence: gather the ids and their states, plan, and fence them through their coordinators.

`Admin.fenceProducers` from a shell, plus the checks that Java leaves to its caller. The native wire does the fencing
here; `fence_routes` holds the two other ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from eosctl.connect.worker_url import parse_worker_url
from eosctl.core.fencing import (
    FENCE_TRANSACTION_TIMEOUT_MS,
    FenceItem,
    LiveTask,
    Outcome,
    blocked_leaders,
    blocked_live,
    newly_live,
    plan_items,
    read_back,
    settled,
    unanswered,
)
from eosctl.core.transactions import FenceAnswer, KafkaFault
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, ExitCode, RefusedError, StalePlanError
from eosctl.events import Event
from eosctl.ops.app import App
from eosctl.ops.fence_gather import FenceRequest, Gathered, Liveness, find_liveness, gather_ids, newest_task_count
from eosctl.ops.fence_report import fence_report
from eosctl.report import Problem, Report

_READ_BACK_S = 5.0
_PROGRESS_EVERY = 100
_NAMED = 5

FenceRoute = Callable[[App, Sequence[str]], Iterator[FenceAnswer]]


@dataclass(frozen=True, slots=True)
class FencePlan:
    """What would be fenced, and what that was decided from."""

    request: FenceRequest
    gathered: Gathered
    liveness: Liveness
    cluster_id: str
    items: Sequence[FenceItem]
    problems: tuple[Problem, ...]

    def wanted(self) -> list[str]:
        """The ids to fence, in order."""
        return [item.transactional_id for item in self.items if item.outcome is Outcome.WOULD_FENCE]

    def report(self, app: App) -> Report:
        """The plan as rows."""
        return fence_report(app, "fence-plan", self.items, cluster_id=self.cluster_id, problems=self.problems)


def plan_fence(app: App, request: FenceRequest) -> FencePlan:
    """Finds the ids, describes them and checks who holds them.

    Raises RefusedError for ids of running tasks (without `live`) and leader ids (without `allow_leader`), and what
    gathering raises: UsageError, NotFoundError, UnreachableError, UnauthorizedError.
    """
    gathered = gather_ids(app, request)
    liveness = find_liveness(app)
    with app.transactions() as admin:
        cluster_id = admin.cluster_id()
        described = admin.describe_transactions(gathered.ids) if gathered.ids else {}
    items = plan_items(
        gathered.ids,
        described,
        owner_of_id=lambda transactional_id: gathered.owner_of(app, transactional_id),
        live=liveness.by_id,
        create_unknown=request.create_unknown,
    )
    if not request.allow_leader:
        _refuse_leaders(blocked_leaders(items))
    if not request.live:
        _refuse_live(blocked_live(items))
    problems = (*gathered.problems, *liveness.problems, *_cautions(app, items))
    return FencePlan(request, gathered, liveness, cluster_id, items, problems)


def apply_fence(app: App, plan: FencePlan, *, route: FenceRoute | None = None) -> Report:
    """Fences the ids of the plan and reports each one; raises StalePlanError if a task took one of them meanwhile.

    Never raises for one id, nor for what breaks half-way: rows tell. Ctrl-C ends it with the rows so far, exit 130.
    """
    _recheck(app, plan)
    items = {item.transactional_id: item for item in plan.items}
    problems = list(plan.problems)
    interrupted = False
    try:
        for answer in _with_progress(app, (route or _natively)(app, plan.wanted()), total=len(plan.wanted())):
            items[answer.transactional_id] = settled(items[answer.transactional_id], answer)
    except KeyboardInterrupt:
        interrupted = True
        _mark_unanswered(items, KafkaFault(-1, "INTERRUPTED", "interrupted before the answer came"))
        problems.append(_interruption(items.values()))
    except EosctlError as error:
        _mark_unanswered(items, KafkaFault(-1, error.code.upper(), error.message))
        problems.append(Problem.of(error))
    else:
        _mark_unanswered(items, KafkaFault(-1, "NO_ANSWER", "no answer came for this id"))
        _ask_again(app, items)
    report = fence_report(app, "fence-result", list(items.values()), cluster_id=plan.cluster_id, problems=problems)
    return replace(report, exit_code=ExitCode.INTERRUPTED) if interrupted else report


def _natively(app: App, ids: Sequence[str]) -> Iterator[FenceAnswer]:
    if not ids:
        return
    with app.transactions() as admin:
        yield from admin.fence(ids, transaction_timeout_ms=FENCE_TRANSACTION_TIMEOUT_MS)


def _with_progress(app: App, answers: Iterable[FenceAnswer], *, total: int) -> Iterator[FenceAnswer]:
    for done, answer in enumerate(answers, start=1):
        yield answer
        if done % _PROGRESS_EVERY == 0 or done == total:
            app.on_event(Event("fencing", done=done, total=total, unit="ids"))


def _recheck(app: App, plan: FencePlan) -> None:
    """What must still hold: the same cluster, no task started under a planned id, the same task-count record.

    States and epochs may have moved: they do with every transaction, and fencing is right all the same.
    """
    with app.transactions() as admin:
        if admin.cluster_id() != plan.cluster_id:
            raise StalePlanError(f"the plan was made for cluster {plan.cluster_id}, these brokers are of another one")
    if not plan.request.live:
        started = newly_live(plan.items, find_liveness(app).by_id)
        if started:
            raise StalePlanError(
                f"since the plan was made, {_tasks_text(started)} began to run; nothing was fenced",
                hint="Stop the connector and plan again, or fence live tasks with --live.",
            )
    recorded = plan.gathered.task_count_record
    if recorded is not None and plan.request.connector is not None:
        count = newest_task_count(app, plan.request.connector).count
        if count != recorded:
            raise StalePlanError(
                f"the task-count record of {plan.request.connector} was {recorded} in the plan and is {count} now",
                hint="A worker has fenced meanwhile. Plan again.",
            )


def _mark_unanswered(items: dict[str, FenceItem], fault: KafkaFault) -> None:
    for transactional_id, item in items.items():
        if item.outcome is Outcome.WOULD_FENCE:
            items[transactional_id] = unanswered(item, fault)


def _ask_again(app: App, items: dict[str, FenceItem]) -> None:
    """Lost answers: the coordinators are asked what they have now, within a few seconds of their own."""
    lost = [item.transactional_id for item in items.values() if item.outcome is Outcome.UNCONFIRMED]
    if not lost:
        return
    app.on_event(Event(f"asking the coordinators about {len(lost)} unconfirmed ids"))
    patient = replace(app, deadline=Deadline.after(_READ_BACK_S, app.clock))
    try:
        with patient.transactions() as admin:
            described = admin.describe_transactions(lost)
    except EosctlError as error:
        app.on_event(Event(f"could not ask again: {error.message}", warning=True))
        return
    for transactional_id in lost:
        items[transactional_id] = read_back(items[transactional_id], described.get(transactional_id))


def _interruption(items: Iterable[FenceItem]) -> Problem:
    outcomes = [item.outcome for item in items]
    return Problem(
        code="interrupted",
        message=f"interrupted: {outcomes.count(Outcome.FENCED)} ids are fenced, "
        f"{outcomes.count(Outcome.UNCONFIRMED)} have no answer",
        hint="Run the same command again: its plan marks ids that are fenced already.",
    )


def _refuse_leaders(items: Sequence[FenceItem]) -> None:
    if not items:
        return
    raise RefusedError(
        f"{_some(item.transactional_id for item in items)} may be the id of a Connect leader",
        hint="A leader that loses it fails its next write to the config topic, and can stay stuck until a rebalance. "
        "If that is what you want, add --allow-leader.",
    )


def _refuse_live(items: Sequence[FenceItem]) -> None:
    tasks = [item.live for item in items if item.live is not None]
    if not tasks:
        return
    connectors = sorted({task.connector for task in tasks})
    raise RefusedError(
        f"cannot fence {_some(item.transactional_id for item in items)}: {_tasks_text(tasks)} now",
        hint=f"A fenced task goes FAILED at its next commit and Connect does not restart it. "
        f"Stop {_some(connectors)} first, or add --live and restart the tasks afterwards.",
    )


def _tasks_text(tasks: Sequence[LiveTask]) -> str:
    return _some(f"worker {task.worker} runs task {task.task} of connector {task.connector}" for task in tasks)


def _some(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more


def _cautions(app: App, items: Sequence[FenceItem]) -> list[Problem]:
    """What the one who asked for it should know before saying yes."""
    cautions = []
    if blocked_leaders(items):
        cautions.append(
            Problem(
                code="leader_id",
                severity="warning",
                message="a leader that loses its id notices at its next write, which fails once with HTTP 500",
                hint="PUT the unchanged config of any connector right after; do so before any restart with "
                "includeTasks=true, which can leave the leader stuck.",
            )
        )
    if blocked_live(items):
        cautions.append(
            Problem(
                code="live_tasks",
                severity="warning",
                message="running tasks are fenced: they go FAILED at their next commit and stay so",
                hint="Afterwards run:\n" + "\n".join(restart_commands(app, items)),
            )
        )
    return cautions


def restart_commands(app: App, items: Iterable[FenceItem]) -> list[str]:
    """One command per connector whose running tasks are fenced, at its worker's URL."""
    workers = {item.live.connector: f"http://{item.live.worker}" for item in items if item.live is not None}
    given = [parse_worker_url(url).text for url in app.target.connect_urls]  # without the credentials it may carry
    return [
        f"curl -X POST '{(given[0] if given else worker).rstrip('/')}/connectors/{quote(connector, safe='')}/restart"
        "?includeTasks=true&onlyFailed=true'"
        for connector, worker in sorted(workers.items())
    ]
