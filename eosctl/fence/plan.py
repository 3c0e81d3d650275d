"""Gathers the ids and their states, plans, and fences them through their coordinators.

Corresponds to `Admin.fenceProducers`, plus the checks that Java leaves to its caller. `fence/connect.py`, the route
through Connect's own endpoint, is imported only where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.core.ids import TransactionalId, task_of
from eosctl.core.transactions import TRANSACTIONAL_ID_NOT_FOUND, FenceAnswer, KafkaFault, TransactionDescription
from eosctl.core.wording import counted
from eosctl.deadline import Deadline, Event
from eosctl.errors import (
    EosctlError,
    ExitCode,
    InterruptedByUserError,
    NotFoundError,
    NoTransactionsError,
    RefusedError,
    StalePlanError,
    UnsupportedError,
)
from eosctl.fence.gather import (
    PREPARED,
    FenceRequest,
    Gathered,
    cautions,
    gather_ids,
    recorded_connectors,
    recorded_count,
    refuse_leaders,
    refuse_live,
    refuse_prepared,
    refuse_unknown,
    tasks_text,
    why_not_ended,
)
from eosctl.fence.liveness import Liveness, find_liveness, owners_of
from eosctl.fence.rows import FENCE_PLAN, FENCE_RESULT, fence_report
from eosctl.fence.rules import (
    FENCE_TRANSACTION_TIMEOUT_MS,
    Described,
    FenceItem,
    FenceOutcome,
    after_answer,
    blocked_leaders,
    blocked_live,
    may_be_prepared,
    newly_live,
    plan_items,
    read_back,
    without_answer,
)
from eosctl.plan import Plan
from eosctl.report import Problem, Report

if TYPE_CHECKING:
    from eosctl.core.configs.fold import ConnectorState
    from eosctl.ports import TransactionAdmin

_READ_BACK_S = 5.0
_PROGRESS_EVERY = 100

FenceRoute = Callable[[App, Sequence[TransactionalId]], Iterator[FenceAnswer]]


class FencePlan(Struct, frozen=True):
    """The plan of a fencing, and the observations that it is based on.

    `cluster_id` is the id of the cluster with the ids, `home_id` the id of the group's own.
    """

    request: FenceRequest
    gathered: Gathered
    liveness: Liveness
    cluster_id: str
    home_id: str
    items: Sequence[FenceItem]
    problems: tuple[Problem, ...]

    def where(self, app: App) -> App:
        """Return the `App` for the cluster where the ids are."""
        return _where(app, self.gathered)

    def wanted(self) -> list[TransactionalId]:
        """Return the ids to fence, in order."""
        return [item.transactional_id for item in self.items if item.outcome is FenceOutcome.WOULD_FENCE]

    def prepared(self) -> list[FenceItem]:
        """Return the items whose open transactions may hold prepared data of a two-phase commit."""
        return may_be_prepared(self.items, connectors=self.connectors(), unseen=not self.cluster_id)

    def connectors(self) -> set[str]:
        """Return the connectors of this group that are known to exist, or were named."""
        named = {self.request.connector} if self.request.connector is not None else set()
        return {*self.liveness.connectors, *self.gathered.connectors, *named}

    def report(self, app: App) -> Report:
        """Report the plan as rows."""
        return fence_report(app, FENCE_PLAN, self.items, cluster_id=self.home_id, problems=self.problems)


def _where(app: App, gathered: Gathered) -> App:
    return app if gathered.at is None else gathered.at.app(app)


def plan_fence(app: App, request: FenceRequest, known: Mapping[str, ConnectorState] | None = None) -> FencePlan:
    """Find the ids, describe them and check who holds them.

    `known` are the connectors of the config topic, if it has just been read. Raises RefusedError for leader ids
    (without `allow_leader`), for ids of tasks that run (without `live`) or may run (without `unknown_liveness`), for
    data that Flink may have prepared (without `discard_prepared`), NotFoundError for a group that never existed, and
    what gathering raises: UsageError, NotFoundError, UnreachableError, UnauthorizedError.
    """
    _check_route(app, request)
    gathered = gather_ids(app, request, known)
    cluster_id, described = _describe(_where(app, gathered), request, gathered.ids)
    home_id, elsewhere = cluster_id, list[Problem]()
    if gathered.at is not None and request.connector is not None:
        from eosctl.connectors.dedicated import note_other_cluster

        home_id, elsewhere = _cluster_id(app), [note_other_cluster(request.connector, gathered.at, cluster_id)]
    liveness = find_liveness(app, request, gathered.ids)
    _refuse_never_there(app, request, liveness, described)
    items = plan_items(
        gathered.ids,
        described,
        owner_of_id=owners_of(app, gathered, liveness).__getitem__,
        live=liveness.by_id,
        create_unknown=request.create_unknown or request.via == "connect",  # Connect creates what it does not know
    )
    _refuse_nothing_known(app, request, items)
    if not request.allow_leader:
        refuse_leaders(blocked_leaders(items, liveness.groups))
    if not request.live:
        refuse_live(blocked_live(items))
    if not request.unknown_liveness:
        refuse_unknown(items, liveness.unknown)
    plan = FencePlan(request, gathered, liveness, cluster_id, home_id, items, ())
    if not request.discard_prepared:
        refuse_prepared(plan.prepared())
    problems = [
        *elsewhere,
        *gathered.problems,
        *liveness.problems,
        *cautions(app, items, plan.prepared(), liveness.groups),
    ]
    if request.via == "connect" and request.connector is not None:
        from eosctl.fence.connect import pace_caution

        problems += pace_caution(app, request.connector, items)
    return replace(plan, problems=tuple(problems))


def _check_route(app: App, request: FenceRequest) -> None:
    if request.via == "connect":
        from eosctl.fence.connect import check_connect_route

        check_connect_route(app, request)


def _cluster_id(app: App) -> str:
    with app.transactions() as admin:
        return admin.cluster_id()


def plan_recorded(app: App, connector: ConnectorState) -> FencePlan:
    """Plan the fencing of a connector's recorded ids, for commands without the options that refusals name."""
    try:
        return plan_fence(app, FenceRequest(connector=connector.name), {connector.name: connector})
    except RefusedError as error:
        raise RefusedError(error.message, hint=f"{error.hint} These are options of `eosctl fence`.") from error


def _refuse_never_there(app: App, request: FenceRequest, liveness: Liveness, described: Described) -> None:
    """Refuse to fence a connector of a group that never existed; a group that is gone runs nothing."""
    if request.connector is None or liveness.group is None or request.unknown_liveness:
        return
    from eosctl.group.absent import KnownEvidence, refuse_never_there

    known = (name for name, state in described.items() if isinstance(state, TransactionDescription))
    ids = [name for name in known if task_of(name, liveness.group.group_id) is not None]
    with _waivable():
        refuse_never_there(app, liveness.group, [request.connector], KnownEvidence(ids=ids or None, ask_workers=False))


def _refuse_nothing_known(app: App, request: FenceRequest, items: Sequence[FenceItem]) -> None:
    """Raise NotFoundError if there is nothing to fence and the group never existed; let ids of others pass."""
    if request.unknown_liveness or any(item.outcome is not FenceOutcome.SKIPPED_UNKNOWN for item in items):
        return
    if items and not any(item.owner.kind in ("task", "leader", "ambiguous") for item in items):
        return
    from eosctl.group.absent import KnownEvidence, require_ever_there

    with _waivable():
        require_ever_there(app, KnownEvidence(ask_workers=False))


@contextmanager
def _waivable() -> Iterator[None]:
    try:
        yield
    except (NotFoundError, RefusedError) as error:
        raise type(error)(
            error.message, hint=f"{error.hint} If all is right, add {Waiver.UNKNOWN_LIVENESS}."
        ) from error


def _describe(app: App, request: FenceRequest, ids: Sequence[TransactionalId]) -> tuple[str, Described]:
    """Return the cluster id and each id's state; both stay unknown where only librdkafka can authenticate."""
    try:
        with app.transactions() as admin:
            described = admin.describe_transactions(ids)
            return admin.cluster_id(), described  # which has come with the coordinators
    except NoTransactionsError:
        raise
    except UnsupportedError as error:
        if request.via == "producer" and request.create_unknown:
            return "", dict.fromkeys(ids, KafkaFault(TRANSACTIONAL_ID_NOT_FOUND, "TRANSACTIONAL_ID_NOT_FOUND"))
        hint = f"Add --via producer {Waiver.CREATE_UNKNOWN} to fence with librdkafka, without looking first."
        raise UnsupportedError(error.message, hint=hint) from error


def prepare_fence(app: App, request: FenceRequest) -> Plan:
    """Prepare the plan to fence what `request` selects; raise as `plan_fence`."""
    plan = plan_fence(app, request)
    count = len(plan.wanted())
    question = f"Fence {counted(count, 'transactional id')}?"
    return Plan(partial(plan.report, app), question, partial(apply_fence, app, plan) if count else None, app.target)


def apply_fence(app: App, plan: FencePlan, *, route: FenceRoute | None = None) -> Report:
    """Fence the ids of the plan and report each one; raise StalePlanError if a task took one of them meanwhile.

    Raises RefusedError if it is unknown whether a task has. Never raises for a single id, nor for a failure half-way:
    the rows report those. Ctrl-C ends it with the rows so far, exit 130.
    """
    _recheck(app, plan)
    items = {item.transactional_id: item for item in plan.items}
    problems = list(plan.problems)
    interrupted, broken = False, None
    try:
        for answer in _with_progress(
            app, (route or _route(app, plan))(plan.where(app), plan.wanted()), total=len(plan.wanted())
        ):
            items[answer.transactional_id] = after_answer(items[answer.transactional_id], answer)
    except KeyboardInterrupt:
        interrupted = True
        _mark_unanswered(items, KafkaFault(-1, "INTERRUPTED", "interrupted before the answer came"))
        problems.append(_interruption(items.values()))
    except EosctlError as error:
        broken = error
        _mark_unanswered(items, KafkaFault(-1, error.code.upper(), error.message))
        problems.append(Problem.of(error))
    else:
        _mark_unanswered(items, KafkaFault(-1, "NO_ANSWER", "no answer came for this id"))
    if not interrupted:
        problems += why_not_ended(plan.where(app), _confirm_lost(plan.where(app), items))
    report = fence_report(app, FENCE_RESULT, list(items.values()), cluster_id=plan.home_id, problems=problems)
    if interrupted:
        return replace(report, exit_code=ExitCode.INTERRUPTED)
    if broken is None:
        return report
    is_fenced = any(item.outcome is FenceOutcome.FENCED for item in items.values())
    return replace(report, exit_code=ExitCode.PARTIAL if is_fenced else broken.exit_code)


def _route(app: App, plan: FencePlan) -> FenceRoute:
    connector = plan.request.connector
    if plan.request.via == "connect" and connector is not None:
        from eosctl.fence.connect import fence_through_connect

        before = {item.transactional_id: item.before for item in plan.items}
        return lambda ids_app, ids: fence_through_connect(
            app, connector, {one: before[one] for one in ids}, ids_app=ids_app
        )
    return _fence_with_producers if plan.request.via == "producer" else partial(_fence_natively, plan)


def _fence_natively(plan: FencePlan, app: App, ids: Sequence[TransactionalId]) -> Iterator[FenceAnswer]:
    """Fence through the coordinators; ask those first that were found for the plan."""
    if not ids:
        return
    known = {item.transactional_id: item.coordinator for item in plan.items if item.coordinator is not None}
    with app.transactions() as admin:
        yield from admin.fence(ids, transaction_timeout_ms=FENCE_TRANSACTION_TIMEOUT_MS, coordinators=known)


def _fence_with_producers(app: App, ids: Sequence[TransactionalId]) -> Iterator[FenceAnswer]:
    """Fence with one librdkafka producer per id."""
    from eosctl.kafka.transactions.producer_fencing import fence_with_producers

    client, deadline = app.target.require_client(), app.deadline
    yield from fence_with_producers(client, ids, transaction_timeout_ms=FENCE_TRANSACTION_TIMEOUT_MS, deadline=deadline)


def _with_progress(app: App, answers: Iterable[FenceAnswer], *, total: int) -> Iterator[FenceAnswer]:
    for done, answer in enumerate(answers, start=1):
        yield answer
        if done % _PROGRESS_EVERY == 0 or done == total:
            app.on_event(Event("fencing", done=done, total=total, unit="ids"))


def _recheck(app: App, plan: FencePlan) -> None:
    """Check that the plan still holds: same cluster, no task that may run since, same task-count record.

    States and epochs may have moved: they do with every transaction, and fencing is right all the same, unless Flink
    may have prepared a transaction meanwhile.
    """
    _check_route(app, plan.request)
    liveness = find_liveness(app, plan.request, plan.wanted())
    if plan.cluster_id:
        with plan.where(app).transactions() as admin:
            here = liveness.cluster_id if plan.gathered.at is None else ""
            if (here or admin.cluster_id()) != plan.cluster_id:
                raise StalePlanError(f"the plan was made for cluster {plan.cluster_id}, this is another one")
            if not plan.request.discard_prepared:
                _recheck_prepared(plan, admin)
    _recheck_liveness(plan, liveness)
    recorded = plan.gathered.task_count_record
    if recorded is not None and plan.request.connector is not None:
        count = recorded_count(recorded_connectors(app), plan.request.connector)
        if count != recorded:
            raise StalePlanError(
                f"the task-count record of {plan.request.connector} was {recorded} in the plan and is {count} now",
                hint="A worker has fenced meanwhile. Plan again.",
            )


def _recheck_liveness(plan: FencePlan, liveness: Liveness) -> None:
    """Check again what the flags do not waive."""
    request = plan.request
    if not request.unknown_liveness:
        refuse_unknown(plan.items, liveness.unknown)
    started = [] if request.live else newly_live(plan.items, liveness.by_id)
    if started:
        raise StalePlanError(
            f"since the plan was made, {tasks_text(started)} began to run; nothing was fenced",
            hint=f"Stop the connector and plan again, or fence live tasks with {Waiver.LIVE}.",
        )


def _recheck_prepared(plan: FencePlan, admin: TransactionAdmin) -> None:
    """Check again ids like Flink's, whose transactions open and close with every checkpoint."""
    flinks = may_be_prepared(plan.items, connectors=plan.connectors(), unseen=True)
    if not flinks:
        return
    described = admin.describe_transactions([item.transactional_id for item in flinks])
    for name, fault in described.items():
        if isinstance(fault, KafkaFault) and not fault.is_unknown_id:
            raise RefusedError(
                f"whether {name} has opened a transaction since the plan was made is not known: {fault}",
                hint=f"Run again; or, if its data may be lost, add {Waiver.DISCARD_PREPARED}.",
            )
    states = {name: state for name, state in described.items() if isinstance(state, TransactionDescription)}
    now = [replace(item, before=states.get(item.transactional_id)) for item in flinks]
    opened = may_be_prepared(now, connectors=plan.connectors())
    if opened:
        raise StalePlanError(
            f"since the plan was made, {opened[0].transactional_id} has opened a transaction; nothing was fenced",
            hint=f"It is one of the {PREPARED}. Stop the job and plan again.",
        )


def _mark_unanswered(items: dict[TransactionalId, FenceItem], fault: KafkaFault) -> None:
    for transactional_id, item in items.items():
        if item.outcome is FenceOutcome.WOULD_FENCE:
            items[transactional_id] = without_answer(item, fault)


def _confirm_lost(app: App, items: dict[TransactionalId, FenceItem]) -> list[TransactionDescription]:
    """Ask the coordinators for the state of unconfirmed ids, with a few seconds of extra time; return what they say."""
    lost = [item.transactional_id for item in items.values() if item.outcome is FenceOutcome.UNCONFIRMED]
    if not lost:
        return []
    app.on_event(Event(f"asking the coordinators about {counted(len(lost), 'unconfirmed id')}"))
    patient = replace(app, deadline=Deadline.after(_READ_BACK_S, app.clock))
    try:
        with patient.transactions() as admin:
            described = admin.describe_transactions(lost)
    except EosctlError as error:
        app.on_event(Event(f"could not ask again: {error.message}", warning=True))
        return []
    for transactional_id in lost:
        items[transactional_id] = read_back(items[transactional_id], described.get(transactional_id))
    return [each for each in described.values() if isinstance(each, TransactionDescription)]


def _interruption(items: Iterable[FenceItem]) -> Problem:
    outcomes = [item.outcome for item in items]
    return Problem(
        code=InterruptedByUserError.code,
        message=f"interrupted: {outcomes.count(FenceOutcome.FENCED)} of {counted(len(outcomes), 'id')} fenced, "
        f"{outcomes.count(FenceOutcome.UNCONFIRMED)} without an answer",
        hint="Run the same command again: its plan marks ids that are fenced already.",
    )
