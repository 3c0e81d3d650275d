"""Fencing of the ids of a stopped connector's former tasks, so that none of them can commit an offset any more.

A worker gives up on a task that does not end in time, and a frozen one may resume: both may hold a producer.
"""

from __future__ import annotations

from collections.abc import Sequence

from eosctl.app import App
from eosctl.core.ids import TransactionalId, task_transactional_ids
from eosctl.core.transactions import TRANSACTIONAL_ID_NOT_FOUND, KafkaFault
from eosctl.core.wording import counted
from eosctl.core.workers.modes import Mode
from eosctl.errors import ConnectError, EosctlError, UnsupportedError
from eosctl.fence.connect import put_fence
from eosctl.fence.gather import recorded_connectors, recorded_count
from eosctl.fence.rules import FENCE_TRANSACTION_TIMEOUT_MS
from eosctl.group.leader import leader_worker
from eosctl.group.workers import probe_mode

_AUTHORIZATION_FAILED = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"


def fence_former_tasks(app: App, connector: str, *, tasks: int, where: App | None = None) -> str:
    """Fence natively, or else through the leader, and return what was done; `tasks` is the last known number of tasks.

    `where` is for the brokers of its ids, if those are not the group's. Ids that no coordinator knows were never used:
    workers without exactly-once support have none. Raises EosctlError if an id may still be used.
    """
    count = max(tasks, recorded_count(recorded_connectors(app), connector) or 0)
    ids = task_transactional_ids(app.target.require_group_id(), connector, count)
    try:
        fenced, faults = _fence_natively(where or app, ids)
    except UnsupportedError:
        return _fence_through_leader(app, connector)
    if any(fault.name == _AUTHORIZATION_FAILED for fault in faults.values()):
        return _fence_through_leader(app, connector)
    if faults:
        transactional_id, fault = next(iter(faults.items()))
        raise EosctlError(
            f"{counted(len(faults), 'id')} of former tasks of {connector} can't be fenced, first {transactional_id}: "
            f"{fault}; the task may still commit offsets",
            hint="Run the same command again.",
        )
    return f"{counted(len(fenced), 'id')} of its tasks fenced" if fenced else ""


def _fence_natively(
    app: App, ids: Sequence[TransactionalId]
) -> tuple[list[TransactionalId], dict[TransactionalId, KafkaFault]]:
    """Fence the ids that coordinators know; return the fenced ones, and the faults of the others."""
    if not ids:
        return [], {}
    with app.transactions() as admin:
        states = admin.describe_transactions(ids)
        known = [each for each in ids if not _is_unknown(states[each])]
        answers = list(admin.fence(known, transaction_timeout_ms=FENCE_TRANSACTION_TIMEOUT_MS)) if known else []
    faults = {answer.transactional_id: answer.fault for answer in answers if answer.fault is not None}
    return [answer.transactional_id for answer in answers if answer.fault is None], faults


def _is_unknown(state: object) -> bool:
    return isinstance(state, KafkaFault) and state.code == TRANSACTIONAL_ID_NOT_FOUND


def _fence_through_leader(app: App, connector: str) -> str:
    """Have the leader fence the recorded ids, unless it is not enabled: then tasks have no ids."""
    if probe_mode(leader_worker(app))[0] is Mode.NOT_ENABLED:
        return ""
    failure = put_fence(app, connector)
    if failure is not None:
        raise ConnectError(
            f"the ids of {connector}'s former tasks can't be fenced, natively for lack of rights, nor by the leader: "
            f"{failure.message}",
            hint=f"Grant DESCRIBE and WRITE on the transactional ids {app.target.group_id}-{connector}-*.",
        ) from failure
    return "the leader was asked to fence its tasks"
