"""The offsets topics of connectors whose config names Kafka brokers of its own: found there, by what the config says.

Here they are only looked at; `switch_elsewhere` writes there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors import codes as connector_codes
from eosctl.connectors.dedicated import DedicatedTopics
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError, UnreachableError
from eosctl.report import Problem

_PATIENCE_S = 5.0


class OwnPlace(Struct, frozen=True, eq=False):
    """A topic on brokers of connectors' own; `app` leads there, None where eosctl can't go.

    `named`: the config names the topic; else it is one of the worker's name, which only exactly-once tasks have
    (`Worker.offsetStoreForExactlyOnceSourceTask`).
    """

    connector: str
    topic: str
    named: bool
    servers: str
    app: App | None
    why_not: str = ""

    def there(self) -> App:
        """What leads to the brokers; raises EosctlError where eosctl can't go."""
        if self.app is None:
            raise EosctlError(self.why_not)
        return self.app

    def seen(self, cluster_id: str) -> Problem:
        """Where the topic was read, which is not where the command was sent."""
        message = f"{self.connector}: its own offsets are in topic {self.topic} on cluster {cluster_id}"
        return Problem(connector_codes.OTHER_CLUSTER, f"{message} ({self.servers}), and are read there")

    def unseen(self, why: str) -> Problem:
        """Why it is not read, and what leads there."""
        message = f"{self.connector}: its config names other Kafka brokers ({self.servers}), and {why}; its own offsets"
        hint = f"Make a profile that leads there, and name the store: {self.topic}@PROFILE."
        return Problem(
            connector_codes.OTHER_CLUSTER,
            f"{message} there are not looked at",
            hint=hint,
            unseen=True,
        )


def _own_places(app: App, dedicated: DedicatedTopics, connectors: Collection[str] | None = None) -> Iterator[OwnPlace]:
    """One for each of `connectors` (None: of all) that has brokers of its own and a topic that is known by name."""
    for connector, brokers in sorted(dedicated.brokers.items()):
        if (connectors is not None and connector not in connectors) or connector in dedicated.unknown:
            continue
        named = dedicated.configured.get(connector)
        there = None
        if brokers.settings is not None:
            there = replace(app, target=replace(app.target, client=brokers.settings))
        topic = named or app.target.offset_topic
        yield OwnPlace(connector, topic, named is not None, brokers.servers, there, brokers.why_not)


def own_topics(
    app: App, dedicated: DedicatedTopics, connectors: Collection[str] | None = None
) -> tuple[dict[OwnPlace, str], list[Problem]]:
    """The places whose topics are to be looked at, each with the id of its cluster, and what there is to say of all.

    A topic that the config names counts, be it there or not. Brokers that do not answer are asked once.
    """
    found: dict[OwnPlace, str] = {}
    told: list[Problem] = []
    dead: dict[str, str] = {}
    for place in _own_places(app, dedicated, connectors):
        try:
            if place.servers in dead:
                raise EosctlError(dead[place.servers])
            cluster_id, exists = _is_there(place)
        except (UnreachableError, DeadlineError) as exc:
            dead[place.servers] = exc.message
            told.append(place.unseen(exc.message))
        except EosctlError as exc:
            told.append(place.unseen(exc.message))
        else:
            if exists or place.named:
                found[place] = cluster_id
                told.append(place.seen(cluster_id))
    return found, told


def _is_there(place: OwnPlace) -> tuple[str, bool]:
    """The id of the cluster, and whether the topic exists there; raises EosctlError where it can't be asked soon."""
    app = place.there()
    patience = Deadline.after(min(_PATIENCE_S, app.deadline.remaining_s() / 2), app.clock)
    with replace(app, deadline=patience).topics() as topics:
        return topics.cluster_id(), place.topic in topics.describe([place.topic])
