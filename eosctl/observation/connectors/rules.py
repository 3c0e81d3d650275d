"""The rules for exactly-once source connectors, one per question, for gates, `connectors check` and doctor.

Judges one observation; reads nothing. An error certainly breaks exactly-once, or keeps tasks from running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from eosctl.connectors.topics import configured_topics
from eosctl.core.clients.own_brokers import CLUSTER_PROPERTY, own_brokers
from eosctl.core.configs.records import MIRROR_SOURCE, OFFSETS_TOPIC, is_class, pruned_class
from eosctl.core.findings import ERROR, INFO, WARNING, Finding, each_once
from eosctl.core.ids import task_transactional_id
from eosctl.core.java.properties import is_reference
from eosctl.core.offsets.findings import missing_topic_finding, topic_findings
from eosctl.core.versions import kafka_version
from eosctl.core.wording import is_topic_name
from eosctl.core.workers.config import creates_topics
from eosctl.fence import codes as fence_codes
from eosctl.fence.connect import Pace, cure_text, pace_of, pause_ms, round_s
from eosctl.group.modes import NOT_ENABLED_TEXT, PROPERTY
from eosctl.group.observation.holders import flush_timeouts, policy_of, setting_to_change
from eosctl.group.observation.rules import BROKER_SETTINGS, VALIDATION, Observation, ObservedConnector
from eosctl.observation.connectors import codes
from eosctl.observation.connectors.commit_age import commit_age, offset_age
from eosctl.observation.connectors.exactly_once import (
    collisions,
    ids_unseen,
    leader_collisions,
    own_cluster,
    requires_support,
    task_audit,
)
from eosctl.observation.connectors.losses import LOSSES
from eosctl.observation.connectors.settings import (
    backoff,
    boundary_setting,
    client_overrides,
    commit_interval,
    idle_connector_names,
    idle_worker_names,
    transaction_timeout,
    unknown_value,
)

DEFAULT_BROKER_MAXIMUM_MS = 900_000

_ISOLATION = "isolation.level"
NEED_NO_SUPPORT = frozenset({"MirrorHeartbeat", "MirrorCheckpoint"})
"""MirrorMaker's connectors that copy nothing: duplicates of theirs do no harm (KIP-618 leaves them out)."""
_NEEDS_SETTINGS = "Needs DESCRIBE_CONFIGS on the cluster; the default of transaction.max.timeout.ms"
_NO_API = "does not implement the API required for preflight validation"

Rule = Callable[[ObservedConnector, Observation], Iterable[Finding]]


def connector_findings(observation: Observation, connectors: Iterable[ObservedConnector]) -> list[Finding]:
    """Return all findings on these connectors, each once, connector by connector; skip sinks."""
    sources = [each for each in connectors if each.type == "source"]
    return each_once(finding for each in sources for rule in RULES for finding in rule(each, observation))


def group_findings(observation: Observation) -> list[Finding]:
    """Return the findings that concern all connectors: the leader's id, and properties in the workers' files."""
    return [*leader_collisions(observation), *worker_properties(observation), *flush_timeouts(observation)]


def support(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Check that the connector declares exactly-once support with this config (`exactlyOnceSupport`)."""
    name = connector.name
    is_mirror = is_class(connector.config, MIRROR_SOURCE) or pruned_class(connector.config) in NEED_NO_SUPPORT
    if observation.mirror_maker and is_mirror:
        connector = replace(connector, support_errors=_mirror_makers_errors(connector))
    elif VALIDATION in observation.unseen:
        yield _not_validated(observation)
    elif connector.support_errors is None:
        yield Finding(
            codes.SUPPORT_UNKNOWN, WARNING, name, f"{name} was not validated, so its support is not known",
            "See whether a worker can be reached and has the connector's plugin, and run again.", certain=False,
        )  # fmt: skip
    required = requires_support(connector)
    severity = ERROR if required else WARNING
    for text in connector.support_errors or ():
        if _NO_API in text:
            if not required and pruned_class(connector.config) in NEED_NO_SUPPORT:
                continue
            sentence = f"{name} does not declare whether it supports exactly-once"
            more = "it requires it, and Connect refuses that" if required else "it is taken on trust"
            yield Finding(
                codes.SUPPORT_UNDECLARED, severity, name, f"{sentence}: {more}",
                f"Read its documentation; {PROPERTY}=required is refused, requested is taken on trust.",
            )  # fmt: skip
        elif NOT_ENABLED_TEXT not in text:
            more = "it requires it, and would not start" if required else "it stays at-least-once"
            yield Finding(
                codes.NOT_SUPPORTED, severity, name, f"{name}: {text}: {more}",
                _support_fix(text),
            )  # fmt: skip


def _mirror_makers_errors(connector: ObservedConnector) -> tuple[str, ...]:
    """Return what `MirrorSourceConnector.exactlyOnceSupport` (3.5 to 4.3) misses in its config; others need none."""
    levels = (connector.config.get(f"{prefix}{_ISOLATION}") for prefix in ("source.consumer.", "source.", "consumer."))
    level = next((each for each in levels if each is not None), None)
    if not is_class(connector.config, MIRROR_SOURCE) or level == "read_committed":
        return ()
    return (f"its source consumer's {_ISOLATION} is not read_committed",)


def _support_fix(text: str) -> str:
    """Return the remedy that makes the connector support it; MirrorMaker 2 (3.5+) reports itself what it lacks."""
    if "isolation.level" in text:
        return (
            "Set consumer.isolation.level=read_committed in the connector's config (a dedicated MirrorMaker: "
            "SOURCE.consumer.isolation.level, SOURCE the cluster's alias); else it copies aborted records, too."
        )
    return "Ask the connector's documentation which config supports it; as it is, it would run at-least-once."


def _not_validated(observation: Observation) -> Finding:
    """Return one finding for all connectors: validation was not requested."""
    return Finding(
        codes.SUPPORT_UNKNOWN, INFO, "connectors",
        f"whether source connectors support exactly-once is not known: {observation.why_unseen(VALIDATION)}",
        "Set SOURCE.consumer.isolation.level=read_committed in MirrorMaker's file: with that it does (Kafka 3.5)."
        if observation.mirror_maker
        else "Leave out --no-validate; connectors may log in to their sources then.",
        certain=False,
    )  # fmt: skip


def boundary(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Check that the connector supports the transaction boundary of its config."""
    asks = not observation.mirror_maker or "transaction.boundary" in connector.config
    if asks and VALIDATION in observation.unseen:
        yield _not_validated(observation)
    for text in connector.boundary_errors:
        yield Finding(
            codes.BOUNDARY_REFUSED, ERROR, connector.name, f"{connector.name}: {text}",
            codes.BOUNDARY_REFUSED.next,
            {"transaction.boundary": connector.config.get("transaction.boundary")},
        )  # fmt: skip


def interval(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Check that a transaction of boundary `interval` is committed before it times out (both default to 60 s)."""
    if is_reference(boundary_setting(connector)):
        yield unknown_value(connector.name, "transaction.boundary", connector.config["transaction.boundary"])
        return
    if boundary_setting(connector) != "interval":
        return
    every, limit = commit_interval(connector, observation), transaction_timeout(connector, observation)
    if every.number is None or limit.number is None:
        yield from (each.unknown(connector.name) for each in (every, limit) if each.number is None)
    elif limit.number <= every.number:
        yield Finding(
            codes.INTERVAL_EXCEEDS_TIMEOUT, ERROR, connector.name,
            f"{connector.name} commits every {every.number} ms, its transactions end after {limit.number} ms",
            f"Raise {setting_to_change('producer', 'transaction.timeout.ms', policy_of(observation))} above "
            "transaction.boundary.interval.ms, with slack for slow commits.",
            {"transaction_timeout_ms": limit.number, "interval_ms": every.number},
        )  # fmt: skip


def broker_maximum(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Check that brokers accept the transaction timeout; above theirs, tasks fail with InvalidTransactionTimeout."""
    own = observation.own_clusters.get(connector.name)
    here = observation.client.bootstrap_servers if observation.client is not None else ()
    if own is None and own_brokers(connector.config, here=here) is not None:
        return  # without a Kafka cluster, own clusters are not observed either
    if own is not None and _accepted_there(connector, observation):
        return
    limit = transaction_timeout(connector, observation)
    maximum_ms = observation.max_transaction_timeout_ms if own is None else own.max_timeout_ms
    if limit.number is None:
        yield limit.unknown(connector.name)
    elif maximum_ms is None:
        yield from _maximum_unknown(connector, observation, limit.number)
    elif limit.number > maximum_ms:
        yield Finding(
            codes.TIMEOUT_ABOVE_BROKER, ERROR, connector.name,
            f"{connector.name} has a transaction timeout of {limit.number} ms, brokers allow {maximum_ms} ms at most",
            f"Lower {setting_to_change('producer', 'transaction.timeout.ms', policy_of(observation))}, or raise the "
            "brokers' transaction.max.timeout.ms.",
            {"transaction_timeout_ms": limit.number, "transaction.max.timeout.ms": maximum_ms},
        )  # fmt: skip


def _accepted_there(connector: ObservedConnector, observation: Observation) -> bool:
    """Decide whether the connector's own brokers took the timeout: they know the ids of all its RUNNING tasks."""
    ids = {task_transactional_id(observation.group_id or "", connector.name, task) for task in connector.running()}
    seen = observation.unknown_ids is not None and not ids_unseen(connector, observation)
    return seen and bool(ids) and ids.isdisjoint(observation.unknown_ids or ())


def _maximum_unknown(connector: ObservedConnector, observation: Observation, limit_ms: int) -> Iterable[Finding]:
    own = observation.own_clusters.get(connector.name)
    if own is None and BROKER_SETTINGS in observation.forbidden and limit_ms <= DEFAULT_BROKER_MAXIMUM_MS:
        yield _maximum_forbidden(observation)
        return
    whose = "brokers" if own is None else f"the brokers that {connector.name} names ({own.servers})"
    why = observation.why_unseen(BROKER_SETTINGS) if own is None else own.max_timeout_unseen or own.ids_unseen
    yield Finding(
        codes.BROKER_MAXIMUM_UNKNOWN, WARNING, connector.name,
        f"whether {whose} accept a transaction timeout of {limit_ms} ms is not known: {why}",
        f"{_NEEDS_SETTINGS} is {DEFAULT_BROKER_MAXIMUM_MS}.",
        {"transaction_timeout_ms": limit_ms}, certain=False,
    )  # fmt: skip


def _maximum_forbidden(observation: Observation) -> Finding:
    """Return one finding for all connectors whose timeouts brokers accept by default."""
    return Finding(
        codes.BROKER_MAXIMUM_UNKNOWN, INFO, "connectors",
        f"the brokers' transaction.max.timeout.ms may not be read: {observation.why_unseen(BROKER_SETTINGS)}",
        f"{_NEEDS_SETTINGS}, {DEFAULT_BROKER_MAXIMUM_MS}, is enough for every connector here.", certain=False,
    )  # fmt: skip


def offsets_topic(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Check that the connector's own offsets topic exists, and has the required settings."""
    topic = connector.config.get(OFFSETS_TOPIC)
    if not topic or topic == observation.offset_topic or connector.config.get(CLUSTER_PROPERTY):
        return
    if not is_topic_name(topic):
        yield Finding(
            codes.OFFSETS_TOPIC_UNKNOWN, WARNING, connector.name,
            f"the offsets.storage.topic of {connector.name} is {topic}, which can't be a topic, or which only its "
            "worker can resolve: its offsets topic is not looked at",
            "Put the topic's name itself into the config; it is no secret.", certain=False,
        )  # fmt: skip
        return
    if observation.topics is None:
        yield Finding(
            codes.OFFSETS_TOPIC_UNKNOWN, WARNING, topic,
            f"{topic} could not be looked at: {observation.why_unseen('topics')}",
            "Give -b, and grant DESCRIBE and DESCRIBE_CONFIGS on the topic.", certain=False,
        )  # fmt: skip
        return
    description = observation.topics.get(topic)
    yield from (
        [
            missing_topic_finding(
                topic,
                [connector.name],
                observation.client,
                is_created=creates_topics(
                    (file.properties for file in observation.files), [each.version for each in observation.workers]
                ),
            )
        ]
        if description is None
        else topic_findings(description, observation.client)
    )


def own_topic(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Check that the connector neither redefines its offsets topic nor writes to it, which fails exactly-once tasks."""
    if connector.redefines_offsets_topic and connector.config.get(OFFSETS_TOPIC):
        named = connector.config[OFFSETS_TOPIC]
        yield Finding(
            codes.OFFSETS_TOPIC_REDEFINED, WARNING, connector.name,
            f"{connector.name} has a property of its own called {OFFSETS_TOPIC}, and Connect takes its value, {named}, "
            "for the topic of the connector's offsets as well",
            "See what the connector means by it; nobody can set the one without the other.", {"topic": named},
        )  # fmt: skip
    topic = connector.config.get(OFFSETS_TOPIC) or observation.offset_topic
    if topic in configured_topics(connector.config).written:
        yield Finding(
            codes.WRITES_OWN_OFFSETS, ERROR, connector.name,
            f"{connector.name} writes to {topic}, the topic of its own offsets: its exactly-once tasks fail at once",
            "Give it another topic to write to, or another offsets.storage.topic.", {"topic": topic},
        )  # fmt: skip


def fencing_pace(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Find connectors that each reconfiguration stops for long, while Connect fences the recorded ids one by one."""
    unseen = ids_unseen(connector, observation) or observation.why_unseen("coordinators")
    if observation.crowding is None or ids_unseen(connector, observation):
        yield Finding(
            fence_codes.FENCING_PACE_UNKNOWN, WARNING, connector.name,
            f"how long {connector.name} is fenced is not known: {unseen}",
            "Needs the config topic and the coordinators of the ids.", certain=False,
        )  # fmt: skip
        return
    settings = [backoff(connector, observation, name) for name in ("retry.backoff.ms", "retry.backoff.max.ms")]
    if any(each.number is None for each in settings):
        yield from (each.unknown(connector.name) for each in settings if each.number is None)
        return
    crowd, pause, seconds = fencing_round(connector, observation)
    pace = pace_of(seconds, workers=len(observation.workers))
    if pace is not Pace.FINE:
        code, severity, words = _PACES[pace]
        yield Finding(
            code, severity, connector.name,
            f"{connector.name}: each reconfiguration fences {crowd} ids at one coordinator, about {seconds:.0f} s: "
            f"{words}; set {cure_text(policy_of(observation))}",
            f"Set {cure_text(policy_of(observation), f'the config of {connector.name}')}.",
            {"ids_per_coordinator": crowd, "pause_ms": pause, "round_s": round(seconds, 1)},
        )  # fmt: skip


def fencing_round(connector: ObservedConnector, observation: Observation) -> tuple[int, int, float]:
    """Return the ids that its next round fences at one coordinator, the pause between two in ms, and the total in s.

    If the coordinators could not be asked (`crowding`), the number is unknown, and returned as 0.
    """
    crowd = (observation.crowding or {}).get(connector.name, 0)
    versions = [version for each in observation.workers if (version := kafka_version(each.version))]
    pause = pause_ms(connector.config, _agreed(observation), oldest_version=min(versions, default=None))
    return crowd, pause, round_s(crowd, pause)


_PACES = {
    Pace.SLOW: (fence_codes.FENCING_SLOW, WARNING, "so long no task of it runs"),
    Pace.LOSSY: (fence_codes.FENCING_LOSSY, ERROR, "tasks of followers give up after 30 s and stay FAILED"),
    Pace.IMPOSSIBLE: (
        fence_codes.FENCING_IMPOSSIBLE,
        ERROR,
        "the round dies after 90 s, every task FAILED, each time again",
    ),
}


def _agreed(observation: Observation) -> Mapping[str, str]:
    """Return the workers' admin settings, as far as their files agree."""
    names = ("admin.retry.backoff.ms", "admin.retry.backoff.max.ms")
    return {name: value for name in names if (value := observation.worker_setting(name)) is not None}


def properties(connector: ObservedConnector, _observation: Observation) -> Iterable[Finding]:
    """Find property names of KIP drafts, and near misses, that Kafka ignores silently."""
    for name, right in idle_connector_names(connector.config):
        yield Finding(
            codes.IDLE_PROPERTY, ERROR, connector.name,
            f"{connector.name} sets {name}, which does nothing: it is {right}", "Rename the property.",
            {"property": name},
        )  # fmt: skip


def worker_properties(observation: Observation) -> Iterable[Finding]:
    """Find the same property names in the workers' own files."""
    for file in observation.files:
        for name, right in idle_worker_names(file.properties):
            yield Finding(
                codes.IDLE_PROPERTY, ERROR, file.path, f"{file.path} sets {name}, which does nothing: it is {right}",
                "Rename the property.", {"property": name},
            )  # fmt: skip


RULES: Sequence[Rule] = (
    task_audit, commit_age, offset_age, support, boundary, interval, broker_maximum, client_overrides, fencing_pace,
    collisions, own_cluster, offsets_topic, own_topic, properties,
    *LOSSES,
)  # fmt: skip
