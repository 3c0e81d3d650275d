"""A connector and its group as `offsets switch` finds them, and whether it can be switched at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from eosctl.app import App
from eosctl.connectors.dedicated import TOPIC_PROPERTY, describe_unknown
from eosctl.connectors.statuses import refuse_other_cluster
from eosctl.core.offsets.names import GLOBAL
from eosctl.core.topic_names import is_topic_name
from eosctl.core.versions import is_older, shown_version
from eosctl.core.wording import alike_first
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.errors import EosctlError, NotFoundError, RefusedError, UnsupportedError
from eosctl.foreign import shell_word, shell_words
from eosctl.group.gather import discover_urls, in_turn, no_answer, read_group
from eosctl.group.observation.rules import ObservedConnector, observed_connector
from eosctl.group.topics.config_reader import find_config_topic
from eosctl.group.workers import refuse_unreachable

STOPPED, RUNNING, PAUSED = "STOPPED", "RUNNING", "PAUSED"
STATE_AFTER = {"FAILED": RUNNING, RUNNING: RUNNING, PAUSED: PAUSED, STOPPED: STOPPED}
_STOPPABLE_SINCE = (3, 5)
_MOST_NAMED = 10


class ConnectorNow(Struct, frozen=True):
    """A connector as one worker shows it; `state` is REST's, `tasks` their states.

    `url` may carry credentials, `shown_url` never does; `trace` is the first line of the first failed task's; `parts`
    has the same by part, the connector itself and its tasks. `entry` is what the worker answered.
    """

    url: str
    shown_url: str
    config: Mapping[str, str]
    kind: str
    state: str
    tasks: tuple[str, ...]
    task_count: int
    trace: str
    parts: ObservedConnector
    entry: ConnectorEntry

    def store(self, app: App) -> str:
        """The offsets topic in use: `global` or the dedicated one's name."""
        return store_name(app, self.config.get(TOPIC_PROPERTY))


def store_name(app: App, topic: str | None) -> str:
    """`global`, or the name of a dedicated topic; the worker's own topic is the global one however it is named."""
    return GLOBAL if topic in (None, "", GLOBAL, app.target.offset_topic) else str(topic)


def topic_of(app: App, store: str) -> str:
    """The topic behind `global` or a dedicated topic's name."""
    return app.target.offset_topic if store == GLOBAL else store


def describe_store(store: str) -> str:
    """A store in a sentence."""
    return "the global offsets topic" if store == GLOBAL else f"topic {store}"


def switch_command(connector: str, to: str) -> str:
    """The command line that moves a connector, to be pasted."""
    return shell_words("eosctl", "offsets", "switch", "--connector", connector, "--to", to)


def reach_worker(app: App, cluster_id: str | None) -> tuple[str, Mapping[str, str]]:
    """The URL of the first worker that answers, and what it says of itself.

    Any cluster is right where the id of none is known. Raises as `no_answer`, RefusedError for one of another cluster.
    """
    failures: list[EosctlError] = []
    for url, worker in in_turn(app, discover_urls(app)):
        try:
            root = worker.root()
        except EosctlError as exc:
            failures.append(exc)
            continue
        refuse_other_cluster(worker, root["kafka_cluster_id"], cluster_id)
        return url, root
    raise no_answer("no worker can be asked", failures)


def named_cluster_id(app: App) -> str | None:
    """The id of the Kafka cluster that was named; None where none was, and workers alone are asked."""
    if app.target.client is None:
        return None
    with app.transactions() as admin:
        return admin.cluster_id()


def look_at(app: App, connector: str, url: str) -> ConnectorNow:
    """The connector as the worker at `url` shows it now; raises NotFoundError."""
    worker = app.worker(url)
    there = worker.connectors()
    entry = there.get(connector)
    if entry is None:
        raise unknown_connector(f"the worker at {worker.url} knows no connector {connector}", connector, there)
    return ConnectorNow(
        url=url,
        shown_url=worker.url,
        config=entry.config,
        kind=entry.type,
        state=entry.state,
        tasks=tuple(task.state for task in entry.tasks),
        task_count=len(entry.wanted),
        trace=next(
            (trace.splitlines()[0] for trace in (entry.trace, *(task.trace for task in entry.tasks)) if trace), ""
        ),
        parts=observed_connector(connector, entry),
        entry=entry,
    )


def require_stable_group(app: App) -> str:
    """The Kafka cluster id; raises RefusedError unless the group has members and is in no rebalance."""
    group, cluster_id = read_group(app)
    if not group.members:
        raise RefusedError(
            f"group {group.group_id} has no workers; a switch needs one", hint="Check -g, or start the workers."
        )
    if group.state != "Stable":
        raise RefusedError(
            f"group {group.group_id} is in a rebalance ({group.state}); nothing was written",
            hint="Run again when `eosctl workers list` shows it stable.",
        )
    return cluster_id


def require_switchable(app: App, connector: str, now: ConnectorNow, version: str) -> None:
    """Raises UnsupportedError below Kafka 3.5, RefusedError for a sink, and where its topic or state is unknown."""
    if now.kind == "sink":
        raise RefusedError(
            f"{connector} is a sink connector: a sink's offsets are those of a consumer group, not of an offsets topic",
            hint="Only source connectors have an offsets topic.",
        )
    if is_older(version, _STOPPABLE_SINCE):
        raise UnsupportedError(
            f"the worker at {now.shown_url} runs {shown_version(version)}: a connector can be stopped from "
            "Kafka 3.5 on (KIP-875)",
            hint=f"DELETE it, with its config at hand; `eosctl offsets merge --connector {shell_word(connector)} "
            "--dedicated-topic PATTERN --into dedicated`; create it again, with offsets.storage.topic in its config.",
        )
    refuse_unreachable(connector, app.worker(now.url))
    own = now.config.get(TOPIC_PROPERTY)
    if own and not is_topic_name(own):
        raise RefusedError(
            f"{describe_unknown(connector, own)}, so where it keeps its offsets is not known; nothing was written",
            hint=f"Put the topic's name itself into {TOPIC_PROPERTY}; it is no secret.",
        )
    if now.state not in STATE_AFTER:
        raise RefusedError(
            f"connector {connector} is {now.state}: it is unknown whether it should run; nothing was written",
            hint="Run again when it is RUNNING, PAUSED, STOPPED or FAILED.",
        )
    _require_same_config_topic(app, connector, now)


def _require_same_config_topic(app: App, connector: str, now: ConnectorNow) -> None:
    """Raises RefusedError unless the group's config topic has the very config that the worker shows."""
    with app.topics() as topics:
        found = find_config_topic(app, topics)
    known = None if found is None else found.state.connectors.get(connector)
    wrong = "does not exist" if found is None else f"has another config of {connector}, or none"
    if known is None or known.config != now.config:
        raise RefusedError(
            f"topic {app.target.config_topic} {wrong}: "
            f"the worker at {now.shown_url} is of another group, or its config just changed",
            hint="Name the config and offsets topics of the worker's group: --config-topic, --offset-topic.",
        )


def unknown_connector(message: str, name: str, known: Iterable[str]) -> NotFoundError:
    """The error of a command that was given `name`, where the workers have the connectors `known`."""
    alike = alike_first(name, known)
    if not alike:
        return NotFoundError(message, hint="The group has no connector.")
    more = len(alike) - _MOST_NAMED
    rest = f" and {more:,} more" if more > 0 else ""
    names = ", ".join(alike[:_MOST_NAMED])
    return NotFoundError(message, hint=f"Names are case-sensitive. Connectors of the group: {names}{rest}.")
