"""txn abort: writes an ABORT marker for one open transaction of one partition (WriteTxnMarkers), with a plan.

For hanging transactions only. A transaction that its coordinator still knows is ended by fencing its id, which is
refused here unless it is forced: a marker written behind the coordinator's back leaves the two at odds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from shlex import quote

from msgspec.structs import asdict

from eosctl.app import App
from eosctl.core.acls.lines import grant_hint
from eosctl.core.allowances import Waiver
from eosctl.core.frozen import frozen
from eosctl.core.ids import ProducerId
from eosctl.core.transactions import ActiveProducer, KafkaFault
from eosctl.deadline import Deadline
from eosctl.errors import (
    BrokerError,
    EosctlError,
    ExitCode,
    NotFoundError,
    RefusedError,
    StalePlanError,
    UnauthorizedError,
    UnconfirmedError,
    UnreachableError,
    UsageError,
)
from eosctl.plan import Plan
from eosctl.ports import TransactionAdmin
from eosctl.report import Problem, Report
from eosctl.txn import codes
from eosctl.txn.faults import AUTHORIZATION_CODES, LOST_ANSWER_CODES, error_cell, exit_code_of_faults
from eosctl.txn.hanging import coordinator_accounts_for, find_hanging
from eosctl.txn.hidden_ids import unseen_ids_warning
from eosctl.txn.partitions import ask_coordinators, partitions_of
from eosctl.txn.report import missing_ids_problems, writer_of
from eosctl.txn.rows import TXN_ABORT_PLAN, TXN_ABORT_RESULT, AbortedRow, AbortRow, AbortSummary

NOT_CONFIRMED = "aborted_not_confirmed"
_READ_BACK_S = 5.0


@frozen
class AbortRequest:
    """Which transaction: by `start_offset`, or by all of producer id, epoch and coordinator epoch."""

    topic: str
    partition: int
    start_offset: int | None = None
    producer_id: ProducerId | None = None
    producer_epoch: int | None = None
    coordinator_epoch: int | None = None
    force: bool = False


@frozen
class AbortPlan:
    """The one open transaction to end; `known_as` is the id whose coordinator still knows it.

    `missing`: which coordinators could not be asked for it.
    """

    request: AbortRequest
    cluster_id: str
    producer: ActiveProducer
    reason: str | None
    known_as: str | None
    lso: int
    missing: tuple[Problem, ...] = ()

    def report(self, app: App) -> Report:
        """The plan as one row."""
        row = AbortRow(**asdict(writer_of(app, self.producer)), reason=self.reason, lso_before=self.lso)
        target = {"kafka_cluster_id": self.cluster_id, "group_id": app.target.group_id}
        return Report(TXN_ABORT_PLAN, [row], AbortSummary(would_abort=1), target=target, problems=self._cautions())

    def _cautions(self) -> tuple[Problem, ...]:
        missing = tuple(replace(problem, severity="warning") for problem in self.missing)
        if self.known_as is None:
            return (*missing, *unseen_ids_warning([self.reason]))
        message = f"forced: the coordinator of {self.known_as} still knows this transaction and gets no notice"
        return (*missing, Problem(codes.NOT_HANGING, message, severity="warning"))


def plan_abort(app: App, request: AbortRequest) -> AbortPlan:
    """Finds the transaction and whether it hangs.

    Raises UsageError, NotFoundError when the partition has no such open transaction, RefusedError when a coordinator
    accounts for it and `force` was not given.
    """
    _check(request)
    with app.transactions() as admin:
        cluster_id = admin.cluster_id()
        (place,) = partitions_of(admin, request.topic, request.partition)
        producer = _chosen(request, _open_producers(app, admin, place))
        listings, described = ask_coordinators(admin, [producer])
        known_as = coordinator_accounts_for(producer, listings, described)
        hanging = find_hanging([producer], listings, described)
    if listings.missing and not request.force:
        raise RefusedError(
            "whether the transaction is hanging is not known: a coordinator that may have it open can't be asked "
            f"({'; '.join(map(str, listings.missing))})",
            hint=f"Bring the broker back, then run again. {Waiver.FORCE} aborts all the same.",
        )
    if known_as is not None and not request.force:
        raise RefusedError(
            f"the transaction is not hanging: {known_as} has it open, and its coordinator will end it",
            hint=f"End it now with `eosctl fence {quote(known_as)}`, or insist with {Waiver.FORCE}.",
        )
    reason = hanging[0].reason.value if hanging else None
    lso = _last_stable_offset(app, request)
    return AbortPlan(request, cluster_id, producer, reason, known_as, lso, tuple(missing_ids_problems(listings)))


def _check(request: AbortRequest) -> None:
    by_producer = (request.producer_id, request.producer_epoch, request.coordinator_epoch)
    given = [value for value in by_producer if value is not None]
    if (request.start_offset is not None) == bool(given) or len(given) not in (0, 3):
        raise UsageError(
            "a transaction is named by --start-offset, or by --producer-id, --producer-epoch and --coordinator-epoch",
            hint=f"See `eosctl txn producers --topic {quote(request.topic)} --partition {request.partition}`.",
        )


def _open_producers(app: App, admin: TransactionAdmin, place: tuple[str, int]) -> list[ActiveProducer]:
    answer = admin.describe_producers([place])[place]
    if isinstance(answer, KafkaFault):
        message = f"could not ask for the producers of {place[0]}-{place[1]}: {answer}"
        if answer.code in AUTHORIZATION_CODES:
            hint = grant_hint("READ", "Topic", [place[0]], settings=app.target.client)
            raise UnauthorizedError(message, hint=hint)
        raise BrokerError(message)
    return [producer for producer in answer if producer.txn_start_offset is not None]


def _chosen(request: AbortRequest, producers: Sequence[ActiveProducer]) -> ActiveProducer:
    """The one that the request names, with the coordinator epoch it gives, else the leader's.

    0 where there is none yet, which leaders call -1 (`TransactionsCommand`, Kafka 3.0 to 4.3).
    """
    for producer in producers:
        if request.start_offset is not None and producer.txn_start_offset == request.start_offset:
            return producer._replace(coordinator_epoch=max(0, producer.coordinator_epoch))
        if (producer.producer_id, producer.producer_epoch) == (request.producer_id, request.producer_epoch):
            return producer._replace(coordinator_epoch=max(0, request.coordinator_epoch or 0))
    raise NotFoundError(
        f"{request.topic}-{request.partition} has no such open transaction",
        hint=f"See `eosctl txn producers --topic {quote(request.topic)} --partition {request.partition}`.",
    )


def _last_stable_offset(app: App, request: AbortRequest) -> int:
    with app.topics() as store:
        found = store.known_bounds(request.topic)
    if request.partition in found.missing:
        raise UnreachableError(found.missing[request.partition])
    return next(bound.lso for bound in found.known if bound.partition == request.partition)


def prepare_abort(app: App, request: AbortRequest) -> Plan:
    """The plan to abort what `request` names; raises as `plan_abort`."""
    plan = plan_abort(app, request)
    question = f"Abort the open transaction on {request.topic}-{request.partition}?"
    return Plan(partial(plan.report, app), question, partial(apply_abort, app, plan), app.target)


def apply_abort(app: App, plan: AbortPlan) -> Report:
    """Writes the marker, asks whether the transaction is gone, and reads the partition's LSO again.

    Raises StalePlanError if the transaction has changed. Never raises once the marker was sent: see the row.
    """
    request, producer = plan.request, plan.producer
    with app.transactions() as admin:
        if admin.cluster_id() != plan.cluster_id:
            raise StalePlanError(f"the plan was made for cluster {plan.cluster_id}, these brokers are of another one")
        _recheck(plan, _open_producers(app, admin, (request.topic, request.partition)))
        fault = admin.abort_transaction(producer)
    patient = replace(app, deadline=Deadline.after(_READ_BACK_S, app.clock))
    refused = fault is not None and fault.code not in LOST_ANSWER_CODES
    outcome = "failed" if refused else _read_back(patient, producer, marked=fault is None)
    problems = [abort_problem(app, (request.topic, request.partition), fault)] if fault is not None and refused else []
    if outcome in (NOT_CONFIRMED, "unconfirmed"):
        problems.append(_unconfirmed(request, fault))
    lso_after, unread = _lso_afterwards(patient, request)
    problems += unread
    row = AbortedRow(
        **asdict(writer_of(app, producer)),
        reason=plan.reason,
        lso_before=plan.lso,
        lso_after=lso_after,
        outcome=outcome,
        error=None if fault is None or outcome == "aborted" else error_cell(fault),
    )
    target = {"kafka_cluster_id": plan.cluster_id, "group_id": app.target.group_id}
    known = {"aborted": ExitCode.OK, NOT_CONFIRMED: ExitCode.PARTIAL}
    code = known[outcome] if outcome in known else exit_code_of_faults([fault])
    return Report(TXN_ABORT_RESULT, [row], {outcome: 1}, target=target, problems=problems, exit_code=code)


def _lso_afterwards(app: App, request: AbortRequest) -> tuple[int | None, list[Problem]]:
    """None, with a warning, where it can't be read: the marker is written all the same."""
    try:
        return _last_stable_offset(app, request), []
    except EosctlError as exc:
        return None, [Problem(exc.code, exc.message, hint=exc.hint, severity="warning")]


def _recheck(plan: AbortPlan, producers: Sequence[ActiveProducer]) -> None:
    planned = (plan.producer.producer_id, plan.producer.producer_epoch, plan.producer.txn_start_offset)
    now = [(one.producer_id, one.producer_epoch, one.txn_start_offset) for one in producers]
    if planned not in now:
        raise StalePlanError(
            "the transaction has ended, or its producer has gone on, since the plan was made; nothing was written"
        )


def _read_back(app: App, producer: ActiveProducer, *, marked: bool) -> str:
    """What the leader says after the marker, in time of its own: the marker is written, whatever becomes of that.

    Where the answer to it was lost (not `marked`), only the leader's word counts.
    """
    unknown = NOT_CONFIRMED if marked else "unconfirmed"
    try:
        with app.transactions() as admin:
            still = _open_producers(app, admin, (producer.topic, producer.partition))
    except EosctlError:
        return unknown
    same = [one for one in still if (one.producer_id, one.txn_start_offset) == _identity(producer)]
    return unknown if same else "aborted"


def _identity(producer: ActiveProducer) -> tuple[int, int | None]:
    return producer.producer_id, producer.txn_start_offset


def _unconfirmed(request: AbortRequest, fault: KafkaFault | None) -> Problem:
    place = f"{request.topic}-{request.partition}"
    message = f"the marker was written, and nothing confirms that {place} has it"
    if fault is not None:
        message = f"whether the marker was written on {place} is not known: {fault}"
    hint = f"Look again: eosctl txn producers --topic {quote(request.topic)} --partition {request.partition}"
    return Problem(UnconfirmedError.code, message, hint)


def abort_problem(app: App, partition: tuple[str, int], fault: KafkaFault) -> Problem:
    """Why the marker could not be written on a partition."""
    place = f"{partition[0]}-{partition[1]}"
    if fault.code in AUTHORIZATION_CODES:
        hint = grant_hint("ALTER", "Cluster", [""], settings=app.target.client)
        hint += "\n(brokers before Kafka 3.8 want ClusterAction instead of Alter)"
        return Problem(UnauthorizedError.code, f"could not abort on {place}: {fault}", hint)
    return Problem(EosctlError.code, f"could not abort on {place}: {fault}", _HINTS.get(fault.code))


_HINTS = {
    47: "The producer has a newer epoch on this partition: see `eosctl txn producers`.",
    52: "The partition has seen a newer coordinator epoch: take the one that `eosctl txn producers` shows.",
}
