"""Decodes the records of `__transaction_state`, the coordinators' own log, and finds the partition of an id.

For reading only: nothing here encodes, because only a coordinator may write there. Layouts: TransactionLogKey v0,
TransactionLogValue v0 and v1 (Kafka 0.11 to 4.3); v1 is flexible, from transaction.version 1 on.
"""

from __future__ import annotations

import struct

from msgspec import Struct

from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.transactions import TransactionState
from eosctl.errors import ProtocolError

TOPIC = "__transaction_state"

_STATES = (
    TransactionState.EMPTY,
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
    TransactionState.DEAD,
    TransactionState.PREPARE_EPOCH_FENCE,
)
_MAX_VARINT_BYTES = 5


class LoggedTransaction(Struct, frozen=True):
    """The state of one id as its coordinator wrote it; tagged fields are None if the record lacks them."""

    version: int
    producer_id: ProducerId
    producer_epoch: int
    transaction_timeout_ms: int
    state: TransactionState
    partitions: tuple[tuple[str, int], ...]
    last_update_ms: int
    started_ms: int | None
    previous_producer_id: ProducerId | None = None
    next_producer_id: ProducerId | None = None
    client_transaction_version: int | None = None
    next_producer_epoch: int | None = None


def java_string_hash(text: str) -> int:
    """Compute `String.hashCode` of `text`, over its UTF-16 code units, as a signed 32-bit number."""
    data = text.encode("utf-16-be", "surrogatepass")
    total = 0
    for (unit,) in struct.iter_unpack(">H", data):
        total = (total * 31 + unit) & 0xFFFFFFFF
    return total - (1 << 32) if total >= 1 << 31 else total


def coordinator_partition(transactional_id: TransactionalId, partitions: int) -> int:
    """Return the partition of `__transaction_state` whose leader coordinates the id.

    `TransactionStateManager.partitionFor`; Kafka's `Utils.abs` maps the one integer without an absolute value to 0.
    """
    number = java_string_hash(transactional_id)
    return 0 if number == -(1 << 31) else abs(number) % partitions


def decode_key(key: bytes) -> TransactionalId:
    """Decode the transactional id of a record; raises ProtocolError for bytes that are not a v0 key."""
    reader = _Reader(key, "transaction log key")
    version = reader.int16()
    if version != 0:
        raise ProtocolError(f"transaction log key has version {version}; this eosctl knows version 0")
    transactional_id = reader.text(reader.int16())
    reader.end()
    return TransactionalId(transactional_id)


def decode_value(value: bytes) -> LoggedTransaction:
    """Decode the state in a record.

    Raises ProtocolError for an unknown version, a truncated value, or trailing bytes.
    """
    reader = _Reader(value, "transaction log value")
    version = reader.int16()
    if version not in (0, 1):
        raise ProtocolError(f"transaction log value has version {version}; this eosctl knows 0 and 1")
    flexible = version == 1
    producer_id, epoch, timeout_ms, status = reader.take(">qhib")
    partitions = _partitions(reader, flexible=flexible)
    last_update_ms, started_ms = reader.take(">qq")
    tags = reader.tags() if flexible else {}
    reader.end()
    return LoggedTransaction(
        version=version,
        producer_id=ProducerId(producer_id),
        producer_epoch=epoch,
        transaction_timeout_ms=timeout_ms,
        state=_STATES[status] if 0 <= status < len(_STATES) else TransactionState.UNKNOWN,
        partitions=partitions,
        last_update_ms=last_update_ms,
        started_ms=started_ms if started_ms >= 0 else None,
        previous_producer_id=_producer(tags, 0),
        next_producer_id=_producer(tags, 1),
        client_transaction_version=_tag(tags, 2, ">h"),
        next_producer_epoch=_tag(tags, 3, ">h"),
    )


def _producer(tags: dict[int, bytes], tag: int) -> ProducerId | None:
    found = _tag(tags, tag, ">q")
    return None if found is None else ProducerId(found)


def _partitions(reader: _Reader, *, flexible: bool) -> tuple[tuple[str, int], ...]:
    found: list[tuple[str, int]] = []
    for _topic in range(max(0, reader.count(flexible=flexible))):
        name = reader.text(reader.varint() - 1 if flexible else reader.int16())
        for _partition in range(max(0, reader.count(flexible=flexible))):
            (partition,) = reader.take(">i")
            found.append((name, partition))
        if flexible:
            reader.tags()
    return tuple(sorted(found))


def _tag(tags: dict[int, bytes], number: int, layout: str) -> int | None:
    """Decode a tagged integer; None where Kafka leaves the tag out or sets it to -1."""
    if number not in tags:
        return None
    reader = _Reader(tags[number], f"tag {number} of a transaction log value")
    (value,) = reader.take(layout)
    reader.end()
    return int(value) if value >= 0 else None


class _Reader:
    """A cursor over bytes that accounts for every one of them."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data, self._what, self._at = data, what, 0

    def take(self, layout: str) -> tuple[int, ...]:
        size = struct.calcsize(layout)
        return struct.unpack(layout, self.raw(size))

    def raw(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._data):
            raise ProtocolError(f"{self._what} is cut off: {size} bytes wanted at {self._at} of {len(self._data)}")
        self._at += size
        return self._data[self._at - size : self._at]

    def int16(self) -> int:
        return self.take(">h")[0]

    def text(self, size: int) -> str:
        try:
            return self.raw(size).decode("utf-8")
        except UnicodeDecodeError as exc:
            raise ProtocolError(f"{self._what} has a name that is not UTF-8") from exc

    def varint(self) -> int:
        value = 0
        for position in range(_MAX_VARINT_BYTES):
            byte = self.raw(1)[0]
            value |= (byte & 0x7F) << (7 * position)
            if byte < 0x80:
                return value
        raise ProtocolError(f"{self._what} has a number longer than {_MAX_VARINT_BYTES} bytes")

    def count(self, *, flexible: bool) -> int:
        """Read the length of a nullable array; -1 for null."""
        return self.varint() - 1 if flexible else self.take(">i")[0]

    def tags(self) -> dict[int, bytes]:
        """Read all tagged fields by number, known or not."""
        found = {}
        for _tag_index in range(self.varint()):
            number = self.varint()
            found[number] = self.raw(self.varint())
        return found

    def end(self) -> None:
        left = len(self._data) - self._at
        if left:
            raise ProtocolError(f"{self._what} has {left} bytes that no known field accounts for")
