"""Checks that enabled workers' source tasks have taken their transactional ids: REST reports RUNNING earlier.

Reads only. Ids of connectors that write to another Kafka cluster are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from eosctl.app import App
from eosctl.core.clients.own_brokers import CLUSTER_PROPERTY
from eosctl.core.fencing_rounds import ROUND_TIMEOUTS_MS
from eosctl.core.ids import TransactionalId, task_transactional_id
from eosctl.core.transactions import KafkaFault, TransactionDescription
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.group.protocol import Work
from eosctl.txn.hanging import is_forgotten

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
        return now is not None and is_forgotten(now)
    if now.transaction_timeout_ms == _FENCED_ONLY_MS:
        return True
    if not isinstance(before, TransactionDescription):
        return False
    if (now.producer_id, now.producer_epoch) == (before.producer_id, before.producer_epoch):
        return True
    timeout_ms = now.transaction_timeout_ms
    return timeout_ms in ROUND_TIMEOUTS_MS and timeout_ms != before.transaction_timeout_ms
