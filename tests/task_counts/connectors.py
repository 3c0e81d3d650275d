"""Connectors with their task-count records, as the tests of findings make them."""

from __future__ import annotations

from typing import Any

from eosctl.core.configs.fold import ConnectorState, fold_config_topic
from eosctl.core.ids import TransactionalId
from eosctl.core.records import Record
from eosctl.core.transactions import TransactionListing, TransactionState
from eosctl.task_counts.rows import case_row
from eosctl.task_counts.rules import AliveTask, cases

OPEN = TransactionState.ONGOING
CONFIG = b'{"properties":{"connector.class":"FileStreamSource"}}'


def state(**changes: Any) -> ConnectorState:
    """A running connector `c` of two tasks whose record is newer than its commit."""
    values: dict[str, Any] = {
        "config": {"connector.class": "FileStreamSource"},
        "target_state": "STARTED",
        "task_count": 2,
        "task_count_record": 2,
        "commit_offset": 10,
        "record_offset": 12,
    }
    return ConnectorState("c", **{**values, **changes})


def known(task: int, transaction_state: TransactionState = TransactionState.EMPTY) -> AliveTask:
    return AliveTask(task, TransactionalId(f"g-c-{task}"), transaction_state)


def rows(*records: tuple[bytes, bytes | None], listings: list[TransactionListing] | None = None) -> dict[str, Any]:
    topic = fold_config_topic(Record("t", 0, at, -1, key, value) for at, (key, value) in enumerate(records))
    return {case.connector.name: case_row(case) for case in cases(topic, "g", listings=listings)}
