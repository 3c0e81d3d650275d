"""Finds connectors with an offsets topic of their own: by a worker's REST interface, else by the config topic."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors import codes
from eosctl.core.clients.own_brokers import OwnBrokers, own_brokers
from eosctl.core.java.properties import PROVIDER
from eosctl.core.offsets.names import PLACE, topic_for
from eosctl.core.topic_names import is_topic_name
from eosctl.errors import EosctlError, UsageError
from eosctl.group.gather import in_turn
from eosctl.group.topics.config_reader import find_config_topic
from eosctl.ports import TopicReader
from eosctl.report import Problem

TOPIC_PROPERTY = "offsets.storage.topic"

Configs = Mapping[str, Mapping[str, str]]
"""Connector -> its config."""


class DedicatedTopics(Struct, frozen=True):
    """Connector -> its own offsets topic; `connectors` are all that Connect knows, None where it could not be asked.

    `pattern` (`offsets-{connector}`) stands in for connectors that have none. `brokers` are those of connectors whose
    config names some, so that their own offsets topic is there and not on this cluster. `unknown` has connectors with
    an unusable topic in their config, such as a reference to a config provider: connector -> that value.
    """

    configured: Mapping[str, str] = {}
    connectors: frozenset[str] | None = None
    brokers: Mapping[str, OwnBrokers] = {}
    pattern: str | None = None
    unknown: Mapping[str, str] = {}
    problems: tuple[Problem, ...] = ()
    configs: Configs = {}
    __repr__ = object.__repr__  # the configs may hold secrets

    @property
    def elsewhere(self) -> frozenset[str]:
        """The connectors whose own offsets topic is on brokers that their config names."""
        return frozenset(self.brokers)

    def is_gone(self, connector: str) -> bool:
        """Check whether Connect, as far as it could be asked, has no connector of that name."""
        return self.connectors is not None and connector not in self.connectors

    def of(self, connector: str) -> str | None:
        """Return the dedicated topic of `connector`; None where it has none.

        Raises UsageError where the pattern gives what can't be a topic.
        """
        if connector in self.configured or self.pattern is None:
            return self.configured.get(connector)
        return topic_for(self.pattern, connector)


def gather_dedicated_topics(app: App, topics: TopicReader, *, pattern: str | None = None) -> DedicatedTopics:
    """Ask the first worker that answers, else read the config topic; report as a problem what stays unknown.

    Raises UsageError for a pattern that gives all connectors one topic name by accident.
    """
    if pattern is not None and PLACE not in pattern:
        raise UsageError(f"--dedicated-topic {pattern} has no {{connector}} in it", hint="Say, 'offsets-{connector}'.")
    problems: list[Problem] = []
    configs = _from_workers(app, problems)
    if configs is None:
        configs = _from_config_topic(app, topics, problems)
    if configs is None:
        return DedicatedTopics(pattern=pattern, problems=tuple(problems))
    # the worker's own topic, named explicitly, is not a second store (`Worker.offsetStoreForExactlyOnceSourceTask`)
    named = {
        name: topic
        for name, config in configs.items()
        if (topic := config.get(TOPIC_PROPERTY)) and topic != app.target.offset_topic
    }
    here = app.target.client.bootstrap_servers if app.target.client else ()
    brokers = {name: found for name, config in configs.items() if (found := own_brokers(config, here=here))}
    unknown = {name: topic for name, topic in named.items() if not is_topic_name(topic)}
    problems += [_unknown_problem(name, topic) for name, topic in sorted(unknown.items())]
    return DedicatedTopics(
        configured={name: topic for name, topic in named.items() if name not in unknown},
        connectors=frozenset(configs),
        brokers=brokers,
        pattern=pattern,
        unknown=unknown,
        problems=tuple(problems),
        configs=configs,
    )


def describe_unknown(connector: str, value: str) -> str:
    """Explain why the dedicated topic of a connector is not known."""
    why = "which only its worker can resolve" if PROVIDER.search(value) else "which can't be a topic"
    return f"connector {connector}: its {TOPIC_PROPERTY} is {value}, {why}"


def _unknown_problem(connector: str, value: str) -> Problem:
    message = f"{describe_unknown(connector, value)}; what it has there is not looked at"
    hint = "Name that topic as a store, or by --dedicated-topic where the command takes it."
    return Problem(codes.DEDICATED_TOPICS_UNKNOWN, message, hint=hint, unseen=True)


def _from_workers(app: App, problems: list[Problem]) -> Configs | None:
    """Ask the workers within half of the time: a frozen one never answers, and the config topic needs time, too."""
    for _url, worker in in_turn(replace(app, deadline=app.deadline.half()), app.target.connect_urls):
        try:
            entries = worker.connectors()
        except EosctlError as exc:
            problems.append(Problem(codes.CONNECT_NOT_ASKED, exc.message, hint=exc.hint))
            continue
        return {name: entry.config for name, entry in entries.items()}
    return None


def _from_config_topic(app: App, topics: TopicReader, problems: list[Problem]) -> Configs | None:
    found = find_config_topic(app, topics)
    if found is None:
        problems.append(
            Problem(
                codes.DEDICATED_TOPICS_UNKNOWN,
                "which connectors have offsets topics of their own is not known: no worker, no config topic "
                f"{app.target.config_topic}",
                hint="Give --connect-url, --config-topic, or --dedicated-topic 'offsets-{connector}'.",
                unseen=True,
            )
        )
        return None
    return {
        connector: {key: value for key, value in state.config.items() if isinstance(value, str)}
        for connector, state in found.state.connectors.items()
        if state.config is not None
    }
