"""Writes records to the partitions that Connect's own producer would choose, and trusts only delivery reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, murmur2
from msgspec import Struct

from eosctl.core.clients.properties import LARGEST_RECORD
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.records import OutRecord, Written, sendable_headers
from eosctl.core.wording import counted
from eosctl.deadline import Deadline, Event, OnEvent
from eosctl.errors import BrokerError, DeadlineError, EosctlError, UnreachableError, UsageError
from eosctl.foreign import arguments
from eosctl.kafka.access import Access
from eosctl.kafka.topics.librdkafka import (
    DOWN_S,
    ErrorLog,
    Properties,
    client_properties,
    error_of,
    quiet_logger,
    translate,
)

if TYPE_CHECKING:
    from eosctl.engine.columns import Table

OpenProducer = Callable[[Properties], Any]
"""A function that makes confluent-kafka's Producer from librdkafka properties."""

_POLL_S = 0.1
_PROGRESS_EVERY = 10_000
_ABORT_TIMEOUT_S = 10.0
_FIRST_LOOK_S, _STEP_S = 0.1, 2.0
_FAILED_BEFORE = (KafkaError._STATE, KafkaError._FATAL, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
_FATAL = (KafkaException, SystemError)  # see _kafka_error


class WriteTerms(Struct, frozen=True):
    """The time limits of a write.

    A coordinator ends a transaction after `transaction_s`; `delivery_s` is the time for a record's delivery, and
    `down_s` the time for which all brokers may be down.
    """

    transaction_s: int
    delivery_s: int
    down_s: float


BRIEF = WriteTerms(60, 60, DOWN_S)
"""Terms under which readers are blocked only briefly if eosctl dies in the middle.

Kafka's producers ask for 60 s by default: brokers whose transaction.max.timeout.ms is lower refuse most of them.
"""


def writer_properties(
    settings: ClientSettings, *, transactional_id: TransactionalId | None, terms: WriteTerms = BRIEF
) -> Properties:
    """Return the properties of a producer: idempotent, acks=all; transactional if an id is given."""
    properties = {**LARGEST_RECORD, **client_properties(settings)} | {
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": 20,
        "delivery.timeout.ms": 1000 * terms.delivery_s,
        "allow.auto.create.topics": False,
    }
    if transactional_id is None:
        return properties
    timeout_ms = min(properties["socket.timeout.ms"], 1000 * terms.transaction_s)  # librdkafka takes no longer one here
    return properties | {
        "transactional.id": transactional_id,
        "transaction.timeout.ms": 1000 * terms.transaction_s,
        "socket.timeout.ms": timeout_ms,
    }


class KafkaTopicWriter:
    """One write of many records; `partitions_of` reports how many partitions a topic has (and that it exists).

    The time of `deadline` begins anew with each transaction, unless the write is `limited`.
    """

    def __init__(
        self,
        settings: ClientSettings,
        partitions_of: Callable[[str], int],
        *,
        transactional_id: TransactionalId | None,
        deadline: Deadline,
        on_event: OnEvent,
        terms: WriteTerms = BRIEF,
        limited: bool = True,
        open_producer: OpenProducer | None = None,
    ) -> None:
        self._settings, self._partitions_of, self._id = settings, partitions_of, transactional_id
        self._deadline, self._limited, self._on_event, self._terms = deadline, limited, on_event, terms
        self._open = open_producer or (lambda properties: Producer(properties, logger=quiet_logger()))
        self._errors = ErrorLog(deadline.clock.monotonic_s, patience_s=terms.down_s)
        self._partitions: dict[str, int] = {}
        self._written: list[Written | None] = []
        self._failures: list[tuple[str, KafkaError]] = []
        self._last: dict[tuple[str, int], int] = {}
        self._delivered = self._handed = self._reported = self._committed = 0
        self._total: int | None = None
        self._open_until: Deadline | None = None

    def write(self, records: Iterable[OutRecord]) -> Sequence[Written]:
        """Write `records` and return the place of each, in their order.

        Raises EosctlError if one was not delivered: then read_committed sees nothing of a transaction; without one the
        message says how many were delivered.
        """
        self._total = len(records) if isinstance(records, Sized) else None
        self._run([partial(self._send_all, records=records)])
        return [written for written in self._written if written is not None]

    def write_rows(self, transactions: Iterable[Sequence[Table]], *, total: int) -> Mapping[tuple[str, int], int]:
        """Write SENT, some tables in each transaction; return the offset of the last record in each partition.

        A transaction is committed when the next one is requested. Raises EosctlError if a record was not delivered: the
        last one of each partition reports that itself, for any other the commit fails.
        """
        self._total = total
        self._run(partial(self._send_rows, tables=tables) for tables in transactions)
        return self._last

    def _run(self, sends: Iterable[Callable[[Producer], None]]) -> None:
        """Run each of `sends`, in a transaction if there is an id."""
        properties = writer_properties(self._settings, transactional_id=self._id, terms=self._terms)
        try:
            producer = self._open({**properties, "error_cb": self._errors})
        except KafkaException as exc:
            raise translate(error_of(exc), "starting the producer") from exc
        try:
            if self._id is not None:
                self._transact(producer.init_transactions, "taking", first_s=_FIRST_LOOK_S)
            for send in sends:
                if self._id is None:
                    self._send(producer, send)
                else:
                    self._send_in_transaction(producer, send)
        finally:
            with suppress(*_FATAL):  # a fenced producer raises its fatal error from every call
                producer.purge()
                producer.flush(1.0)

    def _send_in_transaction(self, producer: Producer, send: Callable[[Producer], None]) -> None:
        self._open_until = Deadline.after(self._terms.transaction_s, self._deadline.clock)
        try:
            producer.begin_transaction()
        except _FATAL as exc:
            raise self._failed(producer, exc) from exc
        try:
            self._send(producer, send)
        except BaseException:
            self._abort(producer)
            raise
        self._commit(producer)
        self._committed = self._delivered
        if not self._limited:
            self._deadline = Deadline.after(self._deadline.timeout_s, self._deadline.clock)

    def _send(self, producer: Producer, send: Callable[[Producer], None]) -> None:
        try:
            send(producer)
            while producer.flush(_POLL_S):
                self._check(producer)
        except _FATAL as exc:
            raise self._failed(producer, exc) from exc
        self._check(producer)
        self._report(self._delivered)

    def _failed(self, producer: Producer, exc: KafkaException | SystemError) -> EosctlError:
        """Translate the exception of a call: any call may raise a fatal error, such as being fenced."""
        return self._translated(_cause_of(producer, _kafka_error(exc)), f"writing records ({self._tally()})", None)

    def _send_all(self, producer: Producer, *, records: Iterable[OutRecord]) -> None:
        for record in records:
            self._send_one(producer, record)

    def _send_rows(self, producer: Producer, *, tables: Sequence[Table]) -> None:
        from eosctl.engine.reading.ranges import learn_topics
        from eosctl.engine.write import first_rows_of, produce_rows

        places = [(topic, partition) for some in tables for _first, topic, partition in first_rows_of(some)]
        new_topics = {topic for topic, _partition in places} - self._partitions.keys()
        learn_topics(producer, len(new_topics), self._deadline)
        for topic, partition in places:
            self._require_partition(topic, partition)
        for some in tables:
            for count in produce_rows(producer, some, on_last=self._on_last):
                self._handed += count
                self._check(producer)

    def _send_one(self, producer: Producer, record: OutRecord) -> None:
        partition = self._partition(record)
        index = len(self._written)
        self._written.append(None)
        topic, key, value, _partition, timestamp_ms, headers = record
        arguments: dict[str, Any] = {"headers": sendable_headers(headers)} if headers else {}
        if timestamp_ms is not None and timestamp_ms >= 0:
            arguments["timestamp"] = timestamp_ms
        report = partial(self._on_delivery, index)
        while True:
            try:
                producer.produce(topic, value, key, partition, report, **arguments)
                break
            except BufferError:  # the local queue is full
                producer.poll(_POLL_S)
                self._check(producer)
            except KafkaException as exc:
                raise self._translated(_cause_of(producer, error_of(exc)), f"writing to topic {topic}", topic) from exc
        if index % _PROGRESS_EVERY == 0:
            producer.poll(0)
            self._check(producer)

    def _partition(self, record: OutRecord) -> int:
        if record.partition is not None:
            return self._require_partition(record.topic, record.partition)
        if record.key is None:
            raise UsageError(f"a record for topic {record.topic} has neither a key nor a partition")
        return murmur2(record.key, self._partitions_in(record.topic))

    def _require_partition(self, topic: str, partition: int) -> int:
        partitions = self._partitions_in(topic)
        if not 0 <= partition < partitions:
            raise UsageError(f"there is no partition {partition}: topic {topic} has {counted(partitions, 'partition')}")
        return partition

    def _partitions_in(self, topic: str) -> int:
        if topic not in self._partitions:
            self._partitions[topic] = self._partitions_of(topic)
        return self._partitions[topic]

    def _on_delivery(self, index: int, error: KafkaError | None, message: Message) -> None:
        topic = message.topic() or ""
        if error is not None:
            self._failures.append((topic, error))
            return
        self._written[index] = Written(topic, message.partition() or 0, message.offset() or 0)
        self._delivered += 1
        if self._delivered % _PROGRESS_EVERY == 0:
            self._report(self._total)

    def _on_last(self, error: KafkaError | None, message: Message) -> None:
        topic = message.topic() or ""
        if error is not None:
            self._failures.append((topic, error))
            return
        place = topic, message.partition() or 0
        self._last[place] = max(self._last.get(place, -1), message.offset() or 0)

    def _report(self, total: int | None) -> None:
        self._on_event(Event("writing", done=self._delivered, total=total, unit="records"))

    def _check(self, producer: Producer) -> None:
        """Raise an error if a record was not delivered, if no time is left, or if waiting longer is useless."""
        if self._handed:
            self._delivered = self._handed - len(producer)
            if self._delivered - self._reported >= _PROGRESS_EVERY:
                self._reported = self._delivered
                self._report(self._total)
        if self._failures:
            topic, error = self._failures[0]
            error = _cause_of(producer, error)
            raise self._translated(error, f"writing to topic {topic} ({self._tally()})", topic)
        if len(producer):
            self._errors.check(f"writing records ({self._tally()})")
            self._deadline.check(f"writing records ({self._tally()})")

    def _tally(self) -> str:
        if self._id is not None:
            return f"the transaction is aborted, {self._what_is_written()}"
        sent = counted(len(self._written), "record was", "records were")
        return f"{self._delivered} of {sent} confirmed, the others may or may not be written"

    def _what_is_written(self) -> str:
        some = counted(self._committed, "record was", "records were")
        outcome = f"{some} written before" if self._committed else "nothing was written"
        return outcome if self._limited else f"{outcome} as {self._id}"  # others may write beside it

    def _transact(self, step: Callable[[float], None], verb: str, *, first_s: float = _STEP_S) -> None:
        """Run `step(timeout_s)`, again while its error is retriable: for `first_s`, then for twice as long, and so on.

        A step that ends between two responses says only _TIMED_OUT: the coordinator's last response shows why.

        The first calls of init_transactions are short, as each looks for the coordinator at once. librdkafka (2.16) by
        itself rests for 500 ms where no broker is connected yet at the first look, which is so half of the time.
        A commit's are not: where its time ends before librdkafka's thread has begun it, the next call takes the result
        of another step for its own, and the process is aborted, or told of a commit that was not made.
        """
        doing, reason, patience_s = f"{verb} transactional id {self._id}", "", first_s
        while True:
            try:
                step(max(min(patience_s, self._deadline.remaining_s()), 0.001))
                return
            except _FATAL as exc:
                error = _kafka_error(exc)
                self._errors.check(doing)
                if not error.retriable() or error.fatal():
                    raise self._translated(error, doing, None) from exc
                reason = error.name() if error.code() >= 0 or not reason else reason
                self._deadline.check(f"{doing} ({reason})")
                patience_s = min(2 * patience_s, _STEP_S)

    def _commit(self, producer: Producer) -> None:
        try:
            self._transact(producer.commit_transaction, "committing with")
        except (DeadlineError, UnreachableError) as exc:
            raise type(exc)(
                f"{exc.message}; whether the transaction was committed is not known",
                hint="Read the topic again before anything else is written.",
            ) from exc
        except EosctlError:
            self._abort(producer)
            raise

    def _abort(self, producer: Producer) -> None:
        with suppress(*_FATAL):
            producer.purge()
        try:
            producer.abort_transaction(_ABORT_TIMEOUT_S)
        except _FATAL as exc:
            if not _kafka_error(exc).fatal():  # a fenced producer's transaction was aborted by the fencing
                wait_s = self._terms.transaction_s
                self._on_event(
                    Event(
                        f"the transaction of {self._id} could not be aborted ({_kafka_error(exc).name()}); "
                        f"the coordinator does it, and readers wait for it, within {wait_s} s",
                        warning=True,
                    )
                )

    def _translated(self, error: KafkaError, doing: str, topic: str | None) -> EosctlError:
        if error.code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH):
            lasted = self._open_until is not None and self._open_until.expired()
            ended = f", or its coordinator ended the transaction after {self._terms.transaction_s} s" if lasted else ""
            return BrokerError(
                f"{doing} failed: another producer took over transactional id {self._id}{ended}; "
                f"{self._what_is_written()}",
                hint=f"See who uses it: eosctl txn describe {arguments(self._id or '')}",
            )
        if error.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
            asked_ms = 1000 * self._terms.transaction_s
            return BrokerError(
                f"{doing} failed: the brokers' transaction.max.timeout.ms is below {asked_ms}, the transaction timeout "
                f"of this write; {self._what_is_written()}",
                hint=f"Raise transaction.max.timeout.ms of the brokers to {asked_ms} or more.",
            )
        if topic is None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            topic = max((each for each in self._partitions if each in error.str()), key=len, default=None)
        if topic is not None:
            access = Access("WRITE", "Topic", topic, self._settings)
        else:
            access = Access("WRITE", "TransactionalId", self._id or "", self._settings)
        return translate(error, doing, access=access, because=self._errors.reason())


def _cause_of(producer: Producer, error: KafkaError) -> KafkaError:
    """Return why a transaction failed: for an error that says only that it did, the commit reports the reason."""
    if error.code() not in _FAILED_BEFORE:
        return error
    try:
        producer.poll(0)
        producer.commit_transaction(_ABORT_TIMEOUT_S)
    except _FATAL as exc:
        return _kafka_error(exc)
    return error


def _kafka_error(exception: KafkaException | SystemError) -> KafkaError:
    """Return the KafkaError behind an exception of a call into librdkafka.

    confluent-kafka 2.16 runs delivery callbacks while a fatal error is already raised; Python turns that into a
    SystemError whose cause is the real one. Any other SystemError is raised again.
    """
    cause: BaseException | None = exception
    while cause is not None and not isinstance(cause, KafkaException):
        cause = cause.__cause__
    if cause is None:
        raise exception
    return error_of(cause)
