"""The holders of connectors' tasks: the one look of all commands that must not meet a running task. Reads only.

Connectors and their tasks are as the workers' REST interface reports them. The members of the group report which tasks
they may run, and REST which of those run or have failed. What neither reports is unknown, and never a no.

Whether a worker holds a task is judged, without I/O, from the members' reports compared with REST. REST's list of tasks
proves nothing about a connector that is STOPPED. The leader deletes the status of its tasks at once, while a follower
still waits for their last commit (`AbstractHerder`, `DistributedHerder.RebalanceListener`, Kafka 4.3; seen on 4.3.1: up
to a second, and up to `task.shutdown.graceful.timeout.ms` by the code); and the status that the follower then writes
comes back to REST, where it stays until the next rebalance (seen for more than a minute).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum, unique

from msgspec import Struct

from eosctl.app import App
from eosctl.core.ids import WorkerId
from eosctl.core.workers.connector_entry import ConnectorEntry, TaskStatus
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError, RefusedError
from eosctl.group.belonging import check_cluster
from eosctl.group.gather import discover_urls, in_turn, no_answer, read_group, worker_id_of
from eosctl.group.members import STABLE, ConnectGroup, ConnectMember
from eosctl.group.protocol import CONNECTOR_ITSELF, Work
from eosctl.group.topics import find_config_topic

# what REST shows until a task has started, which takes a Debezium minutes: it has its producer by then
BEFORE_ITS_START = "UNASSIGNED"
# states of a task that has no producer; a PAUSED task keeps its own, and so its id
_NOT_HOLDING = frozenset({"FAILED", BEFORE_ITS_START, "DESTROYED", "STOPPED"})


@unique
class Holding(StrEnum):
    """The state of one task; only FREE and FAILED mean that it does not run."""

    RUNS = "runs"
    """REST shows that it runs, at a member."""
    HELD = "held"
    """A member may still run it, and REST does not show that it does."""
    FAILED = "failed"
    """A member has it, and REST shows that it ended there."""
    UNKNOWN = "unknown"
    """REST shows it at a worker that is no member, or the members are not known."""
    FREE = "free"
    """No member has it."""


def judge_task(
    status: TaskStatus | None,
    *,
    stopped: bool,
    holders: Collection[WorkerId],
    members: Collection[WorkerId] | None,
) -> Holding:
    """Judge one task: REST shows `status` of it, and its connector as STOPPED if `stopped`; `holders` may run it.

    `status` is None where REST does not know the task, and `members` where the group does not report who is in it.
    """
    runs = is_live(status) and not stopped
    if holders:
        if status is not None and status.worker_id in holders and _has_ended(status):
            return Holding.FAILED
        at_member = members is None or (status is not None and status.worker_id in members)
        return Holding.RUNS if runs and at_member else Holding.HELD
    if members is None:
        return Holding.RUNS if is_live(status) else Holding.UNKNOWN
    if status is None:
        return Holding.FREE
    if status.worker_id not in members:
        return Holding.UNKNOWN
    return Holding.RUNS if runs else Holding.FREE


def is_live(status: TaskStatus | None) -> bool:
    """Check whether REST shows a task that has a producer."""
    return status is not None and status.state not in _NOT_HOLDING


def _has_ended(status: TaskStatus) -> bool:
    return status.state in _NOT_HOLDING and status.state != BEFORE_ITS_START


def connector_statuses(app: App) -> Mapping[str, ConnectorEntry]:
    """Return every connector, from the first worker that answers; empty when the group has no member.

    A worker that died a moment ago may still be named as running a task, never the other way round for long: callers
    that must not hit a live task take every state but FAILED for live. Raises what `no_answer` makes when no worker
    answers, RefusedError when it belongs to another Kafka cluster, and as `discover_urls`.
    """
    failures: list[EosctlError] = []
    for _url, worker in in_turn(app, discover_urls(app)):
        try:
            check_cluster(app, worker)
            connectors = worker.connectors()
        except RefusedError:
            raise
        except EosctlError as exc:
            if isinstance(exc, DeadlineError) and app.deadline.expired():
                raise
            failures.append(exc)
        else:
            return dict(sorted(connectors.items()))
    if failures:
        raise no_answer("no worker says which tasks run", failures)
    return {}


_ENDING_PATIENCE_S = 15.0  # 5 s by default for a task to end, and the rebalance after it
_POLL_S = 0.25
_STOPPED = "STOPPED"


class HeldTask(Struct, frozen=True):
    """A task that REST shows (`status`), or that `holders` may run."""

    connector: str
    task: int
    holding: Holding
    status: TaskStatus | None = None
    holders: tuple[ConnectMember, ...] = ()

    @property
    def url(self) -> str:
        """The URL of the first worker that may run it."""
        return next(((holder.url or "").rstrip("/") for holder in self.holders), "")

    def __str__(self) -> str:
        return f"task {self.task} of {self.connector} at {self.url}"


class TaskHolders(Struct, frozen=True):
    """The holders of the requested tasks: `tasks` are those that are shown anywhere, or may run.

    `connectors` are all that the workers show, and `silence` is why they show none. `group` is None where it is not
    known: none was named, or `doubt` is the reason. A group in a rebalance has a doubt, too.
    """

    tasks: Mapping[Work, HeldTask] = {}
    connectors: Mapping[str, ConnectorEntry] = {}
    group: ConnectGroup | None = None
    silence: EosctlError | None = None
    doubt: EosctlError | None = None

    def is_stopped(self, connector: str) -> bool:
        """Check whether REST shows the connector as STOPPED."""
        entry = self.connectors.get(connector)
        return entry is not None and entry.state == _STOPPED

    def left(self, connector: str) -> list[HeldTask]:
        """Return the tasks that may not have ended; those of a connector that is STOPPED may be known to have."""
        stopped = self.is_stopped(connector)
        return [
            task
            for task in self.tasks.values()
            if task.connector == connector and not (stopped and task.holding is Holding.FREE)
        ]

    def is_at_rest(self, connector: str) -> bool:
        """Check whether it is STOPPED and no worker holds a task of it; without a named group, as far as REST shows."""
        return self.is_stopped(connector) and self.doubt is None and not self.left(connector)

    def ending(self) -> list[HeldTask]:
        """Return the tasks that are about to end: a member holds them, and their connector is STOPPED or deleted."""
        if not self.may_be_of_the_group():
            return []
        return [
            task
            for task in self.tasks.values()
            if task.holders and (task.connector not in self.connectors or self.is_stopped(task.connector))
        ]

    def is_worth_waiting_for(self) -> bool:
        """Check whether tasks are about to end, and none of the others runs, or may run."""
        ending = {(task.connector, task.task) for task in self.ending()}
        others = [task.holding for work, task in self.tasks.items() if work not in ending]
        return bool(ending) and set(others) <= {Holding.FREE, Holding.FAILED}

    def may_be_of_the_group(self) -> bool:
        """Check whether workers answered whose tasks do not show that they belong to another group."""
        at = {task.worker_id for entry in self.connectors.values() for task in entry.tasks}
        members = member_ids(self.group)
        return self.silence is None and (not at or members is None or not at.isdisjoint(members))


def who_holds(app: App, connectors: Collection[str]) -> TaskHolders:
    """Ask the workers, then the members, about all tasks of `connectors`; those that are about to end are waited for.

    Raises RefusedError when a worker that was named belongs to another Kafka cluster.
    """
    return await_ending(app, lambda: holders_now(app, connectors))


def holders_now(app: App, connectors: Collection[str]) -> TaskHolders:
    """Ask once, as `who_holds`."""
    shown, silence = shown_connectors(app)
    return holders_of_shown(app, connectors, shown) if silence is None else TaskHolders(silence=silence)


def holders_of_shown(app: App, connectors: Collection[str], shown: Mapping[str, ConnectorEntry]) -> TaskHolders:
    """Ask the members which of the connectors that the workers have `shown` they hold."""
    if app.target.client is None or app.target.group_id is None:
        return judge_holders(connectors, shown, None, None)
    return judge_holders(connectors, shown, *group_or_doubt(app))


NAME_CONFIG_TOPIC = "Name the config topic of the workers' group: --config-topic, or config_topic of the profile."


def asked_state(app: App, connector: str) -> str | None:
    """Return the state that the group's config topic asks for (STARTED, PAUSED, STOPPED); None if it lacks the
    connector.

    REST shows the state that a connector has: for a moment after a request that is another one. Raises EosctlError
    without a config topic.
    """
    with app.topics() as topics:
        found = find_config_topic(app, topics)
    if found is None:
        raise EosctlError(
            f"topic {app.target.config_topic} does not exist, so whether {connector} was asked to start is not known",
            hint=NAME_CONFIG_TOPIC,
        )
    known = found.state.connectors.get(connector)
    return None if known is None or known.config is None else known.target_state


def asks_to_start(app: App, connector: str) -> bool:
    """Check whether the config topic asks for a connector that is not STOPPED; raises as `asked_state`.

    One that it lacks is not to run.
    """
    return asked_state(app, connector) not in (None, _STOPPED)


def is_at_rest(app: App, connector: str, shown: ConnectorEntry) -> bool:
    """Check whether it is at rest as a worker has `shown` it; see TaskHolders."""
    return shown.state == _STOPPED and holders_of_shown(app, [connector], {connector: shown}).is_at_rest(connector)


def await_ending(app: App, look: Callable[[], TaskHolders]) -> TaskHolders:
    """Look until no task is about to end any more, or the patience with them is over."""
    patience = Deadline.after(min(_ENDING_PATIENCE_S, app.deadline.remaining_s() / 2), app.clock)
    for _ in patience.rounds(_POLL_S):
        held = look()
        if not held.is_worth_waiting_for():
            break
    return held


def shown_connectors(app: App) -> tuple[Mapping[str, ConnectorEntry], EosctlError | None]:
    """Return every connector as the workers show it, or why they show none; raises RefusedError as
    `connector_statuses`.
    """
    try:
        return connector_statuses(app), None
    except RefusedError:
        raise
    except EosctlError as error:
        return {}, error


def group_or_doubt(app: App, *, wait: bool = True) -> tuple[ConnectGroup | None, EosctlError | None]:
    """Return the group, or why its members do not report what they may run."""
    try:
        group, _cluster_id = read_group(app, gone_ok=True, wait=wait)
    except EosctlError as error:
        return None, error
    if group.members and group.state != STABLE:
        message = f"the group {group.group_id} is {group.state}, so that its members do not report what they run"
        return group, EosctlError(message, hint="Run again when the rebalance is over.")
    return group, None


def member_ids(group: ConnectGroup | None) -> frozenset[WorkerId] | None:
    """Return the group's workers as REST names them; None where they are not known."""
    if group is None or (group.members and group.state != STABLE):
        return None
    return frozenset(map(worker_id_of, group.members))


def judge_holders(
    connectors: Collection[str],
    shown: Mapping[str, ConnectorEntry],
    group: ConnectGroup | None,
    doubt: EosctlError | None,
) -> TaskHolders:
    """Judge each task of `connectors` that is shown, or held."""
    statuses = {(name, task.task): task for name in connectors if name in shown for task in shown[name].tasks}
    holders = holders_by_task(group)
    tasks = {}
    for name, number in sorted({*statuses, *(work for work in holders if work[0] in connectors)}):
        status, at = statuses.get((name, number)), holders.get((name, number), ())
        holding = judge_task(
            status,
            stopped=name in shown and shown[name].state == _STOPPED,
            holders=[worker_id_of(member) for member in at],
            members=member_ids(group),
        )
        tasks[name, number] = HeldTask(name, number, holding, status, at)
    return TaskHolders(tasks, shown, group, doubt=doubt)


def holders_by_task(group: ConnectGroup | None) -> dict[Work, tuple[ConnectMember, ...]]:
    """Return each task that a member may run, and the members that may run it."""
    holders: dict[Work, tuple[ConnectMember, ...]] = {}
    for member in group.members if group is not None else ():
        for work in member.held:
            if work[1] != CONNECTOR_ITSELF:
                holders[work] = (*holders.get(work, ()), member)
    return holders
