"""The topics and files that the stores of a migration stand for, and the target topics.

A store is `global`, `dedicated`, a topic, either of the first and the last with `@PROFILE` for another cluster, or a
file. The results are names as in a plan (`PlannedTopic.name`).

Target topics, to which a migration writes, are planned, created if missing, and awaited.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.dedicated import TOPIC_PROPERTY, describe_unknown, gather_dedicated_topics
from eosctl.core.configs.records import Selection
from eosctl.core.offsets.migration import ConnectorRoute, MigrationPlan, PlannedTopic, topic_of
from eosctl.core.offsets.names import (
    DEDICATED,
    FILE_ENDINGS,
    FILE_PREFIX,
    GLOBAL,
    PLACE,
    is_file,
    parse_store,
    topic_for,
)
from eosctl.core.records import NewTopic
from eosctl.core.wording import counted
from eosctl.deadline import Event
from eosctl.errors import BrokerError, NotFoundError, RefusedError, UnauthorizedError, UsageError
from eosctl.foreign import shell_word
from eosctl.migrate.topics import CONNECT_PARTITIONS, app_of, cluster_id_of, look_up, per_cluster, some
from eosctl.offsets.stores.columns import TopicsMade, create_topics, refused_topics
from eosctl.offsets.stores.gather import locate
from eosctl.offsets.stores.own import other_partitions, refuse_unfit_targets

Owners = tuple[str, ...] | None
"""The connectors whose offsets are taken from a source, or None for all that it has."""


def source_stores(app: App, stores: Sequence[str], selection: Selection) -> dict[str, Owners]:
    """Return the names of `stores` in order of precedence, with the connectors whose offsets are taken from each.

    `dedicated` stands for the topics of the selected connectors. Each connector takes from its own topic alone: what it
    left in a topic that it once shared is no longer its offset.
    """
    found: dict[str, Owners] = {}
    for store in stores:
        named = _dedicated_topics(app, selection) if store == DEDICATED else {_name(app, store): None}
        for name, owners in named.items():
            found[name] = owners if name not in found else None if owners is None else found[name]
    return found


def target_name_of(app: App, store: str, pattern: str | None) -> Callable[[str], str]:
    """Return a function from a connector's name to the name of its target.

    For `dedicated` that is the connector's own offsets topic, or `pattern` for a connector that has none. `{connector}`
    in another store stands for the connector's name.
    """
    if store == DEDICATED:
        return _dedicated_topic_of(app, pattern)
    if PLACE in store and is_file(store):
        raise UsageError(f"{store}: one file takes all connectors", hint="Leave {connector} out.")
    if PLACE in store:
        named = parse_store(store, pattern=True)
        return lambda connector: str(replace(named, name=topic_for(named.name, connector)))
    name = _name(app, store)
    return lambda _connector: name


def profile_of(store: str) -> str | None:
    """Return the profile whose cluster a store is on, None for a file or the command's own cluster."""
    return None if is_file(store) else parse_store(store, pattern=True).profile


def _name(app: App, store: str) -> str:
    if is_file(store):
        path = os.path.expanduser(store.removeprefix(FILE_PREFIX))
        if not path.endswith(FILE_ENDINGS) and not os.path.isdir(path):
            raise UsageError(f"what kind of file is {path}?", hint=f"Its name should end in {', '.join(FILE_ENDINGS)}.")
        return FILE_PREFIX + os.path.abspath(path)
    profile = parse_store(store).profile
    here, topic = locate(app, store)
    topic = here.target.offset_topic if topic == GLOBAL else topic
    return topic if profile is None else f"{topic}@{profile}"


def _dedicated_topic_of(app: App, pattern: str | None) -> Callable[[str], str]:
    with app.topics() as topics:
        dedicated = gather_dedicated_topics(app, topics, pattern=pattern)

    def topic(connector: str) -> str:
        found = dedicated.of(connector)
        if found is None and connector in dedicated.unknown:
            raise RefusedError(
                describe_unknown(connector, dedicated.unknown[connector]),
                hint="Name the topic with --dedicated-topic PATTERN, or --to TOPIC; or leave the connector out.",
            )
        if found is None:
            raise UsageError(
                f"connector {connector} has no {TOPIC_PROPERTY}, so its dedicated topic is not known",
                hint="Name it with --dedicated-topic 'offsets-{connector}', or give --connect-url to read its config.",
            )
        if connector in dedicated.elsewhere:
            raise RefusedError(
                f"connector {connector}: its config names Kafka brokers of its own, where its offsets topic is",
                hint="Name the topic with --to TOPIC, or --to TOPIC@PROFILE where a profile names those brokers.",
            )
        return found

    return topic


def _dedicated_topics(app: App, selection: Selection) -> dict[str, Owners]:
    """Return the topics of the selected connectors, by name, each with all connectors that it is the own topic of."""
    with app.topics() as topics:
        dedicated = gather_dedicated_topics(app, topics)
    configured = {name: topic for name, topic in dedicated.configured.items() if name not in dedicated.brokers}
    for name in sorted(dedicated.brokers):
        message = f"the config of connector {name} names Kafka brokers of its own; what it has there is not read"
        app.on_event(Event(message, warning=True))
    for name, value in sorted(dedicated.unknown.items()):
        app.on_event(Event(f"{describe_unknown(name, value)}; what it has there is not read", warning=True))
    if not configured:
        raise NotFoundError(
            f"no connector is known to have {TOPIC_PROPERTY}", hint="Name the source topic: --from TOPIC."
        )
    return {
        topic: tuple(sorted(name for name, its in configured.items() if its == topic))
        for topic in sorted({configured[name] for name in selection.choose(configured)})
    }


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
