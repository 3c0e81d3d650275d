"""The topics of a migration: what they are now, whether they moved since a plan was made, and making missing ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eosctl.core.migration import MigrationPlan, PlannedTopic
from eosctl.core.records import Bounds, TopicDescription
from eosctl.errors import NotFoundError, RefusedError, StalePlanError
from eosctl.ops.app import App
from eosctl.ops.ports import TopicStore

OPEN_TRANSACTION_PATIENCE_S = 5.0
"""How long a transaction may stay open before it stands in the way: running tasks open and end them all the time."""


def gather_sources(app: App, names: Sequence[str], *, allow_open_transactions: bool) -> list[PlannedTopic]:
    """The source topics with their bounds, fixed now; raises NotFoundError or RefusedError."""
    with app.topics() as topics:
        there = topics.describe(names)
        missing = [name for name in names if name not in there]
        if missing:
            raise NotFoundError(
                f"topic {some(missing)} does not exist", hint="Check --from, --offset-topic and --bootstrap-server."
            )
        planned = [planned_topic(topics, there[name], app=app) for name in names]
    refuse_open_transactions(planned, allowed=allow_open_transactions)
    return planned


def planned_topic(topics: TopicStore, description: TopicDescription, *, app: App | None = None) -> PlannedTopic:
    """The topic as it is now; with `app`, waits a little for open transactions to end."""
    bounds = topics.bounds(description.name)
    give_up_s = app.clock.monotonic_s() + OPEN_TRANSACTION_PATIENCE_S if app else 0.0
    while app and any(one.lso < one.end for one in bounds) and app.clock.monotonic_s() < give_up_s:
        app.deadline.sleep(0.2)
        bounds = topics.bounds(description.name)
    return PlannedTopic(
        description.name, description.topic_id, description.partitions, description.replication_factor, bounds
    )


def planned_targets(topics: TopicStore, names: Sequence[str], *, like: PlannedTopic) -> list[PlannedTopic]:
    """The target topics; a missing one is planned with the partitions and replication factor of `like`."""
    there = topics.describe(names)
    return [
        planned_topic(topics, there[name])
        if name in there
        else PlannedTopic(name, None, like.partitions, like.replication_factor)
        for name in names
    ]


def refuse_open_transactions(planned: Sequence[PlannedTopic], *, allowed: bool) -> None:
    """Raises RefusedError that names the partitions where committed records may lie behind an open transaction."""
    hidden = [f"{topic.name}-{partition}" for topic in planned for partition in topic.has_open_transaction()]
    if hidden and not allowed:
        raise RefusedError(
            f"an open transaction on {some(hidden)} may hide committed offsets",
            hint="`eosctl txn hanging` tells whose it is; --allow-open-transactions goes on without what it hides.",
        )


def moved_topics(
    topics: TopicStore, planned: Sequence[PlannedTopic], *, allow_open_transactions: bool
) -> list[PlannedTopic]:
    """The topics that have new offsets, bounded by what is new; raises StalePlanError for a recreated topic."""
    there = topics.describe([topic.name for topic in planned])
    moved = []
    for topic in planned:
        present = there.get(topic.name)
        if (present.topic_id if present else None) != topic.topic_id:
            what = "is gone" if present is None else "was created" if topic.topic_id is None else "was recreated"
            raise StalePlanError(f"topic {topic.name} {what} since the plan was made", hint="Plan again.")
        if present is None:
            continue
        now = planned_topic(topics, present)
        refuse_open_transactions([now], allowed=allow_open_transactions)
        before = {bound.partition: bound.lso for bound in topic.bounds}
        new = tuple(
            Bounds(one.partition, max(one.begin, before.get(one.partition, 0)), one.lso, one.end) for one in now.bounds
        )
        new = tuple(one for one in new if one.lso > one.begin)
        if new:
            moved.append(replace(now, bounds=new))
    return moved


def create_missing(topics: TopicStore, plan: MigrationPlan) -> tuple[str, ...]:
    """Creates the target topics that the plan says are missing, compacted; returns their names."""
    missing = [topic for topic in plan.targets if topic.topic_id is None]
    for topic in missing:
        topics.create(
            topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            config={"cleanup.policy": "compact"},
        )
    return tuple(topic.name for topic in missing)


def wait_until_visible(app: App, topics: TopicStore, last_offsets: Mapping[tuple[str, int], int]) -> None:
    """Waits until a committed reader sees these offsets.

    A commit is answered when it is decided; the coordinator writes the markers into the partitions after that
    (KIP-98, `TransactionMarkerChannelManager`, Kafka 4.3). Raises DeadlineError.
    """
    waiting = dict(last_offsets)
    while waiting:
        for topic in sorted({topic for topic, _partition in waiting}):
            for bound in topics.bounds(topic):
                if bound.lso > waiting.get((topic, bound.partition), bound.lso):
                    del waiting[topic, bound.partition]
        if waiting:
            app.deadline.check("waiting for the commit to reach all partitions; the offsets are written")
            app.deadline.sleep(0.1)


def expected_records(planned: Sequence[PlannedTopic]) -> int:
    """At most how many records there are to read."""
    return sum(bound.lso - bound.begin for topic in planned for bound in topic.bounds)


def some(names: Sequence[str], limit: int = 5) -> str:
    """The first names of a list, and how many more there are."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
