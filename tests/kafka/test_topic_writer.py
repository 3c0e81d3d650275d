"""What the writer of topics makes of errors of its producer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.deadline import Deadline
from eosctl.engine.columns import SENT, batch_of_rows
from eosctl.errors import BrokerError
from eosctl.kafka.topics.writer import TopicWriter


class FencedProducer:
    """Somebody else takes its transactional id while its first transaction is committed."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __len__(self) -> int:
        return 0

    def __getattr__(self, name: str) -> Any:
        def call(*_args: object, **_options: object) -> int:
            self.calls.append(name)
            if name == "begin_transaction" and self.calls.count(name) == 2:
                raise KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))
            return 0

        return call


def test_a_producer_that_is_fenced_between_two_transactions() -> None:
    """It was a raw KafkaException: no read-back, no report, and no backup named."""
    producer = FencedProducer()
    writer = TopicWriter(
        ClientSettings(bootstrap_servers=("b:1",)), lambda _topic: 1,
        transactional_id=TransactionalId("mine"), deadline=Deadline.after(5), on_event=lambda _event: None,
        open_producer=lambda _properties: producer,
    )  # fmt: skip
    rows = pa.Table.from_batches([batch_of_rows([("t", 0, b"k", b"v", None)], SENT)])
    with pytest.raises(BrokerError, match="another producer took over transactional id mine"):
        writer.write_rows(iter([[rows], [rows]]), total=2)
    assert producer.calls.count("commit_transaction") == 1
