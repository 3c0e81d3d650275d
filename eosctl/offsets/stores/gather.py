"""Gathers the offsets topics that an operation is about: the global one, and those of the connectors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from eosctl.app import App
from eosctl.connectors.dedicated import DedicatedTopics, gather_dedicated_topics
from eosctl.core.offsets.findings import CONNECT_DEFAULT_PARTITIONS
from eosctl.core.offsets.murmur2 import Partitioner, partition_for
from eosctl.core.offsets.names import DEDICATED, GLOBAL, parse_store
from eosctl.core.offsets.views import AnyStore, Store, fold_store
from eosctl.core.open_transactions import OPEN_TRANSACTION
from eosctl.core.records import Bounds, TopicDescription
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, NotFoundError
from eosctl.group.absent import Known, require_ever_there
from eosctl.offsets.stores.own import own_topics
from eosctl.offsets.stores.targets import refuse_unfit_sources
from eosctl.ports import TopicReader
from eosctl.report import Problem

OPEN_TRANSACTION_PATIENCE_S = 5.0
"""How long a transaction may hide records before it is reported: running tasks open and end them all the time."""


S = TypeVar("S", bound=AnyStore, covariant=True)


@dataclass(frozen=True, slots=True)
class AwayStore(Generic[S]):
    """A store on the cluster of a profile, `TOPIC@PROFILE`."""

    cluster_id: str
    store: S
    bounds: tuple[Bounds, ...]


@dataclass(frozen=True, slots=True)
class StoresOf(Generic[S]):
    """Everything read, as of one moment: a value to plan with and to compare with later.

    `stores` and `bounds` are by topic; a dedicated topic that does not exist yet is an empty store and has no
    description. `away` are stores of other clusters, by the name that was given, and `own` by connector, where its
    config names brokers of its own; they are never written to. `unseen` reports those that could not be read, and
    where the others lie.
    """

    cluster_id: str
    global_topic: str
    stores: Mapping[str, S]
    bounds: Mapping[str, tuple[Bounds, ...]]
    descriptions: Mapping[str, TopicDescription]
    dedicated: DedicatedTopics
    extra: tuple[str, ...] = ()
    away: Mapping[str, AwayStore[S]] = field(default_factory=dict)
    own: Mapping[str, AwayStore[S]] = field(default_factory=dict)
    unseen: tuple[Problem, ...] = ()

    def of(self, connector: str) -> dict[str, S]:
        """The stores of `connector` by name: `global`, `dedicated` if it has one, and the extra ones by their own."""
        named = {GLOBAL: self.stores[self.global_topic]}
        own = self.dedicated.of(connector)
        if connector in self.own:
            named[DEDICATED] = self.own[connector].store
        elif own is not None and connector not in self.dedicated.brokers:
            named[DEDICATED] = self.stores[own]
        away = {name: there.store for name, there in self.away.items()}
        return named | {topic: self.stores[topic] for topic in self.extra} | away

    def has_own(self, connector: str) -> bool:
        """Whether a connector has a dedicated store."""
        return DEDICATED in self.of(connector)

    def has_dedicated_here(self) -> bool:
        """Whether a dedicated topic was read on this cluster."""
        return any(topic not in (self.global_topic, *self.extra) for topic in self.stores)

    def connectors(self) -> list[str]:
        """Every connector that has an offset in any of the stores, seen or hidden, sorted."""
        return sorted(set[str]().union(*(store.names() for store in self._all())))

    def place(self, store: AnyStore, name: str) -> tuple[str, str]:
        """Cluster id and topic of what `of` calls `name`: two names may mean one topic."""
        there = self.away.get(name)
        return (self.cluster_id, store.topic) if there is None else (there.cluster_id, parse_store(store.topic).name)

    def _all(self) -> list[S]:
        return [*self.stores.values(), *(there.store for there in (*self.away.values(), *self.own.values()))]

    def problems(self) -> list[Problem]:
        """What could not be seen, but for what open transactions hide here (`stuck`)."""
        others = [there.store for there in (*self.away.values(), *self.own.values())]
        blocked = [_blocked_problem(store) for store in others if store.blocked]
        return [*self.dedicated.problems, *self.unseen, *blocked]

    def stuck(self) -> list[tuple[str, Bounds]]:
        """The partitions here whose LSO lies behind the end, by topic."""
        return [(topic, bound) for topic, there in self.bounds.items() for bound in there if bound.lso < bound.end]


OffsetStores = StoresOf[Store]
"""The stores as rows."""


@dataclass(frozen=True, slots=True)
class Reader(Generic[S]):
    """How topics are read: into which kind of store, and what such a store of a topic is that does not exist.

    `read` reads again and again for a moment while an open transaction hides something.
    """

    read: Callable[[App, TopicReader, str], tuple[S, tuple[Bounds, ...]]]
    empty: Callable[[str, int, Partitioner], S]


def locate(app: App, store: str) -> tuple[App, str]:
    """Where a store is: the App of its cluster, and its name there (`global`, `dedicated` or a topic).

    `TOPIC@PROFILE` and `global@PROFILE` are on the profile's cluster. Raises UsageError, InputFileError for a profile
    that there is not.
    """
    named = parse_store(store)
    return (app if named.profile is None else app.elsewhere(named.profile)), named.name


def gather_stores(
    app: App, *, connectors: Collection[str] | None = None, pattern: str | None = None, extra: Sequence[str] = ()
) -> OffsetStores:
    """`gather_with`, as rows."""
    return gather_with(ROWS, app, connectors=connectors, pattern=pattern, extra=extra)


def gather_with(
    reader: Reader[S],
    app: App,
    *,
    connectors: Collection[str] | None = None,
    pattern: str | None = None,
    extra: Sequence[str] = (),
) -> StoresOf[S]:
    """Reads the global topic, the dedicated topics of `connectors` (None: of all) and `extra` stores, read_committed.

    `extra` are topics, here or as TOPIC@PROFILE. Raises NotFoundError for a missing global or extra topic, or a
    connector that neither Connect nor a store knows, InputFileError for a profile that there is not.
    """
    away = {name: _away_with(reader, app, name) for name in extra if parse_store(name).profile is not None}
    here = [name for name in extra if name not in away]
    with app.topics() as topics:
        reading = _Reading(reader, app, topics)
        dedicated = gather_dedicated_topics(app, topics, pattern=pattern)
        refuse_unfit_sources(app, topics, here)
        reading.read_all([reading.global_topic, *here])
        own, unseen = _read_own(reader, app, dedicated, connectors)
        known = reading.connectors().union(dedicated.configured, *(there.store.names() for there in away.values()))
        reading.read_those_there(_own_topics(dedicated, known if connectors is None else connectors))
        found = replace(reading.found(), dedicated=dedicated, extra=tuple(here), away=away, own=own, unseen=unseen)
    _require_connectors(app, found, connectors or ())
    return found


class _Reading(Generic[S]):
    """Topics of one cluster, each described and read once."""

    def __init__(self, reader: Reader[S], app: App, topics: TopicReader) -> None:
        self.global_topic = app.target.offset_topic
        self._reader, self._app, self._topics = reader, app, topics
        self._descriptions: dict[str, TopicDescription] = {}
        self._stores: dict[str, S] = {}
        self._bounds: dict[str, tuple[Bounds, ...]] = {}

    def read_all(self, names: Sequence[str]) -> None:
        """Reads the topics; raises NotFoundError for a missing one."""
        self._describe(names)
        require_topics(names, self._descriptions)
        for topic in dict.fromkeys(names):
            self._read(topic)

    def read_those_there(self, names: Sequence[str]) -> None:
        """Reads the topics that exist; one that does not is an empty store, as large as the global topic."""
        new = [topic for topic in names if topic not in self._stores]
        self._describe(new)
        partitions = self._descriptions[self.global_topic].partitions
        for topic in new:
            if topic in self._descriptions:
                self._read(topic)
            else:
                like = self._stores[self.global_topic].partition_for
                self._stores[topic], self._bounds[topic] = self._reader.empty(topic, partitions, like), ()

    def _describe(self, names: Sequence[str]) -> None:
        self._descriptions |= self._topics.describe(list(dict.fromkeys(names)))

    def _read(self, topic: str) -> None:
        self._stores[topic], self._bounds[topic] = self._reader.read(self._app, self._topics, topic)

    def connectors(self) -> set[str]:
        """Every connector that has an offset in what was read, seen or hidden."""
        return set[str]().union(*(store.names() for store in self._stores.values()))

    def found(self) -> StoresOf[S]:
        """What was read, and nothing of any connector's own."""
        return StoresOf(
            cluster_id=self._topics.cluster_id(),
            global_topic=self.global_topic,
            stores=self._stores,
            bounds=self._bounds,
            descriptions=self._descriptions,
            dedicated=DedicatedTopics(),
        )


def away_bounds(app: App, name: str) -> tuple[Bounds, ...]:
    """The bounds of the store TOPIC@PROFILE or global@PROFILE now; raises as `gather_with`."""
    there, inner = locate(app, name)
    topic = there.target.offset_topic if inner == GLOBAL else inner
    with there.topics() as topics:
        require_topics([topic], topics.describe([topic]))
        return settled_bounds(there, topics, topic)


def _away_with(reader: Reader[S], app: App, name: str) -> AwayStore[S]:
    """The store TOPIC@PROFILE or global@PROFILE, by its profile's settings; raises NotFoundError, InputFileError."""
    there, inner = locate(app, name)
    topic = there.target.offset_topic if inner == GLOBAL else inner
    with there.topics() as topics:
        require_topics([topic], topics.describe([topic]))
        refuse_unfit_sources(there, topics, [topic])
        store, bounds = reader.read(there, topics, topic)
        return AwayStore(topics.cluster_id(), replace(store, topic=f"{topic}@{parse_store(name).profile}"), bounds)


def gather_topics(app: App, names: Sequence[str]) -> OffsetStores:
    """Reads the topics `names` as they are, whoever uses them; raises NotFoundError for a missing one."""
    with app.topics() as topics:
        reading = _Reading(ROWS, app, topics)
        reading.read_all(names)
        return reading.found()


def read_settled(app: App, topics: TopicReader, topic: str) -> tuple[Store, tuple[Bounds, ...]]:
    """Reads `topic`, again and again for a moment while an open transaction hides something.

    What is hidden then is read too, uncommitted: a key that nothing shows yet may be among it.
    """
    for _ in patience(app).rounds(0.5):
        read = topics.read(topic, newest_per_key=True)
        if not read.blocked():
            return fold_store(read), read.bounds
    return fold_store(read, topics.read_behind(topic, read.blocked())), read.bounds


def settled_bounds(app: App, topics: TopicReader, topic: str) -> tuple[Bounds, ...]:
    """The bounds of `topic`; while an open transaction hides something, it is waited for a moment."""
    for _ in patience(app).rounds(0.5):
        bounds = topics.bounds(topic)
        if all(bound.lso >= bound.end for bound in bounds):
            break
    return bounds


ROWS = Reader(read_settled, lambda topic, partitions, like: Store(topic, partitions, partition_for=like))


def patience(app: App) -> Deadline:
    return Deadline.after(min(OPEN_TRANSACTION_PATIENCE_S, app.deadline.remaining_s() / 4), app.clock)


def _own_topics(dedicated: DedicatedTopics, connectors: Iterable[str]) -> list[str]:
    here = (name for name in connectors if name not in dedicated.brokers)
    return sorted({topic for topic in map(dedicated.of, here) if topic is not None})


def _read_own(
    reader: Reader[S], app: App, dedicated: DedicatedTopics, connectors: Collection[str] | None
) -> tuple[dict[str, AwayStore[S]], tuple[Problem, ...]]:
    """The stores on connectors' own brokers, by connector; what can't be read there is told of."""
    places, told = own_topics(app, dedicated, connectors)
    found: dict[str, AwayStore[S]] = {}
    for place, cluster_id in places.items():
        store = reader.empty(place.topic, CONNECT_DEFAULT_PARTITIONS, partition_for)
        bounds: tuple[Bounds, ...] = ()
        try:
            with place.there().topics() as topics:
                if place.topic in topics.describe([place.topic]):
                    store, bounds = reader.read(place.there(), topics, place.topic)
        except EosctlError as exc:
            told.append(place.unseen(exc.message))
        else:
            found[place.connector] = AwayStore(cluster_id, store, bounds)
    return found, tuple(told)


def require_topics(topics: Sequence[str], there: Mapping[str, TopicDescription]) -> None:
    """Raises NotFoundError for the first of `topics` that is not there."""
    for topic in topics:
        if topic not in there:
            raise NotFoundError(
                f"there is no topic {topic}",
                hint="The global offsets topic is the worker's offset.storage.topic: name it with --offset-topic.",
            )


def _require_connectors(app: App, found: StoresOf[AnyStore], connectors: Collection[str]) -> None:
    known = {*found.connectors(), *(found.dedicated.connectors or ())}
    missing = sorted(set(connectors) - known)
    if missing:
        require_ever_there(app, Known(may_be_new=True))
        raise NotFoundError(
            f"neither Connect nor an offsets topic knows a connector {', '.join(missing)}",
            hint="Names are case-sensitive; `eosctl offsets list` shows the connectors that have offsets.",
        )


def _blocked_problem(store: AnyStore) -> Problem:
    partitions = ", ".join(map(str, sorted(store.blocked)))
    return Problem(
        OPEN_TRANSACTION,
        f"topic {store.topic}, partition {partitions}: what lies behind an open transaction can't be seen",
        hint="`eosctl txn hanging` shows its producer; workers that read this topic wait for it too.",
    ).as_warning()
