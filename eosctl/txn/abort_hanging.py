"""txn abort --hanging: one plan for all that a look finds, one question, and an outcome for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec.structs import asdict

from eosctl.app import App
from eosctl.core.acls.lines import kafka_acls_line
from eosctl.core.frozen import frozen
from eosctl.core.records import KnownBounds
from eosctl.core.transactions import ActiveProducer, KafkaFault
from eosctl.core.wording import counted
from eosctl.deadline import Deadline
from eosctl.errors import (
    EosctlError,
    ExitCode,
    InterruptedByUserError,
    StalePlanError,
    UnauthorizedError,
    UnconfirmedError,
)
from eosctl.events import Event
from eosctl.plan import Plan
from eosctl.ports import TransactionAdmin
from eosctl.report import Problem, Report
from eosctl.txn import codes
from eosctl.txn.abort import NOT_CONFIRMED, abort_problem
from eosctl.txn.faults import AUTHORIZATION_CODES, LOST_ANSWER_CODES, NOT_CHECKED, error_cell, exit_code_of_faults
from eosctl.txn.hanging import MAX_TRANSACTION_TIMEOUT_MS, HangingTransaction, Reason, find_hanging, unjudged
from eosctl.txn.hidden_ids import why_ids_are_hidden
from eosctl.txn.partitions import HangingLook, ask_coordinators, look_for_hanging
from eosctl.txn.report import Partition, writer_of
from eosctl.txn.rows import TXN_ABORT_PLAN, TXN_ABORT_RESULT, AbortedRow, AbortRow, AbortSummary

_READ_BACK_S = 10.0
STALE, NOT_REACHED, UNCONFIRMED = "stale", "not_reached", "unconfirmed"
_AGAIN = "Look again: eosctl txn hanging"
_AT_ONCE = 20
"""So many are judged anew right before their markers: little time is left for an id to be used again."""
Identity = tuple[str, int, int, int, int | None]


@frozen
class HangingRequest:
    """Which hanging transactions: of one topic or (None) of all, silent for longer than `older_than_ms`."""

    topic: str | None = None
    older_than_ms: int = MAX_TRANSACTION_TIMEOUT_MS


@frozen
class HangingPlan:
    """What a look found, and the last stable offsets of the partitions that are held then; None where unknown.

    `ownerless` may be those of ids that can't be seen, for the reason `hidden`: they are left alone.
    """

    look: HangingLook
    stable: Mapping[Partition, int | None]
    ownerless: int = 0
    hidden: KafkaFault | None = None

    def report(self, app: App) -> Report:
        """A row per transaction; what could not be looked at is a warning, for the plan is about the others."""
        rows = [
            AbortRow(**asdict(writer_of(app, one.producer)), reason=one.reason.value, lso_before=self.lso(one))
            for one in self.look.hanging
        ]
        problems = [replace(each, severity="warning") for each in self.problems(app)]
        code = ExitCode.OK if rows or not self.unanswered() else _nothing_known(self)
        return Report(
            TXN_ABORT_PLAN, rows, AbortSummary(would_abort=len(rows)), target=_target(app, self), problems=problems,
            exit_code=code,
        )  # fmt: skip

    def problems(self, app: App) -> list[Problem]:
        """What is not known, and so not part of the plan."""
        return [*([self._left_alone(app, self.hidden)] if self.hidden is not None else ()), *self.look.problems(app)]

    def unanswered(self) -> list[KafkaFault]:
        """Why what was not judged was not."""
        return [*([self.hidden] if self.hidden is not None else ()), *self.look.unanswered()]

    def _left_alone(self, app: App, why: KafkaFault) -> Problem:
        left = f"{counted(self.ownerless, 'transaction')} without a listed id may have one that can't be seen: {why}"
        denied = why.code in AUTHORIZATION_CODES
        hint = "Let the principal DESCRIBE every TransactionalId, for brokers list no other ids:\n" + kafka_acls_line(
            ["DESCRIBE"], "TransactionalId", "*", settings=app.target.client
        )
        return Problem(UnauthorizedError.code if denied else codes.NOT_CHECKED, left, hint if denied else _AGAIN)

    def lso(self, one: HangingTransaction) -> int | None:
        """The last stable offset of its partition at the look."""
        return self.stable.get(_place(one.producer))


def _nothing_known(plan: HangingPlan) -> ExitCode:
    """Nothing hangs among what was judged, and not everything was."""
    answered = plan.look.partitions > len(plan.look.faults) and plan.hidden is None
    return ExitCode.PARTIAL if answered else exit_code_of_faults(plan.unanswered())


def prepare_abort_hanging(app: App, request: HangingRequest) -> Plan:
    """The plan to abort all that hangs; without anything to abort it only shows so. Raises NotFoundError."""
    plan = _plan(app, look_for_hanging(app, request.topic, older_than_ms=request.older_than_ms))
    hanging = plan.look.hanging
    partitions = len({_place(one.producer) for one in hanging})
    question = f"Abort {counted(len(hanging), 'hanging transaction')} on {counted(partitions, 'partition')}?"
    apply = partial(apply_abort_hanging, app, plan) if hanging else None
    return Plan(partial(plan.report, app), question, apply, app.target)


def _plan(app: App, look: HangingLook) -> HangingPlan:
    """Without those that a hidden id may have open: to abort them would lose what a healthy producer has written."""
    ownerless = [one for one in look.hanging if one.reason is Reason.NO_TRANSACTIONAL_ID]
    hidden: KafkaFault | None = None
    if ownerless:
        with app.transactions() as admin:
            hidden = why_ids_are_hidden(admin)
    if hidden is not None:
        look = replace(look, hanging=[one for one in look.hanging if one.reason is not Reason.NO_TRANSACTIONAL_ID])
    return HangingPlan(look, _stable_offsets(app, look.hanging), len(ownerless), hidden)


@dataclass(slots=True)
class _Outcomes:
    """What became of each transaction; the faults of those that failed or whose answer was lost."""

    said: dict[Identity, str] = field(default_factory=dict)
    faults: dict[Identity, KafkaFault] = field(default_factory=dict)
    interrupted: bool = False


def apply_abort_hanging(app: App, plan: HangingPlan) -> Report:
    """Judges all of them anew, writes the markers one after the other, and reads back what became of them.

    Raises StalePlanError for another cluster, and where none of them hangs any more; where some do, the others are
    `stale`. Those that can't be judged are `not_checked` and left alone. Never raises once a marker was sent: see the
    rows. After Ctrl-C the others are `not_reached`.
    """
    outcomes = _Outcomes()
    with app.transactions() as admin:
        if admin.cluster_id() != plan.look.cluster_id:
            raise StalePlanError(
                f"the plan was made for cluster {plan.look.cluster_id}, these brokers are of another one"
            )
        try:
            _abort_each(app, admin, plan, outcomes)
        except KeyboardInterrupt:
            outcomes.interrupted = True
    if set(outcomes.said.values()) == {STALE} and len(outcomes.said) == len(plan.look.hanging):
        raise StalePlanError("none of the transactions hangs any more; nothing was written")
    patient = replace(app, deadline=Deadline.after(_READ_BACK_S, app.clock))
    _read_back(patient, plan, outcomes)
    return _result(app, plan, outcomes, _stable_offsets(patient, plan.look.hanging))


def _abort_each(app: App, admin: TransactionAdmin, plan: HangingPlan, outcomes: _Outcomes) -> None:
    total = len(plan.look.hanging)
    for start in range(0, total, _AT_ONCE):
        some = plan.look.hanging[start : start + _AT_ONCE]
        _judge_again(admin, some, outcomes)
        for number, one in enumerate(some, start + 1):
            identity = _identity(one.producer)
            if identity in outcomes.said:  # stale, or not judged
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


def _judge_again(admin: TransactionAdmin, some: Sequence[HangingTransaction], outcomes: _Outcomes) -> None:
    """Says which are stale: not open as they were any more, or known to a coordinator; and which can't be judged."""
    try:
        still, unknown = _still_hanging(admin, some)
    except EosctlError as error:
        lost = KafkaFault(_LOST, error.code.upper(), error.message)
        still, unknown = frozenset(), {_identity(one.producer): lost for one in some}
    for identity in (_identity(one.producer) for one in some):
        if identity in unknown:
            outcomes.said[identity], outcomes.faults[identity] = NOT_CHECKED, unknown[identity]
        elif identity not in still:
            outcomes.said[identity] = STALE


def _still_hanging(
    admin: TransactionAdmin, some: Sequence[HangingTransaction]
) -> tuple[frozenset[Identity], dict[Identity, KafkaFault]]:
    """Those that are open as they were, and that no coordinator accounts for; and why others can't be judged."""
    answers = admin.describe_producers(sorted({_place(one.producer) for one in some}), only_open=True)
    planned = {_identity(one.producer) for one in some}
    unknown: dict[Identity, KafkaFault] = {}
    there: list[ActiveProducer] = []
    for one in some:
        answer = answers[_place(one.producer)]
        if isinstance(answer, KafkaFault):
            unknown[_identity(one.producer)] = answer
        else:
            there += [each for each in answer if _identity(each) == _identity(one.producer)]
    listings, described = ask_coordinators(admin, there)
    owners = {listing.producer_id: listing.transactional_id for listing in listings.found}
    silent = unjudged(described)
    for each in there:
        owner = owners.get(each.producer_id)
        if owner is None and listings.missing:
            unknown[_identity(each)] = listings.missing[0]
        elif owner in silent:
            unknown[_identity(each)] = silent[owner]
    hanging = {_identity(one.producer) for one in find_hanging(there, listings, described)}
    return frozenset(planned & hanging), unknown


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
    problems = [*_problems(app, plan, outcomes), *plan.problems(app)]
    return Report(
        TXN_ABORT_RESULT, rows, counts, target=_target(app, plan), problems=problems,
        exit_code=_exit_code(plan, outcomes, counts),
    )  # fmt: skip


def _exit_code(plan: HangingPlan, outcomes: _Outcomes, counts: Mapping[str, int]) -> ExitCode:
    if outcomes.interrupted:
        return ExitCode.INTERRUPTED
    if set(counts) == {"aborted"}:
        return ExitCode.PARTIAL if plan.unanswered() else ExitCode.OK
    if set(counts) <= {"failed", UNCONFIRMED, NOT_CHECKED}:
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
        elif said == NOT_CHECKED:
            message = f"whether the transaction on {named} still hangs is not known, so nothing was written: {fault}"
            problems.append(Problem(codes.NOT_CHECKED, message, _AGAIN))
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
