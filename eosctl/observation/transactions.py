"""Asks the coordinators, for gates and connector checks, where ids are, which are unknown, and who else has them.

Each part stands alone: one that can't be asked stays unseen, with the reason. Reads only.

Transactions of RUNNING tasks that their coordinator aborted at their timeout are found by `__transaction_state`. A task
aborts transactions, too, if its connector asks for it: the time for which the transaction was open distinguishes the
two. The log is read only if a RUNNING task's newest transaction was aborted, and only the end of that partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.dedicated import task_clusters
from eosctl.core.ids import TransactionalId, task_transactional_id, task_transactional_ids
from eosctl.core.java.properties import java_number
from eosctl.core.transaction_log import LoggedTransaction
from eosctl.core.transactions import PROTOCOL_TYPE, Coordinator, KafkaFault, TransactionDescription, TransactionState
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline
from eosctl.errors import BrokerError, EosctlError, InterruptedByUserError, UnauthorizedError
from eosctl.group.members import DEAD, ConnectGroup, connect_group
from eosctl.group.observation.rules import (
    ABORTS,
    OTHER_GROUPS,
    GroupWork,
    Observation,
    ObservedConnector,
    OngoingTransaction,
    QuietTask,
    TimedOut,
    our_ids,
    rival_groups,
)
from eosctl.group.protocol import Work
from eosctl.observation.connectors.exactly_once import is_forgotten_by_now
from eosctl.ports import TopicReader, TransactionAdmin
from eosctl.task_counts.rules import MAX_LISTED_IDS
from eosctl.txn.log import newest_states

MOST_RECORDS = 200_000
"""The number of newest records that are read of a partition of `__transaction_state`."""


def with_timed_out(app: App, observation: Observation, described: Iterable[TransactionDescription]) -> Observation:
    """Return the observation with these transactions; None for one whose end the log does not explain."""
    aborted = {each.transactional_id for each in described if each.state is TransactionState.COMPLETE_ABORT}
    if not aborted:
        return observation
    try:
        newest, _unread = newest_states(app, aborted, most_records=MOST_RECORDS)
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return replace(observation, timed_out=dict.fromkeys(aborted)).without([ABORTS], exc.message)
    untold = dict.fromkeys(aborted - newest.keys())
    ends = {each: end for each, logged in newest.items() if (end := _timed_out(logged)) is not None}
    return replace(observation, timed_out={**untold, **ends})


def _timed_out(logged: LoggedTransaction) -> TimedOut | None:
    if logged.state is not TransactionState.COMPLETE_ABORT or logged.started_ms is None:
        return None
    open_ms = logged.last_update_ms - logged.started_ms
    if open_ms < logged.transaction_timeout_ms:
        return None
    return TimedOut(open_ms, logged.transaction_timeout_ms, logged.last_update_ms)


START_PATIENCE_S = 5.0
"""The time for which a RUNNING task may lack a transactional id: REST reports RUNNING before the task begins."""
_POLL_S = 0.5
_NOTHING_COMMITTED = (TransactionState.EMPTY, TransactionState.COMPLETE_ABORT)
"""The states of a producer's id before its first commit; an aborted transaction is no commit."""

MAX_TIMEOUT_SETTING = "transaction.max.timeout.ms"
_Part = Callable[[App, TransactionAdmin, Observation], Observation]


def with_transactions(app: App, observation: Observation) -> Observation:
    """Add what the coordinators report of the connectors' ids; this needs the connectors, a cluster and a group.

    The ids of a connector that writes to a Kafka cluster of its own are asked for there.
    """
    parts = {**_of_tasks(), OTHER_GROUPS: _rivals}
    reason = _why_not(app, observation)
    if reason is not None:
        return observation.without(parts, reason)
    here = [each for each in observation.connectors or () if each.name not in observation.own_clusters]
    asked = _ask_parts(app, replace(observation, connectors=tuple(here)), parts)
    asked = replace(asked, connectors=observation.connectors)
    places, _why_not_there = task_clusters(app, {each.name: each.config for each in observation.sources()})
    for cluster_app, names in places:
        asked = _with_tasks_there(cluster_app, asked, names)
    return asked


BROKER_PATIENCE_S = 10.0
"""How long the brokers may take to report what they offer: one that is down must not use up the time of other looks."""


def with_brokers(app: App, observation: Observation) -> Observation:
    """Add the brokers and what they offer."""
    if app.target.client is None:
        return observation.without(["brokers"], "no Kafka cluster was named")
    try:
        with replace(app, deadline=app.deadline.half(at_most_s=BROKER_PATIENCE_S)).transactions() as admin:
            return replace(observation, brokers=admin.features())
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return observation.without(["brokers"], exc.message)


def _ask_parts(app: App, observation: Observation, parts: Mapping[str, _Part]) -> Observation:
    """Add each part on its own: one that can't be asked stays unseen."""
    try:
        with app.transactions() as admin:
            for what, add in parts.items():
                try:
                    observation = add(app, admin, observation)
                except EosctlError as exc:
                    observation = observation.without([what], exc.message, forbidden=isinstance(exc, UnauthorizedError))
    except EosctlError as exc:
        observation = observation.without(parts, exc.message)
    return observation


def _with_tasks_there(app: App, observation: Observation, names: Collection[str]) -> Observation:
    """Add the same for the connectors `names`, whose tasks are clients of the cluster of `app`: all or nothing."""
    observation = _with_maximum_there(app, observation, names)
    theirs = tuple(each for each in observation.connectors or () if each.name in names)
    seen = replace(observation, connectors=theirs, crowding=None, unknown_ids=None, quiet={}, ongoing={}, unseen={})
    seen = replace(seen, timed_out={})
    seen = _ask_parts(app, seen, _of_tasks())
    if seen.crowding is None or seen.unknown_ids is None:
        reason = next(iter(seen.unseen.values()))
        unseen = {name: replace(observation.own_clusters[name], ids_unseen=reason) for name in names}
        return replace(observation, own_clusters={**observation.own_clusters, **unseen})
    crowding, unknown = observation.crowding, observation.unknown_ids
    return replace(
        observation,
        crowding=None if crowding is None else {**crowding, **seen.crowding},
        unknown_ids=None if unknown is None else unknown | seen.unknown_ids,
        quiet={**observation.quiet, **seen.quiet},
        ongoing={**observation.ongoing, **seen.ongoing},
        timed_out={**observation.timed_out, **seen.timed_out},
    )


def _with_maximum_there(app: App, observation: Observation, names: Collection[str]) -> Observation:
    """Add the largest transaction timeout that the own brokers of these connectors accept, or why it is unknown."""
    maximum_ms, reason = None, ""
    try:
        with app.topics() as store:
            maximum_ms = least_maximum_ms(store)
        reason = "" if maximum_ms is not None else f"no broker there reports its {MAX_TIMEOUT_SETTING}"
    except EosctlError as exc:
        reason = exc.message
    known = {
        name: replace(observation.own_clusters[name], max_timeout_ms=maximum_ms, max_timeout_unseen=reason)
        for name in names
        if name in observation.own_clusters
    }
    return replace(observation, own_clusters={**observation.own_clusters, **known})


def least_maximum_ms(store: TopicReader) -> int | None:
    """Return the smallest transaction.max.timeout.ms of the brokers, as any of them may coordinate a task's id."""
    numbers = [java_number(text) for text in store.broker_settings(MAX_TIMEOUT_SETTING).values()]
    return min((number for number in numbers if number is not None), default=None)


def _why_not(app: App, observation: Observation) -> str | None:
    if app.target.client is None:
        return "no Kafka cluster was named"
    if observation.group_id is None:
        return "no group was named"
    return None if observation.connectors is not None else observation.why_unseen("connectors")


def _crowding(_app: App, admin: TransactionAdmin, observation: Observation) -> Observation:
    """Count the ids of each source connector per coordinator, and add the maximum, which bounds its fencing round."""
    ids = {each.name: _ids_to_fence(each, observation) for each in observation.sources()}
    found = admin.find_coordinators(list(dict.fromkeys(one for each in ids.values() for one in each)))
    places = {one: where.node_id if isinstance(where, Coordinator) else None for one, where in found.items()}
    crowding = {name: max(Counter(places.get(one) for one in each).values(), default=0) for name, each in ids.items()}
    return replace(observation, crowding=crowding)


def _ids_to_fence(connector: ObservedConnector, observation: Observation) -> list[TransactionalId]:
    """Return the ids that the next reconfiguration fences: of the recorded tasks, or of the current ones if more."""
    count = len(connector.tasks())
    state = observation.config_state
    if state is not None and (recorded := state.connectors.get(connector.name)) is not None:
        count = max(count, recorded.task_count_record or 0)
    return task_transactional_ids(observation.group_id or "", connector.name, min(count, MAX_LISTED_IDS))


_Looked = dict[TransactionalId, tuple[int, TransactionDescription]]
"""When each id was described, in ms, and as what."""


def _unknown_ids(looked: _Looked, app: App, admin: TransactionAdmin, observation: Observation) -> Observation:
    """Find ids of RUNNING source tasks that no coordinator knows; give just started tasks of enabled workers time.

    Tasks so old that brokers may have forgotten their ids are not waited for. Those that are known are `looked` at.
    """
    unknown = running_ids(observation)
    running = _running_by_connector(observation).items()
    old = {each for name, ids in running if is_forgotten_by_now(name, observation) for each in ids}
    eager = any(worker.mode is Mode.ENABLED for worker in observation.workers)
    patience = Deadline.after(min(START_PATIENCE_S if eager else 0.0, app.deadline.remaining_s()), app.clock)
    for _ in patience.rounds(_POLL_S):
        unknown = _not_known(looked, app, admin, unknown)
        if old.issuperset(unknown):
            break
    return replace(observation, unknown_ids=frozenset(unknown))


def _quiet_tasks(looked: _Looked, app: App, admin: TransactionAdmin, observation: Observation) -> Observation:
    """Add how long each RUNNING task has committed nothing, and its open transaction, as far as coordinators report.

    Those that were `looked` at are not asked for again.
    """
    connector_of = {each: name for name, ids in _running_by_connector(observation).items() for each in ids}
    _describe(looked, app, admin, [each for each in connector_of if each not in looked])
    found = {each: looked[each] for each in connector_of if each in looked}
    quiet, ongoing = {}, {}
    for transactional_id, (at_ms, state) in found.items():
        if state.started_ms is not None:
            ongoing[transactional_id] = OngoingTransaction(
                state.state.value, max(0, at_ms - state.started_ms), state.transaction_timeout_ms
            )
        began_ms = state.last_started_ms if state.state not in _NOTHING_COMMITTED else None
        since_ms = (
            began_ms if began_ms is not None else observation.task_sets_ms.get(connector_of[transactional_id], -1)
        )
        if since_ms >= 0:
            quiet[transactional_id] = QuietTask(max(0, at_ms - since_ms), since_start=began_ms is None)
    states = [state for _at_ms, state in found.values()]
    stamps = [at_ms for each in states for at_ms in (each.started_ms, each.last_started_ms) if at_ms is not None]
    seen = replace(
        observation,
        quiet=quiet,
        ongoing=ongoing,
        epochs={each.transactional_id: each.producer_epoch for each in states},
        coordinators_ms=max(stamps, default=None),
    )
    return with_timed_out(app, seen, states)


def running_ids(observation: Observation) -> list[TransactionalId]:
    """Return the transactional ids of the RUNNING source tasks."""
    return [each for ids in _running_by_connector(observation).values() for each in ids]


def _running_by_connector(observation: Observation) -> dict[str, list[TransactionalId]]:
    return {
        each.name: [
            task_transactional_id(observation.group_id or "", each.name, task)
            for task, state in each.tasks().items()
            if state == "RUNNING"
        ]
        for each in observation.sources()
    }


def _describe(
    looked: _Looked, app: App, admin: TransactionAdmin, ids: list[TransactionalId]
) -> Mapping[TransactionalId, TransactionDescription | KafkaFault]:
    """Describe the transactions of `ids`, and note those that are known."""
    now_ms = app.clock.now_ms()
    described = admin.describe_transactions(ids) if ids else {}
    known = ((each, state) for each, state in described.items() if isinstance(state, TransactionDescription))
    looked.update((each, (now_ms, state)) for each, state in known)
    return described


def _not_known(looked: _Looked, app: App, admin: TransactionAdmin, ids: list[TransactionalId]) -> list[TransactionalId]:
    """Return those of `ids` that their coordinators don't know; raise BrokerError if one does not answer that."""
    unknown = []
    for transactional_id, state in _describe(looked, app, admin, ids).items():
        if isinstance(state, KafkaFault):
            if not state.is_unknown_id:
                raise BrokerError(f"{transactional_id}: {state.name} {state.message}".rstrip())
            unknown.append(transactional_id)
    return unknown


def _rivals(_app: App, admin: TransactionAdmin, observation: Observation) -> Observation:
    group_id = observation.group_id or ""
    tasks: list[Work] = [(each.name, task) for each in observation.sources() for task in each.tasks()]
    found, hidden = find_rival_groups(admin, group_id, our_ids(group_id, tasks))
    seen = replace(observation, rival_groups=found)
    return seen.without([OTHER_GROUPS], "; ".join(each.message for each in hidden), forbidden=True) if hidden else seen


def find_rival_groups(
    admin: TransactionAdmin, group_id: str, ids: Iterable[TransactionalId]
) -> tuple[GroupWork, list[UnauthorizedError]]:
    """Return the other Connect groups that may use one of `ids`, with their work, and the errors of hidden ones."""
    found: dict[str, tuple[Work, ...] | None] = {}
    hidden: list[UnauthorizedError] = []
    for name, raw in admin.describe_groups(rival_groups(group_id, ids)).items():
        if isinstance(raw, UnauthorizedError):
            hidden.append(raw)
        elif isinstance(raw, EosctlError):
            raise raw
        elif raw.state != DEAD and raw.protocol_type == PROTOCOL_TYPE:
            found[name] = _work_of(connect_group(raw))
    return found, hidden


def _work_of(group: ConnectGroup) -> tuple[Work, ...] | None:
    """Return the work of the group's members; None if it can't be known now."""
    members = group.members
    if not members or any(member.owned is None for member in members):
        return None
    return tuple(work for member in members for work in member.owned or ())


def _of_tasks() -> dict[str, _Part]:
    """Return the looks at the tasks' ids: the second and the third describe each id once."""
    looked: _Looked = {}
    return {
        "coordinators": _crowding,
        "transactions": partial(_unknown_ids, looked),
        "commits": partial(_quiet_tasks, looked),
    }
