"""From answers on the wire to values."""

from __future__ import annotations

import pytest

from eosctl.core.transactions import Coordinator, TransactionDescription
from eosctl.kafka.native.coordinators import transaction_of
from eosctl.wire.transaction_messages import DescribedTransaction


@pytest.mark.parametrize(
    ("state", "told_ms", "started_ms"),
    [
        ("Ongoing", 5, 5),
        ("PrepareCommit", 5, 5),
        ("SomethingNew", 5, 5),
        ("Empty", -1, None),
        ("CompleteCommit", 5, None),
        ("CompleteAbort", 5, None),
        ("Dead", 5, None),
    ],
)
def test_only_an_open_transaction_has_a_start(state: str, told_ms: int, started_ms: int | None) -> None:
    """Brokers tell the start of the last transaction too: a committed one was shown as hours old."""
    answer = DescribedTransaction(0, "id", state, 60_000, told_ms, 7, 1, ())
    described = transaction_of(answer, Coordinator(1, "h", 9092))
    assert isinstance(described, TransactionDescription)
    assert described.started_ms == started_ms
    assert described.last_started_ms == (told_ms if told_ms >= 0 else None)
