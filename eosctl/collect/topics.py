"""Looks at topics: how far last stable offsets are behind the ends, and when offsets were last written. Reads only.

The first gives the distance, and the time of a standstill. The second gives the time of each connector's last source
offset; offsets topics are followed from where the last look ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from eosctl.app import App
from eosctl.collect.facts import HangingFacts, LsoFacts, OffsetFacts, TopicFacts, TransactionFacts
from eosctl.collect.overview import Overview
from eosctl.connectors.dedicated import gather_dedicated_topics
from eosctl.connectors.topics import find_topics
from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.core.records import Bounds, KnownBounds, Place, Record
from eosctl.errors import (
    DeadlineError,
    EosctlError,
    InterruptedByUserError,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
)
from eosctl.ports import TopicReader

CONFIG, OFFSETS, OUTPUT = "config", "offsets", "output"
NAMES_EVERY = 10
"""The number of looks after which the names of output topics, and their partitions, are looked up again."""
NAMES_PATIENCE_S = 10.0
MOST_OUTPUT_TOPICS = 1_000

_NO_TOPICS_FAULT = (UnreachableError, DeadlineError, InterruptedByUserError)
_LASTING = (NotFoundError, UnauthorizedError)


@dataclass(slots=True)
class TopicsLook:
    """Asks for the bounds of internal and output topics; remembers where each LSO stood, and the topics' names.

    Topics are described with their names alone, as that leaks memory (confluent-kafka 2.16): in between, `partitions`
    has how many each has, and what is `failing` is not asked.
    """

    stood: dict[Place, tuple[int, int]] = field(default_factory=dict)
    output: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    looks: int = 0
    are_names_due: bool = True
    partitions: dict[str, int] = field(default_factory=dict)
    failing: dict[str, EosctlError] = field(default_factory=dict)

    def __call__(self, app: App, overview: Overview) -> LsoFacts:
        """Read the topics' offsets. Raises where no topic can be asked; a partition without a leader is counted.

        Workers that do not answer are no reason to raise: names are looked up within a time of their own, and kept.
        """
        if self.are_names_due or self.looks % NAMES_EVERY == 0:
            self.partitions, self.failing = {}, {}
            self.are_names_due = not self._learn_names(
                replace(app, deadline=app.deadline.half(at_most_s=NAMES_PATIENCE_S))
            )
        self.looks += 1
        with app.topics() as store:
            wanted, left_out = self._wanted(overview)
            kinds = dict.fromkeys(wanted, OUTPUT) | dict.fromkeys(self.own, OFFSETS)
            kinds |= {app.target.offset_topic: OFFSETS, app.target.config_topic: CONFIG}
            bounds = self._bounds(store, [name for name in kinds if name not in self.failing])
        unseen = sum(name in kinds and not isinstance(why, NotFoundError) for name, why in self.failing.items())
        self._remember(bounds)
        now_ms = app.clock.now_ms()
        stood, self.stood = self.stood, {}
        found = [self._topic(name, kinds[name], bounds[name], stood, now_ms) for name in kinds if name in bounds]
        return LsoFacts(tuple(found), unseen + left_out)

    def _learn_names(self, app: App) -> bool:
        """Look up the topics' names; keep earlier names that no worker reports now. False if Kafka does not answer
        either.
        """
        try:
            with app.topics() as store:
                dedicated = gather_dedicated_topics(app, store)
            found = find_topics(app, dedicated.configs)
        except EosctlError:
            return False
        if dedicated.connectors is not None:
            self.own = tuple(sorted(set(dedicated.configured.values())))
        written = {topic for each in found.of.values() for topic in each.written}
        before = self.output if found.unreported or dedicated.connectors is None else ()
        self.output = tuple(sorted(written.union(before)))
        return True

    def _wanted(self, overview: Overview) -> tuple[Sequence[str], int]:
        """Return the group's output topics to ask for, and the number of others that stay unknown.

        Of more than MOST_OUTPUT_TOPICS, those with an open transaction come first. The others have none, as far as
        transactions could be looked at; where they could not, nothing is known about them.
        """
        if len(self.output) <= MOST_OUTPUT_TOPICS:
            return self.output, 0
        transactions, hanging = overview.facts(TransactionFacts), overview.facts(HangingFacts)
        held = {topic for each in (transactions.open if transactions else ()) for topic in each.topics}
        held |= {each.topic for each in (hanging.hanging if hanging else ())}
        doubtful = [topic for topic in self.output if topic in held]
        if transactions is None or hanging is None:
            doubtful += [topic for topic in self.output if topic not in held]
        return doubtful[:MOST_OUTPUT_TOPICS], len(doubtful[MOST_OUTPUT_TOPICS:])

    def _bounds(self, store: TopicReader, topics: Sequence[str]) -> Mapping[str, KnownBounds]:
        """Ask for all topics in the same few requests; where one topic fails, halve them until it is found."""
        counted = {name: self.partitions[name] for name in topics if name in self.partitions}
        try:
            return store.known_bounds_of(topics, partitions=counted)
        except _NO_TOPICS_FAULT:
            raise
        except EosctlError as exc:
            if len(topics) > 1:
                half = len(topics) // 2
                return {**self._bounds(store, topics[:half]), **self._bounds(store, topics[half:])}
            if counted:  # it may have been recreated
                del self.partitions[topics[0]]
                return self._bounds(store, topics)
            self.failing[topics[0]] = exc
            return {}

    def _remember(self, bounds: Mapping[str, KnownBounds]) -> None:
        """Record partitions and lasting failures for the next look; raises where nothing was found."""
        failing, self.failing = self.failing, {}
        if failing and not bounds:
            raise next(iter(failing.values()))
        self.failing = {name: why for name, why in failing.items() if isinstance(why, _LASTING)}
        self.partitions |= {name: each.partitions() for name, each in bounds.items()}

    def _topic(
        self, topic: str, kind: str, bounds: KnownBounds, stood: Mapping[Place, tuple[int, int]], now_ms: int
    ) -> TopicFacts:
        behind = [each for each in bounds.known if each.lso < each.end]
        for each in behind:
            lso, since_ms = stood.get((topic, each.partition), (-1, now_ms))
            self.stood[topic, each.partition] = (each.lso, since_ms if lso == each.lso else now_ms)
        since = [self.stood[topic, each.partition][1] for each in behind]
        stuck = [each for each in since if each < now_ms]
        return TopicFacts(
            topic=topic,
            kind=kind,
            behind=sum(each.end - each.lso for each in behind),
            partitions_behind=len(behind),
            stuck_since_ms=min(stuck, default=None),
            unasked=len(bounds.missing),
        )


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
