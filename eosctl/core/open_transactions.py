"""A transaction that holds back the last stable offset of a partition, as far as brokers report it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from eosctl.codes import finding
from eosctl.core.ids import TransactionalId
from eosctl.core.records import Bounds
from eosctl.core.transactions import ActiveProducer, TransactionDescription
from eosctl.foreign import shell_words

OPEN_TRANSACTION = finding(
    "open_transaction",
    "A transaction is open in a topic: what lies behind it can't be read, and starting workers wait for it.",
    "`eosctl txn hanging --topic TOPIC`, then `eosctl fence`, `eosctl txn complete` or `eosctl txn abort`.",
)


def orphan_hint(place: Sequence[str], *, transactional_id: str | None) -> str:
    """Return how a transaction is ended that no coordinator has open, in all of its partitions; `place` names it.

    An id that goes on may have committed it: then an abort loses records, or delivers them twice.
    """
    abort = shell_words("eosctl", "txn", "abort", *place)
    if transactional_id is None:
        return f"`{abort}` ends it on all of its partitions; refused if a coordinator still knows the transaction."
    complete = shell_words("eosctl", "txn", "complete", "--as-decided", *place)
    return (
        f"`{complete}` if its coordinator has committed it, which that reads from __transaction_state; else `{abort}`. "
        "Each ends it on all of its partitions."
    )


class OpenTransaction(Struct, frozen=True):
    """A transaction that holds back a partition's last stable offset.

    `bound` has the partition's first offset, last stable offset and end. `producer` and the members after it are None
    where brokers did not report them.
    """

    topic: str
    bound: Bounds
    producer: ActiveProducer | None = None
    transactional_id: TransactionalId | None = None
    description: TransactionDescription | None = None
