"""Decides whether connectors and tasks are as before after a worker's restart, and tasks have taken their ids.

Connector and task states are compared, which is pure.

Enabled workers' source tasks must have taken their transactional ids: REST reports RUNNING earlier. That check reads
only. Ids of connectors that write to another Kafka cluster are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.look import failed_in_fencing, failure_text
from eosctl.core.clients.own_brokers import CLUSTER_PROPERTY
from eosctl.core.ids import TransactionalId, task_transactional_id
from eosctl.core.transactions import ROUND_TIMEOUTS_MS, KafkaFault, TransactionDescription
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.group.observation.rules import Observation
from eosctl.group.protocol import CONNECTOR_ITSELF, Work
from eosctl.upgrade import codes
from eosctl.upgrade.look import AcceptedRisks, Roll

RUNNING = "RUNNING"
_AT_REST = frozenset({RUNNING, "PAUSED", "STOPPED"})


class RestartJudgement(Struct, frozen=True):
    """The connectors and tasks still awaited, those to restart after failing in fencing, and those broken for good.

    `left` is what is FAILED and was so before.
    """

    waiting: tuple[str, ...]
    to_restart: tuple[str, ...]
    broken: tuple[str, ...]
    left: tuple[str, ...] = ()


def judge_connectors(
    before: Mapping[str, str],
    now: Mapping[str, ConnectorEntry],
    owned: Collection[Work],
    *,
    excused: Collection[Work] = (),
) -> RestartJudgement:
    """Compare connector states `before` with `now`; `owned` are the tasks that the group's members own.

    A state that a user sets meanwhile (paused, stopped, deleted) is theirs. A missing authorization is never retried.
    What is `excused` (tasks, connectors themselves) was FAILED before, and may fail again or recover.
    """
    waiting: list[str] = []
    to_restart: list[str] = []
    broken: list[str] = []
    left: list[str] = []
    for name in sorted(before.keys() & now.keys()):
        seen = now[name]
        left += [f"{name}/{t.task}" for t in seen.tasks if t.state == "FAILED" and (name, t.task) in excused]
        if seen.state == "FAILED" and (name, CONNECTOR_ITSELF) in excused:
            left.append(f"connector {name}")
            continue
        failed = [task for task in seen.tasks if task.state == "FAILED" and (name, task.task) not in excused]
        fencing = [task for task in failed if failed_in_fencing(task) and "Authorization" not in task.trace]
        if seen.state == "FAILED":
            broken.append(f"connector {name} is FAILED: {failure_text(seen.trace)}")
        broken += [f"{name}/{t.task} is FAILED: {failure_text(t.trace)}" for t in failed if t not in fencing]
        if fencing:
            to_restart.append(name)
        looked_at = [number for number in seen.wanted if (name, number) not in excused]
        waiting += _awaited(name, replace(seen, wanted=tuple(looked_at)), owned)
    return RestartJudgement(tuple(waiting), tuple(to_restart), tuple(broken), tuple(left))


def _awaited(name: str, seen: ConnectorEntry, owned: Collection[Work]) -> list[str]:
    if seen.state not in _AT_REST:
        return [f"connector {name} is {seen.state}"]
    states = {task.task: task.state for task in seen.tasks}
    wrong = [f"{name}/{number} is {states.get(number, 'not started')}" for number in seen.wanted
             if states.get(number) != seen.state]  # fmt: skip
    return wrong or [f"{name}/{number} is owned by no worker" for number in seen.wanted if (name, number) not in owned]


def states_of(observation: Observation) -> dict[str, str]:
    """Return the state of each connector itself."""
    return {each.name: each.states.get("connector", "UNKNOWN") for each in observation.connectors or ()}


def excused_work(observation: Observation, begun: Roll | None, risks: AcceptedRisks) -> frozenset[Work]:
    """Return the connectors and tasks that need not run again: they did not before, and that is accepted.

    While a step is open, its worker's tasks wait for it: those that are FAILED do not.
    """
    before = begun.excused if begun else frozenset()
    if not risks.way_back and codes.CONNECTORS_HEALTHY not in risks.accepted:
        return before
    return before | {
        (each.name, CONNECTOR_ITSELF if part == "connector" else int(part.removeprefix("task ")))
        for each in observation.connectors or ()
        for part, state in each.unhealthy_parts().items()
        if state == "FAILED" or begun is None
    }


_FENCED_ONLY_MS = 1
Answer = Mapping[str, ConnectorEntry]
"""What a worker says of all connectors."""


def ids_of_tasks(app: App, answer: Answer) -> dict[Work, TransactionalId]:
    """Return the transactional id of each source task."""
    group_id = app.target.require_group_id()
    found: dict[Work, TransactionalId] = {}
    for name, entry in answer.items():
        if entry.type == "source" and not entry.config.get(CLUSTER_PROPERTY):
            found |= {(name, number): task_transactional_id(group_id, name, number) for number in entry.wanted}
    return found


def describe_ids(
    app: App, ids: Mapping[Work, TransactionalId]
) -> Mapping[TransactionalId, TransactionDescription | KafkaFault]:
    """Describe the ids from their coordinators; raise what the connection raises."""
    if not ids:
        return {}
    with app.transactions() as admin:
        return admin.describe_transactions(sorted(ids.values()))


def without_ids(
    app: App, ids: Mapping[Work, TransactionalId], before: Mapping[TransactionalId, TransactionDescription | KafkaFault]
) -> list[Work]:
    """Return the tasks started since `before` whose ids are unused; ids without a description are left out."""
    now = describe_ids(app, ids)
    return [work for work, each in sorted(ids.items()) if _is_idle(now.get(each), before.get(each))]


def _is_idle(
    now: TransactionDescription | KafkaFault | None, before: TransactionDescription | KafkaFault | None
) -> bool:
    """Decide whether the id was not used since, or only by Connect's fencing round."""
    if not isinstance(now, TransactionDescription):
        return now is not None and now.is_unknown_id
    if now.transaction_timeout_ms == _FENCED_ONLY_MS:
        return True
    if not isinstance(before, TransactionDescription):
        return False
    if (now.producer_id, now.producer_epoch) == (before.producer_id, before.producer_epoch):
        return True
    timeout_ms = now.transaction_timeout_ms
    return timeout_ms in ROUND_TIMEOUTS_MS and timeout_ms != before.transaction_timeout_ms
