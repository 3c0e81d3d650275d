"""Records of `__transaction_state`, as coordinators with KIP-890 write them (TransactionLogValue v1)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fakes.broker_state import FakeTransaction

STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")


def log_key(transactional_id: str) -> bytes:
    """The key of an id's records."""
    name = transactional_id.encode()
    return struct.pack(">hh", 0, len(name)) + name


def log_value(known: FakeTransaction | None, *, client_version: int, now_ms: int = 2_000) -> bytes | None:
    """The state of an id as of `now_ms`; None deletes it."""
    if known is None:
        return None
    out = struct.pack(">hqhib", 1, known.producer_id, known.producer_epoch, known.timeout_ms, STATES.index(known.state))
    topics = sorted({topic for topic, _partition in known.partitions})
    out += bytes([len(topics) + 1])
    for name in topics:
        numbers = sorted(number for topic, number in known.partitions if topic == name)
        out += bytes([len(name) + 1]) + name.encode() + bytes([len(numbers) + 1])
        out += b"".join(struct.pack(">i", number) for number in numbers) + b"\0"
    out += struct.pack(">qq", now_ms, known.started_ms)
    return out + b"\1\2\2" + struct.pack(">h", client_version)
