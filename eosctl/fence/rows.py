"""The rows that `fence` prints, one per transactional id, for both its plan and its result."""

from __future__ import annotations

from typing import Annotated

from eosctl.fence.rules import FenceOutcome
from eosctl.output.parts import Counts, KafkaError
from eosctl.output.rows import Header, Printed, Text, plan_and_result
from eosctl.report import Report
from eosctl.txn.parts import OwnerPart, ShownCoordinator, ShownEpoch, ShownId, ShownProducerId, ShownTimeout, open_for


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
    owner: Annotated[OwnerPart, "The owner of the transactional id."]
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


_BEFORE = (
    *("transactional_id", "owner", "coordinator", "before.state", "before.producer_id", "before.producer_epoch"),
    *("before.transaction_timeout_ms", "before.open_for"),
)
_MOST_ROWS = 20
FENCE_PLAN, FENCE_RESULT = plan_and_result(
    "fence",
    "The ids that would be fenced.",
    "The ids that were fenced, and those that were not.",
    row=FenceRow,
    summary=FenceSummary,
    text=Text(
        columns=(*_BEFORE, "planned_outcome"),
        wide=("live.worker",),
        empty="There is nothing to fence.",
        most_rows=_MOST_ROWS,
    ),
    result={
        "text": Text(
            columns=(*_BEFORE, "after.producer_id", "after.producer_epoch", "outcome", "error.message"),
            wide=("confirmed_by", "live.worker"),
            empty="There was nothing to fence.",
            most_rows=_MOST_ROWS,
        )
    },
)
