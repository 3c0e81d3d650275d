"""Plans `offsets switch`: the present state, the steps, and the reasons to refuse; `apply` runs the steps.

The whole plan follows from the worker's present answers, and from the journal of a run that was cut off.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from eosctl.app import App
from eosctl.connectors.dedicated import OtherCluster
from eosctl.connectors.look import (
    PAUSED,
    RUNNING,
    STATE_AFTER,
    STOPPED,
    ConnectorNow,
    describe_store,
    reach_worker,
    require_stable_group,
    require_switchable,
    store_name,
    topic_of,
)
from eosctl.connectors.validity import require_valid_config
from eosctl.core.allowances import NOTHING_WAIVED
from eosctl.core.offsets.names import DEDICATED, GLOBAL, parse_store
from eosctl.core.offsets.views import offset_views
from eosctl.core.versions import kafka_version
from eosctl.core.wording import counted
from eosctl.core.workers.access import CONNECTOR_CONFIG
from eosctl.errors import RefusedError
from eosctl.foreign import shell_word
from eosctl.offsets import codes
from eosctl.offsets.stores.gather import OffsetStores, gather_topics
from eosctl.offsets.stores.own import refuse_unfit_targets
from eosctl.offsets.switch.elsewhere import elsewhere_of, refuse_global, stores_elsewhere
from eosctl.offsets.switch.journal import UnfinishedSwitch, unfinished_switch
from eosctl.offsets.switch.merge_elsewhere import plan_merge_elsewhere
from eosctl.offsets.switch.rights import changed_config, rights_problems
from eosctl.offsets.switch.takeover import ONLY_IN_TARGET, plan_takeover
from eosctl.offsets.write_rows import SWITCH
from eosctl.offsets.writes import OffsetWritePlan, refuse_hidden, refuse_hidden_in_target, write_plan
from eosctl.report import Problem
from eosctl.state.journal import Journal, journal_of

STOP, MERGE, CONFIGURE, CHECK, RESUME, WATCH, RESTART = STEPS = (
    "stop",
    "merge",
    "configure",
    "check",
    "resume",
    "watch",
    "restart",
)
_RESTARTS_BY_ITSELF_SINCE = (3, 9)


_SAME_CONFIG = (
    "It is the config that it has, with another offsets topic. The connector's own checks ask its source: see whether "
    "that can be reached, then run again."
)


class SwitchRequest(Struct, frozen=True):
    """The connector, and the topic that its offsets move to, or `global`."""

    connector: str
    to: str


class SwitchPlan(Struct, frozen=True):
    """A switch: `steps` are to be done, `done` were done by the run in `begun`; `state` is to be reached again.

    `tasks` is the number that the connector had before: if it had none, the switch does not wait until it has some.
    `version` is that of the worker. No steps: the target is in use already. `deletions`: deletions at the origin move
    along. `merge` compares the present offsets; a running connector moves them on until it is stopped.
    """

    connector: str
    origin: str
    target: str
    state: str
    tasks: int
    now: ConnectorNow
    version: str
    steps: tuple[str, ...]
    done: tuple[str, ...]
    begun: UnfinishedSwitch | None
    deletions: bool
    merge: OffsetWritePlan | None
    rights: tuple[Problem, ...]
    journal: Journal
    cluster_id: str
    at: OtherCluster | None = None

    def named(self, store: str) -> str:
        """Return a store as `--to` takes it."""
        return f"{store}@{self.at.profile}" if self.at is not None and self.at.profile and store != GLOBAL else store

    def offsets_app(self, app: App) -> App:
        """Return the App with the topics of the connector's own offsets."""
        return app if self.at is None else self.at.with_topics(app)

    def tasks_app(self, app: App) -> App:
        """Return the App with the topics and the transactions of the connector's tasks."""
        return app if self.at is None else self.at.with_clients(app)

    def problems(self) -> list[Problem]:
        """Return the warnings of the plan."""
        merge = [] if self.merge is None else [*self.merge.problems, *_only_in_target(self.merge)]
        return [*merge, *self.rights]


def plan_switch(app: App, request: SwitchRequest) -> SwitchPlan:
    """Read the present state and plan the steps; write nothing.

    Raises UsageError, NotFoundError, UnsupportedError below Kafka 3.5 and for a name that REST can't have, RefusedError
    for a sink, a rebalance, the worker of another group, brokers of the connector's own that can't be reached, a config
    that Connect would reject, and a target that is in use already and lacks offsets.
    """
    named = parse_store(request.to)
    cluster_id = require_stable_group(app)
    worker = reach_worker(app, cluster_id)
    now, version = worker.connector(request.connector), worker.version
    require_switchable(app, request.connector, now, version)
    at = elsewhere_of(app, request.connector, now.config, named)
    target, current = store_name(app, named.name), now.store(app)
    if at is not None and target == GLOBAL != current:
        raise refuse_global(request.connector)
    journal = journal_of(app, "offsets-switch", request.connector, cluster_id=cluster_id)
    begun = unfinished_switch(journal)
    in_use = current == target and begun is None
    if in_use:
        _require_complete(app, request.connector, target, at=at)
    origin = begun.origin if begun is not None and current == target else current
    state = _state_to_reach(now, begun)
    steps = () if in_use else _steps(now, version, current=current, target=target, begun=begun, state=state)
    deletions = _deletions(begun, current=current, target=target)
    merge = rights = None
    if MERGE in steps:
        merge = plan_switch_merge(app, request.connector, origin, target, at=at, deletions=deletions)
    if CONFIGURE in steps:
        rights = _require_usable(app, request.connector, now, target, merge, at=at)
    continued = begun is not None and begun.target == target
    return SwitchPlan(
        connector=request.connector,
        origin=origin,
        target=target,
        state=state,
        tasks=now.task_count if begun is None else begun.tasks,
        now=now,
        version=version,
        steps=steps,
        done=tuple(s for s in STEPS if begun and s in begun.done and s not in steps) if continued else (),
        begun=begun,
        deletions=deletions,
        merge=merge,
        rights=tuple(rights or ()),
        journal=journal,
        cluster_id=cluster_id,
        at=at,
    )


def _steps(
    now: ConnectorNow, version: str, *, current: str, target: str, begun: UnfinishedSwitch | None, state: str
) -> tuple[str, ...]:
    """Return the steps still to be done; use the journal only for what the cluster can't report."""
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
    if state == RUNNING and (kafka_version(version) or (0, 0)) < _RESTARTS_BY_ITSELF_SINCE:
        steps += [RESTART]
    return tuple(steps)


def _require_usable(
    app: App, connector: str, now: ConnectorNow, target: str, merge: OffsetWritePlan | None, *, at: OtherCluster | None
) -> list[Problem]:
    """Raise RefusedError if Connect would reject the new config, or the connector may not use the topic.

    Raises it also before the config would go to a worker that was not named and is not trusted.
    """
    worker, config = app.worker(now.url), changed_config(now.config, target)
    app.target.connect.require_trust(worker.url, CONNECTOR_CONFIG)
    require_valid_config(worker, connector, config, hint=_SAME_CONFIG)
    made = bool(merge and merge.creates)
    where = app if at is None else at.with_clients(app)
    return rights_problems(where, connector, worker, config=config, target=target, made=made)


def _state_to_reach(now: ConnectorNow, begun: UnfinishedSwitch | None) -> str:
    """Return the state that a cut-off run found, unless the connector was resumed or paused since: that stays so."""
    if begun is None or now.state in (RUNNING, PAUSED):
        return STATE_AFTER[now.state]
    return begun.state


def _deletions(begun: UnfinishedSwitch | None, *, current: str, target: str) -> bool:
    """Decide whether deletions move along: not from a topic in use that the connector never ran on.

    There a switch was cut off before.
    """
    if begun is None:
        return True
    return begun.deletions if begun.target == target else begun.resumed or current != begun.target


def _require_complete(app: App, connector: str, target: str, *, at: OtherCluster | None) -> None:
    """Raise RefusedError if the topic in use lacks offsets of the global one: it was not `switch` that set it.

    An offset that was deleted there is not lacking.
    """
    if target == GLOBAL:
        return
    if at is None:
        found = _gather(app, (target,))
        documented = found.stores[found.global_topic]
    else:
        found, documented = stores_elsewhere(app, at, target, target)
    stores = {GLOBAL: documented.of(connector), DEDICATED: found.stores[target].of(connector)}
    views = offset_views(stores, connector, dedicated_in_use=True)
    unseen = [view for view in views if view.documented is not view.runtime and view.cells[DEDICATED] is None]
    if unseen:
        raise RefusedError(
            f"connector {connector} keeps its offsets in {describe_store(target)} already, which lacks "
            f"{counted(len(unseen), 'source partition')} that the global offsets topic has: the tasks read them from "
            "their beginning",
            hint=f"`eosctl offsets list --connector {shell_word(connector)}` shows which; with the connector stopped, "
            f"`eosctl offsets merge --connector {shell_word(connector)} --into dedicated` gives them to it.",
        )


def plan_switch_merge(
    app: App,
    connector: str,
    origin: str,
    target: str,
    *,
    at: OtherCluster | None = None,
    deletions: bool = True,
    settled: bool = False,
) -> OffsetWritePlan:
    """Plan what the target topic lacks; with `settled`, refuse while an open transaction hides offsets.

    Offsets hidden in the target only are replaced if the origin has the key, even those that a killed run of this
    switch has left there.
    """
    if at is not None:
        return plan_merge_elsewhere(app, at, connector, origin, target, deletions=deletions, settled=settled)
    _refuse_unfit(app, topic_of(app, target))
    found = _gather(app, (origin, target))
    stores = {name: found.stores[topic_of(app, name)].of(connector) for name in (GLOBAL, origin, target)}
    if settled:
        refuse_hidden(app, connector, stores=[stores[GLOBAL], stores[origin]])
        refuse_hidden_in_target(app, connector, stores[target], written=stores[origin].records)
    fallback = None if origin == GLOBAL else stores[GLOBAL]
    writes = plan_takeover(stores[origin], stores[target], connector, fallback=fallback, deletions=deletions)
    return write_plan(SWITCH, writes, found, allowances=NOTHING_WAIVED)


def _refuse_unfit(app: App, topic: str) -> None:
    with app.topics() as topics:
        refuse_unfit_targets(app, topics, [topic])


def _gather(app: App, names: Sequence[str]) -> OffsetStores:
    """Read the global topic and those of `names`; a missing one is an empty store, to be created like the global."""
    return gather_topics(app, [app.target.offset_topic], if_there=[topic_of(app, name) for name in names])


def _only_in_target(merge: OffsetWritePlan) -> list[Problem]:
    count = sum(write.reason == ONLY_IN_TARGET and write.topic != merge.found.global_topic for write in merge.writes)
    if not count:
        return []
    topic = next(iter(merge.writes)).topic
    offsets = counted(count, "offset is", "offsets are")
    message = f"{offsets} in topic {topic} only; the tasks will get them there, and do not get them today"
    return [Problem(codes.ONLY_IN_TARGET, message, hint="`eosctl offsets list` shows which.")]
