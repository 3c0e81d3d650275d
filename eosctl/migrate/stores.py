"""The topics and files that the stores of a migration stand for.

A store is `global`, `dedicated`, a topic, either of the first and the last with `@PROFILE` for another cluster, or a
file. The results are names as in a plan (`PlannedTopic.name`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.dedicated import TOPIC_PROPERTY, describe_unknown, gather_dedicated_topics
from eosctl.core.configs.selection import Selection
from eosctl.core.offsets.migration import FILE_PREFIX
from eosctl.core.offsets.names import DEDICATED, GLOBAL, PLACE, parse_store, topic_for
from eosctl.errors import NotFoundError, RefusedError, UsageError
from eosctl.events import Event
from eosctl.offsets.stores.gather import locate

_FILE_ENDINGS = (".ndjson", ".jsonl", ".parquet")


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


def is_file(store: str) -> bool:
    """Tell whether a store is a file: `file:PATH`, a path with a slash, or a name with the ending of a file.

    No topic name has either.
    """
    return store.startswith(FILE_PREFIX) or os.sep in store or store.endswith(_FILE_ENDINGS)


def profile_of(store: str) -> str | None:
    """Return the profile whose cluster a store is on, None for a file or the command's own cluster."""
    return None if is_file(store) else parse_store(store, pattern=True).profile


def _name(app: App, store: str) -> str:
    if is_file(store):
        path = os.path.expanduser(store.removeprefix(FILE_PREFIX))
        if not path.endswith(_FILE_ENDINGS) and not os.path.isdir(path):
            raise UsageError(
                f"what kind of file is {path}?", hint=f"Its name should end in {', '.join(_FILE_ENDINGS)}."
            )
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
