"""A transaction that holds back the last stable offset of a partition, as far as brokers report it."""

from __future__ import annotations

from eosctl.codes import warning
from eosctl.core.frozen import frozen
from eosctl.core.ids import TransactionalId
from eosctl.core.records import Bounds
from eosctl.core.transactions import ActiveProducer, TransactionDescription

OPEN_TRANSACTION = warning(
    "open_transaction",
    "A transaction is open in a topic: what lies behind it can't be read, and starting workers wait for it.",
    "`eosctl txn hanging --topic TOPIC`, then `eosctl fence` or `eosctl txn abort`.",
)


@frozen
class OpenTransaction:
    """What holds the last stable offset of a partition behind its end; `producer` and the rest as far as brokers told.

    `bound` is the partition, and where its records begin, are stable to, and end.
    """

    topic: str
    bound: Bounds
    producer: ActiveProducer | None = None
    transactional_id: TransactionalId | None = None
    description: TransactionDescription | None = None
