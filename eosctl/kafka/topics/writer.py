"""Writes records where Connect's own producer would put them, and believes nothing but delivery reports."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence, Sized
from contextlib import closing, suppress
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, murmur2

from eosctl.core.clients.librdkafka_limits import LARGEST_RECORD
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.records import OutRecord, Written
from eosctl.core.wording import counted
from eosctl.deadline import Deadline
from eosctl.errors import BrokerError, DeadlineError, EosctlError, UnreachableError, UsageError
from eosctl.events import Event, OnEvent
from eosctl.kafka.access import Access
from eosctl.kafka.topics.librdkafka import ErrorLog, Properties, client_properties, error_of, quiet_logger, translate
from eosctl.machine.ahead import ahead

if TYPE_CHECKING:
    from eosctl.engine.columns import Table

_POLL_S = 0.1
_PROGRESS_EVERY = 10_000
_TRANSACTION_TIMEOUT_MS = 120_000  # how long readers may be blocked if eosctl dies in the middle
_DELIVERY_TIMEOUT_MS = 60_000
_ABORT_TIMEOUT_S = 10.0
_FAILED_BEFORE = (KafkaError._STATE, KafkaError._FATAL, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
_FATAL = (KafkaException, SystemError)  # see _kafka_error


def writer_properties(settings: ClientSettings, *, transactional_id: TransactionalId | None) -> Properties:
    """Producer properties: idempotent, acks=all; transactional if an id is given."""
    properties = {**LARGEST_RECORD, **client_properties(settings)} | {
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": 5,
        "delivery.timeout.ms": _DELIVERY_TIMEOUT_MS,
    }
    if transactional_id is None:
        return properties
    timeout_ms = min(properties["socket.timeout.ms"], _TRANSACTION_TIMEOUT_MS)  # librdkafka takes no longer one here
    return properties | {
        "transactional.id": transactional_id,
        "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
        "socket.timeout.ms": timeout_ms,
    }


class TopicWriter:
    """One write of many records; `partitions_of` reports how many partitions a topic has (and that it exists)."""

    def __init__(
        self,
        settings: ClientSettings,
        partitions_of: Callable[[str], int],
        *,
        transactional_id: TransactionalId | None,
        deadline: Deadline,
        on_event: OnEvent,
    ) -> None:
        self._settings, self._partitions_of, self._id = settings, partitions_of, transactional_id
        self._deadline, self._on_event = deadline, on_event
        self._errors = ErrorLog(deadline.clock.monotonic_s)
        self._partitions: dict[str, int] = {}
        self._written: list[Written | None] = []
        self._failures: list[tuple[str, KafkaError]] = []
        self._last: dict[tuple[str, int], int] = {}
        self._delivered = self._handed = self._reported = self._committed = 0
        self._total: int | None = None

    def write(self, records: Iterable[OutRecord]) -> Sequence[Written]:
        """Writes `records` and returns where each landed, in their order.

        Raises EosctlError when one was not delivered: of a transaction nothing is then visible to read_committed,
        without one the message says how many were.
        """
        self._total = len(records) if isinstance(records, Sized) else None
        self._run([partial(self._send_all, records=records)])
        return [written for written in self._written if written is not None]

    def write_rows(self, transactions: Iterable[Table], *, total: int) -> Mapping[tuple[str, int], int]:
        """Writes SENT, each table in a transaction, deletions first; the offset of the last one in each partition.

        Raises EosctlError when one was not delivered, which the commit tells of all but these.
        """
        self._total = total
        with closing(ahead(_in_order(transactions), most=1)) as made:
            self._run(partial(self._send_rows, tables=tables) for tables in made)
        return self._last

    def _run(self, sends: Iterable[Callable[[Producer], None]]) -> None:
        """Sends what each of `sends` has, in a transaction if there is an id."""
        properties = writer_properties(self._settings, transactional_id=self._id) | {"error_cb": self._errors}
        try:
            producer = Producer(properties, logger=quiet_logger())
        except KafkaException as exc:
            raise translate(error_of(exc), "starting the producer") from exc
        try:
            if self._id is not None:
                self._transact(producer.init_transactions, "taking")
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
        producer.begin_transaction()
        try:
            self._send(producer, send)
        except BaseException:
            self._abort(producer)
            raise
        self._commit(producer)
        self._committed = self._delivered

    def _send(self, producer: Producer, send: Callable[[Producer], None]) -> None:
        try:
            send(producer)
            while producer.flush(_POLL_S):
                self._check(producer)
        except _FATAL as exc:  # poll and flush raise a fatal error too, such as being fenced
            error = _told(producer, _kafka_error(exc))
            raise self._translated(error, f"writing records ({self._tally()})", None) from exc
        self._check(producer)
        self._report(self._delivered)

    def _send_all(self, producer: Producer, *, records: Iterable[OutRecord]) -> None:
        for record in records:
            self._send_one(producer, record)

    def _send_rows(self, producer: Producer, *, tables: Sequence[Table]) -> None:
        from eosctl.engine.reading.ranges import learn_topics
        from eosctl.engine.write import first_rows_of, produce_rows

        for some in tables:
            for _first, topic, partition in first_rows_of(some):
                self._require_partition(topic, partition)
        learn_topics(producer, len(self._partitions))
        for some in tables:
            for count in produce_rows(producer, some, on_last=self._on_last):
                self._handed += count
                self._check(producer)

    def _send_one(self, producer: Producer, record: OutRecord) -> None:
        partition = self._partition(record)
        index = len(self._written)
        self._written.append(None)
        topic, key, value, _partition, timestamp_ms, headers = record
        arguments: dict[str, Any] = {"headers": list(headers)} if headers else {}
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
                raise self._translated(_told(producer, error_of(exc)), f"writing to topic {topic}", topic) from exc
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
        """Raises when a record was not delivered, when no time is left, or when waiting longer is useless."""
        if self._handed:
            self._delivered = self._handed - len(producer)
            if self._delivered - self._reported >= _PROGRESS_EVERY:
                self._reported = self._delivered
                self._report(self._total)
        if self._failures:
            topic, error = self._failures[0]
            error = _told(producer, error)
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
        return f"{some} written before" if self._committed else "nothing was written"

    def _transact(self, step: Callable[[float], None], verb: str) -> None:
        """Runs `step(timeout_s)`, again while its error is retriable.

        A step that ends between two answers says only _TIMED_OUT: the coordinator's last answer shows why.
        """
        doing, told = f"{verb} transactional id {self._id}", ""
        while True:
            try:
                step(max(min(2.0, self._deadline.remaining_s()), 0.001))
                return
            except _FATAL as exc:
                error = _kafka_error(exc)
                self._errors.check(doing)
                if not error.retriable() or error.fatal():
                    raise self._translated(error, doing, None) from exc
                told = error.name() if error.code() >= 0 or not told else told
                self._deadline.check(f"{doing} ({told})")

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

        try:
            producer.purge()
            producer.abort_transaction(_ABORT_TIMEOUT_S)
        except _FATAL as exc:
            if not _kafka_error(exc).fatal():  # a fenced producer's transaction was aborted by who fenced it
                wait_s = _TRANSACTION_TIMEOUT_MS // 1000
                self._on_event(
                    Event(
                        f"the transaction of {self._id} could not be aborted ({_kafka_error(exc).name()}); "
                        f"the coordinator does it, and readers wait for it, within {wait_s} s",
                        warning=True,
                    )
                )

    def _translated(self, error: KafkaError, doing: str, topic: str | None) -> EosctlError:
        if error.code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH):
            return BrokerError(
                f"{doing} failed: another producer took over transactional id {self._id}; {self._what_is_written()}",
                hint=f"See who uses it: eosctl txn describe {quote(self._id or '')}",
            )
        if topic is None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            topic = max((each for each in self._partitions if each in error.str()), key=len, default=None)
        if topic is not None:
            access = Access("WRITE", "Topic", topic, self._settings)
        else:
            access = Access("WRITE", "TransactionalId", self._id or "", self._settings)
        return translate(error, doing, access=access, because=self._errors.reason())


def _told(producer: Producer, error: KafkaError) -> KafkaError:
    """What a transaction failed for, of an error that says only that it did: its commit tells."""
    if error.code() not in _FAILED_BEFORE:
        return error
    try:
        producer.poll(0)
        producer.commit_transaction(_ABORT_TIMEOUT_S)
    except _FATAL as exc:
        return _kafka_error(exc)
    return error


def _kafka_error(exception: KafkaException | SystemError) -> KafkaError:
    """The KafkaError behind what a call into librdkafka raised.

    confluent-kafka 2.16 runs delivery callbacks while a fatal error is already raised; Python turns that into a
    SystemError whose cause is the real one. Any other SystemError goes on.
    """
    cause: BaseException | None = exception
    while cause is not None and not isinstance(cause, KafkaException):
        cause = cause.__cause__
    if cause is None:
        raise exception
    return error_of(cause)


def _in_order(transactions: Iterable[Table]) -> Generator[Sequence[Table], None, None]:
    """The rows of each transaction, deletions first."""
    from eosctl.engine.write import deletions_first

    for rows in transactions:
        yield list(deletions_first(rows))
