"""The furthest former offset of each key of a topic, from all its committed records; holds one per key. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from eosctl.core.offsets.records import OffsetKey, decode_key, is_nothing
from eosctl.core.records import Record
from eosctl.offsets.history.events import members_of, went_back
from eosctl.offsets.history.sources import KnownSource, known_source, may_be_known

IsMeant = Callable[[str, Record], bool]
"""Decides whether this offset of a connector was set on purpose."""


@dataclass(slots=True)
class KeyHistory:
    """A key that has had several offsets: `furthest` is the one that lies furthest on in the source.

    It counts from the last deletion on, which was at `deleted_ms`; the first record came at `first_ms`. `back` is the
    first one that lies before it; None if the newest offset does not. An offset of unknown order counts as further on.
    """

    raw: bytes
    first_ms: int = -1
    furthest: Record | None = None
    back: Record | None = None
    deleted_ms: int = -1
    _source: KnownSource | None = None
    _furthest_members: Mapping[str, object] = field(default_factory=dict)

    @property
    def key(self) -> OffsetKey:
        """The key, decoded on demand: there may be millions of key histories, and few of them are needed."""
        key = decode_key(self.raw)
        return key if isinstance(key, OffsetKey) else OffsetKey(self.raw, "", None)

    def take(self, record: Record, is_meant: IsMeant) -> None:
        """Add the next record of the key on its partition; parse that of `furthest` once, for there may be millions."""
        members = members_of(record.value)
        if members is None:
            if is_nothing(record.value):
                self.furthest, self.back, self.deleted_ms, self._furthest_members = None, None, record.timestamp_ms, {}
            return
        if self._source is None:
            self._source = known_source(self.key.partition, members)
        if self._source is None or not went_back(self._furthest_members, members, self._source):
            self.furthest, self.back, self._furthest_members = record, None, members
        elif self.back is None and is_meant(self.key.connector, record):
            self.furthest, self._furthest_members = record, members
        elif self.back is None:
            self.back = record


def _never_meant(_connector: str, _record: Record) -> bool:
    return False


@dataclass(slots=True)
class OffsetHistory:
    """The histories of a topic's keys; the record of a key that was seen once, of an unknown source the first time."""

    is_meant: IsMeant = _never_meant
    _keys: dict[int, dict[bytes, KeyHistory | Record | int]] = field(default_factory=dict)

    def __call__(self, records: Sequence[Record]) -> Sequence[Record]:
        """Add all records to the key histories, and keep them all."""
        for record in records:
            key = record.key
            if key is None:
                continue
            keys = self._keys.setdefault(record.partition, {})
            if key not in keys:
                keys[key] = record  # a key seen once, as most are after compaction, is not even parsed
                continue
            known = keys[key]
            if isinstance(known, Record):
                known = keys[key] = self._begin(key, known)
            if isinstance(known, KeyHistory):
                known.take(record, self.is_meant)
        return records

    def _begin(self, raw: bytes, first: Record) -> KeyHistory | int:
        key = decode_key(raw)
        if not isinstance(key, OffsetKey) or not may_be_known(key.partition):
            return first.timestamp_ms
        key_history = KeyHistory(raw, first.timestamp_ms)
        key_history.take(first, self.is_meant)
        return key_history

    def first_ms(self, raw: bytes, partition: int) -> int | None:
        """Return the time of the first record of a key on a partition that the log still has; None without any."""
        known = self._keys.get(partition, {}).get(raw)
        if known is None or isinstance(known, int):
            return known
        return known.first_ms if isinstance(known, KeyHistory) else known.timestamp_ms

    def has_gone_back(self, raw: bytes, partition: int) -> bool:
        """Decide whether the newest offset of a key on a partition lies before a former one there."""
        known = self._keys.get(partition, {}).get(raw)
        return isinstance(known, KeyHistory) and known.back is not None

    def key_history(self, key: OffsetKey, partition: int) -> KeyHistory:
        """Return the history of one key on one partition."""
        known = self._keys.get(partition, {}).get(key.raw)
        if isinstance(known, KeyHistory):
            return known
        key_history = KeyHistory(key.raw)
        if isinstance(known, Record):
            key_history.take(known, self.is_meant)
        return key_history

    def gone_back(self) -> Iterator[KeyHistory]:
        """Yield the key histories whose newest offset lies before a former one."""
        for keys in self._keys.values():
            yield from (known for known in keys.values() if isinstance(known, KeyHistory) and known.back is not None)
