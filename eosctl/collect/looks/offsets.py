"""When each connector last wrote a source offset; offsets topics are followed from where the last look ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from eosctl.app import App
from eosctl.collect.facts import LsoFacts, OffsetFacts
from eosctl.collect.looks.topics import OFFSETS
from eosctl.collect.overview import Overview
from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.core.records import Bounds, Record
from eosctl.ports import TopicStore


@dataclass(slots=True)
class _Followed:
    """How far a topic was read, and which topic that was."""

    topic_id: str
    next: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class OffsetsLook:
    """Follows the global offsets topic, and those of connectors' own that the topics' look has named."""

    newest_ms: dict[str, int] = field(default_factory=dict)
    followed: dict[str, _Followed] = field(default_factory=dict)
    records: int = 0
    restarts: int = 0

    def __call__(self, app: App, overview: Overview) -> OffsetFacts:
        """Raises what reading raises; what was read before it is kept."""
        lso = overview.facts(LsoFacts)
        own = [each.topic for each in (lso.topics if lso else ()) if each.kind == OFFSETS]
        with app.topics() as store:
            for topic in dict.fromkeys([app.target.offset_topic, *own]):
                self._follow(store, topic)
        return OffsetFacts(dict(self.newest_ms), self.records, self.restarts)

    def _follow(self, store: TopicStore, topic: str) -> None:
        there = store.describe([topic]).get(topic)
        if there is None:
            self.followed.pop(topic, None)
            return
        bounds = store.bounds(topic)
        known = self.followed.get(topic)
        if known is None or known.topic_id != there.topic_id or _is_truncated(known, bounds):
            self.restarts += known is not None
            known = self.followed[topic] = _Followed(there.topic_id)
        if all(known.next.get(each.partition, each.begin) >= each.lso for each in bounds):
            return
        read = store.read(topic, since=known.next, sieve=self._take)
        self.records += read.records_read
        known.next |= {each.partition: each.lso for each in read.bounds}

    def _take(self, records: Sequence[Record]) -> Sequence[Record]:
        """Keeps when each connector wrote last, and no record."""
        for record in records:
            key = decode_key(record.key)
            if isinstance(key, OffsetKey) and record.timestamp_ms > self.newest_ms.get(key.connector, -1):
                self.newest_ms[key.connector] = record.timestamp_ms
        return ()


def _is_truncated(known: _Followed, bounds: Sequence[Bounds]) -> bool:
    """Whether a partition ends before what was read of it: records were lost, and what was taken may be wrong."""
    return any(each.end < known.next.get(each.partition, 0) for each in bounds)
