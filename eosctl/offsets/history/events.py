"""The versions of a connector's offsets that the log of an offsets topic still has, and how they differ. Pure.

Opens nothing. Topics may hold millions of records: a filter keeps those of one connector as they are read, so that
memory grows with these alone.

An offset is compared with the present one, member by member: its shape, and its direction. Types are those that a task
gets from Connect's JsonConverter: an integer is a Java Long, a number with a point a Double, and a task that casts one
to the other fails. A null member is the same as none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, unique
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.configs.records import UnparsableValueError, decode_value
from eosctl.core.offsets.records import OffsetKey, decode_key, in_snapshot, is_nothing
from eosctl.core.records import Record, TopicRead
from eosctl.offsets.history.gtids import Order, order_of
from eosctl.offsets.history.positions import PositionPart
from eosctl.offsets.history.sources import KnownSource, known_source


@unique
class Change(StrEnum):
    """The change of one member of an offset; `forward` skips what lies between, `backward` reads it again.

    `mixed` does both: one for some servers, domains or redo threads, the other for others. The direction of a `changed`
    member is unknown, or it has none.
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


class OffsetComparison(Struct, frozen=True):
    """The order of an offset relative to the one before it, and of each member that decides it or can't be ordered."""

    order: Order
    parts: tuple[PositionPart, ...] = ()

    def incomparable(self) -> list[str]:
        """Return the members that can't be ordered."""
        return list(dict.fromkeys(part.member for part in self.parts if part.order is Order.INCOMPARABLE))


def compare_offsets(
    before: Mapping[str, object], after: Mapping[str, object], source: KnownSource | None
) -> OffsetComparison:
    """Compare two offsets of one source partition; incomparable in whatever differs and is not known to be a label."""
    differing = _differing(before, after)
    if source is None or not differing:
        parts = [PositionPart(name, Order.INCOMPARABLE) for name in differing]
    else:
        parts = [*_known_parts(before, after, source), *_other_parts(before, after, source, differing)]
    return OffsetComparison(order_of(part.order for part in parts), tuple(parts))


def source_of(partition: Mapping[str, object] | None, *offsets: Mapping[str, object] | None) -> KnownSource | None:
    """Return the known source that the first of some offsets looks like; None without any."""
    return next(filter(None, (known_source(partition, offset) for offset in offsets if offset)), None)


def order_of_values(partition: Mapping[str, object] | None, before: bytes | None, after: bytes | None) -> Order | None:
    """Return the order of the value `after` relative to `before`; None if one of them is no offset."""
    old, new = members_of(before), members_of(after)
    return None if old is None or new is None else compare_offsets(old, new, source_of(partition, old, new)).order


def _differing(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    return [name for name in dict.fromkeys([*before, *after]) if not _same(before.get(name), after.get(name))]


def _known_parts(before: Mapping[str, object], after: Mapping[str, object], source: KnownSource) -> list[PositionPart]:
    """Return the parts of the position.

    A connector that was in its snapshot begins that again; where it then goes on depends on its settings.
    """
    was, is_now = _snapshot_member(before, source), _snapshot_member(after, source)
    parts = source.parts(before, after)
    if was is not None and is_now is not None:
        return [PositionPart(part.member, Order.INCOMPARABLE) for part in parts if part.order is not Order.EQUAL]
    if is_now is not None:
        return [PositionPart(is_now, Order.BEHIND), *parts]
    return parts if was is None else [PositionPart(was, Order.AHEAD), *parts]


def _snapshot_member(offset: Mapping[str, object], source: KnownSource) -> str | None:
    """Return the member by which the snapshot is under way."""
    return source.in_snapshot[0] if in_snapshot(offset, source.in_snapshot) else None


def _other_parts(
    before: Mapping[str, object], after: Mapping[str, object], source: KnownSource, differing: Sequence[str]
) -> list[PositionPart]:
    """Return positions of another type, and members that the source is not known to have.

    A newer version of the connector may count by them.
    """
    return [
        PositionPart(name, Order.INCOMPARABLE)
        for name in differing
        if not source.is_label(name)
        and (not source.has_position(name) or _shape(before.get(name), after.get(name)) is Change.TYPE)
    ]


def offset_changes(
    before: Mapping[str, object], after: Mapping[str, object], source: KnownSource | None
) -> list[MemberChange]:
    """Return the members that differ, in the order of `before`, then of `after`.

    Positions that differ in spelling only are the same.
    """
    parts = {part.member: part.order for part in compare_offsets(before, after, source).parts}
    values = [(name, before.get(name), after.get(name)) for name in _differing(before, after)]
    return [
        MemberChange(name, _change(old, new, parts.get(name)), old, new)
        for name, old, new in values
        if parts.get(name) is not Order.EQUAL
    ]


def _change(before: object, after: object, order: Order | None) -> Change:
    """Return the direction of a member that decides, else its shape."""
    shape, direction = _shape(before, after), None if order is None else _DIRECTIONS.get(order)
    return shape if shape is not None and (shape is Change.TYPE or direction is None) else direction or Change.CHANGED


def went_back(before: Mapping[str, object], after: Mapping[str, object], source: KnownSource) -> bool:
    """Decide whether `after` certainly lies before `before` in the source; False if that is unknown.

    The connector itself must never put back one of the members that decide. A snapshot that is taken anew did not go
    back.
    """
    if _snapshot_member(after, source) is not None:
        return False
    parts = compare_offsets(before, after, source).parts
    others = [part for part in parts if not part.member.startswith(_INCREMENTAL) and part.order is not Order.EQUAL]
    return any(part.grows for part in others) and all(part.order is Order.BEHIND for part in others)


_INCREMENTAL = "incremental_snapshot_"
"""Members of Debezium's incremental snapshot, which goes on beside the log and has a position of its own."""


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


_DIRECTIONS = {Order.AHEAD: Change.FORWARD, Order.BEHIND: Change.BACKWARD, Order.MIXED: Change.MIXED}


@unique
class State(StrEnum):
    """The state of a record's transaction; `open`: the record lies behind an open one, and can't be seen yet."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"


class Version(Struct, frozen=True):
    """One record of a connector's key; `state` is None if its transaction ended while it was read.

    `behind` is the committed version before it, without a deletion in between, that lies further on in the source.
    `file` is the snapshot that has it, where the topic does not hold it any more; `topic_id` is that of a former topic
    of its name.
    """

    key: OffsetKey
    record: Record
    state: State | None
    behind: Record | None = None
    file: str | None = None
    topic_id: str | None = None

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
    return in_order(found)


def in_order(found: Iterable[Version]) -> list[Version]:
    """Sort versions by key, partition and offset, those of former topics first, and mark the jumps back.

    A version in a snapshot is no predecessor: a deletion after it may have been missed.
    """
    former: dict[tuple[bytes, int], Record | None] = {}
    marked = []
    for version in sorted(found, key=_place_in_order):
        place = (version.key.raw, version.record.partition)
        before = former.get(place)
        if version.state is State.COMMITTED:
            if before is not None and lies_before(version.key, version.record, before):
                version = replace(version, behind=before)
            former[place] = version.record if version.file is None else None
        marked.append(version)
    return marked


def _place_in_order(version: Version) -> tuple[str, bytes, bool, str, int, int]:
    former_topic, record = version.topic_id or "", version.record
    return version.key.identity, version.key.raw, not former_topic, former_topic, record.partition, record.offset


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
