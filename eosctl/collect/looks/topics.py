"""How far last stable offsets are from the ends of topics, and since when they stand still. Reads only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from eosctl.app import App
from eosctl.collect.facts import HangingFacts, LsoFacts, TopicFacts, TransactionFacts
from eosctl.collect.overview import Overview
from eosctl.connectors.dedicated import gather_dedicated_topics
from eosctl.connectors.topics import find_topics
from eosctl.core.records import KnownBounds
from eosctl.errors import EosctlError, NotFoundError
from eosctl.ports import TopicStore

CONFIG, OFFSETS, OUTPUT = "config", "offsets", "output"
NAMES_EVERY = 10
"""In every so many looks the names of output topics are asked for again."""
NAMES_PATIENCE_S = 10.0
MOST_OUTPUT_TOPICS = 1_000

_Place = tuple[str, int]


@dataclass(slots=True)
class TopicsLook:
    """Asks for the bounds of internal and output topics; remembers where each LSO stood, and the topics' names."""

    stood: dict[_Place, tuple[int, int]] = field(default_factory=dict)
    output: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    looks: int = 0
    are_names_due: bool = True

    def __call__(self, app: App, overview: Overview) -> LsoFacts:
        """Raises where no topic can be asked; a partition without a leader is counted.

        Workers that do not answer are no reason: names are asked for within a time of their own, and kept.
        """
        if self.are_names_due or self.looks % NAMES_EVERY == 0:
            self.are_names_due = not self._learn_names(
                replace(app, deadline=app.deadline.half(at_most_s=NAMES_PATIENCE_S))
            )
        self.looks += 1
        with app.topics() as store:
            kinds = dict.fromkeys(self._wanted(overview), OUTPUT) | dict.fromkeys(self.own, OFFSETS)
            kinds |= {app.target.offset_topic: OFFSETS, app.target.config_topic: CONFIG}
            bounds, unseen = _bounds(store, kinds)
        now_ms = app.clock.now_ms()
        stood, self.stood = self.stood, {}
        found = [self._topic(name, kinds[name], bounds[name], stood, now_ms) for name in kinds if name in bounds]
        return LsoFacts(tuple(found), unseen)

    def _learn_names(self, app: App) -> bool:
        """What no worker tells now stays as it was told before. False where Kafka does not answer either."""
        try:
            with app.topics() as store:
                dedicated = gather_dedicated_topics(app, store)
            found = find_topics(app, dedicated.configs)
        except EosctlError:
            return False
        if dedicated.connectors is not None:
            self.own = tuple(sorted(set(dedicated.configured.values())))
        written = {topic for each in found.of.values() for topic in each.written}
        before = self.output if found.untold or dedicated.connectors is None else ()
        self.output = tuple(sorted(written.union(before))[:MOST_OUTPUT_TOPICS])
        return True

    def _wanted(self, overview: Overview) -> Collection[str]:
        """The group's output topics; where there are many, those with an open transaction alone."""
        if len(self.output) < MOST_OUTPUT_TOPICS:
            return self.output
        transactions, hanging = overview.facts(TransactionFacts), overview.facts(HangingFacts)
        held = {topic for each in (transactions.open if transactions else ()) for topic in each.topics}
        held |= {each.topic for each in (hanging.hanging if hanging else ())}
        return [topic for topic in self.output if topic in held]

    def _topic(
        self, topic: str, kind: str, bounds: KnownBounds, stood: Mapping[_Place, tuple[int, int]], now_ms: int
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


def _bounds(store: TopicStore, topics: Collection[str]) -> tuple[Mapping[str, KnownBounds], int]:
    """Of all by the same few requests; where that fails for one of them, of each by itself, and how many fail."""
    try:
        return store.known_bounds_of(topics), 0
    except EosctlError:
        found: dict[str, KnownBounds] = {}
        failures: list[EosctlError] = []
        for topic in topics:
            try:
                found |= store.known_bounds_of([topic])
            except EosctlError as exc:
                failures.append(exc)
        if not found and failures:
            raise failures[0] from None
        return found, sum(not isinstance(each, NotFoundError) for each in failures)
