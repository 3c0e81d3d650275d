"""The order of the GTIDs of MySQL and MariaDB, as Debezium stores them; and the orders that offsets have. Pure.

MySQL's are sets of transactions, `UUID:1-5:7` (since 8.4 also `UUID:TAG:1-5`): the server sends all others. MariaDB's
are positions, `DOMAIN-SERVER-SEQUENCE`, one for each replication domain: the server sends all that follows. In a domain
the sequence grows with each transaction of a server, and should from one server to the next. That holds only if the
next had received all, and the numbers do not show it: positions of two servers in one domain are not ordered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum, unique

Interval = tuple[int, int]

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_INTERVAL = re.compile(r"([1-9][0-9]{0,18})(?:-([1-9][0-9]{0,18}))?")
_POSITION = re.compile(r"([0-9]{1,10})-([0-9]{1,10})-([0-9]{1,20})")


@unique
class Order(StrEnum):
    """The order of the second of two offsets: `ahead` skips what lies between, `behind` has it read again.

    `mixed` does both: one for some servers, domains or threads, the other for others. `incomparable`: it is not known.
    """

    EQUAL = "equal"
    AHEAD = "ahead"
    BEHIND = "behind"
    MIXED = "mixed"
    INCOMPARABLE = "incomparable"


def order_of(orders: Iterable[Order]) -> Order:
    """Return the order of two offsets by those of their independent parts."""
    found = set(orders) - {Order.EQUAL}
    if Order.INCOMPARABLE in found:
        return Order.INCOMPARABLE
    return Order.MIXED if len(found) > 1 else next(iter(found), Order.EQUAL)


def compare_gtids(before: str, after: str) -> Order:
    """Return the order of `after` relative to `before`; INCOMPARABLE if they are not GTIDs of one kind."""
    if before == after:
        return Order.EQUAL
    sets = _transactions(before), _transactions(after)
    if sets[0] is not None and sets[1] is not None:
        ahead, behind = not _within(sets[1], sets[0]), not _within(sets[0], sets[1])
        return order_of(order for order, holds in ((Order.AHEAD, ahead), (Order.BEHIND, behind)) if holds)
    positions = _positions(before), _positions(after)
    if positions[0] is not None and positions[1] is not None:
        return _order_of_domains(positions[0], positions[1])
    return Order.INCOMPARABLE


def _transactions(text: str) -> Mapping[str, Sequence[Interval]] | None:
    """Parse a GTID set: map `UUID` or `UUID:TAG` to its transactions' intervals, merged and in order; else None."""
    found: dict[str, list[Interval]] = {}
    for entry in "".join(text.split()).lower().split(","):
        uuid, *parts = entry.split(":")
        if not _UUID.fullmatch(uuid) or not parts or not _INTERVAL.fullmatch(parts[-1]):
            return None
        source = uuid
        for part in parts:
            interval = _INTERVAL.fullmatch(part)
            if interval is None and not _TAG.fullmatch(part):
                return None
            if interval is None:
                source = f"{uuid}:{part}"
            else:
                found.setdefault(source, []).append((int(interval[1]), int(interval[2] or interval[1])))
    if any(first > last for intervals in found.values() for first, last in intervals):
        return None
    return {source: list(_merged(sorted(intervals))) for source, intervals in found.items()}


def _merged(intervals: Sequence[Interval]) -> Iterator[Interval]:
    first, last = intervals[0]
    for begin, end in intervals[1:]:
        if begin > last + 1:
            yield first, last
            first = begin
        last = max(last, end)
    yield first, last


def _within(some: Mapping[str, Sequence[Interval]], all_: Mapping[str, Sequence[Interval]]) -> bool:
    """Decide whether every transaction of `some` is in `all_`; both are merged and in order."""
    for source, intervals in some.items():
        others = iter(all_.get(source, ()))
        around = next(others, None)
        for first, last in intervals:
            while around is not None and around[1] < last:
                around = next(others, None)
            if around is None or around[0] > first:
                return False
    return True


def _positions(text: str) -> Mapping[int, tuple[int, int]] | None:
    """Map each domain to its server and sequence; return None for no position, or two of a domain."""
    found: dict[int, tuple[int, int]] = {}
    for entry in "".join(text.split()).split(","):
        position = _POSITION.fullmatch(entry)
        if position is None or int(position[1]) in found:
            return None
        found[int(position[1])] = int(position[2]), int(position[3])
    return found


def _order_of_domains(before: Mapping[int, tuple[int, int]], after: Mapping[int, tuple[int, int]]) -> Order:
    """Combine the orders of all domains.

    A new domain is skipped up to its position; one that is gone is read from its beginning.
    """
    return order_of(_order_in_domain(before.get(domain), after.get(domain)) for domain in before.keys() | after.keys())


def _order_in_domain(before: tuple[int, int] | None, after: tuple[int, int] | None) -> Order:
    if before is None or after is None:
        return Order.AHEAD if before is None else Order.BEHIND
    if before == after:
        return Order.EQUAL
    if before[0] != after[0]:
        return Order.INCOMPARABLE
    return Order.AHEAD if after[1] > before[1] else Order.BEHIND
