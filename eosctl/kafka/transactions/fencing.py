"""Fences many transactional ids at once: one InitProducerId per id, over several connections per coordinator.

A broker answers one request of a connection at a time, and a response waits for the log to be replicated: connections
make it fast, requests in flight hardly do. The consumer's thread looks up coordinators and decides on retries; workers,
one per connection, only send and receive. Nothing here decides which ids may be fenced.
"""

from __future__ import annotations

import heapq
import itertools
import queue
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.transactions import Coordinator, FenceAnswer, KafkaFault
from eosctl.deadline import Deadline, Event, OnEvent
from eosctl.errors import DeadlineError, EosctlError, ProtocolError, UnreachableError
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.faults import COORDINATOR_RETRIES, SAME_BROKER, fault, fault_of, wait_s
from eosctl.kafka.native.connection import Connection
from eosctl.kafka.native.coordinators import BATCH, find_coordinators
from eosctl.kafka.topics.stream import Address, ConnectionLostError
from eosctl.wire.cluster_messages import KeyType
from eosctl.wire.error_codes import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NONE,
    NOT_COORDINATOR,
    REQUEST_TIMED_OUT,
)
from eosctl.wire.transaction_messages import (
    INIT_PRODUCER_ID,
    InitProducerIdResponse,
    decode_fence_answer,
    fence_encoder,
)

NO_COORDINATORS: Mapping[TransactionalId, Coordinator] = MappingProxyType({})
CONNECTIONS_PER_COORDINATOR = 16
WINDOW = 8
IDS_PER_CONNECTION = 16  # a connection more is worth its handshake for this many ids
_JOIN_S, _WAKINGS = 2.0, 20
_IN_WORDS = {
    COORDINATOR_NOT_AVAILABLE: "a transaction coordinator is not available (on a new cluster it is being created)",
    COORDINATOR_LOAD_IN_PROGRESS: "a transaction coordinator is loading, or waits for new producer ids",
    CONCURRENT_TRANSACTIONS: "open transactions are being aborted",
    NOT_COORDINATOR: "a transaction coordinator has moved",
}


@dataclass(slots=True, eq=False, repr=False)
class _Attempt:
    """One id on its way: its coordinator, how often it was sent, and its last fault.

    `undecided` is set once a coordinator may have fenced it, whatever a later answer says.
    """

    transactional_id: TransactionalId
    coordinator: Coordinator | None = None
    sent: int = 0
    retries: int = 0
    fault: KafkaFault | None = None
    undecided: bool = False


class _Outcome(NamedTuple):
    """The result of one attempt: the response, or the error that prevented it."""

    attempt: _Attempt
    answer: InitProducerIdResponse | None
    error: EosctlError | None


@dataclass(slots=True, eq=False, repr=False)
class _Lane:
    """The ids that wait for one coordinator, and the threads that send them; None in the queue ends a thread."""

    address: Address
    waiting: queue.SimpleQueue[_Attempt | None] = field(default_factory=queue.SimpleQueue)
    threads: list[threading.Thread] = field(default_factory=list)


class Fencing:
    """One run over `transactional_ids`; iterate `answers()` once, and close it to stop early.

    `coordinators` are used without a lookup; an id whose coordinator has changed is looked up like the others.
    """

    def __init__(
        self,
        cluster: Cluster,
        transactional_ids: Sequence[TransactionalId],
        *,
        transaction_timeout_ms: int,
        client_id: str,
        deadline: Deadline,
        on_event: OnEvent,
        coordinators: Mapping[TransactionalId, Coordinator] = NO_COORDINATORS,
    ) -> None:
        self._cluster = cluster
        self._unsent = iter(dict.fromkeys(transactional_ids))
        self._coordinators = coordinators
        self._transaction_timeout_ms = transaction_timeout_ms
        self._client_id = client_id
        self._deadline = deadline
        self._on_event = on_event
        self._open: dict[str, _Attempt] = {}
        self._later: list[tuple[float, int, _Attempt]] = []
        self._order = itertools.count()
        self._lanes: dict[Address, _Lane] = {}
        self._outcomes: queue.SimpleQueue[list[_Outcome] | BaseException] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._told: set[int] = set()
        self._exhausted = False
        self._reached = False

    def answers(self) -> Iterator[FenceAnswer]:
        """Yield the results as they arrive; at the deadline, an unconfirmed one for each id that has none.

        Raises UnreachableError or UnauthorizedError only if no broker could be asked for anything.
        """
        try:
            while not self._deadline.expired():
                yield from self._start(self._take_new() + self._take_due())
                if self._exhausted and not self._open:
                    return
                yield from self._settle(self._next_outcomes())
            self._stop()
            yield from self._give_up()
        finally:
            self._stop()

    # -- the consumer's thread: lookups and decisions

    def _take_new(self) -> list[_Attempt]:
        known = self._coordinators
        batch = [_Attempt(name, known.get(name)) for name in itertools.islice(self._unsent, BATCH)]
        self._exhausted = len(batch) < BATCH
        self._open.update((attempt.transactional_id, attempt) for attempt in batch)
        return batch

    def _take_due(self) -> list[_Attempt]:
        due = []
        now_s = self._deadline.clock.monotonic_s()
        while self._later and self._later[0][0] <= now_s:
            due.append(heapq.heappop(self._later)[2])
        return due

    def _start(self, attempts: list[_Attempt]) -> Iterator[FenceAnswer]:
        lost = [attempt for attempt in attempts if attempt.coordinator is None]
        found = self._look_up(lost) if lost else {}
        for attempt in lost:
            answer = found[attempt.transactional_id]
            if isinstance(answer, Coordinator):
                attempt.coordinator = answer
            else:
                yield from self._retry_or_end(attempt, answer)
        self._hand_out([attempt for attempt in attempts if attempt.coordinator is not None])

    def _look_up(self, attempts: list[_Attempt]) -> dict[TransactionalId, Coordinator | KafkaFault]:
        keys = [attempt.transactional_id for attempt in attempts]
        try:
            found = find_coordinators(self._cluster, keys, KeyType.TRANSACTION)
        except DeadlineError as exc:  # which says less than the earlier fault
            return {attempt.transactional_id: attempt.fault or fault_of(exc) for attempt in attempts}
        except UnreachableError as exc:
            if not self._reached:
                raise  # nothing was ever reached: one error says more than a fault per id
            return dict.fromkeys(keys, fault_of(exc))
        self._reached = True
        return found

    def _hand_out(self, attempts: list[_Attempt]) -> None:
        if not attempts:
            return
        for attempt in attempts:
            assert attempt.coordinator is not None  # noqa: S101 - the caller's filter
            address = Address(attempt.coordinator.host, attempt.coordinator.port)
            lane = self._lanes.get(address)
            if lane is None:
                lane = self._lanes[address] = _Lane(address)
            lane.waiting.put(attempt)
        for lane in self._lanes.values():
            wanted = min(CONNECTIONS_PER_COORDINATOR, -(-lane.waiting.qsize() // IDS_PER_CONNECTION))
            while len(lane.threads) < wanted:
                self._start_worker(lane)

    def _start_worker(self, lane: _Lane) -> None:
        thread = threading.Thread(target=self._work, args=(lane,), name=f"fence {lane.address}", daemon=True)
        lane.threads.append(thread)
        thread.start()

    def _next_outcomes(self) -> list[_Outcome]:
        """Return the next outcomes from the workers; none if a lookup or a retry is due first."""
        try:
            outcomes = (
                self._outcomes.get(timeout=self._patience_s()) if self._exhausted else self._outcomes.get_nowait()
            )
        except queue.Empty:
            return []
        if isinstance(outcomes, BaseException):
            raise outcomes
        return outcomes

    def _patience_s(self) -> float:
        patience_s = self._deadline.remaining_s()
        if self._later:
            patience_s = min(patience_s, self._later[0][0] - self._deadline.clock.monotonic_s())
        return max(patience_s, 0.0)

    def _settle(self, outcomes: list[_Outcome]) -> Iterator[FenceAnswer]:
        for attempt, answer, error in outcomes:
            self._reached = self._reached or answer is not None
            if answer is not None and answer.error_code == NONE:
                yield self._end(attempt, answer=answer)
            elif answer is not None:
                yield from self._retry_or_end(attempt, fault(answer.error_code))
            elif error is not None and not self._is_over(error):
                yield from self._retry_or_end(attempt, fault_of(error), confirmed=attempt.sent == 0)

    def _is_over(self, error: EosctlError) -> bool:
        """Return whether `error` leaves the attempt open.

        It does if it only says that time is up, or if `_stop` closed the connection.
        """
        return isinstance(error, DeadlineError) or (self._stopping.is_set() and isinstance(error, ConnectionLostError))

    def _retry_or_end(self, attempt: _Attempt, why: KafkaFault, *, confirmed: bool = True) -> Iterator[FenceAnswer]:
        """Schedule a retry, or end the attempt, by Java's rules.

        14 and 51 go to the same broker again, 15, 16 and lost connections to a new lookup.
        """
        attempt.fault = why
        if why.code not in COORDINATOR_RETRIES:
            yield self._end(attempt, confirmed=confirmed and not attempt.undecided)
            return
        self._tell(why)
        if attempt.sent and why.code != COORDINATOR_LOAD_IN_PROGRESS:
            attempt.undecided = True
        if why.code not in SAME_BROKER:
            attempt.coordinator = None
        due_s = self._deadline.clock.monotonic_s() + wait_s(attempt.retries)
        attempt.retries += 1
        heapq.heappush(self._later, (due_s, next(self._order), attempt))

    def _tell(self, why: KafkaFault) -> None:
        if why.code not in self._told:
            self._told.add(why.code)
            reason = why.message or _IN_WORDS.get(why.code, why.name)
            self._on_event(Event(f"{reason}; trying again ({why.name})"))

    def _end(
        self, attempt: _Attempt, *, answer: InitProducerIdResponse | None = None, confirmed: bool = True
    ) -> FenceAnswer:
        self._open.pop(attempt.transactional_id, None)
        return FenceAnswer(
            transactional_id=attempt.transactional_id,
            coordinator=attempt.coordinator,
            producer_id=ProducerId(answer.producer_id) if answer else None,
            producer_epoch=answer.producer_epoch if answer else None,
            fault=None if answer else attempt.fault,
            confirmed=confirmed,
            attempts=attempt.sent,
        )

    def _give_up(self) -> Iterator[FenceAnswer]:
        """Yield the results at the deadline.

        Received responses count; the rest is unconfirmed (`attempts` 0 was never sent).
        """
        while not self._outcomes.empty():
            outcomes = self._outcomes.get()
            if isinstance(outcomes, list):
                yield from self._settle(outcomes)
        never = fault(REQUEST_TIMED_OUT, f"no answer within {self._deadline.timeout_s:g} s")
        for attempt in [*self._open.values(), *map(_Attempt, self._unsent)]:
            attempt.fault = attempt.fault or never
            yield self._end(attempt, confirmed=False)

    def _stop(self) -> None:
        """End all workers; those that wait for a broker are woken."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        for lane in self._lanes.values():
            for _ in lane.threads:
                lane.waiting.put(None)
        for thread in [thread for lane in self._lanes.values() for thread in lane.threads]:
            for _ in range(_WAKINGS):
                if self._open:
                    self._cluster.abort()  # again: a worker may have begun to connect only after the last time
                thread.join(_JOIN_S / _WAKINGS)
                if not thread.is_alive():
                    break

    # -- the workers' threads: sending and receiving

    def _work(self, lane: _Lane) -> None:
        try:
            while (first := lane.waiting.get()) is not None and not self._stopping.is_set():
                self._converse(lane, first)
        except BaseException as exc:  # a bug must surface where someone looks: in the consumer's thread
            self._outcomes.put(exc)

    def _converse(self, lane: _Lane, first: _Attempt) -> None:
        """Send the waiting attempts of the lane over one connection until none waits, its login ends, or it fails."""
        in_flight: deque[tuple[int, _Attempt]] = deque([(0, first)])
        try:
            with self._cluster.connection(lane.address) as connection:
                in_flight.clear()
                self._pump(lane, connection, in_flight, first)
        except EosctlError as exc:
            failed = [attempt for _, attempt in in_flight]
            if not any(attempt.sent for attempt in failed):
                failed += _drain(lane)  # the broker can't be reached: the others need not try in turn
            self._outcomes.put([_Outcome(attempt, None, exc) for attempt in failed])

    def _pump(
        self, lane: _Lane, connection: Connection, in_flight: deque[tuple[int, _Attempt]], first: _Attempt
    ) -> None:
        version = connection.version_of(INIT_PRODUCER_ID)
        encode = fence_encoder(
            version=version, client_id=self._client_id, transaction_timeout_ms=self._transaction_timeout_ms
        )
        upcoming: _Attempt | None = first
        while (upcoming is not None or in_flight) and not self._stopping.is_set():
            frames = []
            while upcoming is not None:
                number = connection.next_correlation_id()
                in_flight.append((number, upcoming))
                upcoming.sent += 1
                frames.append(encode(upcoming.transactional_id, number))
                upcoming = _next_waiting(lane) if len(in_flight) < WINDOW else None
            if frames:
                connection.stream.send(b"".join(frames))
            self._receive(connection, in_flight, version)
            if len(in_flight) <= WINDOW // 2 and not connection.is_ending():
                upcoming = _next_waiting(lane)

    def _receive(self, connection: Connection, in_flight: deque[tuple[int, _Attempt]], version: int) -> None:
        """Report the next response and those that came with it, even if one of them turns out malformed."""
        outcomes = []
        try:
            for frame in connection.stream.receive_frames():
                if not in_flight:
                    raise ProtocolError(f"{connection.broker} sent an answer that nothing asked for")
                number, attempt = in_flight[0]
                answer = decode_fence_answer(frame, version=version, correlation_id=number)
                in_flight.popleft()
                outcomes.append(_Outcome(attempt, answer, None))
        finally:
            self._outcomes.put(outcomes)


def _next_waiting(lane: _Lane) -> _Attempt | None:
    try:
        attempt = lane.waiting.get_nowait()
    except queue.Empty:
        return None
    if attempt is None:
        lane.waiting.put(None)  # the end is read where a worker waits for its first id
    return attempt


def _drain(lane: _Lane) -> list[_Attempt]:
    drained = []
    while (attempt := _next_waiting(lane)) is not None:
        drained.append(attempt)
    return drained
