"""Which topics the stores of a migration are: `global`, `dedicated`, or a topic by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from eosctl.core.migration import Selection
from eosctl.errors import NotFoundError, UsageError
from eosctl.ops.app import App

TOPIC_PROPERTY = "offsets.storage.topic"
"""The connector's property, with an s; the worker's is `offset.storage.topic`."""


def source_topics(app: App, stores: Sequence[str], selection: Selection) -> list[str]:
    """The topics of `stores` in order of precedence; `dedicated` stands for those of the selected connectors."""
    names: list[str] = []
    for store in stores:
        if store == "global":
            names.append(app.target.offset_topic)
        elif store == "dedicated":
            names += _dedicated_topics(app, selection)
        else:
            names.append(store)
    return list(dict.fromkeys(names))


def target_topic_of(app: App, store: str, pattern: str | None) -> Callable[[str], str]:
    """Connector name -> its target topic.

    `dedicated` is the connector's own `offsets.storage.topic`; `pattern` names the topic of a connector that has none.
    """
    if store == "global":
        return lambda _connector: app.target.offset_topic
    if store != "dedicated":
        return lambda _connector: store
    if pattern is not None and "{connector}" not in pattern:
        raise UsageError(
            "--dedicated-topic needs {connector} in it", hint="Say, --dedicated-topic 'offsets-{connector}'."
        )
    configured = configured_topics(app) if app.target.connect_urls else {}

    def topic(connector: str) -> str:
        if connector in configured:
            return configured[connector]
        if pattern is None:
            raise UsageError(
                f"connector {connector} has no {TOPIC_PROPERTY}, so its dedicated topic is not known",
                hint="Name it with --dedicated-topic 'offsets-{connector}', or give --connect-url to read its config.",
            )
        return pattern.replace("{connector}", connector)

    return topic


def configured_topics(app: App) -> dict[str, str]:
    """Connector -> the dedicated offsets topic in its config, as the first Connect worker knows it."""
    if not app.target.connect_urls:
        raise UsageError("no Connect worker was named, so dedicated topics are not known", hint="Give --connect-url.")
    found = {}
    for name, both in app.worker(app.target.connect_urls[0]).connectors().items():
        config = cast("Mapping[str, Mapping[str, str]]", both.get("info") or {}).get("config") or {}
        if config.get(TOPIC_PROPERTY):
            found[name] = config[TOPIC_PROPERTY]
    return found


def _dedicated_topics(app: App, selection: Selection) -> list[str]:
    configured = configured_topics(app)
    if not configured:
        raise NotFoundError(f"no connector has {TOPIC_PROPERTY}", hint="Name the source topic: --from TOPIC.")
    return sorted({configured[name] for name in selection.choose(configured)})
