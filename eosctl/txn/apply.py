"""Ends the transactions of a plan: judges each again, writes its markers in order, and reads back the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import asdict, replace

from eosctl.app import App
from eosctl.core.acls.lines import grant_hint
from eosctl.core.transactions import ActiveProducer, KafkaFault
from eosctl.deadline import Deadline, Event
from eosctl.errors import (
    EosctlError,
    ExitCode,
    InterruptedByUserError,
    StalePlanError,
    UnauthorizedError,
    UnconfirmedError,
)
from eosctl.foreign import Lines
from eosctl.plan import Plan
from eosctl.ports import TransactionAdmin
from eosctl.report import Problem, Report
from eosctl.state.backups import keep_removed
from eosctl.txn import codes
from eosctl.txn.owners import AUTHORIZATION_CODES, LOST_ANSWER_CODES, NOT_CHECKED, error_cell, exit_code_of_faults
from eosctl.txn.partitions import ask_coordinators
from eosctl.txn.plan import (
    EndPlan,
    EndRequest,
    HangingRequest,
    named,
    plan_abort_hanging,
    plan_end,
    row,
    stable_offsets,
)
from eosctl.txn.report import Partition
from eosctl.txn.rows import TXN_ABORT_RESULT, TXN_COMPLETE_RESULT, CompleteData, EndedRow
from eosctl.txn.rules import Coordination, Identity, TransactionToEnd, identity, place_of

_READ_BACK_S = 10.0
STALE, NOT_REACHED, UNCONFIRMED, FAILED, REFUSED = "stale", "not_reached", "unconfirmed", "failed", "refused"
_AGAIN = "Look again: eosctl txn hanging"
_LOST, _UNDECIDED = 7, -1  # the request may have been done; it may, and another one was refused after it


def prepare_end(app: App, request: EndRequest) -> Plan:
    """Prepare the plan to end what `request` selects, in all of its partitions; raise as `plan_end`."""
    return _prepared(app, plan_end(app, request))


def prepare_abort_hanging(app: App, request: HangingRequest) -> Plan:
    """Prepare the plan to abort all hanging transactions; it only shows if there are none. Raise NotFoundError."""
    return _prepared(app, plan_abort_hanging(app, request))


def _prepared(app: App, plan: EndPlan) -> Plan:
    wanted = plan.wanted()
    apply = partial(apply_end, app, plan) if wanted else None
    return Plan(partial(plan.report, app), plan.question() if wanted else "", apply, app.target)


@dataclass(slots=True)
class _Outcomes:
    """The outcome of each partition, and the faults of those that failed or whose answer was lost."""

    done: str
    by_part: dict[Identity, str] = field(default_factory=dict)
    faults: dict[Identity, KafkaFault] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def not_confirmed(self) -> str:
        """The outcome of a marker that was written, and is not confirmed."""
        return f"{self.done}_not_confirmed"


def apply_end(app: App, plan: EndPlan) -> Report:
    """End each transaction, its partitions one after the other; after one that fails, the rest of it is not reached.

    Raises StalePlanError for another cluster, and if none of them is open unchanged; if some are, the others are
    `stale`. Transactions that can't be judged are `not_checked` and left alone. Never raises once a marker was sent:
    the rows report that. After Ctrl-C the others are `not_reached`.
    """
    outcomes = _Outcomes("committed" if plan.commit else "aborted")
    backup = _keep_log(app, plan)
    wanted = plan.wanted()
    with app.transactions() as admin:
        if admin.cluster_id() != plan.cluster_id:
            raise StalePlanError(f"the plan was made for cluster {plan.cluster_id}, these brokers are of another one")
        try:
            for number, one in enumerate(wanted, 1):
                _end(admin, plan, one, outcomes)
                app.on_event(Event("ending", number, len(wanted), "transactions"))
        except KeyboardInterrupt:
            outcomes.interrupted = True
    parts = [part for one in wanted for part in one.parts]
    if set(outcomes.by_part.values()) == {STALE} and len(outcomes.by_part) == len(parts):
        raise StalePlanError(
            "the transaction has ended, or its producer has gone on, since the plan was made; nothing was written"
        )
    patient = replace(app, deadline=Deadline.after(_READ_BACK_S, app.clock))
    _read_back(patient, parts, outcomes)
    return _result(app, plan, outcomes, stable_offsets(patient, parts), backup)


def _keep_log(app: App, plan: EndPlan) -> str | None:
    """Keep the records that show the decision, as the coordinators' log is compacted."""
    if not plan.commit:
        return None
    records = [entry.record for entry in plan.log.entries]
    return str(keep_removed(app, records, name="transaction-log", cluster_id=plan.cluster_id))


def _end(admin: TransactionAdmin, plan: EndPlan, one: TransactionToEnd, outcomes: _Outcomes) -> None:
    """Write the markers of one transaction, if it has not changed."""
    if not _is_as_it_was(admin, plan, one, outcomes):
        return
    for part in one.parts:
        outcomes.by_part[identity(part)] = UNCONFIRMED  # until there is an answer
        fault = _marker(admin, part, commit=plan.commit)
        if fault is None:
            outcomes.by_part[identity(part)] = outcomes.not_confirmed
            continue
        outcomes.faults[identity(part)] = fault
        is_open = fault.code == _UNDECIDED or fault.code in LOST_ANSWER_CODES
        outcomes.by_part[identity(part)] = UNCONFIRMED if is_open else FAILED
        return  # the offsets come last: they must not end before the records


def _marker(admin: TransactionAdmin, part: ActiveProducer, *, commit: bool) -> KafkaFault | None:
    """Write the marker with the epoch of the transaction: a leader refuses it once the producer has a newer one there.

    A coordinator's epoch, one higher from KIP-890 on, would end what the producer has just begun.
    """
    try:
        return admin.write_marker(part, commit=commit)
    except EosctlError as error:
        return KafkaFault(_LOST, error.code.upper(), error.message)


def _is_as_it_was(admin: TransactionAdmin, plan: EndPlan, one: TransactionToEnd, outcomes: _Outcomes) -> bool:
    """Judge again: a part that ended, or a coordinator that accounts for it, makes all of it stale."""
    try:
        answers = admin.describe_producers(sorted(map(place_of, one.parts)), only_open=True)
        listings, described = ask_coordinators(admin, one.parts)
    except EosctlError as error:
        return _leave_alone(one, NOT_CHECKED, outcomes, KafkaFault(_LOST, error.code.upper(), error.message))
    silent = next((answer for answer in answers.values() if isinstance(answer, KafkaFault)), None)
    if silent is not None:
        return _leave_alone(one, NOT_CHECKED, outcomes, silent)
    open_parts = {
        identity(each) for answer in answers.values() if not isinstance(answer, KafkaFault) for each in answer
    }
    if not open_parts.issuperset(map(identity, one.parts)):
        return _leave_alone(one, STALE, outcomes)
    now = plan.judge(one.parts, Coordination(listings, described, plan.log))
    new = now.left(plan.waived)
    if codes.COORDINATOR_UNREAD in new:
        return _leave_alone(
            one, NOT_CHECKED, outcomes, KafkaFault(_LOST, "COORDINATOR_UNREAD", new[codes.COORDINATOR_UNREAD])
        )
    return not new or _leave_alone(one, STALE, outcomes)


def _leave_alone(one: TransactionToEnd, why: str, outcomes: _Outcomes, fault: KafkaFault | None = None) -> bool:
    """Mark all of a transaction as left alone."""
    for part in one.parts:
        outcomes.by_part[identity(part)] = why
        if fault is not None:
            outcomes.faults[identity(part)] = fault
    return False


def _read_back(app: App, parts: Sequence[ActiveProducer], outcomes: _Outcomes) -> None:
    """Ask the leaders after the markers, with extra time: only they make one `aborted` or `committed`.

    Where a marker was refused after one whose answer was lost, another one may have ended the transaction.
    """
    refused = {part for part, fault in outcomes.faults.items() if fault.code == _UNDECIDED}
    sent = [part for part in parts if outcomes.by_part.get(identity(part)) in (outcomes.not_confirmed, UNCONFIRMED)]
    if not sent:
        return
    try:
        with app.transactions() as admin:
            answers = admin.describe_producers(sorted({place_of(part) for part in sent}), only_open=True)
    except EosctlError:
        return
    for part in [each for each in sent if identity(each) not in refused]:
        answer = answers.get(place_of(part))
        if answer is not None and not isinstance(answer, KafkaFault):
            # the epoch may be a higher one: a marker raises it
            open_now = {(each.producer_id, each.txn_start_offset) for each in answer}
            if (part.producer_id, part.txn_start_offset) not in open_now:
                outcomes.by_part[identity(part)] = outcomes.done


def _result(
    app: App,
    plan: EndPlan,
    outcomes: _Outcomes,
    stable: tuple[Mapping[Partition, int], list[Problem]],
    backup: str | None,
) -> Report:
    after, unread = stable
    rows = [_row(app, plan, one, part, outcomes, after) for one in plan.transactions for part in one.parts]
    counts = dict(Counter(each.outcome for each in rows))
    return Report(
        TXN_COMPLETE_RESULT if plan.commit else TXN_ABORT_RESULT,
        rows,
        counts,
        data=CompleteData(backup=backup) if plan.commit else {},
        target=plan.target(app),
        problems=[*_problems(app, plan, outcomes), *plan.refusals(), *plan.cautions(), *plan.unlooked(app), *unread],
        exit_code=_exit_code(plan, outcomes, counts),
    )


def _exit_code(plan: EndPlan, outcomes: _Outcomes, counts: Mapping[str, int]) -> ExitCode:
    if outcomes.interrupted:
        return ExitCode.INTERRUPTED
    if set(counts) == {REFUSED}:
        return ExitCode.REFUSED
    if set(counts) == {outcomes.done}:
        return ExitCode.PARTIAL if plan.unanswered() else ExitCode.OK
    why = {fault.code for fault in outcomes.faults.values()}
    if set(counts) <= {FAILED, UNCONFIRMED, NOT_CHECKED, NOT_REACHED} and why and _UNDECIDED not in why:
        return exit_code_of_faults(outcomes.faults.values())
    return ExitCode.PARTIAL


def _row(
    app: App,
    plan: EndPlan,
    one: TransactionToEnd,
    part: ActiveProducer,
    outcomes: _Outcomes,
    after: Mapping[Partition, int],
) -> EndedRow:
    unreached = REFUSED if one.left(plan.waived) else NOT_REACHED
    outcome = outcomes.by_part.get(identity(part), unreached)
    fault = outcomes.faults.get(identity(part)) if outcome != outcomes.done else None
    return EndedRow(
        **asdict(row(app, plan, one, part)),
        lso_after=after.get(place_of(part)),
        outcome=outcome,
        error=None if fault is None else error_cell(fault),
    )


def _problems(app: App, plan: EndPlan, outcomes: _Outcomes) -> list[Problem]:
    problems = []
    if outcomes.interrupted:
        message = "interrupted; transactions that are not_reached were left as they were"
        problems.append(Problem(InterruptedByUserError.code, message, _AGAIN))
    for one in plan.wanted():
        shown: set[str] = set()
        for part in one.parts:
            outcome, fault = outcomes.by_part.get(identity(part), NOT_REACHED), outcomes.faults.get(identity(part))
            problem = _problem(app, plan, one, part, outcome, fault)
            if problem is not None and not (outcome in (STALE, NOT_CHECKED) and outcome in shown):
                problems.append(problem)
            shown.add(outcome)
    return problems


def _problem(
    app: App, plan: EndPlan, one: TransactionToEnd, part: ActiveProducer, outcome: str, fault: KafkaFault | None
) -> Problem | None:
    place = f"{part.topic}-{part.partition}"
    if outcome == FAILED and fault is not None:
        return _failed(app, place, fault, commit=plan.commit)
    if outcome == STALE:
        message = f"{named(one)} has ended in part, or a coordinator accounts for it again: nothing was written"
        return Problem(StalePlanError.code, message, _AGAIN)
    if outcome == NOT_CHECKED:
        message = f"whether {named(one)} is as it was is not known, so nothing was written: {fault}"
        return Problem(codes.NOT_CHECKED, message, _AGAIN)
    if outcome == UNCONFIRMED:
        return Problem(
            UnconfirmedError.code, f"whether the marker was written on {place} is not known: {fault}", _AGAIN
        )
    if outcome.endswith("_not_confirmed"):
        message = f"the marker was written, and nothing confirms that {place} has it"
        return Problem(UnconfirmedError.code, message, _AGAIN)
    return None


def _failed(app: App, place: str, fault: KafkaFault, *, commit: bool) -> Problem:
    """Return the problem of a marker that could not be written on a partition."""
    message = f"could not {'commit' if commit else 'abort'} on {place}: {fault}"
    if fault.code in AUTHORIZATION_CODES:
        hint = grant_hint("ALTER", "Cluster", [""], settings=app.target.client)
        more = "(brokers before Kafka 3.8 want ClusterAction instead of Alter)"
        return Problem(UnauthorizedError.code, message, Lines.of(hint, more))
    return Problem(EosctlError.code, message, _HINTS.get(fault.code))


_HINTS = {
    47: "The producer has a newer epoch on this partition: see `eosctl txn producers`.",
    52: "The partition has seen a newer coordinator epoch: take the one that `eosctl txn producers` shows.",
}
