"""Gathers the offsets topics of an operation: the global one, and those of the connectors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.dedicated import DedicatedTopics, gather_dedicated_topics
from eosctl.core.offsets.findings import CONNECT_DEFAULT_PARTITIONS
from eosctl.core.offsets.names import DEDICATED, GLOBAL, parse_store
from eosctl.core.offsets.records import can_be_a_name
from eosctl.core.offsets.views import AnyStore, Store, fold_hidden, fold_store
from eosctl.core.open_transactions import OPEN_TRANSACTION
from eosctl.core.records import Bounds, TopicDescription
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, NotFoundError
from eosctl.group.absent import KnownEvidence, require_ever_there
from eosctl.offsets.stores.own import own_topics, refuse_unfit_sources
from eosctl.ports import TopicReader
from eosctl.report import Problem

if TYPE_CHECKING:
    from eosctl.engine.columns import Table
    from eosctl.engine.files import SpilledTable, SpillFile

OPEN_TRANSACTION_PATIENCE_S = 5.0
"""How long a transaction may hide records before it is reported: running tasks open and end them all the time."""
MANY_OFFSETS = 50_000
"""From this number on a topic is read as columns: it pays to load Arrow."""
AT_ONCE = 1_000_000
"""The most offsets of partitions that are read and sorted together, in memory; one partition may have more."""


class AwayStore(Struct, frozen=True):
    """A store on the cluster of a profile, `TOPIC@PROFILE`, or in a file; `cautions` are what a file does not show."""

    cluster_id: str
    store: AnyStore
    bounds: tuple[Bounds, ...]
    cautions: tuple[str, ...] = ()


class OffsetStores(Struct, frozen=True):
    """The stores as read at one moment: a value to plan with and to compare with later.

    `stores` and `bounds` are by topic; a dedicated topic that does not exist yet is an empty store and has no
    description. `away` are stores of other clusters, by their given names; `own` are the stores, by connector, on
    brokers that its config names. Neither is ever written to. `unseen` reports those that could not be read, and the
    clusters of the others.
    """

    cluster_id: str
    global_topic: str
    stores: Mapping[str, AnyStore]
    bounds: Mapping[str, tuple[Bounds, ...]]
    descriptions: Mapping[str, TopicDescription]
    dedicated: DedicatedTopics
    extra: tuple[str, ...] = ()
    away: Mapping[str, AwayStore] = {}
    own: Mapping[str, AwayStore] = {}
    unseen: tuple[Problem, ...] = ()

    def of(self, connector: str) -> dict[str, AnyStore]:
        """Return the stores of `connector` by name: `global`, `dedicated` if it has one, and the extra ones."""
        named = {GLOBAL: self.stores[self.global_topic]}
        own = self.dedicated.of(connector)
        if connector in self.own:
            named[DEDICATED] = self.own[connector].store
        elif own is not None and connector not in self.dedicated.brokers:
            named[DEDICATED] = self.stores[own]
        away = {name: other.store for name, other in self.away.items()}
        return named | {topic: self.stores[topic] for topic in self.extra} | away

    def rows(self, connector: str) -> dict[str, Store]:
        """Return the stores of `connector`, as rows of that connector at least."""
        return {name: store.of(connector) for name, store in self.of(connector).items()}

    def has_own(self, connector: str) -> bool:
        """Decide whether a connector has a dedicated store."""
        return DEDICATED in self.of(connector)

    def has_dedicated_here(self) -> bool:
        """Decide whether a dedicated topic was read on this cluster."""
        return any(topic not in (self.global_topic, *self.extra) for topic in self.stores)

    def connectors(self) -> list[str]:
        """Return every connector that has an offset in any of the stores, seen or hidden, sorted."""
        return sorted(set[str]().union(*(store.names() for store in self._all())))

    def place(self, store: AnyStore, name: str) -> tuple[str, str]:
        """Return the cluster id and topic of the store that `of` calls `name`: two names may mean one topic."""
        other = self.away.get(name)
        return (self.cluster_id, store.topic) if other is None else (other.cluster_id, parse_store(store.topic).name)

    def _all(self) -> list[AnyStore]:
        return [*self.stores.values(), *(other.store for other in (*self.away.values(), *self.own.values()))]

    def problems(self) -> list[Problem]:
        """Return what could not be seen, except what open transactions hide on this cluster (`stuck`)."""
        others = [other.store for other in (*self.away.values(), *self.own.values())]
        blocked = [_blocked_problem(store) for store in others if store.blocked]
        return [*self.dedicated.problems, *self.unseen, *blocked]

    def stuck(self) -> list[tuple[str, Bounds]]:
        """Return the partitions on this cluster whose LSO lies behind the end, by topic."""
        return [(topic, bound) for topic, bounds in self.bounds.items() for bound in bounds if bound.lso < bound.end]


def locate(app: App, store: str) -> tuple[App, str]:
    """Return the App of a store's cluster, and the store's name there (`global`, `dedicated` or a topic).

    `TOPIC@PROFILE` and `global@PROFILE` are on the profile's cluster. Raises UsageError, InputFileError for a missing
    profile.
    """
    named = parse_store(store)
    return (app if named.profile is None else app.elsewhere(named.profile)), named.name


def gather_stores(
    app: App, *, connectors: Collection[str] | None = None, pattern: str | None = None, extra: Sequence[str] = ()
) -> OffsetStores:
    """Read the global topic, the dedicated topics of `connectors` (None: all) and `extra` stores, read_committed.

    `extra` are topics, here or as TOPIC@PROFILE. Raises NotFoundError for a missing global or extra topic, or a
    connector that neither Connect nor a store knows, InputFileError for a missing profile.
    """
    away = {name: _away(app, name) for name in extra if parse_store(name).profile is not None}
    here = [name for name in extra if name not in away]
    with app.topics() as topics:
        reading = _Reading(app, topics)
        dedicated = gather_dedicated_topics(app, topics, pattern=pattern)
        refuse_unfit_sources(app, topics, here)
        reading.read_all([reading.global_topic, *here])
        own, unseen = _read_own(app, dedicated, connectors)
        known = reading.connectors().union(dedicated.configured, *(other.store.names() for other in away.values()))
        reading.read_existing(_own_topics(dedicated, known if connectors is None else connectors))
        found = replace(reading.found(), dedicated=dedicated, extra=tuple(here), away=away, own=own, unseen=unseen)
    require_connectors(app, {*found.connectors(), *(found.dedicated.connectors or ())}, connectors or ())
    return found


class _Reading:
    """Topics of one cluster, each described and read once."""

    def __init__(self, app: App, topics: TopicReader) -> None:
        self.global_topic = app.target.offset_topic
        self._app, self._topics = app, topics
        self._descriptions: dict[str, TopicDescription] = {}
        self._stores: dict[str, AnyStore] = {}
        self._bounds: dict[str, tuple[Bounds, ...]] = {}

    def read_all(self, names: Sequence[str]) -> None:
        """Read the topics; raise NotFoundError for a missing one."""
        self._describe(names)
        require_topics(names, self._descriptions)
        for topic in dict.fromkeys(names):
            self._read(topic)

    def read_existing(self, names: Iterable[str], *, partitions: int | None = None) -> None:
        """Read the topics that exist; a missing one becomes an empty store, as large as the global topic."""
        new = [topic for topic in dict.fromkeys(names) if topic not in self._stores]
        self._describe(new)
        for topic in new:
            if topic in self._descriptions:
                self._read(topic)
            else:
                size = partitions or self._descriptions[self.global_topic].partitions
                self._stores[topic], self._bounds[topic] = Store(topic, size), ()

    def _describe(self, names: Sequence[str]) -> None:
        self._descriptions |= self._topics.describe(list(dict.fromkeys(names)))

    def _read(self, topic: str) -> None:
        self._stores[topic], self._bounds[topic] = read_store(self._app, self._topics, topic)

    def connectors(self) -> set[str]:
        """Return every connector that has an offset in the topics read, seen or hidden."""
        return set[str]().union(*(store.names() for store in self._stores.values()))

    def found(self) -> OffsetStores:
        """Return the topics read, without any connector's dedicated topic."""
        return OffsetStores(
            cluster_id=self._topics.cluster_id(),
            global_topic=self.global_topic,
            stores=self._stores,
            bounds=self._bounds,
            descriptions=self._descriptions,
            dedicated=DedicatedTopics(),
        )


def away_bounds(app: App, name: str) -> tuple[Bounds, ...]:
    """Return the present bounds of the store TOPIC@PROFILE or global@PROFILE; raise as `gather_stores`."""
    store_app, inner = locate(app, name)
    topic = store_app.target.offset_topic if inner == GLOBAL else inner
    with store_app.topics() as topics:
        require_topics([topic], topics.describe([topic]))
        return read_stable_bounds(store_app, topics, topic)


def _away(app: App, name: str) -> AwayStore:
    """Read the store TOPIC@PROFILE or global@PROFILE by its profile; raise NotFoundError, InputFileError."""
    store_app, inner = locate(app, name)
    topic = store_app.target.offset_topic if inner == GLOBAL else inner
    with store_app.topics() as topics:
        require_topics([topic], topics.describe([topic]))
        refuse_unfit_sources(store_app, topics, [topic])
        store, bounds = read_store(store_app, topics, topic)
        return AwayStore(topics.cluster_id(), replace(store, topic=f"{topic}@{parse_store(name).profile}"), bounds)


def gather_topics(
    app: App, names: Sequence[str], *, if_there: Iterable[str] = (), partitions: int | None = None
) -> OffsetStores:
    """Read the topics `names` as they are, whatever uses them; raise NotFoundError for a missing one.

    A missing topic among `if_there` becomes an empty store, with `partitions` or as many as the global topic.
    """
    with app.topics() as topics:
        reading = _Reading(app, topics)
        reading.read_all(names)
        reading.read_existing(if_there, partitions=partitions)
        return reading.found()


def read_store(app: App, topics: TopicReader, topic: str) -> tuple[AnyStore, tuple[Bounds, ...]]:
    """Read `topic` as rows, or as columns if it is large; wait a moment while a transaction hides something.

    Records hidden then are read too, uncommitted: there may be a key among them that nothing else shows yet.
    """
    offsets = {bound.partition: bound.lso - bound.begin for bound in topics.bounds(topic)}
    are_many = sum(offsets.values()) >= MANY_OFFSETS
    return _read_columns(app, topics, topic, offsets) if are_many else _read_rows(app, topics, topic)


def _read_rows(app: App, topics: TopicReader, topic: str) -> tuple[Store, tuple[Bounds, ...]]:
    for _ in patience(app).rounds(0.5):
        read = topics.read(topic, newest_per_key=True)
        if not read.blocked():
            return fold_store(read), read.bounds
    return fold_store(read, topics.read_behind(topic, read.blocked())), read.bounds


def _read_columns(
    app: App, topics: TopicReader, topic: str, offsets: Mapping[int, int]
) -> tuple[AnyStore, tuple[Bounds, ...]]:
    from eosctl.engine.reading.ranges import partitions_together
    from eosctl.engine.stores import column_store, in_order
    from eosctl.offsets.stores.on_disk import spool_of

    read_stable_bounds(app, topics, topic)
    read_bounds, spool = dict[int, Bounds](), spool_of(app)
    parts = list(partitions_together(offsets, AT_ONCE))

    def read_parts() -> Iterator[Table | SpilledTable]:
        for part in parts:
            read = topics.read_columns(topic, partitions=part)
            read_bounds.update((bound.partition, bound) for bound in read.bounds if bound.partition in part)
            records = in_order(read.records)
            del read  # the unsorted copy takes as much memory again
            yield records if part is parts[-1] else _kept(records, spool)

    store = column_store(topic, len(offsets), read_parts())
    bounds = tuple(read_bounds[partition] for partition in sorted(read_bounds))
    blocked = [bound for bound in bounds if bound.lso < bound.end]
    hidden, hidden_keys = fold_hidden(topics.read_behind(topic, blocked) if blocked else ())
    partitions = frozenset(bound.partition for bound in blocked)
    return replace(store, blocked=partitions, hidden=hidden, hidden_keys=hidden_keys), bounds


def _kept(records: Table, spool: SpillFile) -> Table | SpilledTable:
    """Spill to disk if that can be written; otherwise keep in memory: a read-only command needs no right to write."""
    try:
        return spool.put(records)
    except OSError:
        return records


def read_stable_bounds(app: App, topics: TopicReader, topic: str) -> tuple[Bounds, ...]:
    """Return the bounds of `topic`; wait a moment while an open transaction hides something."""
    for _ in patience(app).rounds(0.5):
        bounds = topics.bounds(topic)
        if all(bound.lso >= bound.end for bound in bounds):
            break
    return bounds


def patience(app: App) -> Deadline:
    return Deadline.after(min(OPEN_TRANSACTION_PATIENCE_S, app.deadline.remaining_s() / 4), app.clock)


def _own_topics(dedicated: DedicatedTopics, connectors: Iterable[str]) -> list[str]:
    here = (name for name in connectors if name not in dedicated.brokers and can_be_a_name(name))
    return sorted({topic for topic in map(dedicated.of, here) if topic is not None})


def _read_own(
    app: App, dedicated: DedicatedTopics, connectors: Collection[str] | None
) -> tuple[dict[str, AwayStore], tuple[Problem, ...]]:
    """Read the stores on connectors' own brokers, by connector; report the unreadable ones as problems."""
    own, problems = own_topics(app, dedicated, connectors)
    found: dict[str, AwayStore] = {}
    for own_topic, cluster_id in own.items():
        store: AnyStore = Store(own_topic.topic, CONNECT_DEFAULT_PARTITIONS)
        bounds: tuple[Bounds, ...] = ()
        try:
            with own_topic.require_app().topics() as topics:
                if own_topic.topic in topics.describe([own_topic.topic]):
                    store, bounds = read_store(own_topic.require_app(), topics, own_topic.topic)
        except EosctlError as exc:
            problems.append(own_topic.unseen(exc.message))
        else:
            found[own_topic.connector] = AwayStore(cluster_id, store, bounds)
    return found, tuple(problems)


def require_topics(topics: Sequence[str], described: Mapping[str, TopicDescription]) -> None:
    """Raise NotFoundError for the first of `topics` that is missing."""
    for topic in topics:
        if topic not in described:
            raise NotFoundError(
                f"there is no topic {topic}",
                hint="The global offsets topic is the worker's offset.storage.topic: name it with --offset-topic.",
            )


def require_connectors(app: App, known: Collection[str], connectors: Collection[str]) -> None:
    """Raise NotFoundError for those of `connectors` that are not `known`, neither to Connect nor to a store."""
    missing = sorted(set(connectors).difference(known))
    if missing:
        require_ever_there(app, KnownEvidence(may_be_new=True))
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
