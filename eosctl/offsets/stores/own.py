"""The offsets topics on connectors' own Kafka brokers, and checks that topics are offsets topics.

Topics are found for connectors whose config names brokers of its own, on these brokers, and only read; `switch` writes
there.

The checks come before offsets are written to topics or read from them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors import codes as connector_codes
from eosctl.connectors.dedicated import Configs, DedicatedTopics, gather_dedicated_topics
from eosctl.core.offsets.targets import (
    NEWEST_OFFSETS,
    Objection,
    objection_to_name,
    objection_to_records,
    objection_to_settings,
    objection_to_use,
)
from eosctl.core.wording import counted
from eosctl.deadline import Deadline, Event
from eosctl.errors import DeadlineError, EosctlError, RefusedError, StalePlanError, UnauthorizedError, UnreachableError
from eosctl.ports import TopicReader
from eosctl.report import Problem

_PATIENCE_S = 5.0


class OwnTopic(Struct, frozen=True, eq=False):
    """A topic on a connector's own brokers; `app` connects to them, or is None if eosctl can't.

    `named`: the config names the topic; else it is named like the worker's offsets topic, and only exactly-once tasks
    have it (`Worker.offsetStoreForExactlyOnceSourceTask`).
    """

    connector: str
    topic: str
    named: bool
    servers: str
    app: App | None
    why_not: str = ""

    def require_app(self) -> App:
        """Return the App of the brokers; raise EosctlError if eosctl can't connect to them."""
        if self.app is None:
            raise EosctlError(self.why_not)
        return self.app

    def seen(self, cluster_id: str) -> Problem:
        """Report the cluster of the topic, which is not the one that the command was given."""
        message = f"{self.connector}: its own offsets are in topic {self.topic} on cluster {cluster_id}"
        return Problem(connector_codes.OTHER_CLUSTER, f"{message} ({self.servers}), and are read there")

    def unseen(self, why: str) -> Problem:
        """Report why the topic is not read, and how to reach it."""
        message = f"{self.connector}: its config names other Kafka brokers ({self.servers}), and {why}; its own offsets"
        hint = f"Make a profile that leads there, and name the store: {self.topic}@PROFILE."
        return Problem(
            connector_codes.OTHER_CLUSTER,
            f"{message} there are not looked at",
            hint=hint,
            unseen=True,
        )


def _known_topics(
    app: App, dedicated: DedicatedTopics, connectors: Collection[str] | None = None
) -> Iterator[OwnTopic]:
    """Yield the own topic of each of `connectors` (None: all) with brokers of its own, if its name is known."""
    for connector, brokers in sorted(dedicated.brokers.items()):
        if (connectors is not None and connector not in connectors) or connector in dedicated.unknown:
            continue
        named = dedicated.configured.get(connector)
        own_app = None
        if brokers.settings is not None:
            own_app = replace(app, target=replace(app.target, client=brokers.settings))
        topic = named or app.target.offset_topic
        yield OwnTopic(connector, topic, named is not None, brokers.servers, own_app, brokers.why_not)


def own_topics(
    app: App, dedicated: DedicatedTopics, connectors: Collection[str] | None = None
) -> tuple[dict[OwnTopic, str], list[Problem]]:
    """Return the topics to read, each with its cluster id, and problems that report their clusters or errors.

    A topic that the config names is included whether or not it exists. Brokers that do not answer are asked once.
    """
    found: dict[OwnTopic, str] = {}
    problems: list[Problem] = []
    dead: dict[str, str] = {}
    for own_topic in _known_topics(app, dedicated, connectors):
        try:
            if own_topic.servers in dead:
                raise EosctlError(dead[own_topic.servers])
            cluster_id, exists = _find_topic(own_topic)
        except (UnreachableError, DeadlineError) as exc:
            dead[own_topic.servers] = exc.message
            problems.append(own_topic.unseen(exc.message))
        except EosctlError as exc:
            problems.append(own_topic.unseen(exc.message))
        else:
            if exists or own_topic.named:
                found[own_topic] = cluster_id
                problems.append(own_topic.seen(cluster_id))
    return found, problems


def _find_topic(own_topic: OwnTopic) -> tuple[str, bool]:
    """Return the cluster id, and whether the topic exists there; raise EosctlError without an answer soon."""
    app = own_topic.require_app()
    patience = Deadline.after(min(_PATIENCE_S, app.deadline.remaining_s() / 2), app.clock)
    with replace(app, deadline=patience).topics() as topics:
        return topics.cluster_id(), own_topic.topic in topics.describe([own_topic.topic])


def refuse_unfit_targets(
    app: App, topics: TopicReader, names: Collection[str], *, configs: Configs | None = None
) -> None:
    """Raise RefusedError for the first of `names` that is not fit for offsets, or would lose them.

    A missing topic is judged by its name, and by the connectors' `configs` (None: as far as they can be known).
    """
    known = _configs(app, topics) if configs is None and names else configs or {}
    for name in names:
        _refuse(name, _by_name(app, name) or objection_to_use(name, known))
    described = topics.describe(names)
    newest = topics.newest_of(list(described), offsets=NEWEST_OFFSETS) if described else {}
    for name, description in described.items():
        _refuse(name, objection_to_records(newest[name]) or objection_to_settings(description, app.target.client))
        if "cleanup.policy" not in description.config:
            message = f"whether topic {name} keeps offsets is not known: its cleanup.policy can't be read"
            app.on_event(Event(f"{message} (DESCRIBE_CONFIGS on Topic {name} is needed)", warning=True))


def refuse_unfit_sources(app: App, topics: TopicReader, names: Collection[str]) -> None:
    """Raise RefusedError for the first of `names` that was never an offsets topic: offsets are not read from it."""
    for name in names:
        _refuse(name, _by_name(app, name))
    existing = list(topics.describe(names, configs=False))
    for name, newest in (topics.newest_of(existing, offsets=NEWEST_OFFSETS) if existing else {}).items():
        _refuse(name, objection_to_records(newest))


def _configs(app: App, topics: TopicReader) -> Configs:
    try:
        return gather_dedicated_topics(app, topics).configs
    except UnauthorizedError:
        return {}


def _by_name(app: App, name: str) -> Objection | None:
    return objection_to_name(name, config_topic=app.target.config_topic, status_topic=app.target.status_topic)


def _refuse(name: str, objection: Objection | None) -> None:
    if objection is not None:
        raise RefusedError(f"topic {name} {objection.message}; nothing was written", hint=objection.hint)


def other_partitions(topic: str, partitions: int, *, planned: int) -> StalePlanError:
    """Return the error for changed partitions: keys belong elsewhere then, and the new partitions were not read."""
    has = counted(partitions, "partition")
    return StalePlanError(f"topic {topic} has {has}, the plan says {planned}", hint="Plan again.")
