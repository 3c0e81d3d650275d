"""txn abort --hanging: one plan for all that a look finds, one question, and an outcome for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec.structs import asdict

from eosctl.app import App
from eosctl.core.records import KnownBounds
from eosctl.core.transactions import ActiveProducer, KafkaFault
from eosctl.core.wording import counted
from eosctl.deadline import Deadline
from eosctl.errors import (
    EosctlError,
    ExitCode,
    InterruptedByUserError,
    StalePlanError,
    UnconfirmedError,
)
from eosctl.events import Event
from eosctl.plan import Plan
from eosctl.ports import TransactionAdmin
from eosctl.report import Problem, Report
from eosctl.txn.abort import NOT_CONFIRMED, abort_problem
from eosctl.txn.faults import LOST_ANSWER_CODES, error_cell, exit_code_of_faults
from eosctl.txn.hanging import MAX_TRANSACTION_TIMEOUT_MS, HangingTransaction, find_hanging
from eosctl.txn.partitions import HangingLook, ask_coordinators, look_for_hanging
from eosctl.txn.report import Partition, writer_of
from eosctl.txn.rows import TXN_ABORT_PLAN, TXN_ABORT_RESULT, AbortedRow, AbortRow, AbortSummary

_READ_BACK_S = 10.0
STALE, NOT_REACHED, UNCONFIRMED = "stale", "not_reached", "unconfirmed"
_AGAIN = "Look again: eosctl txn hanging"
Identity = tuple[str, int, int, int, int | None]


@dataclass(frozen=True, slots=True)
class HangingRequest:
    """Which hanging transactions: of one topic or (None) of all, silent for longer than `older_than_ms`."""

    topic: str | None = None
    older_than_ms: int = MAX_TRANSACTION_TIMEOUT_MS


@dataclass(frozen=True, slots=True)
class HangingPlan:
    """What a look found, and the last stable offsets of the partitions that are held then; None where unknown."""

    look: HangingLook
    stable: Mapping[Partition, int | None]

    def report(self, app: App) -> Report:
        """A row per transaction; what could not be looked at is a warning, for the plan is about the others."""
        rows = [
            AbortRow(**asdict(writer_of(app, one.producer)), reason=one.reason.value, lso_before=self.lso(one))
            for one in self.look.hanging
        ]
        problems = [replace(each, severity="warning") for each in self.look.problems(app)]
        unanswered = self.look.unanswered()
        code = ExitCode.OK if rows or not unanswered else _nothing_known(self.look)
        return Report(
            TXN_ABORT_PLAN, rows, AbortSummary(would_abort=len(rows)), target=_target(app, self), problems=problems,
            exit_code=code,
        )  # fmt: skip

    def lso(self, one: HangingTransaction) -> int | None:
        """The last stable offset of its partition at the look."""
        return self.stable.get(_place(one.producer))


def _nothing_known(look: HangingLook) -> ExitCode:
    """Nothing hangs among what was looked at, and not everything was."""
    answered = look.partitions > len(look.faults)
    return ExitCode.PARTIAL if answered else exit_code_of_faults(look.unanswered())


def prepare_abort_hanging(app: App, request: HangingRequest) -> Plan:
    """The plan to abort all that hangs; without anything to abort it only shows so. Raises NotFoundError."""
    look = look_for_hanging(app, request.topic, older_than_ms=request.older_than_ms)
    plan = HangingPlan(look, _stable_offsets(app, look.hanging))
    partitions = len({_place(one.producer) for one in look.hanging})
    question = f"Abort {counted(len(look.hanging), 'hanging transaction')} on {counted(partitions, 'partition')}?"
    apply = partial(apply_abort_hanging, app, plan) if look.hanging else None
    return Plan(partial(plan.report, app), question, apply, app.target)


@dataclass(slots=True)
class _Outcomes:
    """What became of each transaction; the faults of those that failed or whose answer was lost."""

    said: dict[Identity, str] = field(default_factory=dict)
    faults: dict[Identity, KafkaFault] = field(default_factory=dict)
    interrupted: bool = False


def apply_abort_hanging(app: App, plan: HangingPlan) -> Report:
    """Judges all of them anew, writes the markers one after the other, and reads back what became of them.

    Raises StalePlanError for another cluster, and where none of them hangs any more; where some do, the others are
    `stale`. Never raises once a marker was sent: see the rows. After Ctrl-C the others are `not_reached`.
    """
    outcomes = _Outcomes()
    with app.transactions() as admin:
        if admin.cluster_id() != plan.look.cluster_id:
            raise StalePlanError(
                f"the plan was made for cluster {plan.look.cluster_id}, these brokers are of another one"
            )
        still = _still_hanging(admin, plan)
        if not still:
            raise StalePlanError("none of the transactions hangs any more; nothing was written")
        try:
            _abort_each(app, admin, plan, still, outcomes)
        except KeyboardInterrupt:
            outcomes.interrupted = True
    patient = replace(app, deadline=Deadline.after(_READ_BACK_S, app.clock))
    _read_back(patient, plan, outcomes)
    return _result(app, plan, outcomes, _stable_offsets(patient, plan.look.hanging))


def _abort_each(
    app: App, admin: TransactionAdmin, plan: HangingPlan, still: frozenset[Identity], outcomes: _Outcomes
) -> None:
    total = len(plan.look.hanging)
    for number, one in enumerate(plan.look.hanging, 1):
        identity = _identity(one.producer)
        if identity not in still:
            outcomes.said[identity] = STALE
            continue
        outcomes.said[identity] = UNCONFIRMED  # until there is an answer
        fault = _marker(admin, one.producer)
        if fault is not None:
            outcomes.faults[identity] = fault
        refused = fault is not None and fault.code not in LOST_ANSWER_CODES
        outcomes.said[identity] = "failed" if refused else NOT_CONFIRMED if fault is None else UNCONFIRMED
        app.on_event(Event("aborting", number, total, "transactions"))


def _marker(admin: TransactionAdmin, producer: ActiveProducer) -> KafkaFault | None:
    """The coordinator epoch is the leader's, 0 where there is none yet (`TransactionsCommand`, Kafka 3.0 to 4.4)."""
    try:
        return admin.abort_transaction(producer._replace(coordinator_epoch=max(0, producer.coordinator_epoch)))
    except EosctlError as error:
        return KafkaFault(_LOST, error.code.upper(), error.message)


_LOST = 7  # the request may have been done


def _still_hanging(admin: TransactionAdmin, plan: HangingPlan) -> frozenset[Identity]:
    """Those of the plan that are open on their partitions as they were, and that no coordinator accounts for."""
    answers = admin.describe_producers(sorted({_place(one.producer) for one in plan.look.hanging}), only_open=True)
    planned = {_identity(one.producer) for one in plan.look.hanging}
    there = [
        producer
        for answer in answers.values()
        if not isinstance(answer, KafkaFault)
        for producer in answer
        if _identity(producer) in planned
    ]
    return frozenset(_identity(one.producer) for one in find_hanging(there, *ask_coordinators(admin, there)))


def _read_back(app: App, plan: HangingPlan, outcomes: _Outcomes) -> None:
    """What the leaders say after the markers, in time of its own: only their word makes one `aborted`."""
    sent = {identity for identity, said in outcomes.said.items() if said in (NOT_CONFIRMED, UNCONFIRMED)}
    places = sorted({_place(one.producer) for one in plan.look.hanging if _identity(one.producer) in sent})
    if not places:
        return
    try:
        with app.transactions() as admin:
            answers = admin.describe_producers(places, only_open=True)
    except EosctlError:
        return
    for one in plan.look.hanging:
        identity, answer = _identity(one.producer), answers.get(_place(one.producer))
        if identity in sent and answer is not None and not isinstance(answer, KafkaFault):
            # the epoch may be a higher one: a marker raises it
            open_now = {(each.producer_id, each.txn_start_offset) for each in answer}
            if (one.producer.producer_id, one.producer.txn_start_offset) not in open_now:
                outcomes.said[identity] = "aborted"


def _result(app: App, plan: HangingPlan, outcomes: _Outcomes, stable: Mapping[Partition, int | None]) -> Report:
    rows = [_row(app, plan, one, outcomes, stable) for one in plan.look.hanging]
    counts = dict(Counter(row.outcome for row in rows))
    problems = [*_problems(app, plan, outcomes), *plan.look.problems(app)]
    return Report(
        TXN_ABORT_RESULT, rows, counts, target=_target(app, plan), problems=problems,
        exit_code=_exit_code(plan, outcomes, counts),
    )  # fmt: skip


def _exit_code(plan: HangingPlan, outcomes: _Outcomes, counts: Mapping[str, int]) -> ExitCode:
    if outcomes.interrupted:
        return ExitCode.INTERRUPTED
    if set(counts) == {"aborted"}:
        return ExitCode.PARTIAL if plan.look.unanswered() else ExitCode.OK
    if set(counts) <= {"failed", UNCONFIRMED}:
        return exit_code_of_faults(outcomes.faults.values())
    return ExitCode.PARTIAL


def _row(
    app: App,
    plan: HangingPlan,
    one: HangingTransaction,
    outcomes: _Outcomes,
    stable: Mapping[Partition, int | None],
) -> AbortedRow:
    outcome = outcomes.said.get(_identity(one.producer), NOT_REACHED)
    fault = outcomes.faults.get(_identity(one.producer)) if outcome != "aborted" else None
    return AbortedRow(
        **asdict(writer_of(app, one.producer)),
        reason=one.reason.value,
        lso_before=plan.lso(one),
        lso_after=stable.get(_place(one.producer)),
        outcome=outcome,
        error=None if fault is None else error_cell(fault),
    )


def _problems(app: App, plan: HangingPlan, outcomes: _Outcomes) -> list[Problem]:
    problems = []
    if outcomes.interrupted:
        message = "interrupted; transactions that are not_reached were left as they were"
        problems.append(Problem(InterruptedByUserError.code, message, _AGAIN))
    for one in plan.look.hanging:
        place, identity = _place(one.producer), _identity(one.producer)
        said, fault = outcomes.said.get(identity), outcomes.faults.get(identity)
        named = f"{place[0]}-{place[1]}"
        if said == "failed" and fault is not None:
            problems.append(abort_problem(app, place, fault))
        elif said == STALE:
            message = (
                f"the transaction on {named} has ended, or a coordinator accounts for it again: nothing was written"
            )
            problems.append(Problem(StalePlanError.code, message, _AGAIN))
        elif said in (NOT_CONFIRMED, UNCONFIRMED):
            why = "nothing confirms the marker" if fault is None else f"whether it has the marker is not known: {fault}"
            problems.append(Problem(UnconfirmedError.code, f"{named}: {why}", _AGAIN))
    return problems


def _stable_offsets(app: App, hanging: Sequence[HangingTransaction]) -> Mapping[Partition, int | None]:
    """The last stable offset of each partition, as far as leaders answer."""
    topics = sorted({one.producer.topic for one in hanging})
    if not topics:
        return {}
    try:
        with app.topics() as store:
            found: Mapping[str, KnownBounds] = store.known_bounds_of(topics)
    except EosctlError:
        return {}
    return {(topic, bound.partition): bound.lso for topic, known in found.items() for bound in known.known}


def _target(app: App, plan: HangingPlan) -> dict[str, str | None]:
    return {"kafka_cluster_id": plan.look.cluster_id, "group_id": app.target.group_id}


def _place(producer: ActiveProducer) -> Partition:
    return producer.topic, producer.partition


def _identity(producer: ActiveProducer) -> Identity:
    """One transaction of one producer on one partition."""
    return (*_place(producer), producer.producer_id, producer.producer_epoch, producer.txn_start_offset)
