"""Large offsets topics for those who list them: read as columns, and a connector at a time as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from eosctl.app import App
from eosctl.core.offsets.names import GLOBAL
from eosctl.core.offsets.views import (
    AnyStore,
    IgnoredOffsetRecord,
    OffsetView,
    OffsetViews,
    Store,
    fold_hidden,
    fold_store,
    offset_views,
)
from eosctl.core.records import Bounds, Record, TopicRead
from eosctl.offsets.stores.gather import Reader, StoresOf, read_settled, settled_bounds
from eosctl.ports import TopicReader

if TYPE_CHECKING:
    from eosctl.engine.columns import Table
    from eosctl.engine.files import Spilled, Spool
    from eosctl.engine.listed import Listed

MANY_OFFSETS = 50_000
"""From here on it pays to load Arrow."""
AT_ONCE = 1_000_000
"""Of the partitions that are read and put in order together: what is in memory, unless one has more."""


@dataclass(frozen=True, slots=True)
class LargeStore(AnyStore):
    """An offsets topic as columns; `rest` has what Arrow can't tell the owner of, and what is nobody's."""

    listed: Listed
    rest: Store
    bounds: tuple[Bounds, ...]

    def shown(self) -> set[str]:
        """The connectors whose offsets can be seen."""
        return set(self.listed.counts) | self.rest.shown()

    @property
    def ignored(self) -> Sequence[IgnoredOffsetRecord]:
        """The records under keys that Connect ignores."""
        return self.rest.ignored

    def is_plain(self, connector: str) -> bool:
        """Whether nothing but its value can be remarkable about any key of a connector."""
        elsewhere = self.hidden_keys.keys() | self.rest.connectors.keys() | self.listed.odd
        return connector in self.listed.counts and connector not in elsewhere

    def of(self, connector: str) -> Store:
        """What it has of one connector, as rows."""
        keys = (key.raw for key in self.rest.connectors.get(connector, ()))
        others = (self.rest.several.get(raw, {0: self.rest.records[raw]}).values() for raw in keys)
        return self.with_records([*self.listed.records(connector), *chain.from_iterable(others)])

    def with_records(self, records: Sequence[Record]) -> Store:
        """Some of its records as rows."""
        behind = [record for places in self.hidden.values() for record in places.values()]
        read = TopicRead(self.topic, self.bounds, tuple(records), len(records), partition_for=self.partition_for)
        return fold_store(read, behind)


def _read(app: App, topics: TopicReader, topic: str) -> tuple[Store | LargeStore, tuple[Bounds, ...]]:
    offsets = {bound.partition: bound.lso - bound.begin for bound in topics.bounds(topic)}
    if sum(offsets.values()) < MANY_OFFSETS:
        return read_settled(app, topics, topic)
    from eosctl.engine.keys.homes import home_of
    from eosctl.engine.listed import Listed, in_order
    from eosctl.engine.reading.ranges import partitions_together
    from eosctl.offsets.stores.on_disk import spool_of

    settled_bounds(app, topics, topic)
    there, spool = dict[int, Bounds](), spool_of(app)
    parts = list(partitions_together(offsets, AT_ONCE))

    def read_parts() -> Iterator[Table | Spilled]:
        for part in parts:
            read = topics.read_columns(topic, partitions=part)
            there.update((bound.partition, bound) for bound in read.bounds if bound.partition in part)
            records = in_order(read.records)
            del read  # it takes as much memory again
            yield records if part is parts[-1] else _kept(records, spool)

    listed = Listed(read_parts())
    bounds = tuple(there[partition] for partition in sorted(there))
    blocked = [bound for bound in bounds if bound.lso < bound.end]
    behind = topics.read_behind(topic, blocked) if blocked else ()
    rest = fold_store(TopicRead(topic, bounds, tuple(listed.nobodys()), 0, partition_for=home_of))
    hidden, hidden_keys = fold_hidden(behind)
    large = LargeStore(
        topic, len(bounds), listed, rest, bounds,
        blocked=frozenset(bound.partition for bound in blocked), hidden=hidden, hidden_keys=hidden_keys,
        partition_for=home_of,
    )  # fmt: skip
    return large, bounds


def _kept(records: Table, spool: Spool) -> Table | Spilled:
    """In the spool; who only looks need not be able to write, and has it in memory then."""
    try:
        return spool.put(records)
    except OSError:
        return records


LISTED: Reader[Store | LargeStore] = Reader(
    _read, lambda topic, partitions, like: Store(topic, partitions, partition_for=like)
)
"""Reads small topics as rows, others as columns."""


@dataclass(frozen=True, slots=True)
class PlainViews:
    """`OffsetViews` of a connector that has offsets in the global store alone, and plain ones (`is_plain`)."""

    store: LargeStore
    connector: str
    gone: bool

    def __len__(self) -> int:
        return self.store.listed.counts[self.connector]

    def __iter__(self) -> Iterator[OffsetView]:
        return (view for some in self.store.listed.some_records(self.connector) for view in self.views_of(some))

    def views_of(self, records: Sequence[Record]) -> OffsetViews:
        """The views of some of them."""
        stores = {GLOBAL: self.store.with_records(records)}
        return offset_views(stores, self.connector, dedicated_in_use=False, gone=self.gone)

    def unseen_at_runtime(self) -> int:
        """For how many `documented` is not `runtime`: without a dedicated store both are the global one's."""
        return 0

    def is_live(self) -> bool:
        """Whether there is an offset that counts."""
        return self.store.listed.is_live(self.connector)


def rows_of(stores: dict[str, Store | LargeStore], connector: str) -> dict[str, Store]:
    """The stores of a connector, as rows of that connector at least."""
    return {name: store.of(connector) if isinstance(store, LargeStore) else store for name, store in stores.items()}


ListedStores = StoresOf[Store | LargeStore]
