"""Connectors with an offsets topic or a Kafka cluster of their own.

The offsets topics are found by a worker's REST interface, else by the config topic. The connections to other Kafka
clusters are those that connectors' configs name; the connectors' transactional ids are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors import codes
from eosctl.core.allowances import Waiver
from eosctl.core.clients.own_brokers import OwnBrokers, brokers_of_ids, own_brokers
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.configs.fold import ConfigState
from eosctl.core.java.properties import is_reference
from eosctl.core.offsets.names import PLACE, topic_for
from eosctl.core.wording import is_topic_name
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, RefusedError, UsageError
from eosctl.group import codes as group_codes
from eosctl.group.belonging import OtherWorkerError, connectors_of
from eosctl.group.gather import in_turn
from eosctl.group.topics import find_config_topic
from eosctl.ports import TopicReader
from eosctl.report import Problem

TOPIC_PROPERTY = "offsets.storage.topic"

Configs = Mapping[str, Mapping[str, str]]
"""Connector -> its config."""


_STRANGERS = (group_codes.OTHER_KAFKA_CLUSTER, group_codes.OTHER_GROUP)


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

    def refuse_strangers(self) -> None:
        """Raise RefusedError where a worker was asked that is not of the command's Kafka cluster and group."""
        for problem in self.problems:
            if problem.code in _STRANGERS:
                raise RefusedError(problem.message, hint=problem.hint)

    def refuse_none(self, connector: str, *, hint: str) -> NoReturn:
        """Raise UsageError: the connector has no offsets topic of its own, or that could not be seen."""
        said = f"connector {connector} has no offsets topic of its own ({TOPIC_PROPERTY})"
        if self.connectors is None:
            why = "; ".join(problem.message for problem in self.problems)
            said = f"whether connector {connector} has an offsets topic of its own is not known: {why}"
        raise UsageError(said, hint=hint)

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


def gather_dedicated_topics(
    app: App, topics: TopicReader, *, pattern: str | None = None, known: ConfigState | None = None
) -> DedicatedTopics:
    """Ask the first worker that answers, else read the config topic; report as a problem what stays unknown.

    `known` is the config topic as it has been read already.
    Raises UsageError for a pattern that gives all connectors one topic name by accident.
    """
    if pattern is not None and PLACE not in pattern:
        raise UsageError(f"--dedicated-topic {pattern} has no {{connector}} in it", hint="Say, 'offsets-{connector}'.")
    problems: list[Problem] = []
    configs = _from_workers(app, topics, problems)
    if configs is None:
        configs = _from_config_topic(app, topics, problems) if known is None else _configs_of(known)
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
    why = "which only its worker can resolve" if is_reference(value) else "which can't be a topic"
    return f"connector {connector}: its {TOPIC_PROPERTY} is {value}, {why}"


def _unknown_problem(connector: str, value: str) -> Problem:
    message = f"{describe_unknown(connector, value)}; what it has there is not looked at"
    hint = "Name that topic as a store, or by --dedicated-topic where the command takes it."
    return Problem(codes.DEDICATED_TOPICS_UNKNOWN, message, hint=hint, unseen=True)


def _from_workers(app: App, topics: TopicReader, problems: list[Problem]) -> Configs | None:
    """Ask the workers within half of the time: a frozen one never answers, and the config topic needs time, too."""
    for _url, worker in in_turn(replace(app, deadline=app.deadline.half()), app.target.connect_urls):
        try:
            entries = connectors_of(app, worker, topics.cluster_id())
        except OtherWorkerError as exc:
            problems.append(Problem(exc.what, exc.message, hint=exc.hint))
        except EosctlError as exc:
            problems.append(Problem(codes.CONNECT_NOT_ASKED, exc.message, hint=exc.hint))
        else:
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
    return _configs_of(found.state)


def _configs_of(state: ConfigState) -> Configs:
    return {
        connector: {key: value for key, value in each.config.items() if isinstance(value, str)}
        for connector, each in state.connectors.items()
        if each.config is not None
    }


_PATIENCE_S = 10.0


class OtherCluster(Struct, frozen=True):
    """The connection to a connector's own brokers: settings from its config, or a profile's."""

    client: ClientSettings
    profile: str | None = None

    def with_topics(self, app: App) -> App:
        """Return the app with the other cluster's topics."""
        open_topics = app.open_topics
        return replace(app, open_topics=lambda asked: open_topics(self.app(asked)))

    def with_clients(self, app: App) -> App:
        """Return the app with the other cluster's topics, transactions and ACLs, of which the tasks are clients."""
        open_transactions, open_acls = app.open_transactions, app.open_acls
        return replace(
            self.with_topics(app),
            open_transactions=lambda asked: open_transactions(self.app(asked)),
            open_acls=lambda asked: open_acls(self.app(asked)),
        )

    def app(self, app: App) -> App:
        """Return the app of the other cluster; only group and workers are those of `app`."""
        return replace(app, target=replace(app.target, client=self.client))


def cluster_of_ids(app: App, connector: str, config: Mapping[str, object] | None) -> OtherCluster | None:
    """Return the connection to the Kafka cluster that the connector's tasks write to; None where it is that of `app`.

    Raises RefusedError where it is another one and eosctl can't connect to it.
    """
    texts = {name: value for name, value in (config or {}).items() if isinstance(value, str)}
    brokers = brokers_of_ids(texts, here=servers_of(app))
    if brokers is None:
        return None
    if brokers.settings is None:
        raise RefusedError(
            f"the config of {connector} names Kafka brokers of its own ({brokers.servers}), where its transactional "
            f"ids are, and {brokers.why_not}; nothing was fenced or written",
            hint="Stop the connector, and make a profile that leads there: `eosctl fence TXN_ID -p PROFILE "
            f"{Waiver.UNKNOWN_LIVENESS}` fences ids there, where nobody can say whether their tasks run.",
        )
    return OtherCluster(brokers.settings)


def note_other_cluster(connector: str, at: OtherCluster, cluster_id: str) -> Problem:
    """Make the remark that a connector's ids are on another cluster than the command's."""
    servers = ",".join(at.client.bootstrap_servers)
    message = f"{connector} writes to Kafka cluster {cluster_id} ({servers}): its transactional ids are looked at there"
    return Problem(codes.OTHER_CLUSTER, message)


def servers_of(app: App) -> tuple[str, ...]:
    """Return the bootstrap servers of the command's own cluster."""
    return app.target.client.bootstrap_servers if app.target.client else ()


def task_clusters(
    app: App, configs: Mapping[str, Mapping[str, object]]
) -> tuple[list[tuple[App, frozenset[str]]], Mapping[str, str]]:
    """Return the other clusters that these connectors' tasks write to, each as an app with a short deadline.

    Also return, for connectors of a cluster that eosctl can't connect to, the reason.
    """
    places: list[tuple[ClientSettings, set[str]]] = []
    why_not: dict[str, str] = {}
    for name, config in configs.items():
        texts = {key: value for key, value in config.items() if isinstance(value, str)}
        brokers = brokers_of_ids(texts, here=servers_of(app))
        if brokers is None:
            continue
        if brokers.settings is None:
            why_not[name] = brokers.why_not
            continue
        same = next((names for settings, names in places if settings == brokers.settings), None)
        if same is None:
            places.append((brokers.settings, same := set()))
        same.add(name)
    return [(patient(OtherCluster(settings).app(app)), frozenset(names)) for settings, names in places], why_not


def patient(app: App) -> App:
    """Return the app with a deadline of seconds: another cluster may be out of reach from here."""
    patience_s = min(_PATIENCE_S, app.deadline.remaining_s() / 2)
    return replace(app, deadline=Deadline.after(patience_s, app.clock))
