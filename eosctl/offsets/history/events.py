"""The versions of a connector's offsets that the log of an offsets topic still has, and how they differ. Pure.

Opens nothing. Topics may hold millions of records: a filter keeps those of one connector as they are read, so that
memory grows with these alone.

An offset is compared with the present one, member by member: its shape, and its direction. Types are those that a task
gets from Connect's JsonConverter: an integer is a Java Long, a number with a point a Double, and a task that casts one
to the other fails. A null member is the same as none.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, unique
from operator import itemgetter

from msgspec import Struct

from eosctl.core.configs.records import UnparsableValueError, decode_value
from eosctl.core.offsets.records import OffsetKey, decode_key, is_nothing
from eosctl.core.records import Record, TopicRead
from eosctl.offsets.history.sources import KnownSource, Order, compare_gtids, known_source

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


@unique
class State(StrEnum):
    """The state of a record's transaction; `open`: the record lies behind an open one, and can't be seen yet."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"


class Version(Struct, frozen=True):
    """One record of a connector's key; `state` is None if its transaction ended while it was read.

    `behind` is the committed version before it, without a deletion in between, that lies further on in the source.
    """

    key: OffsetKey
    record: Record
    state: State | None
    behind: Record | None = None

    @property
    def is_tombstone(self) -> bool:
        """Whether the record deletes the offset."""
        return is_nothing(self.record.value)


@dataclass(slots=True)
class ConnectorFilter:
    """A filter that keeps the records of one connector, and counts all records of each partition.

    A key that holds neither the name nor a backslash can't be the connector's: that excludes nearly all others.
    """

    connector: str
    counts: Counter[int] = field(default_factory=Counter)
    keys: dict[bytes, OffsetKey] = field(default_factory=dict)
    _name: bytes = field(init=False)

    def __post_init__(self) -> None:
        self._name = name_in_keys(self.connector)

    def __call__(self, records: Sequence[Record]) -> Sequence[Record]:
        """Keep those of `records` that belong to the connector."""
        name = self._name
        self.counts.update(map(itemgetter(1), records))
        return [each for each in records if each.key and (name in each.key or b"\\" in each.key) and self._is_its(each)]

    def _is_its(self, record: Record) -> bool:
        raw = record.key or b""
        if raw not in self.keys:
            key = decode_key(raw)
            if not isinstance(key, OffsetKey) or key.connector != self.connector:
                return False
            self.keys[raw] = key
        return True


def name_in_keys(connector: str) -> bytes:
    """Return a connector's name as Connect writes it into keys; text that is not valid UTF-8 has a backslash there."""
    return json.dumps(connector, ensure_ascii=False)[1:-1].encode("utf-8", "replace")


def versions(committed: TopicRead, everything: TopicRead, keys: Mapping[bytes, OffsetKey]) -> list[Version]:
    """Return every record kept by either read, by key, partition and offset; `committed` was read first.

    In this order no record looks aborted that arrived, was committed, or was compacted away in between.
    """
    decided = {bound.partition: bound.lso for bound in committed.bounds}
    shown = {bound.partition: bound.lso for bound in everything.bounds}
    counts = {(record.partition, record.offset) for record in committed.records}
    every = {(each.partition, each.offset): each for each in (*committed.records, *everything.records)}
    found = []
    for (partition, offset), record in every.items():
        state: State | None = State.COMMITTED
        if (partition, offset) not in counts:
            is_open = offset >= shown.get(partition, 0)
            state = State.ABORTED if offset < decided.get(partition, 0) else State.OPEN if is_open else None
        found.append(Version(keys[record.key or b""], record, state))
    found.sort(key=lambda each: (each.key.identity, each.key.raw, each.record.partition, each.record.offset))
    return _with_jumps(found)


def _with_jumps(found: Iterable[Version]) -> list[Version]:
    """Mark the versions that lie behind their predecessor with that predecessor."""
    former: dict[tuple[bytes, int], Record] = {}
    marked = []
    for version in found:
        place = (version.key.raw, version.record.partition)
        before = former.get(place)
        if version.state is State.COMMITTED:
            if before is not None and lies_before(version.key, version.record, before):
                version = Version(version.key, version.record, version.state, before)
            former[place] = version.record
        marked.append(version)
    return marked


def lies_before(key: OffsetKey, one: Record, other: Record) -> bool:
    """Decide whether `one` certainly lies before `other` in a known source; a deletion lies nowhere."""
    if one.value == other.value:
        return False
    first, second = members_of(one.value), members_of(other.value)
    if first is None or second is None:
        return False
    source = known_source(key.partition, second)
    return source is not None and went_back(second, first, source)


def version_at(found: Iterable[Version], moment_ms: int) -> Version | None:
    """Return the committed version that took effect at a moment.

    `found` has the versions of one source partition in one topic, oldest first. Of several keys or partitions the
    newest takes effect, as in `fold_store`.
    """
    newest: dict[tuple[bytes, int], Version] = {}
    for version in found:
        if version.state is State.COMMITTED and version.record.timestamp_ms <= moment_ms:
            newest[version.key.raw, version.record.partition] = version
    return max(newest.values(), key=lambda version: version.record.timestamp_ms, default=None)


def members_of(value: bytes | None) -> Mapping[str, object] | None:
    """Return the members of an offset; None if the value is no offset."""
    try:
        offset = decode_value(value)
    except UnparsableValueError:
        return None
    return offset if isinstance(offset, Mapping) else None
