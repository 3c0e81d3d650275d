"""The versions of a connector's offsets that the log of an offsets topic still has. Pure: opens nothing.

Topics may hold millions of records: a filter keeps those of one connector as they are read, so that memory grows with
these alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, unique
from operator import itemgetter

from msgspec import Struct

from eosctl.core.configs.records import UnparsableValueError, decode_value
from eosctl.core.offsets.records import OffsetKey, decode_key, is_nothing
from eosctl.core.records import Record, TopicRead
from eosctl.offsets.history.changes import went_back
from eosctl.offsets.history.sources import known_source


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
