"""The results of the stages of a migration: values that can be reported, journaled and compared without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from eosctl.core.offsets.migration import ConnectorRoute


class Snapshot(Struct, frozen=True):
    """The facts found about one side of a migration.

    They are its connectors, and whether each key is on the partition that Connect's producer chooses. If all are
    (`in_place`), no key is on two partitions. `records` is the number of records read, counted one by one as they came;
    `part_bytes` is their size in each part of the work.
    """

    connectors: frozenset[str] = frozenset()
    in_place: bool = True
    records: int = 0
    part_bytes: Mapping[int, int] = {}

    @classmethod
    def united(cls, found: Iterable[Snapshot]) -> Snapshot:
        """Combine the facts that several readers have found."""
        everything, part_bytes = list(found), Counter[int]()
        for one in everything:
            part_bytes.update(one.part_bytes)
        connectors = frozenset[str]().union(*(one.connectors for one in everything))
        in_place = all(one.in_place for one in everything)
        return cls(connectors, in_place, sum(one.records for one in everything), part_bytes)

    def most_bytes(self) -> int:
        """Return the size of the largest part."""
        return max(self.part_bytes.values(), default=0)


class DecidedKey(Struct, frozen=True):
    """One row of the decisions, for people; `partition` is the key's partition in the target, None without one."""

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
    """A key that differs from the plan, on `side` source or target."""

    side: str
    status: str
    connector: str
    topic: str
    partition: int | None
    key: bytes
    expected: bytes | None
    actual: bytes | None


class Comparison(Struct, frozen=True):
    """The outcome of a verification: how many keys were compared and differ, and up to `limit` of the differing ones.

    Nothing is known about the `hidden` keys: each has a record behind an open transaction.
    """

    compared: int
    differing: int
    mismatches: tuple[Mismatch, ...]
    hidden: tuple[Mismatch, ...] = ()

    def is_as_planned(self) -> bool:
        """Return whether every key was visible and matches the plan."""
        return not self.differing and not self.hidden


class SentCounts(Struct, frozen=True):
    """The records that delivery reports confirmed.

    Per topic the records, and the tombstones among them; per partition the last offset.
    """

    topics: Mapping[str, tuple[int, int]] = {}
    last_offsets: Mapping[tuple[str, int], int] = {}
    transactions: int = 0

    def records(self) -> int:
        """Return the number of all records, tombstones included."""
        return sum(written for written, _tombstones in self.topics.values())
