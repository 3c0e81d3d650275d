"""Which connectors have an offsets topic of their own: from a worker's REST interface, else from the config topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from eosctl.core.config_topic import fold_config_topic
from eosctl.errors import EosctlError, UsageError
from eosctl.ops.app import App
from eosctl.ops.ports import TopicStore
from eosctl.report import Problem

TOPIC_PROPERTY = "offsets.storage.topic"
CLUSTER_PROPERTY = "producer.override.bootstrap.servers"


@dataclass(frozen=True, slots=True)
class DedicatedTopics:
    """Connector -> its own offsets topic; `connectors` are all that Connect knows, None where it could not be asked.

    `pattern` (`offsets-{connector}`) stands in for connectors that have none. `elsewhere` are connectors whose
    offsets topic is on a cluster that their config names, and so possibly not on this one.
    """

    configured: Mapping[str, str] = field(default_factory=dict)
    connectors: frozenset[str] | None = None
    elsewhere: frozenset[str] = frozenset()
    pattern: str | None = None
    problems: tuple[Problem, ...] = ()

    def is_gone(self, connector: str) -> bool:
        """Whether Connect, as far as it could be asked, has no connector of that name."""
        return self.connectors is not None and connector not in self.connectors

    def of(self, connector: str) -> str | None:
        """The dedicated topic of `connector`; None where it has none."""
        if connector in self.configured or self.pattern is None:
            return self.configured.get(connector)
        return self.pattern.replace("{connector}", connector)


def gather_dedicated_topics(app: App, topics: TopicStore, *, pattern: str | None = None) -> DedicatedTopics:
    """Asks the first worker that answers, else reads the config topic; what could not be known is a problem.

    Raises UsageError for a pattern that gives all connectors one topic name by accident.
    """
    if pattern is not None and "{connector}" not in pattern:
        raise UsageError(f"--dedicated-topic {pattern} has no {{connector}} in it", hint="Say, 'offsets-{connector}'.")
    problems: list[Problem] = []
    configs = _from_workers(app, problems)
    if configs is None:
        configs = _from_config_topic(app, topics, problems)
    if configs is None:
        return DedicatedTopics(pattern=pattern, problems=tuple(problems))
    offsets_topics = {name: config.get(TOPIC_PROPERTY) for name, config in configs.items()}
    return DedicatedTopics(
        # the worker's own topic, named explicitly, is not a second store (`Worker.offsetStoreForExactlyOnceSourceTask`)
        configured={
            name: topic for name, topic in offsets_topics.items() if topic and topic != app.target.offset_topic
        },
        connectors=frozenset(configs),
        elsewhere=frozenset(name for name, config in configs.items() if config.get(CLUSTER_PROPERTY)),
        pattern=pattern,
        problems=tuple(problems),
    )


Configs = Mapping[str, Mapping[str, str]]


def _from_workers(app: App, problems: list[Problem]) -> Configs | None:
    for url in app.target.connect_urls:
        try:
            there = app.worker(url).connectors()
        except EosctlError as exc:
            problems.append(Problem("connect_not_asked", exc.message, hint=exc.hint, severity="warning"))
            continue
        return {name: _config_of(answer) for name, answer in there.items()}
    return None


def _config_of(answer: Mapping[str, object]) -> Mapping[str, str]:
    info = cast("Mapping[str, Mapping[str, str]]", answer.get("info") or {})
    return info.get("config") or {}


def _from_config_topic(app: App, topics: TopicStore, problems: list[Problem]) -> Configs | None:
    name = app.target.config_topic
    if name not in topics.describe([name]):
        problems.append(
            Problem(
                "dedicated_topics_unknown",
                f"which connectors have offsets topics of their own is not known: no worker, no config topic {name}",
                hint="Give --connect-url, --config-topic, or --dedicated-topic 'offsets-{connector}'.",
                severity="warning",
            )
        )
        return None
    state = fold_config_topic(topics.read(name).records)
    return {
        connector: {key: value for key, value in there.config.items() if isinstance(value, str)}
        for connector, there in state.connectors.items()
        if there.config is not None
    }
