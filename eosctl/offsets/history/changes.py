"""Compares an offset with the present one, member by member: its shape, and its direction.

Types are those that a task gets from Connect's JsonConverter: an integer is a Java Long, a number with a point a
Double, and a task that casts one to the other fails. A null member is the same as none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum, unique

from msgspec import Struct

from eosctl.offsets.history.gtids import Order, compare_gtids
from eosctl.offsets.history.sources import KnownSource

_SQL_SERVER_LSN = re.compile(r"[0-9a-fA-F]{8}:[0-9a-fA-F]{8}:[0-9a-fA-F]{4}")
_NUMBERED = re.compile(r"([^:]*?)([0-9]{1,30})")  # no colon: Oracle's commit_scn of several redo threads


@unique
class Change(StrEnum):
    """The change of one member of an offset; `forward` skips what lies between, `backward` reads it again.

    `mixed` (GTIDs) does both: one for some servers or domains, the other for others, or their order is unknown.
    """

    NEW = "new"
    MISSING = "missing"
    TYPE = "type"
    FORWARD = "forward"
    BACKWARD = "backward"
    MIXED = "mixed"
    CHANGED = "changed"


class MemberChange(Struct, frozen=True):
    """One member of an offset that differs; `before` or `after` is None if it is missing there."""

    member: str
    change: Change
    before: object
    after: object


def offset_changes(
    before: Mapping[str, object], after: Mapping[str, object], source: KnownSource | None
) -> list[MemberChange]:
    """Return the members that differ, in the order of `before`, then of `after`.

    GTIDs that differ in spelling only are the same.
    """
    names = [name for name in dict.fromkeys([*before, *after]) if not _same(before.get(name), after.get(name))]
    if source is not None and _order_of_gtids(before, after, source) is Order.SAME:
        names = [name for name in names if name != source.gtids]
    directions = dict(_directions(before, after, source, names))
    return [
        MemberChange(name, _shape(before.get(name), after.get(name)) or directions.get(name, Change.CHANGED),
                     before.get(name), after.get(name))
        for name in names
    ]  # fmt: skip


def went_back(before: Mapping[str, object], after: Mapping[str, object], source: KnownSource) -> bool:
    """Decide whether `after` certainly lies before `before` in the source; False if that is unknown.

    Within one GTID transaction a connector counts its events anew when it connects again.
    """
    if _has_gtids(before, source) or _has_gtids(after, source):
        return _order_of_gtids(before, after, source) is Order.BEHIND
    first = next((name for name in source.grows if not _same(before.get(name), after.get(name))), None)
    return first is not None and _direction(before.get(first), after.get(first), texts=True) is Change.BACKWARD


def _has_gtids(offset: Mapping[str, object], source: KnownSource) -> bool:
    return source.gtids is not None and bool(offset.get(source.gtids))


def _order_of_gtids(before: Mapping[str, object], after: Mapping[str, object], source: KnownSource) -> Order | None:
    """Return the order of the GTIDs of `after`; None if one of the offsets has none."""
    old, new = (offset.get(source.gtids or "") for offset in (before, after))
    return compare_gtids(old, new) if isinstance(old, str) and isinstance(new, str) and old and new else None


def type_name(value: object) -> str:
    """Return the name of a member's type, in everyday words."""
    if value is None:
        return "null"
    names = {bool: "true or false", int: "an integer", float: "a number with a point", str: "text"}
    return names.get(type(value), "a list or an object")


def _same(before: object, after: object) -> bool:
    return type(before) is type(after) and before == after


def _shape(before: object, after: object) -> Change | None:
    if before is None or after is None:
        return Change.NEW if before is None else Change.MISSING
    return None if type(before) is type(after) else Change.TYPE


def _directions(
    before: Mapping[str, object], after: Mapping[str, object], source: KnownSource | None, differing: Sequence[str]
) -> Iterator[tuple[str, Change]]:
    """Yield the direction of the members that are the position in a known source, else of each number by itself."""
    groups = source.positions if source is not None else [(name,) for name in differing]
    if source is not None and _has_gtids(after, source):
        order = _order_of_gtids(before, after, source)
        if source.gtids is not None and order in _DIRECTIONS:
            yield source.gtids, _DIRECTIONS[order]
        groups = (source.within_gtids,) if order is Order.SAME else ()
    for group in groups:
        first = next((name for name in group if name in differing), None)
        if first is not None:
            direction = _direction(before.get(first), after.get(first), texts=source is not None)
            if direction is not None:
                yield first, direction


_DIRECTIONS = {Order.AHEAD: Change.FORWARD, Order.BEHIND: Change.BACKWARD, Order.MIXED: Change.MIXED}


def _direction(before: object, after: object, *, texts: bool) -> Change | None:
    if type(before) is not type(after):
        return None
    if isinstance(before, int | float) and isinstance(after, int | float) and not isinstance(before, bool):
        return Change.FORWARD if after > before else Change.BACKWARD
    if not texts or not isinstance(before, str) or not isinstance(after, str):
        return None
    return _text_direction(before, after)


def _text_direction(before: str, after: str) -> Change | None:
    """Return the direction of two SQL Server log sequence numbers, or of two texts that differ in their last number."""
    if _SQL_SERVER_LSN.fullmatch(before) and _SQL_SERVER_LSN.fullmatch(after):
        return Change.FORWARD if after.lower() > before.lower() else Change.BACKWARD
    old, new = _NUMBERED.fullmatch(before), _NUMBERED.fullmatch(after)
    if old is None or new is None or old[1] != new[1] or int(old[2]) == int(new[2]):
        return None
    return Change.FORWARD if int(new[2]) > int(old[2]) else Change.BACKWARD
