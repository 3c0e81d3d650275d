"""The topics of a snapshot: the global one and the connectors' own, or those that were named, as far as readable."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from eosctl.app import App
from eosctl.connectors.dedicated import DedicatedTopics, gather_dedicated_topics
from eosctl.core.offsets.findings import missing_topic_finding
from eosctl.core.offsets.names import DEDICATED, GLOBAL, parse_store
from eosctl.core.records import TopicDescription
from eosctl.core.workers.config import creates_topics
from eosctl.errors import (
    DeadlineError,
    EosctlError,
    InterruptedByUserError,
    NotFoundError,
    RefusedError,
    UnreachableError,
    UsageError,
)
from eosctl.foreign import shell_word, shell_words
from eosctl.offsets import codes
from eosctl.offsets.stores.gather import require_topics
from eosctl.offsets.stores.own import own_topics, refuse_unfit_sources
from eosctl.ports import TopicReader
from eosctl.report import Problem


@dataclass(slots=True)
class TopicsToKeep:
    """The topics that can be read; `missed` are the problems with others, each with its topic where that is known."""

    topics: dict[str, TopicDescription] = field(default_factory=dict)
    missed: list[tuple[Problem, str | None]] = field(default_factory=list)


def topics_to_keep(app: App, topics: TopicReader, connectors: Collection[str], stores: Sequence[str]) -> TopicsToKeep:
    """Find the topics of `connectors` (none: all) in `stores` (none: the global topic, and every own one).

    Raises NotFoundError for a missing global or named topic, a connector that Connect does not have, or stores without
    any topic; UsageError for a store on another cluster; RefusedError for a worker of another cluster; the error of a
    named topic that can't be read, or of the last one where none can.
    """
    found, names = TopicsToKeep(), _named(app, stores)
    wanted = {name: True for name in names if name != DEDICATED}
    if DEDICATED in names:
        dedicated = gather_dedicated_topics(app, topics)
        dedicated.refuse_strangers()
        _require_known(dedicated, connectors)
        found.missed += [(problem, None) for problem in dedicated.problems]
        found.missed += [(problem, None) for problem in _on_other_brokers(app, dedicated, connectors)]
        own = _own(dedicated, connectors)
        wanted |= dict.fromkeys((topic for topic in own if topic not in wanted), False)
    else:
        own = {}
    error: EosctlError | None = None
    for topic, must_be_there in wanted.items():
        try:
            described = topics.describe([topic])
            if must_be_there:
                require_topics([topic], described)
            elif topic not in described:
                found.missed.append((_missing(app, topic, own[topic]), topic))
                continue
            refuse_unfit_sources(app, topics, [topic])
        except (UnreachableError, DeadlineError, InterruptedByUserError, NotFoundError):
            raise
        except EosctlError as exc:
            if stores and must_be_there:
                raise
            error = exc
            found.missed.append((Problem(codes.SNAPSHOT_INCOMPLETE, exc.message, hint=exc.hint, unseen=True), topic))
        else:
            found.topics[topic] = described[topic]
    if not found.topics:
        raise error or _nothing_to_keep(found)
    return found


def _nothing_to_keep(found: TopicsToKeep) -> EosctlError:
    """Return the error of stores that no topic was found of."""
    for problem, _topic in found.missed:
        return RefusedError(f"{problem.message}; no topic is known that could be kept", hint=problem.hint)
    return NotFoundError(
        "no connector has an offsets topic of its own (offsets.storage.topic)", hint="Name another store with --store."
    )


def _named(app: App, stores: Sequence[str]) -> list[str]:
    """Return topics, and `dedicated` for all own ones."""
    named = [parse_store(store) for store in stores or (GLOBAL, DEDICATED)]
    for store in named:
        if store.profile is not None:
            there = shell_words("eosctl", "offsets", "snapshot", "-p", store.profile, "--store", store.name)
            raise UsageError(
                f"{store} is on another cluster, and a snapshot is of one",
                hint=f"Make one there: `{there}`.",
            )
    return list(dict.fromkeys(app.target.offset_topic if store.name == GLOBAL else store.name for store in named))


def _require_known(dedicated: DedicatedTopics, connectors: Collection[str]) -> None:
    gone = sorted(name for name in connectors if dedicated.is_gone(name))
    if gone:
        raise NotFoundError(
            f"Connect has no connector {', '.join(gone)}",
            hint="For the offsets of a deleted connector, name the topics: --store global, or --store TOPIC.",
        )


def _own(dedicated: DedicatedTopics, connectors: Collection[str]) -> dict[str, list[str]]:
    """Return the own topics on this cluster, each with the connectors that name it."""
    own: dict[str, list[str]] = {}
    for connector, topic in sorted(dedicated.configured.items()):
        if connector not in dedicated.brokers and (not connectors or connector in connectors):
            own.setdefault(topic, []).append(connector)
    return own


def _on_other_brokers(app: App, dedicated: DedicatedTopics, connectors: Collection[str]) -> list[Problem]:
    """Report the own topics on brokers that connectors' configs name: a snapshot is of one cluster."""
    found, problems = own_topics(app, dedicated, connectors or None)
    elsewhere = [
        Problem(
            codes.SNAPSHOT_INCOMPLETE,
            f"{own.connector}: its own offsets are in topic {own.topic} on cluster {cluster_id} ({own.servers}), and "
            "not in this snapshot",
            hint="Make a profile that leads there: `eosctl offsets snapshot -p PROFILE --store "
            f"{shell_word(own.topic)}`.",
            unseen=True,
        )
        for own, cluster_id in found.items()
    ]
    return [*elsewhere, *(problem for problem in problems if problem.unseen)]


def _missing(app: App, topic: str, connectors: Sequence[str]) -> Problem:
    created = creates_topics(worker.properties.values for worker in app.target.worker_configs)
    missing = missing_topic_finding(topic, connectors, app.target.client, is_created=created)
    return Problem(missing.code, missing.message, missing.fix).as_warning()
