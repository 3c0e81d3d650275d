"""The time of each connector's last source offset; offsets topics are followed from where the last look ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from eosctl.app import App
from eosctl.collect.facts import LsoFacts, OffsetFacts
from eosctl.collect.looks.topics import OFFSETS
from eosctl.collect.overview import Overview
from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.core.records import Bounds, Record
from eosctl.ports import TopicReader

PIECE = 50_000
"""The number of new offsets after which partitions are read: a look that is cut off keeps the progress made so far."""


@dataclass(slots=True)
class _Followed:
    """The topic that was read, by its id, and the position up to which it was."""

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
        """Follow the offsets topics. Raises what reading raises, and keeps what was read before."""
        lso = overview.facts(LsoFacts)
        own = [each.topic for each in (lso.topics if lso else ()) if each.kind == OFFSETS]
        with app.topics() as store:
            for topic in dict.fromkeys([app.target.offset_topic, *own]):
                self._follow(store, topic)
        return OffsetFacts(dict(self.newest_ms), self.records, self.restarts)

    def _follow(self, store: TopicReader, topic: str) -> None:
        described = store.describe([topic]).get(topic)
        if described is None:
            self.followed.pop(topic, None)
            return
        bounds = store.bounds(topic)
        known = self.followed.get(topic)
        if known is None or known.topic_id != described.topic_id or _is_truncated(known, bounds):
            self.restarts += known is not None
            known = self.followed[topic] = _Followed(described.topic_id)
        for piece in _pieces([each for each in bounds if _next(known, each) < each.lso], known):
            until = {each.partition: each.lso if each in piece else _next(known, each) for each in bounds}
            read = store.read(topic, since=known.next, until=until, keep=self._take)
            self.records += read.records_read
            known.next |= until

    def _take(self, records: Sequence[Record]) -> Sequence[Record]:
        """Record when each connector last wrote, and keep no record."""
        for record in records:
            connector = connector_of(record.key)
            if connector is not None and record.timestamp_ms > self.newest_ms.get(connector, -1):
                self.newest_ms[connector] = record.timestamp_ms
        return ()


_PLAIN_KEY = re.compile(rb'\["([^"\\\x00-\x1f]+)",\{')


def connector_of(key: bytes | None) -> str | None:
    """Return the connector of an offsets topic's key, as `decode_key` does; None for a key that workers skip.

    Of a key as Connect writes it, only the name is parsed, as there are millions.
    """
    plain = _PLAIN_KEY.match(key or b"")
    if plain is not None and plain[1].isascii():
        return plain[1].decode("ascii")
    decoded = decode_key(key)
    return decoded.connector if isinstance(decoded, OffsetKey) else None


def _next(known: _Followed, bounds: Bounds) -> int:
    return max(bounds.begin, known.next.get(bounds.partition, 0))


def _pieces(bounds: Sequence[Bounds], known: _Followed) -> Iterator[list[Bounds]]:
    """Yield the partitions, some at a time."""
    piece: list[Bounds] = []
    for each in bounds:
        piece.append(each)
        if sum(one.lso - _next(known, one) for one in piece) >= PIECE:
            yield piece
            piece = []
    if piece:
        yield piece


def _is_truncated(known: _Followed, bounds: Sequence[Bounds]) -> bool:
    """Check whether a partition ends before the position read: records were lost, and the result may be wrong."""
    return any(each.end < known.next.get(each.partition, 0) for each in bounds)
