"""A transaction that holds back the last stable offset of a partition, as far as brokers tell of it."""

from __future__ import annotations

from dataclasses import dataclass

from eosctl.core.ids import TransactionalId
from eosctl.core.records import Bounds
from eosctl.core.transactions import ActiveProducer, TransactionDescription


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """What holds the last stable offset of a partition behind its end; `producer` and the rest as far as brokers told.

    `bound` is the partition, and where its records begin, are stable to, and end.
    """

    topic: str
    bound: Bounds
    producer: ActiveProducer | None = None
    transactional_id: TransactionalId | None = None
    description: TransactionDescription | None = None
