"""A run of a move: what its steps share, and their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.definition import ConnectorDefinition
from eosctl.create.place import ConnectorPlacement
from eosctl.move.journal import Direction, Ends
from eosctl.move.offsets import Arrival, offsets_topic, plan_arrival
from eosctl.move.plan import MovePlan
from eosctl.move.proof import Handover, MoveProof
from eosctl.move.sides import Side
from eosctl.offsets.steps import CommitWatch
from eosctl.report import Problem, Report

GOES_ON = "Run the same command again: it goes on from here. --timeout is per step."


class MoveStepDone(Struct, frozen=True):
    """The result of a step: `written` are the reports of offset writes, `left` the ends of the partitions then.

    `left_ms` is the time at which the connector had been stopped.
    """

    detail: str
    written: tuple[Report, ...] = ()
    left: Ends | None = None
    left_ms: int | None = None
    proof: MoveProof | None = None
    problems: tuple[Problem, ...] = ()


@dataclass(slots=True)
class MoveRun:
    """A run of a plan, and what its steps know of each other: the ends of partitions, and the first commits."""

    app: App
    plan: MovePlan
    handover: Handover
    commits: CommitWatch | None = None

    @classmethod
    def of(cls, app: App, plan: MovePlan) -> MoveRun:
        """Begin with what former runs have found."""
        known, former = plan.moved if plan.direction is Direction.THERE else plan.begun, plan.former
        came = Handover() if former is None else Handover(came=former.arrived, came_ms=former.arrived_ms)
        if known is None:
            return cls(app, plan, came)
        return cls(app, plan, replace(came, left=known.left, left_ms=known.left_ms, arrived=known.arrived))


def config_of(plan: MovePlan, side: Side) -> Mapping[str, str]:
    """Return the connector's config on one side; the planned one where it is not there yet."""
    if side.now is not None:
        return side.now.config
    return plan.config


def arrival_of(plan: MovePlan) -> Arrival:
    """Compare the offsets of both sides as they are now, which nothing may hide any more."""
    origin, target = plan.origin, plan.target
    return plan_arrival(
        offsets_topic(origin, config_of(plan, origin)),
        offsets_topic(target, config_of(plan, target)),
        overwrite=plan.request.overwrite_offsets,
        settled=True,
    )


def placement_of(plan: MovePlan) -> ConnectorPlacement:
    """Return what the connector is to be on the side that it moves to."""
    side = plan.target
    config = config_of(plan, side)
    definition = ConnectorDefinition(side.connector, config, f"it has in {plan.origin.where}")
    return ConnectorPlacement(definition, plan.state, side.site(), offsets_topic(side, config).store)
