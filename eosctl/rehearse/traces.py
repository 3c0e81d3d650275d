"""What the coordinators' log shows of a fault: which tasks took their transactional ids again, what was aborted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field

from eosctl.app import App
from eosctl.core.frozen import frozen
from eosctl.core.ids import task_of
from eosctl.core.records import Record
from eosctl.core.transaction_log import TOPIC, decode_key, decode_value
from eosctl.core.transactions import TransactionState


@frozen
class Traces:
    """By task: how often a producer initialized its transactional id, and how many transactions were to be aborted."""

    initialized: Counter[int] = field(default_factory=Counter)
    aborted: Counter[int] = field(default_factory=Counter)


def read_traces(app: App, group: str, connector: str) -> Traces:
    """Read `__transaction_state`; where there is none, nobody has used a transactional id yet."""
    traces = Traces()

    def look(records: Sequence[Record]) -> Sequence[Record]:
        for record in records:
            work = task_of(decode_key(record.key or b""), group)
            if work is None or work[0] != connector or record.value is None:
                continue
            state = decode_value(record.value).state
            if state is TransactionState.EMPTY:  # written by InitProducerId alone
                traces.initialized[work[1]] += 1
            elif state is TransactionState.PREPARE_ABORT:
                traces.aborted[work[1]] += 1
        return ()

    with app.topics() as store:
        if TOPIC in store.describe([TOPIC], configs=False):
            store.read(TOPIC, isolation="read_uncommitted", sieve=look)
    return traces
