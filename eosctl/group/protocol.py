"""Connect's group protocol: member metadata and the leader's assignments, as bytes <-> values.

Pure. It reads the bytes of DescribeGroups; it never joins a group. Layouts: Kafka's `ConnectProtocol` (version 0,
eager) and `IncrementalCooperativeConnectProtocol` (1 compatible, 2 sessioned), unchanged from 2.4 to 4.3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from msgspec import Struct

from eosctl.errors import ProtocolError

NEWEST_VERSION = 2
CONNECTOR_ITSELF = -1

Work = tuple[str, int]
"""A connector and a task number; CONNECTOR_ITSELF stands for the Connector instance, which has no number."""


class Assignment(Struct, frozen=True):
    """The leader's assignment for one member; `error` 1 is CONFIG_MISMATCH, `config_offset` the next offset to read.

    In versions 1 and 2 `assigned` holds only what the last rebalance added, and `revoked` what it took away.
    """

    version: int
    error: int
    leader: str
    leader_url: str
    config_offset: int
    assigned: tuple[Work, ...] = ()
    revoked: tuple[Work, ...] = ()
    scheduled_delay_ms: int = 0


class Metadata(Struct, frozen=True):
    """A member's metadata when it joined; `current` is the work that it owned then (versions 1 and 2)."""

    version: int
    url: str
    config_offset: int
    current: Assignment | None = None


def owned_work(metadata: Metadata | None, assignment: Assignment | None) -> tuple[Work, ...]:
    """Return the work that a member of a stable group owns now, sorted: (current - revoked) + assigned."""
    before = metadata.current.assigned if metadata is not None and metadata.current is not None else ()
    if assignment is None:
        return tuple(sorted(set(before)))
    return tuple(sorted((set(before) - set(assignment.revoked)) | set(assignment.assigned)))


def held_work(metadata: Metadata | None, assignment: Assignment | None) -> frozenset[Work]:
    """Return the work that a member of a stable group may still run; revoked work counts until it joins again.

    A worker joins again when its tasks have ended, or its `task.shutdown.graceful.timeout.ms` is over
    (`WorkerCoordinator.onJoinComplete`, Kafka 4.3; seen: a task's last commit is in that time).
    """
    before = metadata.current.assigned if metadata is not None and metadata.current is not None else ()
    return frozenset((*before, *(assignment.assigned if assignment is not None else ())))


def decode_metadata(data: bytes) -> Metadata:
    """Decode member metadata of version 0, 1 or 2; raise ProtocolError.

    A missing current assignment counts as none, as `ALLOCATION_V1` tolerates it.
    """
    reader = _Reader(data, "member metadata")
    version = reader.version()
    url, config_offset = reader.string(), reader.int64()
    embedded = reader.nullable_bytes() if version > 0 and reader.more() else None
    reader.end()
    current = None if embedded is None else decode_assignment(embedded)
    return Metadata(version, url, config_offset, current)


def decode_assignment(data: bytes) -> Assignment:
    """Decode a member's assignment of version 0, 1 or 2; raise ProtocolError.

    In versions 1 and 2 the fields from `assigned` on may be missing at the end, as `ASSIGNMENT_V1` tolerates it.
    """
    reader = _Reader(data, "assignment")
    version = reader.version()
    error, leader, leader_url = reader.int16(), reader.string(), reader.string()
    config_offset = reader.int64()
    assigned = reader.work() if version == 0 or reader.more() else ()
    revoked = reader.work() if version > 0 and reader.more() else ()
    delay_ms = reader.int32() if version > 0 and reader.more() else 0
    reader.end()
    return Assignment(version, error, leader, leader_url, config_offset, assigned, revoked, delay_ms)


def encode_metadata(metadata: Metadata) -> bytes:
    """Encode the metadata that a worker sends in its JoinGroup."""
    head = struct.pack(">h", metadata.version) + _string(metadata.url) + struct.pack(">q", metadata.config_offset)
    if metadata.version == 0:
        return head
    if metadata.current is None:
        return head + struct.pack(">i", -1)
    embedded = encode_assignment(metadata.current)
    return head + struct.pack(">i", len(embedded)) + embedded


def encode_assignment(assignment: Assignment) -> bytes:
    """Encode the assignment that a leader sends in its SyncGroup."""
    head = struct.pack(">hh", assignment.version, assignment.error)
    head += _string(assignment.leader) + _string(assignment.leader_url)
    head += struct.pack(">q", assignment.config_offset) + _work(assignment.assigned)
    if assignment.version == 0:
        return head
    return head + _work(assignment.revoked) + struct.pack(">i", assignment.scheduled_delay_ms)


def _string(text: str) -> bytes:
    data = text.encode("utf-8")
    return struct.pack(">h", len(data)) + data


def _work(work: Iterable[Work]) -> bytes:
    tasks_of: dict[str, list[int]] = {}
    for connector, task in work:
        tasks_of.setdefault(connector, []).append(task)
    data = struct.pack(">i", len(tasks_of))
    for connector, tasks in tasks_of.items():
        data += _string(connector) + struct.pack(f">i{len(tasks)}i", len(tasks), *tasks)
    return data


class _Reader:
    """Takes fields off the front of `data`; every shortage and every leftover is a ProtocolError that names `what`."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._at = 0
        self._what = what

    def more(self) -> bool:
        return self._at < len(self._data)

    def end(self) -> None:
        if self.more():
            raise self._broken(f"{len(self._data) - self._at} bytes are left over")

    def version(self) -> int:
        version = self.int16()
        if not 0 <= version <= NEWEST_VERSION:
            raise self._broken(f"version {version} is none of 0 to {NEWEST_VERSION}")
        return version

    def int16(self) -> int:
        return int.from_bytes(self._take(2), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def int64(self) -> int:
        return int.from_bytes(self._take(8), "big", signed=True)

    def string(self) -> str:
        data = self._take(self.int16())
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as exc:
            raise self._broken("a string is not UTF-8") from exc

    def nullable_bytes(self) -> bytes | None:
        length = self.int32()
        return None if length == -1 else self._take(length)

    def work(self) -> tuple[Work, ...]:
        found: list[Work] = []
        for _ in range(self._count()):
            connector = self.string()
            found += [(connector, self.int32()) for _ in range(self._count(nullable=False))]
        return tuple(found)

    def _count(self, *, nullable: bool = True) -> int:
        count = self.int32()
        if count == -1 and nullable:
            return 0
        # An element takes at least four bytes here; a larger count is nonsense and must not make a long loop.
        if not 0 <= count <= (len(self._data) - self._at) // 4:
            raise self._broken(f"an array can't have {count} elements")
        return count

    def _take(self, length: int) -> bytes:
        if length < 0 or self._at + length > len(self._data):
            raise self._broken(f"{length} bytes are wanted and {len(self._data) - self._at} are left")
        taken = self._data[self._at : self._at + length]
        self._at += length
        return taken

    def _broken(self, reason: str) -> ProtocolError:
        return ProtocolError(
            f"the Connect {self._what} can't be read: {reason} (at byte {self._at} of {len(self._data)})",
            hint="The group may belong to something other than Kafka Connect, or to a version newer than 4.3.",
        )
