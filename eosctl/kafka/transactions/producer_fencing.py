"""Fencing with librdkafka's transactional producers: slower, but with every kind of authentication that it has.

Each id costs a whole producer (6 threads, 2 connections), so only some run side by side. Imports confluent_kafka.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

from confluent_kafka import KafkaError, KafkaException, Producer

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.transactions import FenceAnswer, KafkaFault
from eosctl.deadline import Deadline
from eosctl.kafka.topics.librdkafka import client_properties

PARALLEL_PRODUCERS = 32
_SLICE_S = 1.0
_EPOCH_LEAST_S, _EPOCH_MOST_S = 2.0, 30.0
"""It comes at once, but for a loaded machine: there a fenced id was told as one of unknown epoch. What --timeout has
left is waited for, and a little where it has left nothing."""


def fence_with_producers(
    settings: ClientSettings, ids: Sequence[TransactionalId], *, transaction_timeout_ms: int, deadline: Deadline
) -> Iterator[FenceAnswer]:
    """Call initTransactions() for each id and yield the results as they arrive.

    Closing the iterator cancels those that have not begun.
    """
    stopping = threading.Event()
    client = client_properties(settings)
    properties = client | {
        "transaction.timeout.ms": transaction_timeout_ms,
        "socket.timeout.ms": min(client["socket.timeout.ms"], transaction_timeout_ms),
        "statistics.interval.ms": 10,
    }
    pool = ThreadPoolExecutor(PARALLEL_PRODUCERS)
    try:
        futures: list[Future[FenceAnswer]] = [pool.submit(_fence, properties, one, deadline, stopping) for one in ids]
        for future in as_completed(futures):
            yield future.result()
    finally:
        stopping.set()
        pool.shutdown(cancel_futures=True)


def _fence(
    properties: dict[str, object], transactional_id: TransactionalId, deadline: Deadline, stopping: threading.Event
) -> FenceAnswer:
    given: dict[str, int] = {}

    def take(statistics: str) -> None:
        eos = json.loads(statistics).get("eos", {})
        if eos.get("producer_id", -1) >= 0:
            given.update(producer_id=eos["producer_id"], producer_epoch=eos["producer_epoch"])

    if deadline.expired() or stopping.is_set():
        return FenceAnswer(transactional_id, None, fault=_timed_out(deadline), confirmed=False, attempts=0)
    try:
        producer = Producer(
            {**properties, "transactional.id": transactional_id, "stats_cb": take}, logger=_silent_logger()
        )
    except (KafkaException, ValueError) as exc:
        return FenceAnswer(transactional_id, None, fault=KafkaFault(-1, "INVALID_CONFIG", str(exc)), attempts=0)
    try:
        fault, confirmed = _initialise(producer, deadline, stopping)
        if fault is None:
            _wait_for_epoch(producer, given, deadline, stopping)
    finally:
        _close(producer)
    if fault is not None:
        return FenceAnswer(transactional_id, None, fault=fault, confirmed=confirmed)
    if not given:
        unknown = KafkaFault(-1, "EPOCH_UNKNOWN", "fenced, but librdkafka did not tell producer id and epoch")
        return FenceAnswer(transactional_id, None, fault=unknown, confirmed=False)
    return FenceAnswer(transactional_id, None, ProducerId(given["producer_id"]), given["producer_epoch"])


def _initialise(producer: Producer, deadline: Deadline, stopping: threading.Event) -> tuple[KafkaFault | None, bool]:
    """Initialise transactions; return the fault, and whether it is final.

    librdkafka lets a call that timed out be repeated to go on waiting. What it sent before that may have been done.
    """
    last, is_first = _timed_out(deadline), True
    while not deadline.expired() and not stopping.is_set():
        try:
            producer.init_transactions(min(_SLICE_S, max(deadline.remaining_s(), 0.01)))
        except KafkaException as exc:
            error: KafkaError = exc.args[0]
            if not error.retriable():
                return KafkaFault(error.code(), error.name(), error.str()), is_first
            is_first = False
            if error.code() >= 0:
                last = KafkaFault(error.code(), error.name(), error.str())
        else:
            return None, True
    return last, False


def _wait_for_epoch(producer: Producer, given: dict[str, int], deadline: Deadline, stopping: threading.Event) -> None:
    """Serve statistics until they contain the producer id, or it is interrupted; there is no other way to learn it."""
    patience_s = min(max(deadline.remaining_s(), _EPOCH_LEAST_S), _EPOCH_MOST_S)
    for _ in range(int(patience_s / 0.02)):
        if given or stopping.is_set():
            return
        producer.poll(0.02)


def _timed_out(deadline: Deadline) -> KafkaFault:
    return KafkaFault(7, "REQUEST_TIMED_OUT", f"no answer within {deadline.timeout_s:g} s")


def _close(producer: Producer) -> None:
    with warnings.catch_warnings(), contextlib.suppress(KafkaException):
        warnings.simplefilter("ignore")  # after a fatal error close() complains that it could not abort
        producer.close()


def _silent_logger() -> logging.Logger:
    logger = logging.Logger("eosctl.fence")
    logger.addHandler(logging.NullHandler())
    return logger
