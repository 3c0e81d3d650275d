"""What the stages of a migration report: values that can be reported, journaled and compared without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from eosctl.core.offsets.migration import ConnectorRoute


class Snapshot(Struct, frozen=True):
    """What one side was found to hold: whose offsets, and whether each key lies where Connect's producer puts it.

    Where all do (`in_place`), no key is on two partitions. `records` is how many were read, counted one by one as they
    came; `part_bytes` is what each part of the work has of them.
    """

    connectors: frozenset[str] = frozenset()
    in_place: bool = True
    records: int = 0
    part_bytes: Mapping[int, int] = {}

    @classmethod
    def united(cls, found: Iterable[Snapshot]) -> Snapshot:
        """What several readers have found together."""
        everything, part_bytes = list(found), Counter[int]()
        for one in everything:
            part_bytes.update(one.part_bytes)
        connectors = frozenset[str]().union(*(one.connectors for one in everything))
        in_place = all(one.in_place for one in everything)
        return cls(connectors, in_place, sum(one.records for one in everything), part_bytes)

    def most_bytes(self) -> int:
        """What the largest part has."""
        return max(self.part_bytes.values(), default=0)


class DecidedKey(Struct, frozen=True):
    """One row of the decisions, for people; `partition` is where the target has the key, None for nowhere."""

    route: ConnectorRoute
    source: tuple[str, int, int]
    key: bytes
    action: str
    reason: str
    before: bytes | None
    source_value: bytes | None
    partition: int | None
    partitions: int


class Mismatch(Struct, frozen=True):
    """A key that is not what the plan says, on `side` source or target."""

    side: str
    status: str
    connector: str
    topic: str
    partition: int | None
    key: bytes
    expected: bytes | None
    actual: bytes | None


class Comparison(Struct, frozen=True):
    """The outcome of a verification: how many keys were compared and differ, and up to `limit` of those that do.

    Of the `hidden` keys nothing is known: a record of theirs lies behind an open transaction.
    """

    compared: int
    differing: int
    mismatches: tuple[Mismatch, ...]
    hidden: tuple[Mismatch, ...] = ()

    def is_as_planned(self) -> bool:
        """Whether every key is, and could be seen to be."""
        return not self.differing and not self.hidden


class SentCounts(Struct, frozen=True):
    """What delivery reports confirmed: per topic (records, tombstones among them), per partition the last offset."""

    topics: Mapping[str, tuple[int, int]] = {}
    last_offsets: Mapping[tuple[str, int], int] = {}
    transactions: int = 0

    def records(self) -> int:
        """All records, tombstones included."""
        return sum(written for written, _tombstones in self.topics.values())
