"""The rows, counts, problems and exit code of `fence`, for both its plan and its result.

There is one row per transactional id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, overload

from eosctl.app import App
from eosctl.core.ids import Owner, TransactionalId
from eosctl.core.transactions import TransactionDescription
from eosctl.errors import EosctlError, ExitCode, UnauthorizedError, UnconfirmedError
from eosctl.fence.rules import FenceItem, FenceOutcome, count_outcomes
from eosctl.output.rows import Counts, Header, KafkaError, Kind, Printed, Text, plan_and_result
from eosctl.report import Problem, Report
from eosctl.txn.owners import (
    AUTHORIZATION_CODES,
    NOT_CHECKED,
    ShownCoordinator,
    ShownEpoch,
    ShownId,
    ShownProducerId,
    ShownTimeout,
    error_cell,
    exit_code_of_faults,
    open_for,
)


class DescribedState(Printed):
    """The state of an id, as its coordinator reports it."""

    state: Annotated[str, "The state of its transaction, as its coordinator says."]
    producer_id: ShownProducerId
    producer_epoch: ShownEpoch
    transaction_timeout_ms: ShownTimeout
    age_ms: Annotated[int | None, "Milliseconds since its last transaction began, which may be over."]

    def open_for(self) -> str | None:
        """Return how long the transaction has been open; `-` where none is open."""
        return open_for(self.state, self.age_ms)


class FencedState(Printed):
    """The state of an id after fencing."""

    producer_id: Annotated[int, "The producer id after fencing.", Header("NEW-PRODUCER-ID")]
    producer_epoch: Annotated[int, "The epoch after fencing.", Header("NEW-EPOCH")]


class RunningTask(Printed):
    """The worker that runs a task now."""

    worker: Annotated[str, "The worker that runs the task now; fencing makes the task fail.", Header("RUNNING-ON")]


class FenceRow(Printed):
    """A transactional id to fence, or that was fenced."""

    transactional_id: ShownId
    coordinator: ShownCoordinator | None
    owner: Annotated[Owner, "The owner of the transactional id."]
    before: Annotated[
        DescribedState | None, "The id before it was fenced; null where its coordinator does not know it."
    ]
    after: Annotated[FencedState | None, "The id after it was fenced; null where it was not."]
    outcome: Annotated[FenceOutcome, "What fencing will do with the id, or what came of it."]
    confirmed_by: Annotated[
        str | None, "Whether the coordinator's `answer` said so, or a `read_back` after it was lost."
    ]
    already_fenced: Annotated[bool, "Whether the id was fenced before, and not used since."]
    live: Annotated[RunningTask | None, "The task that uses the id and runs now."]
    error: Annotated[KafkaError | None, "Why the id could not be fenced, or described."]

    @Header("OUTCOME")
    def planned_outcome(self) -> str:
        """Return what fencing will do with the id; `fenced before` where it was fenced, and not used since."""
        return f"{self.outcome} (fenced before)" if self.already_fenced else self.outcome


class FenceSummary(Printed):
    """The number of ids per outcome."""

    ids: Annotated[int, "How many ids there are."]
    counts: Annotated[Counts, "How many ids have each outcome."]
    already_fenced: Annotated[int, "How many were fenced before."]
    live: Annotated[int, "How many are those of running tasks."]


class FencePart(Printed):
    """The ids that another command fences on its way, as `fence` would print them."""

    rows: Annotated[list[FenceRow], "The ids."]
    summary: Annotated[FenceSummary, "How many of them have which outcome."]


def fence_part(report: Report) -> FencePart:
    """Convert a report of fencing to a part of another report."""
    return FencePart(rows=list(report.rows_of(FenceRow)), summary=report.summary_of(FenceSummary))


_BEFORE = ("transactional_id", "owner", "before.state", "before.open_for?", "live.worker?", "before.producer_epoch")
_WIDE = ("coordinator", "before.producer_id", "before.transaction_timeout_ms")
_MOST_ROWS = 20
FENCE_PLAN, FENCE_RESULT = plan_and_result(
    "fence",
    "The ids that would be fenced.",
    "The ids that were fenced, and those that were not.",
    row=FenceRow,
    summary=FenceSummary,
    text=Text(
        columns=(*_BEFORE, "planned_outcome"),
        wide=_WIDE,
        empty="There is nothing to fence.",
        most_rows=_MOST_ROWS,
    ),
    result={
        "text": Text(
            columns=(*_BEFORE, "after.producer_epoch", "outcome", "error.message?"),
            wide=(*_WIDE, "after.producer_id", "confirmed_by"),
            empty="There was nothing to fence.",
            most_rows=_MOST_ROWS,
        )
    },
)


_BAD = {FenceOutcome.FAILED: EosctlError.code, FenceOutcome.UNCONFIRMED: UnconfirmedError.code}


class FenceRows(Sequence[FenceRow]):
    """The rows of many items, each made on access, so that 100,000 ids need little memory."""

    def __init__(self, items: Sequence[FenceItem], *, now_ms: int) -> None:
        self._items, self._now_ms = items, now_ms

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[FenceRow]:
        return (fence_row(item, now_ms=self._now_ms) for item in self._items)

    @overload
    def __getitem__(self, index: int) -> FenceRow: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[FenceRow]: ...
    def __getitem__(self, index: int | slice) -> FenceRow | Sequence[FenceRow]:
        if isinstance(index, slice):
            return FenceRows(self._items[index], now_ms=self._now_ms)
        return fence_row(self._items[index], now_ms=self._now_ms)


def fence_row(item: FenceItem, *, now_ms: int) -> FenceRow:
    """Return the row of one id in `fence-plan` and `fence-result`."""
    return FenceRow(
        transactional_id=item.transactional_id,
        coordinator=None if item.coordinator is None else item.coordinator.node_id,
        owner=item.owner,
        before=None if item.before is None else _before(item.before, now_ms),
        after=None if item.after is None else FencedState(producer_id=item.after[0], producer_epoch=item.after[1]),
        outcome=item.outcome,
        confirmed_by=item.confirmed_by,
        already_fenced=item.already_fenced,
        live=None if item.live is None else RunningTask(worker=item.live.worker),
        error=None if item.fault is None else error_cell(item.fault),
    )


def _before(state: TransactionDescription, now_ms: int) -> DescribedState:
    return DescribedState(
        state=str(state.state),
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        transaction_timeout_ms=state.transaction_timeout_ms,
        age_ms=None if state.started_ms is None else max(0, now_ms - state.started_ms),
    )


def fence_report(
    app: App, kind: Kind, items: Sequence[FenceItem], *, cluster_id: str, problems: Iterable[Problem]
) -> Report:
    """Report a plan or a result; derive the exit code from the outcomes and from what was not checked."""
    problems = tuple(problems)
    code = _exit_code(items)
    if code is ExitCode.OK and any(problem.code == NOT_CHECKED for problem in problems):
        code = ExitCode.PARTIAL
    return Report(
        kind=kind,
        rows=FenceRows(items, now_ms=app.clock.now_ms()),
        summary=FenceSummary(
            ids=len(items),
            counts=count_outcomes(items),
            already_fenced=sum(item.already_fenced for item in items),
            live=sum(item.live is not None for item in items),
        ),
        target={"kafka_cluster_id": cluster_id, "group_id": app.target.group_id},
        problems=(*problems, *_failure_problems(app, kind, items)),
        exit_code=code,
    )


def _exit_code(items: Sequence[FenceItem]) -> ExitCode:
    bad = [item for item in items if item.outcome in _BAD]
    if not bad:
        return ExitCode.OK
    if any(item.outcome in (FenceOutcome.FENCED, FenceOutcome.WOULD_FENCE) for item in items):
        return ExitCode.PARTIAL
    return exit_code_of_faults(item.fault for item in bad)


def _failure_problems(app: App, kind: Kind, items: Sequence[FenceItem]) -> list[Problem]:
    """Return one problem per kind of failure, regardless of the number of ids."""
    by_kind: dict[tuple[str, FenceOutcome], list[FenceItem]] = defaultdict(list)
    for item in items:
        if item.outcome in _BAD and item.fault is not None:
            by_kind[item.fault.name, item.outcome].append(item)
    return [_failure_problem(app, kind, failures) for failures in by_kind.values()]


def _failure_problem(app: App, kind: Kind, items: Sequence[FenceItem]) -> Problem:
    first, ids = items[0], [item.transactional_id for item in items]
    fault = first.fault
    assert fault is not None  # noqa: S101 - only items with a fault come here
    subject = ids[0] if len(ids) == 1 else f"{len(ids)} ids ({ids[0]}, ...)"
    doing = "describe" if kind is FENCE_PLAN or (first.before is None and first.coordinator is None) else "fence"
    verb = "unconfirmed" if first.outcome is FenceOutcome.UNCONFIRMED else f"could not {doing}"
    detail = fault.name if fault.message in ("", fault.name) else f"{fault.name}: {fault.message}"
    return Problem(
        code=UnauthorizedError.code if fault.code in AUTHORIZATION_CODES else _BAD[first.outcome],
        message=f"{verb} {subject}: {detail}",
        hint=_HINTS.get(fault.code, _no_hint)(app, doing, ids),
    )


def _no_hint(_app: App, _doing: str, _ids: Sequence[TransactionalId]) -> str | None:
    return None


def _grant(app: App, doing: str, ids: Sequence[TransactionalId]) -> str | None:
    from eosctl.core.acls.lines import grant_hint

    if doing == "describe":
        return grant_hint("DESCRIBE", "TransactionalId", ids, settings=app.target.client, then="WRITE")
    return grant_hint("WRITE", "TransactionalId", ids, settings=app.target.client)


def _timeout_too_long(_app: App, _doing: str, _ids: Sequence[TransactionalId]) -> str | None:
    return "The broker's transaction.max.timeout.ms is below 30000: raise it; Connect's own fencing sends 90000."


_HINTS: Mapping[int, Callable[[App, str, Sequence[TransactionalId]], str | None]] = {53: _grant, 50: _timeout_too_long}
