"""A connector and its group as `offsets switch` finds them, whether it can be switched, and why parts are FAILED.

The failure of a FAILED connector or task is recognised by its trace against the dictionary of failures. Connect
restarts none of them by itself. A failure that the dictionary lacks is shown by its outermost and its deepest cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from eosctl.app import App
from eosctl.connectors import codes
from eosctl.connectors.dedicated import TOPIC_PROPERTY, describe_unknown
from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.core.offsets.names import GLOBAL
from eosctl.core.versions import STOPPABLE_SINCE, is_older, shown_version
from eosctl.core.wording import alike_first, is_topic_name
from eosctl.core.workers.connector_entry import ConnectorEntry, TaskStatus
from eosctl.errors import EosctlError, NotFoundError, RefusedError, UnsupportedError
from eosctl.failures import codes as failure_codes
from eosctl.failures import rules
from eosctl.failures.failure import RESTART, Family, filled_in
from eosctl.failures.reading import causes_of
from eosctl.failures.rules import Match
from eosctl.foreign import arguments, shell_word, shell_words
from eosctl.group.belonging import connectors_of
from eosctl.group.gather import discover_urls, in_turn, no_answer, read_group
from eosctl.group.modes import refuse_unreachable, root_of
from eosctl.group.observation.rules import ObservedConnector, observed_connector
from eosctl.group.topics import find_config_topic

FAILED, UNASSIGNED, RESTARTING = "FAILED", "UNASSIGNED", "RESTARTING"
_DENIED = re.compile(r"Not authorized to access topics: \[([^\]]+)\]")


def failure_findings(connectors: Iterable[ObservedConnector]) -> list[Finding]:
    """Return one finding per connector or task that is FAILED, or has no worker as far as is known."""
    return [
        finding
        for connector in connectors
        for part, state in connector.states.items()
        for finding in _judge(connector, part, state)
    ]


def failures_of(connector: ObservedConnector) -> dict[str, Finding]:
    """Return the failure of each FAILED part, by part."""
    return {part: finding for part in connector.failed() for finding in _judge(connector, part, FAILED)}


def _judge(connector: ObservedConnector, part: str, state: str) -> Iterable[Finding]:
    subject = connector.name if part == "connector" else f"{connector.name}/{part.removeprefix('task ')}"
    worker = connector.worker_of(part)
    evidence = {"state": state} if worker is None else {"state": state, "worker": worker}
    if state == UNASSIGNED and part not in (connector.holders or ()):
        is_known = connector.holders is not None
        yield Finding(
            codes.UNASSIGNED, WARNING, subject,
            f"{subject} {'has no worker' if is_known else 'has no worker by its status'}: the group is rebalancing, or "
            "lost one and waits for scheduled.rebalance.max.delay.ms (5 min)",
            "`eosctl workers list` shows the members; check again after the rebalance.",
            {**evidence, "assigned": False if is_known else None},
        )  # fmt: skip
    elif state == FAILED:
        trace = connector.traces.get(part, "")
        causes = causes_of(trace)
        known, denied = known_failure(trace), _topics_in(trace)
        of_check = shell_words(connector.name, *(word for each in denied for word in ("--output-topic", each)))
        fix = remedy(known) if known else "`eosctl connectors trace -o json {name}` has the whole trace."
        yield Finding(
            known.failure.code if known else codes.TASK_FAILED, ERROR, subject,
            f"{subject} is FAILED: {failure_text(trace)}{_there_alone(connector, part, known)}",
            fix.replace("{c}", of_check).replace("{name}", arguments(connector.name)),
            {**evidence, "trace": causes[0].text if causes else "no trace", "causes": [each.text for each in causes]},
        )  # fmt: skip


def _there_alone(connector: ObservedConnector, part: str, known: Match | None) -> str:
    """Name the only worker where it fails, for a fault of a worker: others run parts of the connector."""
    worker = connector.workers.get(part)
    if known is None or not known.failure.of_worker or worker is None:
        return ""
    states = [(connector.workers.get(other), state) for other, state in connector.states.items()]
    fails_there = all(state == FAILED for at, state in states if at == worker)
    runs_elsewhere = any(state == "RUNNING" for at, state in states if at not in (worker, None))
    return f" (on {worker}; what it has on other workers runs)" if fails_there and runs_elsewhere else ""


def known_failure(trace: str) -> Match | None:
    """Recognise the failure of a task or connector, if the dictionary has it."""
    return rules.known_failure(causes_of(trace), Family.CONNECT)


def remedy(known: Match) -> str:
    """Return the remedy of a failure; a FAILED part also has to be restarted by the user."""
    of_connect = known.failure.family is Family.CONNECT
    fix = filled_in(known.fix, {"c": "{c}", "name": "{name}"})
    return fix if of_connect or RESTART in fix else f"{fix}; then {RESTART}"


def failed_in_fencing(task: TaskStatus) -> bool:
    """Check whether the task is FAILED for want of a finished fencing round."""
    if task.state != FAILED:
        return False
    found = rules.matches_of(causes_of(task.trace), Family.CONNECT)
    if not found or found[0].failure.family is Family.CONNECT:
        return any(each.failure.fencing for each in found[:1])
    return any(each.failure.fencing for each in found)


def denied_topics(trace: str) -> tuple[str, ...]:
    """Return the topics that a trace reports as not authorized."""
    return tuple(dict.fromkeys(name for found in _DENIED.findall(trace) for name in found.split(", ")))


def _topics_in(trace: str) -> tuple[str, ...]:
    """Return the topics that the task's principal lacks rights on, if that made the task fail."""
    known = known_failure(trace)
    return denied_topics(trace) if known is not None and known.failure.code == failure_codes.TASK_NOT_AUTHORIZED else ()


def failure_text(trace: str) -> str:
    """Describe the cause: the meaning of a known failure, else the outermost and the deepest cause."""
    known, causes, denied = known_failure(trace), causes_of(trace), _topics_in(trace)
    if known is not None:
        return f"{known.means}: topic {', '.join(denied)}" if denied else known.means
    if not causes:
        return "no trace"
    return causes[0].text if len(causes) == 1 else f"{causes[0].text}; caused by {causes[-1]}"


STOPPED, RUNNING, PAUSED = "STOPPED", "RUNNING", "PAUSED"
STATE_AFTER = {"FAILED": RUNNING, RUNNING: RUNNING, PAUSED: PAUSED, STOPPED: STOPPED}
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
        """Return the offsets topic in use: `global` or the dedicated one's name."""
        return store_name(app, self.config.get(TOPIC_PROPERTY))


def store_name(app: App, topic: str | None) -> str:
    """Return `global` or a dedicated topic's name; the worker's own topic is the global one, even if it is named."""
    return GLOBAL if topic in (None, "", GLOBAL, app.target.offset_topic) else str(topic)


def topic_of(app: App, store: str) -> str:
    """Return the topic behind `global` or a dedicated topic's name."""
    return app.target.offset_topic if store == GLOBAL else store


def describe_store(store: str) -> str:
    """Name a store within a sentence."""
    return "the global offsets topic" if store == GLOBAL else f"topic {store}"


def switch_command(connector: str, to: str) -> str:
    """Return the command line that moves a connector, to be pasted."""
    return shell_words("eosctl", "offsets", "switch", "--connector", connector, "--to", to)


class ReachedWorker(Struct, frozen=True):
    """A worker of the command's cluster and group: its URL, which may have credentials, and as it is shown.

    `connectors` are all that it knows, of its group.
    """

    url: str
    shown_url: str
    version: str
    cluster_id: str
    connectors: Mapping[str, ConnectorEntry]

    def connector(self, name: str) -> ConnectorNow:
        """Return the connector as the worker has shown it; raises NotFoundError."""
        return connector_in(self.connectors, name, url=self.url, shown_url=self.shown_url)


def reach_worker(app: App, cluster_id: str | None) -> ReachedWorker:
    """Return the first worker that answers.

    Any cluster is accepted where no id is known. Raises as `no_answer`, and RefusedError for a worker of another
    cluster or group.
    """
    failures: list[EosctlError] = []
    for url, worker in in_turn(app, discover_urls(app)):
        try:
            root = root_of(app, worker)
            connectors = connectors_of(app, worker, cluster_id)
        except RefusedError:
            raise
        except EosctlError as exc:
            failures.append(exc)
            continue
        return ReachedWorker(url, worker.url, root["version"], root["kafka_cluster_id"], connectors)
    raise no_answer("no worker can be asked", failures)


def named_cluster_id(app: App) -> str | None:
    """Return the id of the named Kafka cluster; None where none was named, and only workers are asked."""
    if app.target.client is None:
        return None
    with app.transactions() as admin:
        return admin.cluster_id()


def look_at(app: App, connector: str, url: str) -> ConnectorNow:
    """Return the connector as the worker at `url` shows it now; raises NotFoundError."""
    worker = app.worker(url)
    return connector_in(worker.connectors(), connector, url=url, shown_url=worker.url)


def connector_in(entries: Mapping[str, ConnectorEntry], connector: str, *, url: str, shown_url: str) -> ConnectorNow:
    """Return the connector as the worker at `url` has shown it among all of its group; raises NotFoundError."""
    entry = entries.get(connector)
    if entry is None:
        raise unknown_connector(f"the worker at {shown_url} knows no connector {connector}", connector, entries)
    return ConnectorNow(
        url=url,
        shown_url=shown_url,
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
    """Return the Kafka cluster id; raises RefusedError unless the group has members and is in no rebalance."""
    group, cluster_id = read_group(app)
    if not group.members:
        raise RefusedError(
            f"group {group.group_id} has no workers, and this needs one", hint="Check -g, or start the workers."
        )
    if group.state != "Stable":
        raise RefusedError(
            f"group {group.group_id} is in a rebalance ({group.state}); nothing was written",
            hint="Run again when `eosctl workers list` shows it stable.",
        )
    return cluster_id


def require_switchable(app: App, connector: str, now: ConnectorNow, version: str) -> None:
    """Raise UnsupportedError below Kafka 3.5, RefusedError for a sink, and where its topic or state is unknown."""
    if now.kind == "sink":
        raise RefusedError(
            f"{connector} is a sink connector: a sink's offsets are those of a consumer group, not of an offsets topic",
            hint="Only source connectors have an offsets topic.",
        )
    if is_older(version, STOPPABLE_SINCE):
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
    require_same_config_topic(app, connector, now)


def require_same_config_topic(app: App, connector: str, now: ConnectorNow) -> None:
    """Raise RefusedError unless the group's config topic has the very config that the worker shows."""
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
    """Make the error for the unknown connector `name`, where the workers have the connectors `known`."""
    alike = alike_first(name, known)
    if not alike:
        return NotFoundError(message, hint="The group has no connector.")
    more = len(alike) - _MOST_NAMED
    rest = f" and {more:,} more" if more > 0 else ""
    names = ", ".join(alike[:_MOST_NAMED])
    return NotFoundError(message, hint=f"Names are case-sensitive. Connectors of the group: {names}{rest}.")
