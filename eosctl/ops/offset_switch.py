"""`offsets switch`: what there is, what is to be done, and whether it may be; `switch_steps` does it.

The whole plan follows from what the worker says now, and from the journal of a run that was cut off.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any, cast

from eosctl.core.config_topic import fold_config_topic
from eosctl.core.offset_takeover import ONLY_IN_TARGET, plan_takeover
from eosctl.core.offset_views import DEDICATED, GLOBAL, Store, offset_views
from eosctl.core.upgrade_observation import parse_version
from eosctl.core.wording import counted
from eosctl.errors import EosctlError, NotFoundError, RefusedError, UnsupportedError
from eosctl.ops.app import App
from eosctl.ops.dedicated_topics import CLUSTER_PROPERTY, TOPIC_PROPERTY
from eosctl.ops.journal import Journal, journal_of
from eosctl.ops.offset_stores import OffsetStores, gather_topics
from eosctl.ops.offset_writes import NOTHING_WAIVED, WritePlan, refuse_hidden, refuse_hidden_keys, write_plan
from eosctl.ops.switch_journal import Begun, unfinished_switch
from eosctl.ops.workers import discover_urls, in_turn, no_answer, read_group
from eosctl.report import Problem

STOPPED, RUNNING, PAUSED = "STOPPED", "RUNNING", "PAUSED"
STOP, MERGE, CONFIGURE, CHECK, RESUME, WATCH, RESTART = STEPS = (
    "stop",
    "merge",
    "configure",
    "check",
    "resume",
    "watch",
    "restart",
)
_STOPPABLE_SINCE = (3, 5)
_RESTARTS_BY_ITSELF_SINCE = (3, 9)
_STATE_AFTER = {"FAILED": RUNNING, RUNNING: RUNNING, PAUSED: PAUSED, STOPPED: STOPPED}


@dataclass(frozen=True, slots=True)
class SwitchRequest:
    """Which connector, and the topic that its offsets move to, or `global`."""

    connector: str
    to: str


@dataclass(frozen=True, slots=True)
class ConnectorNow:
    """A connector as one worker shows it; `state` is REST's, `tasks` their states.

    `url` may carry credentials, `shown_url` never does; `trace` is the first line of the first failed task's.
    """

    url: str
    shown_url: str
    version: str
    config: Mapping[str, str]
    kind: str
    state: str
    tasks: tuple[str, ...]
    task_count: int
    trace: str

    def is_stopped(self) -> bool:
        """Whether it is STOPPED and no task is left."""
        return self.state == STOPPED and not self.tasks

    def store(self, app: App) -> str:
        """The offsets topic in use: `global` or the dedicated one's name."""
        return store_name(app, self.config.get(TOPIC_PROPERTY))


@dataclass(frozen=True, slots=True)
class SwitchPlan:
    """`steps` are to be done, `done` were done by the run that `begun` tells of; `state` is to be reached again.

    No steps: the target is in use already. `merge` is how the offsets compare now; a running connector moves them on
    until it is stopped.
    """

    connector: str
    origin: str
    target: str
    state: str
    now: ConnectorNow
    steps: tuple[str, ...]
    done: tuple[str, ...]
    begun: Begun | None
    merge: WritePlan | None
    journal: Journal
    cluster_id: str

    def problems(self) -> list[Problem]:
        """Warnings."""
        return [] if self.merge is None else [*self.merge.problems, *_only_in_target(self.merge)]


def plan_switch(app: App, request: SwitchRequest) -> SwitchPlan:
    """Looks and decides; writes nothing.

    Raises NotFoundError, UnsupportedError below Kafka 3.5, RefusedError for a sink, a rebalance, the worker of another
    group, brokers of the connector's own, and a target that is in use already and lacks offsets.
    """
    cluster_id = _require_stable_group(app)
    now = look_at(app, request.connector, reach_worker(app, cluster_id))
    _require_switchable(app, request.connector, now)
    target, current = store_name(app, request.to), now.store(app)
    journal = journal_of(app, "offsets-switch", request.connector, cluster_id=cluster_id)
    begun = unfinished_switch(journal)
    in_use = current == target and begun is None
    if in_use:
        _require_complete(app, request.connector, target)
    origin = begun.origin if begun is not None and current == target else current
    state = begun.state if begun is not None else _STATE_AFTER[now.state]
    steps = () if in_use else _steps(now, current=current, target=target, begun=begun, state=state)
    continued = begun is not None and begun.target == target
    return SwitchPlan(
        connector=request.connector,
        origin=origin,
        target=target,
        state=state,
        now=now,
        steps=steps,
        done=tuple(s for s in STEPS if begun and s in begun.done and s not in steps) if continued else (),
        begun=begun,
        merge=plan_switch_merge(app, request.connector, origin, target) if MERGE in steps else None,
        journal=journal,
        cluster_id=cluster_id,
    )


def _steps(now: ConnectorNow, *, current: str, target: str, begun: Begun | None, state: str) -> tuple[str, ...]:
    """What is still to be done; the journal only tells where the cluster can't."""
    steps = []
    if current != target:
        steps += [STOP, MERGE, CONFIGURE, CHECK]
    elif begun is not None and begun.origin != target and now.state == STOPPED:
        steps += [CHECK]
    if state == STOPPED:
        return tuple(steps)
    if steps or now.state != state:
        steps += [RESUME]
    steps += [WATCH]
    if state == RUNNING and (parse_version(now.version) or (0, 0)) < _RESTARTS_BY_ITSELF_SINCE:
        steps += [RESTART]
    return tuple(steps)


def _require_complete(app: App, connector: str, target: str) -> None:
    """Raises RefusedError where the topic in use lacks what the global one has: it was not `switch` that set it."""
    if target == GLOBAL:
        return
    found = _gather(app, (target,))
    stores = {GLOBAL: found.stores[found.global_topic], DEDICATED: found.stores[target]}
    views = offset_views(stores, connector, dedicated_in_use=True)
    unseen = [view for view in views if view.documented is not view.runtime]
    if unseen:
        raise RefusedError(
            f"connector {connector} keeps its offsets in {describe_store(target)} already, which lacks "
            f"{counted(len(unseen), 'source partition')} that the global offsets topic has: the tasks read them from "
            "their beginning",
            hint=f"`eosctl offsets list --connector {quote(connector)}` shows which; with the connector stopped, "
            f"`eosctl offsets merge --connector {quote(connector)} --into dedicated` gives them to it.",
        )


def _refuse_hidden_in_target(app: App, connector: str, target: Store, *, written: Collection[bytes]) -> None:
    """Raises RefusedError for what the target hides, but for keys that it does not show and that are `written` now."""
    stays = [key for key in target.hides_of(connector) if key in target.records or key not in written]
    refuse_hidden_keys(app, target, stays, whose=f" of {connector}")


def plan_switch_merge(app: App, connector: str, origin: str, target: str, *, settled: bool = False) -> WritePlan:
    """What the target topic must be given; `settled`: refuse while an open transaction hides offsets.

    What only the target hides is replaced where the origin has the key, be it what a killed run of this switch has
    left there.
    """
    found = _gather(app, (origin, target))
    stores = {name: found.stores[topic_of(app, name)] for name in (GLOBAL, origin, target)}
    if settled:
        refuse_hidden(app, connector, stores=[stores[GLOBAL], stores[origin]])
        _refuse_hidden_in_target(app, connector, stores[target], written=stores[origin].records)
    fallback = None if origin == GLOBAL else stores[GLOBAL]
    writes = plan_takeover(stores[origin], stores[target], connector, fallback=fallback)
    return write_plan("offsets-switch", writes, found, allowances=NOTHING_WAIVED)


def _gather(app: App, names: Sequence[str]) -> OffsetStores:
    """The global topic and those of `names`; one that does not exist is an empty store, to be made like the global."""
    wanted = list(dict.fromkeys([app.target.offset_topic, *(topic_of(app, name) for name in names)]))
    with app.topics() as topics:
        there = topics.describe(wanted)
    found = gather_topics(app, [name for name in wanted if name in there or name == app.target.offset_topic])
    partitions = found.descriptions[app.target.offset_topic].partitions
    absent = [name for name in wanted if name not in there]
    return replace(
        found,
        stores={**found.stores, **{name: Store(name, partitions) for name in absent}},
        bounds={**found.bounds, **dict.fromkeys(absent, ())},
    )


def _only_in_target(merge: WritePlan) -> list[Problem]:
    count = sum(write.reason == ONLY_IN_TARGET and write.topic != merge.found.global_topic for write in merge.writes)
    if not count:
        return []
    topic = merge.writes[0].topic
    there = counted(count, "offset is", "offsets are")
    message = f"{there} in topic {topic} only; the tasks will get them there, and do not get them today"
    return [Problem(ONLY_IN_TARGET, message, hint="`eosctl offsets list` shows which.", severity="warning")]


def store_name(app: App, topic: str | None) -> str:
    """`global`, or the name of a dedicated topic; the worker's own topic is the global one however it is named."""
    return GLOBAL if topic in (None, "", GLOBAL, app.target.offset_topic) else str(topic)


def topic_of(app: App, store: str) -> str:
    """The topic behind `global` or a dedicated topic's name."""
    return app.target.offset_topic if store == GLOBAL else store


def describe_store(store: str) -> str:
    """A store in a sentence."""
    return "the global offsets topic" if store == GLOBAL else f"topic {store}"


def reach_worker(app: App, cluster_id: str) -> str:
    """The URL of the first worker that answers; raises as `no_answer`, RefusedError for one of another cluster."""
    failures: list[EosctlError] = []
    for url, worker in in_turn(app, discover_urls(app)):
        try:
            theirs = worker.root()["kafka_cluster_id"]
        except EosctlError as exc:
            failures.append(exc)
            continue
        if theirs != cluster_id:
            raise RefusedError(
                f"the worker at {worker.url} uses Kafka cluster {theirs}, not {cluster_id}",
                hint="Compare -u and -b; nothing was written.",
            )
        return url
    raise no_answer("no worker answers", failures)


def look_at(app: App, connector: str, url: str) -> ConnectorNow:
    """The connector as the worker at `url` shows it now; raises NotFoundError."""
    worker = app.worker(url)
    entry = worker.connectors().get(connector)
    if entry is None:
        raise NotFoundError(
            f"the worker at {worker.url} knows no connector {connector}",
            hint="Names are case-sensitive; `eosctl offsets list` shows whose offsets there are.",
        )
    info = cast("Mapping[str, Any]", entry.get("info") or {})
    status = cast("Mapping[str, Any]", entry.get("status") or {})
    tasks = sorted(status.get("tasks") or (), key=lambda task: task["id"])
    itself = cast("Mapping[str, Any]", status.get("connector") or {})
    return ConnectorNow(
        url=url,
        shown_url=worker.url,
        version=worker.root()["version"],
        config=dict(info.get("config") or {}),
        kind=str(info.get("type") or status.get("type") or "unknown"),
        state=str(itself.get("state") or "unknown"),
        tasks=tuple(str(task.get("state")) for task in tasks),
        task_count=len(info.get("tasks") or ()),
        trace=next((str(each["trace"]).splitlines()[0] for each in (itself, *tasks) if each.get("trace")), ""),
    )


def _require_stable_group(app: App) -> str:
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


def _require_switchable(app: App, connector: str, now: ConnectorNow) -> None:
    if now.kind == "sink":
        raise RefusedError(
            f"{connector} is a sink connector: its offsets are those of a consumer group, in no offsets topic",
            hint="Only source connectors have an offsets topic.",
        )
    if (parse_version(now.version) or (0, 0)) < _STOPPABLE_SINCE:
        raise UnsupportedError(
            f"the worker at {now.shown_url} runs Kafka {now.version}: a connector can be stopped from 3.5 on (KIP-875)",
            hint=f"DELETE it, with its config at hand; `eosctl offsets merge --connector {quote(connector)} "
            "--dedicated-topic PATTERN --into dedicated`; create it again, with offsets.storage.topic in its config.",
        )
    if now.config.get(CLUSTER_PROPERTY):
        raise RefusedError(
            f"the config of {connector} names Kafka brokers of its own ({CLUSTER_PROPERTY}), where its dedicated "
            "offsets topic would be",
            hint="eosctl can't tell whether those are this cluster; nothing was written.",
        )
    if now.state not in _STATE_AFTER:
        raise RefusedError(
            f"connector {connector} is {now.state}: whether it is meant to run can't be told; nothing was written",
            hint="Run again when it is RUNNING, PAUSED, STOPPED or FAILED.",
        )
    _require_same_config_topic(app, connector, now)


def _require_same_config_topic(app: App, connector: str, now: ConnectorNow) -> None:
    """Raises RefusedError unless the group's config topic has the very config that the worker shows."""
    name = app.target.config_topic
    with app.topics() as topics:
        there = name in topics.describe([name])
        state = fold_config_topic(topics.read(name).records) if there else None
    known = state.connectors.get(connector) if state is not None else None
    if known is None or known.config != now.config:
        raise RefusedError(
            f"topic {name} {'does not exist' if not there else f'has another config of {connector}, or none'}: "
            f"the worker at {now.shown_url} is of another group, or its config just changed",
            hint="Name the config and offsets topics of the worker's group: --config-topic, --offset-topic.",
        )
