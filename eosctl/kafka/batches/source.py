"""One leader from which batches are fetched: its connection, the pending request, and the order of its partitions.

Requests belong to no fetch session (KIP-227): a bounded pass moves every partition with every response, so that a
session would spare few bytes, and it would take one of the broker's slots from clients that stay. Partitions take turns
at being first in the request: brokers fill a response in that order, and give a large batch to the first only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from msgspec import Struct

from eosctl.core.batches import Place
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.java.numbers import whole_number
from eosctl.deadline import Clock
from eosctl.kafka.native.connection import Connection, Pending
from eosctl.kafka.topics.partition_leaders import Leader
from eosctl.wire.frames import FrameMemory
from eosctl.wire.log.fetch_messages import (
    FETCH,
    TOPIC_IDS_FROM,
    FetchRequest,
    FetchResponse,
    PartitionData,
    PartitionFetch,
    TopicFetch,
)
from eosctl.wire.log.offset_messages import Isolation
from eosctl.wire.primitives import NO_ID

ANSWER_BYTES = 8 << 20
PARTITION_BYTES = 1 << 20
_MAX_WAIT_MS = 500


class FetchTerms(Struct, frozen=True):
    """The isolation of a fetch, and its sizes in bytes.

    Without `partition_bytes`, a request for few partitions fetches more of each.
    """

    isolation: Isolation
    answer_bytes: int = ANSWER_BYTES
    partition_bytes: int | None = None

    @classmethod
    def by(cls, settings: ClientSettings, isolation: Isolation) -> FetchTerms:
        """Read the terms from a client's settings, which may limit sizes under librdkafka's names."""
        return cls(
            isolation,
            _number(settings, "fetch.max.bytes") or ANSWER_BYTES,
            _number(settings, "max.partition.fetch.bytes"),
        )


def _number(settings: ClientSettings, name: str) -> int | None:
    return whole_number(settings.extra.get(name, ""))


@dataclass(slots=True)
class PartitionReading:
    """A partition that is read: next offset, stop, leader, and the number of empty responses, with their reason."""

    place: Place
    position: int
    stop: int
    leader: Leader
    empty: int = 0
    why_not: str = ""


class Source:
    """The partitions that one broker leads; it has one pending request at a time."""

    def __init__(self, connection: Connection, readings: Iterable[PartitionReading], terms: FetchTerms) -> None:
        self.connection, self._terms = connection, terms
        self.readings = deque(readings)
        self._room = FrameMemory(min(terms.answer_bytes, ANSWER_BYTES) + (1 << 16))
        self._pending: Pending[FetchResponse] | None = None
        self._names: dict[UUID, str] = {}
        self.rests_until_s = 0.0

    @property
    def is_waiting(self) -> bool:
        """Whether a request is under way."""
        return self._pending is not None

    def ask(self) -> None:
        """Send the next request."""
        with_ids = all(each.leader.topic_id != NO_ID for each in self.readings)
        version = self.connection.version_of(FETCH)
        self._names = {each.leader.topic_id: each.place[0] for each in self.readings}
        self._pending = self.connection.send(
            FETCH, self._request(), version=version if with_ids else min(version, TOPIC_IDS_FROM - 1)
        )

    def answer(self) -> tuple[FetchResponse, dict[Place, PartitionData]]:
        """Receive the response; the first partition goes to the end of the queue.

        Its views are valid until the next response.
        """
        pending, self._pending = self._pending, None
        if pending is None:
            raise RuntimeError("an answer was awaited to no request")
        response = self.connection.receive_in(self._room, pending)
        self.readings.rotate(-1)
        return response, {
            (topic.topic or self._names.get(topic.topic_id, ""), part.partition_index): part
            for topic in response.responses
            for part in topic.partitions
        }

    def rest(self, throttle_ms: int, clock: Clock) -> None:
        """Send no request for a while: the broker throttles a client that is over its quota (KIP-219)."""
        if throttle_ms:
            self.rests_until_s = clock.monotonic_s() + throttle_ms / 1000

    def leave(self) -> None:
        """Abort the connection if a response is still pending: it is of no use to others."""
        if self._pending is not None:
            self.connection.stream.abort()

    def lose(self) -> None:
        """Abort the connection and stop reading here."""
        self._pending = None
        self.readings.clear()
        self.connection.stream.abort()

    def _request(self) -> FetchRequest:
        topics: list[TopicFetch] = []
        most = self._terms.partition_bytes or max(PARTITION_BYTES, self._terms.answer_bytes // len(self.readings))
        for each in self.readings:
            topic, partition = each.place
            asked = PartitionFetch(partition, each.leader.epoch, each.position, partition_max_bytes=most)
            if topics and topics[-1].topic == topic:
                topics[-1] = topics[-1]._replace(partitions=(*topics[-1].partitions, asked))
            else:
                topics.append(TopicFetch(topic, each.leader.topic_id, (asked,)))
        return FetchRequest(
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=self._terms.answer_bytes,
            isolation_level=self._terms.isolation,
            topics=tuple(topics),
        )
