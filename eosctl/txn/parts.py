"""Parts of rows about transactional ids, of `txn` and other features; `fence` loads no more than this."""

from __future__ import annotations

from typing import Annotated

from eosctl.core.ids import Application, Owner, OwnerKind, ProducerId, TransactionalId
from eosctl.core.transactions import OPEN_STATES
from eosctl.output.cells import duration
from eosctl.output.rows import Header, Printed

ShownId = Annotated[TransactionalId, "The transactional id."]
ShownProducerId = Annotated[ProducerId, "The producer id that the coordinator has for the transactional id."]
ShownEpoch = Annotated[int, "The producer's epoch; brokers refuse a producer with a lower one.", Header("EPOCH")]
ShownTimeout = Annotated[int, "Its transaction timeout in milliseconds.", Header("TIMEOUT-MS")]
ShownCoordinator = Annotated[int, "The node id of the broker that coordinates the transactional id."]


class OwnerPart(Printed):
    """The owner of a transactional id."""

    kind: Annotated[OwnerKind, "What uses the id: a task, the leader of a group, eosctl itself, or something else."]
    connector: Annotated[str | None, "The connector of the task."]
    task: Annotated[int | None, "The number of the task."]
    application: Annotated[
        Application | None, "Of `other`: what makes ids of this shape. A guess, for any client may use such an id."
    ]

    def cell(self) -> str:
        """Format the owner: `orders/0` for a task; `flink-sink?` if only the form of the id is known."""
        if self.kind == "task":
            return f"{self.connector}/{self.task}"
        return f"{self.application}?" if self.application else self.kind


def owner_part(owner: Owner) -> OwnerPart:
    """Return the `owner` member of a row."""
    return OwnerPart(kind=owner.kind, connector=owner.connector, task=owner.task, application=owner.application)


def open_for(state: str | None, age_ms: int | None) -> str | None:
    """Return how long a transaction has been open; None if it is not, as a coordinator keeps the last one's start."""
    return duration(age_ms) if age_ms is not None and (state is None or state in OPEN_STATES) else None
