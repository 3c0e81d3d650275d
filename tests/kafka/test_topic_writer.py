"""What the writer of topics makes of errors of its producer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.records import Headers, OutRecord
from eosctl.deadline import Deadline
from eosctl.engine.columns import SENT, batch_of_rows
from eosctl.engine.reading.heads import headers_text
from eosctl.errors import BrokerError, RefusedError
from eosctl.kafka.topics.librdkafka import quiet_logger
from eosctl.kafka.topics.writer import KafkaTopicWriter, writer_properties
from tests.fakes.clock import FakeTime


class RecordedProducer:
    """Notes what is called; with `fenced` somebody takes its transactional id while it commits the first time."""

    def __init__(self, *, fenced: bool = False) -> None:
        self.calls: list[str] = []
        self.fenced = fenced

    def __len__(self) -> int:
        return 0

    def __getattr__(self, name: str) -> Any:
        def call(*_args: object, **_options: object) -> int:
            self.calls.append(name)
            if self.fenced and name == "begin_transaction" and self.calls.count(name) == 2:
                raise KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))
            return 0

        return call


def writer_with(producer: RecordedProducer) -> KafkaTopicWriter:
    return KafkaTopicWriter(
        ClientSettings(bootstrap_servers=("b:1",)), lambda _topic: 1,
        transactional_id=TransactionalId("mine"), deadline=Deadline.after(5), on_event=lambda _event: None,
        open_producer=lambda _properties: producer,
    )  # fmt: skip


def rows(headers: Headers = ()) -> pa.Table:
    return pa.Table.from_batches([batch_of_rows([("t", 0, b"k", b"v", headers_text(headers))], SENT)])


def test_a_producer_that_is_fenced_between_two_transactions() -> None:
    """It was a raw KafkaException: no read-back, no report, and no backup named."""
    producer = RecordedProducer(fenced=True)
    with pytest.raises(BrokerError, match="another producer took over transactional id mine"):
        writer_with(producer).write_rows(iter([[rows()], [rows()]]), total=2)
    assert producer.calls.count("commit_transaction") == 1


def test_a_header_whose_name_is_no_utf_8_is_refused() -> None:
    """confluent-kafka takes the process down with it."""
    producer, headers = RecordedProducer(), (("\udcff", b"v"),)
    with pytest.raises(RefusedError, match="not UTF-8"):
        writer_with(producer).write_rows(iter([[rows(headers)]]), total=1)
    with pytest.raises(RefusedError, match="not UTF-8"):
        writer_with(producer).write([OutRecord("t", b"k", b"v", 0, headers=headers)])
    assert not {"produce", "commit_transaction"} & set(producer.calls)


class LateProducer(RecordedProducer):
    """Has no broker at its first two looks for the coordinator; `waited_s` is how long each may take."""

    def __init__(self) -> None:
        super().__init__()
        self.waited_s: list[float] = []

    def init_transactions(self, timeout_s: float) -> None:
        self.waited_s.append(timeout_s)
        if len(self.waited_s) < 3:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no coordinator yet", retriable=True))


def test_the_coordinator_is_looked_for_again_after_a_moment() -> None:
    """Every second write took half a second more: librdkafka looks again after 500 ms, or when it is called again."""
    producer = LateProducer()
    writer_with(producer).write_rows(iter([[rows()]]), total=1)
    assert producer.waited_s == [0.1, 0.2, 0.4]


class SlowCoordinator(RecordedProducer):
    """Has not committed within the first two calls; `waited_s` is how long each may take."""

    def __init__(self) -> None:
        super().__init__()
        self.waited_s: list[float] = []

    def commit_transaction(self, timeout_s: float) -> None:
        self.waited_s.append(timeout_s)
        if len(self.waited_s) < 3:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "retry call to resume", retriable=True))


class RefusedProducer(RecordedProducer):
    """Asks for a longer transaction timeout than the brokers allow."""

    def init_transactions(self, _timeout_s: float) -> None:
        raise KafkaException(KafkaError(KafkaError.INVALID_TRANSACTION_TIMEOUT, "", fatal=True))


def test_a_transaction_timeout_that_brokers_refuse_names_their_setting() -> None:
    """It was "INVALID_TRANSACTION_TIMEOUT: Broker: Transaction timeout is larger than the maximum value allowed"."""
    with pytest.raises(BrokerError, match=r"transaction\.max\.timeout\.ms is below 60000") as refused:
        writer_with(RefusedProducer()).write([OutRecord("t", b"k", b"v", 0)])
    assert refused.value.hint == "Raise transaction.max.timeout.ms of the brokers to 60000 or more."


def test_a_brief_write_asks_for_the_transaction_timeout_of_any_producer() -> None:
    """It was 120 s: brokers that allow Connect's tasks their 60 s, and no more, took no offsets."""
    settings = ClientSettings(bootstrap_servers=("b:1",))
    properties = writer_properties(settings, transactional_id=TransactionalId("mine"))
    assert properties["transaction.timeout.ms"] == 60_000
    assert properties["delivery.timeout.ms"] <= properties["transaction.timeout.ms"]
    Producer(properties, logger=quiet_logger()).flush(0)  # librdkafka takes them


class LateCommit(RecordedProducer):
    """Is told after that time that its epoch is no longer the newest."""

    def __init__(self, time: FakeTime, after_s: float) -> None:
        super().__init__()
        self._time, self._after_s = time, after_s

    def commit_transaction(self, _timeout_s: float) -> None:
        self._time.sleep(self._after_s)
        raise KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))


@pytest.mark.parametrize("after_s", [59, 61])
def test_who_ended_a_transaction_that_lasted_too_long_is_not_known(after_s: float) -> None:
    """Another producer took over, it said: a coordinator that ends what is too old answers the same."""
    time = FakeTime()
    writer = KafkaTopicWriter(
        ClientSettings(("b:1",)), lambda _topic: 1, transactional_id=TransactionalId("mine"),
        deadline=Deadline.after(300, time.clock()), on_event=lambda _event: None,
        open_producer=lambda _properties: LateCommit(time, after_s),
    )  # fmt: skip
    with pytest.raises(BrokerError, match="took over transactional id mine") as ended:
        writer.write_rows(iter([[rows()]]), total=1)
    assert ("its coordinator ended the transaction after 60 s" in ended.value.message) == (after_s > 60)


def test_a_commit_is_not_cut_short() -> None:
    """librdkafka 2.16 aborts the process, or says that it committed, if a call ends before its thread has begun it."""
    producer = SlowCoordinator()
    writer_with(producer).write_rows(iter([[rows()]]), total=1)
    assert producer.waited_s == [2.0, 2.0, 2.0]
