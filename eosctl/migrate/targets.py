"""The topics that a migration writes to: planned, created if missing, and awaited."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.offsets.migration import ConnectorRoute, MigrationPlan, PlannedTopic, topic_of
from eosctl.core.records import NewTopic
from eosctl.core.wording import counted
from eosctl.errors import BrokerError, RefusedError, UnauthorizedError, UsageError
from eosctl.events import Event
from eosctl.foreign import shell_word
from eosctl.migrate.stores import is_file
from eosctl.migrate.topics import CONNECT_PARTITIONS, app_of, cluster_id_of, look_up, per_cluster, some
from eosctl.offsets.stores.new_topics import TopicsMade, create_topics, refused_topics
from eosctl.offsets.stores.targets import other_partitions, refuse_unfit_targets


class TopicSize(Struct, frozen=True):
    """The size of new topics, if not as the source's; a file has none."""

    partitions: int | None = None
    replication_factor: int | None = None

    def check(self, store: str) -> None:
        """Raise UsageError if a size is given for a file."""
        if (self.partitions or self.replication_factor) and is_file(store):
            raise UsageError("a file has no partitions", hint="Leave out --partitions and --replication-factor.")

    def of(self, like: PlannedTopic) -> PlannedTopic:
        """Return `like` with this size."""
        return replace(
            like,
            partitions=self.partitions or like.partitions,
            replication_factor=self.replication_factor or like.replication_factor,
        )


AS_SOURCE = TopicSize()


def planned_targets(
    app: App, names: Sequence[str], *, sources: Sequence[PlannedTopic], size: TopicSize = AS_SOURCE
) -> list[PlannedTopic]:
    """Return the targets; a missing topic gets partitions and replication factor from `size`, else the first source.

    The first source is the first one that is a topic. Raises RefusedError for a file that exists already, and the
    brokers' refusal of a topic that they would not create.
    """
    per_cluster(app, names, lambda here, topics, some: refuse_unfit_targets(here, topics, list(map(topic_of, some))))
    found = look_up(app, names)
    like = replace(size.of(_like(app, sources)), connectors=None)
    clusters: dict[str | None, str | None] = {}  # hundreds of topics, one or two clusters
    targets = []
    for name in names:
        there = found[name]
        if there is not None and there.file is not None:
            raise RefusedError(f"{there.file} exists; nothing was written", hint="Name a file that is not there yet.")
        profile = PlannedTopic(name, None, 1, 1).profile
        if there is None and profile not in clusters:
            clusters[profile] = cluster_id_of(app, name)
        targets.append(there or replace(like, name=name, topic_id=None, bounds=(), cluster_id=clusters[profile]))
    _refuse_impossible(app, [topic for topic in targets if topic.topic_id is None and topic.file is None])
    return targets


def refuse_reading_what_is_written(
    routes: Sequence[ConnectorRoute], sources: Sequence[PlannedTopic], targets: Sequence[PlannedTopic]
) -> None:
    """Raise RefusedError if offsets of a connector would be written into a topic from which they are also read.

    A run that was cut off could not tell the offsets that it has yet to move from those that it has moved.
    """
    read = {route.connector for route in routes}
    written = {_identity(target): target for target in targets if target.topic_id is not None}
    for source in sources:
        target = written.get(_identity(source))
        others = [other for other in sources if other is not source]
        both = [
            route.target_connector
            for route in routes
            if target is not None
            and route.target_topic == target.name
            and route.target_connector in read
            and source.gives(route.target_connector)
            # what comes from the topic alone, under its own name, is there already: nothing is written
            and (route.connector != route.target_connector or any(other.gives(route.connector) for other in others))
        ]
        if both:
            raise RefusedError(
                f"offsets of {some(sorted(both))} would be read from topic {source.topic}, and others written over "
                "them; a run that is cut off could not go on; nothing was written",
                hint="Take two steps, with a file between them, while these connectors are stopped: "
                f"`eosctl offsets export --store {shell_word(source.name)} offsets.ndjson`, then this command with "
                f"--from offsets.ndjson instead of {source.name}.",
            )


def _identity(topic: PlannedTopic) -> tuple[str | None, ...]:
    """Return what identifies a topic, whatever name it is given by."""
    return topic.cluster_id, topic.topic, topic.topic_id


def _refuse_impossible(app: App, missing: Sequence[PlannedTopic]) -> None:
    """Raise the brokers' refusal to create `missing`; a client that may not create topics may plan, and is warned."""
    if not missing:
        return
    refused = refused_topics(app_of(app, missing[0]), [_new(topic) for topic in missing])
    impossible = [refusal for refusal in refused.values() if not isinstance(refusal, UnauthorizedError)]
    if impossible:
        raise BrokerError(
            f"{len(impossible)} of {counted(len(missing), 'new topic')} can't be created: {impossible[0].message}",
            hint="See --partitions, --replication-factor and --dedicated-topic.",
        ) from impossible[0]
    for refusal in list(refused.values())[:1]:
        app.on_event(Event(f"applying this plan needs more rights than this client has: {refusal}", warning=True))


def _new(topic: PlannedTopic) -> NewTopic:
    return NewTopic(topic.topic, topic.partitions, topic.replication_factor)


def _like(app: App, sources: Sequence[PlannedTopic]) -> PlannedTopic:
    """Return the model of a missing target.

    The first source that is a topic, else the global topic, else one with Connect's defaults.
    """
    for source in sources:
        if source.file is None:
            return source
    name = app.target.offset_topic
    found = look_up(app, [name])[name] if app.target.client is not None else None
    return found or PlannedTopic(name, None, CONNECT_PARTITIONS, 1)


def create_missing(app: App, plan: MigrationPlan) -> TopicsMade:
    """Create the target topics that are missing in the plan, compacted.

    Raises StalePlanError if one exists by now with another number of partitions.
    """
    missing = [topic for topic in plan.targets if topic.topic_id is None]
    if not missing or not plan.tally.to_write():
        return TopicsMade()
    here = app_of(app, missing[0])
    with here.topics() as topics:
        there = topics.describe([topic.topic for topic in missing], configs=False)
    for topic in missing:
        if topic.topic in there and there[topic.topic].partitions != topic.partitions:
            raise other_partitions(topic.topic, there[topic.topic].partitions, planned=topic.partitions)
    return create_topics(here, [_new(topic) for topic in missing if topic.topic not in there])
