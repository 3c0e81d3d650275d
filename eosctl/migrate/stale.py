"""A check without Spark whether a plan of `offsets migrate` still holds: only records since the plan are read."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.core.offsets.keys import key_owner
from eosctl.core.offsets.migration import MigrationPlan, PlannedTopic
from eosctl.errors import StalePlanError
from eosctl.migrate.journal import EarlierRuns
from eosctl.migrate.topics import app_of, moved_topics, some

_ACCEPTED = {
    "source": "writes what the plan has read, not what came since: a connector that goes on from the target reads "
    "again what it has read since then",
    "target": "puts what the plan has read over what came since",
}


def drift_error(side: str, drifted: Sequence[str]) -> StalePlanError:
    """Return the refusal of a plan whose `side` has new offsets of these connectors."""
    return StalePlanError(
        f"the {side} has new offsets of {some(drifted)} since the plan was made; nothing was written",
        hint=f"Stop these connectors and plan again. {Waiver.ACCEPT_DRIFT} {side} {_ACCEPTED[side]}.",
    )


def refuse_stale(
    app: App, plan: MigrationPlan, *, accepted: Collection[str], past: EarlierRuns, allow_open_transactions: bool
) -> None:
    """Raise StalePlanError, or RefusedError for an open transaction, before anything that takes long begins.

    The writes of a run of the plan that was cut off are no drift: then only the source is checked.
    """
    sides = {"source": plan.sources} if past.begun else {"source": plan.sources, "target": plan.targets}
    for side, topics in sides.items():
        moved = moved_topics(app, topics, allow_open_transactions=allow_open_transactions)
        if side in accepted:
            continue
        there = {name for topic in moved for name in _connectors_since(app, topic)}
        drifted = sorted(there & plan.connectors_of(side))
        if drifted:
            raise drift_error(side, drifted)


def _connectors_since(app: App, moved: PlannedTopic) -> set[str]:
    """Return the connectors that have offsets within the new bounds of a topic, if they are taken from it."""
    since = {bound.partition: bound.begin for bound in moved.bounds}
    with app_of(app, moved).topics() as topics:
        records = topics.read(moved.topic, newest_per_key=True, since=since).records
    owners = (key_owner(record.key) for record in records if record.partition in since)
    return {owner.connector for owner in owners if owner is not None and moved.gives(owner.connector)}
