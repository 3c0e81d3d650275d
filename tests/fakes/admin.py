"""NativeTransactionAdmin without sockets: every request is encoded, and answered by a FakeCluster in this process.

tests/contract/test_transaction_admin.py runs the same suite on it, on a FakeCluster behind TCP, and on real brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.transactions import Coordinator, FenceAnswer, KafkaFault
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, UnreachableError
from eosctl.kafka.faults import COORDINATOR_RETRIES, ask_until_settled, fault, fault_of
from eosctl.kafka.native.coordinators import find_coordinators
from eosctl.kafka.session import Connections
from eosctl.kafka.topics.stream import CONNECT_TIMEOUT_S, Address, ConnectionLostError, Stream
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from eosctl.kafka.transactions.fencing import NO_COORDINATORS
from eosctl.wire.cluster_messages import KeyType
from eosctl.wire.error_codes import NONE, REQUEST_TIMED_OUT
from eosctl.wire.frames import FrameBuffer, FrameMemory
from eosctl.wire.transaction_messages import INIT_PRODUCER_ID, InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    import ssl

    from tests.fakes.broker import FakeCluster


F = TypeVar("F", bound=Callable[..., Any])


class MemoryStream(Stream):
    """A stream whose other end is a function; while it waits for a frozen broker, its deadline's clock goes on."""

    def __init__(self, brokers: FakeCluster, address: Address, *, deadline: Deadline, idle_timeout_s: float) -> None:
        super().__init__(address, deadline=deadline, idle_timeout_s=idle_timeout_s)
        self._brokers, self._requests = brokers, FrameBuffer()

    def connect(self, tls: ssl.SSLContext | None) -> None:
        self._wait_s(f"connecting to {self.address}", CONNECT_TIMEOUT_S)
        if self._brokers.node_at(*self.address) is None:
            raise UnreachableError(f"can't connect to {self.address}: connection refused")

    def has_ended(self) -> bool:
        return self.aborted or self._brokers.node_at(*self.address) is None

    def send(self, data: bytes) -> None:
        self._wait_s(f"sending to {self.address}", self._idle_timeout_s)
        self._requests.feed(data)
        while (request := self._requests.next_frame()) is not None:
            node = self._brokers.node_at(*self.address)
            if node in self._brokers.frozen:
                continue
            answer = None if node is None else self._brokers.answer(node, request)
            if answer is None:
                raise ConnectionLostError(f"{self.address} closed the connection")
            self.frames.feed(answer)

    def receive_frame_in(self, room: FrameMemory) -> memoryview:
        frame = self.receive_frame()
        view = room.of(len(frame))
        view[:] = frame
        return view

    def _receive(self) -> bytes:
        if self._brokers.node_at(*self.address) not in self._brokers.frozen:
            raise ConnectionLostError(f"{self.address} closed the connection")
        self.deadline.clock.sleep_s(self._wait_s(f"waiting for {self.address}", self._idle_timeout_s))
        raise self._lost(TimeoutError(), "waiting for")


def _told(method: F) -> F:
    """The method, as a call that `brokers.calls` knows of."""

    @wraps(method)
    def counted(self: FakeTransactionAdmin, *args: Any, **how: Any) -> Any:
        with self.calls.call(method.__name__, *args, *how.values()):
            return method(self, *args, **how)

    return cast(F, counted)


def memory_connections(brokers: FakeCluster) -> Connections:
    """Connections without sockets, which all that use these brokers share, as those of one command do."""
    return Connections(ClientSettings(brokers.bootstrap_servers), open_stream=partial(MemoryStream, brokers))


class FakeTransactionAdmin(NativeTransactionAdmin):
    """TransactionAdmin in memory, with the retries and the codecs of the real one; only `fence` is simpler.

    `brokers.calls` is told of every method, of `open` for the `with` block, and of `fence` for each id.
    """

    def __init__(self, brokers: FakeCluster, *, deadline: Deadline) -> None:
        settings = ClientSettings(brokers.bootstrap_servers)
        super().__init__(settings, deadline=deadline, connections=brokers.connections)
        self.calls = brokers.calls

    def __enter__(self) -> Self:
        with self.calls.call("open"):
            return self

    cluster_id = _told(NativeTransactionAdmin.cluster_id)
    find_coordinators = _told(NativeTransactionAdmin.find_coordinators)
    describe_transactions = _told(NativeTransactionAdmin.describe_transactions)
    list_transactions = _told(NativeTransactionAdmin.list_transactions)
    topic_partitions = _told(NativeTransactionAdmin.topic_partitions)
    describe_producers = _told(NativeTransactionAdmin.describe_producers)
    write_marker = _told(NativeTransactionAdmin.write_marker)
    describe_group = _told(NativeTransactionAdmin.describe_group)
    describe_groups = _told(NativeTransactionAdmin.describe_groups)
    list_groups = _told(NativeTransactionAdmin.list_groups)
    log_dirs = _told(NativeTransactionAdmin.log_dirs)
    features = _told(NativeTransactionAdmin.features)

    def fence(
        self,
        transactional_ids: Sequence[TransactionalId],
        *,
        transaction_timeout_ms: int,
        coordinators: Mapping[TransactionalId, Coordinator] = NO_COORDINATORS,
    ) -> Iterator[FenceAnswer]:
        """One id after the other, where the real one has many connections and threads (tests/kafka/test_fencing.py)."""
        for transactional_id in dict.fromkeys(transactional_ids):
            with self.calls.call("fence", transactional_id):
                request = InitProducerIdRequest(transactional_id, transaction_timeout_ms)
                yield self._fenced(request, coordinators.get(transactional_id))

    def _fenced(self, request: InitProducerIdRequest, known: Coordinator | None) -> FenceAnswer:
        transactional_id, attempts = request.transactional_id or "", 0
        asked: Coordinator | None = None

        def ask_once(pending: list[str]) -> Mapping[str, InitProducerIdResponse | KafkaFault]:
            nonlocal attempts, asked, known
            found: Coordinator | KafkaFault | None = known
            if found is None:
                found = find_coordinators(self._cluster, pending, KeyType.TRANSACTION)[transactional_id]
            known = None
            if isinstance(found, KafkaFault):
                return {transactional_id: found}
            asked, attempts = found, attempts + 1
            try:
                answer = self._cluster.ask(Address(found.host, found.port), INIT_PRODUCER_ID, request)
            except UnreachableError as exc:
                return {transactional_id: fault_of(exc)}
            return {transactional_id: answer if answer.error_code == NONE else fault(answer.error_code)}

        try:
            settled = ask_until_settled(
                [transactional_id], ask_once, retriable=COORDINATOR_RETRIES, deadline=self._deadline
            )[transactional_id]
        except DeadlineError:
            never = fault(REQUEST_TIMED_OUT, f"no answer within {self._deadline.timeout_s:g} s")
            return FenceAnswer(TransactionalId(transactional_id), None, fault=never, confirmed=False)
        if isinstance(settled, KafkaFault):
            confirmed = settled.code not in COORDINATOR_RETRIES and attempts <= 1
            return FenceAnswer(
                TransactionalId(transactional_id), asked, fault=settled, confirmed=confirmed, attempts=attempts
            )
        return FenceAnswer(
            TransactionalId(transactional_id),
            asked,
            producer_id=ProducerId(settled.producer_id),
            producer_epoch=settled.producer_epoch,
            attempts=attempts,
        )
