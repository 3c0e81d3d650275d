"""Which topics the stores of a migration are: `global`, `dedicated`, or a topic by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eosctl.core.migration import Selection
from eosctl.errors import NotFoundError, RefusedError, UsageError
from eosctl.ops.app import App
from eosctl.ops.dedicated_topics import TOPIC_PROPERTY, gather_dedicated_topics


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

    `dedicated` is the connector's own offsets topic, or the one that `pattern` names for a connector that has none.
    """
    if store == "global":
        return lambda _connector: app.target.offset_topic
    if store != "dedicated":
        return lambda _connector: store
    with app.topics() as topics:
        dedicated = gather_dedicated_topics(app, topics, pattern=pattern)

    def topic(connector: str) -> str:
        found = dedicated.of(connector)
        if found is None:
            raise UsageError(
                f"connector {connector} has no {TOPIC_PROPERTY}, so its dedicated topic is not known",
                hint="Name it with --dedicated-topic 'offsets-{connector}', or give --connect-url to read its config.",
            )
        if connector in dedicated.elsewhere:
            raise RefusedError(
                f"connector {connector}: its config names Kafka brokers of its own, where its offsets topic is",
                hint="eosctl can't tell yet whether those are this cluster; name the topic with --to TOPIC if so.",
            )
        return found

    return topic


def _dedicated_topics(app: App, selection: Selection) -> list[str]:
    with app.topics() as topics:
        configured = gather_dedicated_topics(app, topics).configured
    if not configured:
        raise NotFoundError(
            f"no connector is known to have {TOPIC_PROPERTY}", hint="Name the source topic: --from TOPIC."
        )
    return sorted({configured[name] for name in selection.choose(configured)})
