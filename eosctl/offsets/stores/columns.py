"""Offsets topics read as columns: for what is written to them, however many keys they have."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from eosctl.app import App
from eosctl.core.offsets.views import fold_hidden
from eosctl.core.records import Bounds, Record
from eosctl.engine.reading.newest import TopicColumns
from eosctl.engine.stores import ColumnStore
from eosctl.offsets.stores.gather import Reader, StoresOf, gather_with, patience
from eosctl.ports import TopicStore

ColumnStores = StoresOf[ColumnStore]


def gather_columns(
    app: App, *, connectors: Collection[str] | None = None, pattern: str | None = None, extra: Sequence[str] = ()
) -> ColumnStores:
    """`gather_with`, as columns."""
    reader = Reader(_read, lambda topic, partitions, like: ColumnStore(topic, partitions, partition_for=like))
    return gather_with(reader, app, connectors=connectors, pattern=pattern, extra=extra)


def _read(app: App, topics: TopicStore, topic: str) -> tuple[ColumnStore, tuple[Bounds, ...]]:
    read, behind = settled_columns(app, topics, topic)
    return column_store(read, behind), read.bounds


def column_store(read: TopicColumns, behind: Sequence[Record]) -> ColumnStore:
    """What was read, and what open transactions hide."""
    hidden, hidden_keys = fold_hidden(behind)
    return ColumnStore(
        read.topic,
        len(read.bounds),
        read.records,
        read.headers,
        blocked=frozenset(bound.partition for bound in read.blocked()),
        hidden=hidden,
        hidden_keys=hidden_keys,
    )


def settled_columns(
    app: App,
    topics: TopicStore,
    topic: str,
    *,
    since: Mapping[int, int] | None = None,
    partitions: Collection[int] | None = None,
    bare: bool = False,
) -> tuple[TopicColumns, Sequence[Record]]:
    """The newest committed records of a topic, and those behind transactions that stay open for more than a moment.

    Partitions in `since` are read from the offset there; of `partitions`, None is all. `bare`: without whose each key
    is.
    """
    for _ in patience(app).rounds(0.5):
        read = topics.read_columns(topic, since=since, partitions=partitions, bare=bare)
        if not read.blocked():
            return read, ()
    return read, topics.read_behind(topic, read.blocked())
