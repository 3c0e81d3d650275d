"""The rows of `offsets list`, `get` and `diff`: source partitions in their stores; and parts that all commands use.

The rows of `offsets list` are each made when they are printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any, overload

from msgspec import UNSET, Struct, UnsetType

from eosctl.core.offsets.names import DEDICATED, GLOBAL
from eosctl.core.offsets.records import IgnoredKey, OffsetKey, as_plain_json, shown_partition, shown_value
from eosctl.core.offsets.views import (
    AnyStore,
    DiffStatus,
    IgnoredOffsetRecord,
    OffsetView,
    OffsetViews,
    Store,
    offset_views,
)
from eosctl.core.records import Record
from eosctl.core.wording import json_bytes, rfc3339
from eosctl.offsets.history.gtids import Order
from eosctl.offsets.history.sources import lsn_texts
from eosctl.output.cells import duration, format_cell, summary_lines
from eosctl.output.rows import BytesText, Counts, Header, Kind, Members, Place, Printed, Text, Time
from eosctl.report import Report

if TYPE_CHECKING:
    from eosctl.engine.stores import ColumnStore


MOST_ROWS = 100
"""The most rows shown of a plan, a result or a comparison, as text and as JSON; the counts are complete."""

Connector = Annotated[str, "The connector in the key."]
SourcePartition = Annotated[object, "The source partition, as the key has it."]
Key = Annotated[BytesText | None, "The key as its bytes are; null where no topic has one."]
Lsns = Annotated[dict[str, str], "The log sequence numbers in the offset, as PostgreSQL prints them."]
Value = Annotated[object, "The source offset; null in a tombstone."]


class StoredRecord(Printed):
    """The record that a store has for a key."""

    topic: Annotated[str, "The topic of the record."]
    partition: Annotated[int, "Its partition."]
    offset: Annotated[int, "The record's offset in its partition."]
    timestamp: Annotated[Time | None, "When it was written."]
    timestamp_ms: Annotated[int | None, "When it was written, in milliseconds since 1970."]
    value: Value
    lsn: Lsns | UnsetType | None = UNSET

    def cell(self) -> object:
        """Return the value; `deleted` for a tombstone."""
        return "deleted" if self.value is None else self.value

    def place(self) -> str:
        """Return `topic-partition@offset`."""
        return f"{self.topic}-{self.partition}@{self.offset}"


def cell_of(record: Record) -> StoredRecord:
    """Return the cell of a record: its place and its value."""
    value = value_json(record.value)
    lsns = lsn_texts(value)
    return StoredRecord(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp=rfc3339(record.timestamp_ms),
        timestamp_ms=record.timestamp_ms,
        value=value,
        lsn=UNSET if lsns is None else lsns,
    )


def value_json(value: bytes | None) -> object:
    """Return an offset value as JSON, or as text or base64 if Connect could not read it."""
    shown = shown_value(value)
    return json_bytes(shown) if isinstance(shown, bytes) else shown


def partition_json(key: OffsetKey | IgnoredKey) -> object:
    """Return the source partition of a key as JSON, or the key as text or base64 if that is nested too deep to show."""
    shown = shown_partition(key)
    return json_bytes(shown) if isinstance(shown, bytes) else shown


class Effective(Printed):
    """The offset that takes effect, as documented and at runtime."""

    documented: Annotated[object, "The offset that takes effect by Connect's documentation."]
    runtime: Annotated[object, "The offset that tasks read on from."]


def _place(cell: StoredRecord | None) -> str | None:
    return None if cell is None else cell.place()


def _time(cell: StoredRecord | None) -> str | None:
    return None if cell is None else cell.timestamp


def _lsn(cell: StoredRecord | None) -> object:
    return None if cell is None or cell.lsn is UNSET else cell.lsn


class ViewRow(Printed):
    """A source partition, as each store has it."""

    connector: Connector
    source_partition: SourcePartition
    key: Key
    stores: Annotated[
        dict[str, StoredRecord | None],
        "The record of each store; null if it has none.",
        Members(("global", "dedicated")),
    ]
    effective: Annotated[Effective, "The offset that takes effect."]
    age_ms: Annotated[int | None, "Milliseconds since the record was written that tasks read on from."]
    flags: Annotated[list[str], "Remarkable properties; `eosctl explain FLAG` explains each."]

    def age(self) -> str | None:
        """Return the time since the offset that tasks read on from was committed."""
        return None if self.age_ms is None else duration(self.age_ms)

    @Header("GLOBAL-AT")
    def global_at(self) -> str | None:
        """Return the place of the record in the global topic."""
        return _place(self.stores["global"])

    @Header("GLOBAL-TIME")
    def global_time(self) -> str | None:
        """Return the time when it was written."""
        return _time(self.stores["global"])

    @Header("GLOBAL-LSN")
    def global_lsn(self) -> object:
        """Return its log sequence numbers, as PostgreSQL prints them."""
        return _lsn(self.stores["global"])

    @Header("DEDICATED-AT")
    def dedicated_at(self) -> str | None:
        """Return the place of the record in the connector's own topic."""
        return _place(self.stores["dedicated"])

    @Header("DEDICATED-TIME")
    def dedicated_time(self) -> str | None:
        """Return the time when it was written."""
        return _time(self.stores["dedicated"])

    @Header("DEDICATED-LSN")
    def dedicated_lsn(self) -> object:
        """Return its log sequence numbers, as PostgreSQL prints them."""
        return _lsn(self.stores["dedicated"])


class RestPart(Printed):
    """A worker's answer for a source partition (KIP-875)."""

    status: Annotated[str, "The relation of its answer to the runtime view.", Header("REST-STATUS")]
    offset: Annotated[object, "The offset that it answers.", Header("REST")]


class GetRow(ViewRow):
    """A source partition of the requested connector."""

    rest: Annotated[RestPart, "A worker's answer, if it was asked."] | UnsetType = UNSET


class DiffRow(ViewRow):
    """A source partition, compared in two stores."""

    left: Annotated[StoredRecord | None, "The record of the first store."]
    right: Annotated[StoredRecord | None, "The record of the second store."]
    status: Annotated[DiffStatus, "The result of the comparison."]
    order: (
        Annotated[Order, "The order of the second store's offset relative to the first's; null without both."] | None
    ) = None

    def left_at(self) -> str | None:
        """Return the place of the first store's record."""
        return _place(self.left)

    def left_time(self) -> str | None:
        """Return the time when it was written."""
        return _time(self.left)

    def left_lsn(self) -> object:
        """Return its log sequence numbers, as PostgreSQL prints them."""
        return _lsn(self.left)

    def right_at(self) -> str | None:
        """Return the place of the second store's record."""
        return _place(self.right)

    def right_time(self) -> str | None:
        """Return the time when it was written."""
        return _time(self.right)

    def right_lsn(self) -> object:
        """Return its log sequence numbers, as PostgreSQL prints them."""
        return _lsn(self.right)


def view_members(view: OffsetView, *, now_ms: int) -> dict[str, Any]:
    """Return the members of a ViewRow; `age_ms` is that of the record which a task reads on from."""
    newest_ms = view.runtime.timestamp_ms if view.runtime is not None else -1
    cells: dict[str, StoredRecord | None] = {GLOBAL: None, DEDICATED: None}
    documented = runtime = None
    for name, record in view.cells.items():
        cells[name] = cell = None if record is None else cell_of(record)
        if cell is not None and record is view.documented:
            documented = cell.value
        if cell is not None and record is view.runtime:
            runtime = cell.value
    return {
        **key_members(view.key),
        "stores": cells,
        "effective": Effective(documented=documented, runtime=runtime),
        "age_ms": max(0, now_ms - newest_ms) if newest_ms >= 0 else None,
        "flags": [flag.value for flag in view.flags],
    }


def key_members(key: OffsetKey | IgnoredKey) -> Mapping[str, object]:
    """Return the members of a row that identify its key."""
    return {
        "connector": as_plain_json(key.connector),
        "source_partition": partition_json(key),
        "key": json_bytes(key.raw),
    }


class IgnoredPart(Place):
    """A record under a key that Connect ignores."""

    offset: Annotated[int, "The record's offset in its partition."]
    key: Annotated[BytesText | None, "The key as its bytes are."]
    reason: Annotated[str, "Why Connect ignores it."]


def ignored_parts(ignored: Iterable[IgnoredOffsetRecord]) -> list[IgnoredPart]:
    """Return `data.ignored`."""
    return [
        IgnoredPart(
            topic=found.record.topic,
            partition=found.record.partition,
            offset=found.record.offset,
            key=json_bytes(found.record.key),
            reason=found.fault.value,
        )
        for found in ignored
    ]


class OffsetsSummary(Printed):
    """The numbers of connectors, source partitions and ignored keys."""

    connectors: Annotated[int, "Connectors that have offsets."]
    source_partitions: Annotated[int, "Their source partitions."]
    not_seen_at_runtime: Annotated[int, "Source partitions whose offset at runtime is not the documented one."]
    ignored_keys: Annotated[int, "Records under keys that Connect ignores."]


class GetSummary(OffsetsSummary):
    """The numbers for the connector of the query."""

    rest_differing: (
        Annotated[int, "Source partitions for which the worker's answer differs from the topics."] | UnsetType
    ) = UNSET


class ListData(Printed):
    """The records of the topics besides source partitions."""

    ignored: Annotated[list[IgnoredPart], "The records that no connector ever finds."]


class KnownSourcePart(Printed):
    """A well-known connector that offsets look like."""

    name: Annotated[str, "The connector."]
    source_partitions: Annotated[int, "The source partitions whose offsets look like its."]
    must_hold: Annotated[str, "What must hold in its source for the offsets to take effect."]
    instead: Annotated[str | None, "How to read again what its source no longer has; null if there is no way."]


class GetData(ListData):
    """The records of the topics besides source partitions, their sources, and the worker that answered."""

    sources: Annotated[list[KnownSourcePart], "The well-known connectors that the offsets look like."]
    rest_url: Annotated[str, "The worker that answered."] | UnsetType = UNSET


def _ignored_lines(report: Report) -> Iterator[str]:
    """Yield the records that no connector ever finds, then the summary."""
    for part in report.data_of(ListData).ignored:
        yield f"ignored by Connect ({part.reason}): {format_cell(part.key)} at {part.cell()} offset {part.offset}"
    yield from summary_lines(report)


def _source_lines(report: Report) -> Iterator[str]:
    """Yield what must hold in the sources of the offsets, then the ignored records and the summary."""
    for part in report.data_of(GetData).sources:
        yield f"{part.name}: {part.must_hold}"
    yield from _ignored_lines(report)


_LIST_COLUMNS = (
    *("connector", "source_partition", "stores.global", "stores.dedicated"),
    *("effective.documented", "effective.runtime", "age", "flags?"),
)
_LIST_TEXT = Text(
    columns=_LIST_COLUMNS,
    wide=("key", "global_at", "global_time", "global_lsn?", "dedicated_at", "dedicated_time", "dedicated_lsn?"),
    lines=_ignored_lines,
    empty="No connector has offsets here.",
)
OFFSETS_LIST = Kind(
    "offsets-list",
    "Every source partition, in each store.",
    row=ViewRow,
    summary=OffsetsSummary,
    data=ListData,
    text=_LIST_TEXT,
)
OFFSETS_GET = Kind(
    "offsets-get",
    "One connector's source partitions.",
    row=GetRow,
    summary=GetSummary,
    data=GetData,
    text=Text(columns=_LIST_COLUMNS, wide=_LIST_TEXT.wide, lines=_source_lines, empty=_LIST_TEXT.empty),
)
OFFSETS_GET_REST = OFFSETS_GET.shown_as(
    Text(columns=(*_LIST_COLUMNS, "rest.offset", "rest.status"), wide=_LIST_TEXT.wide, lines=_source_lines)
)


class DiffSummary(Printed):
    """The result of the comparison."""

    differing: Annotated[int, "Source partitions that are not the same in both stores."]
    counts: Annotated[Counts, "Source partitions by status."]


class DiffData(Printed):
    """The compared stores."""

    left: Annotated[str, "The first store."]
    right: Annotated[str, "The second store."]
    clusters: Annotated[dict[str, str], "The id of the Kafka cluster that each store is on."]


OFFSETS_DIFF = Kind(
    "offsets-diff",
    "Two stores of a connector, compared.",
    row=DiffRow,
    summary=DiffSummary,
    data=DiffData,
    text=Text(
        columns=("connector", "source_partition", "left", "right", "status", "order?"),
        wide=("key", "left_at", "left_time", "left_lsn?", "right_at", "right_time", "right_lsn?"),
        empty="No connector has offsets here.",
    ),
)


class PlainViews(Struct, frozen=True):
    """`OffsetViews` of a connector that has offsets in the global store alone, and plain ones (`is_plain`)."""

    store: ColumnStore
    connector: str
    gone: bool

    def __len__(self) -> int:
        return self.store.listed.counts[self.connector]

    def __iter__(self) -> Iterator[OffsetView]:
        return (view for some in self.store.listed.some_records(self.connector) for view in self.views_of(some))

    def views_of(self, records: Sequence[Record]) -> OffsetViews:
        """Return the views of some of its records."""
        stores = {GLOBAL: self.store.with_records(records)}
        return offset_views(stores, self.connector, dedicated_in_use=False, gone=self.gone)

    def unseen_at_runtime(self) -> int:
        """Return 0: without a dedicated store `documented` and `runtime` are both the global store's."""
        return 0

    def is_live(self) -> bool:
        """Decide whether the connector has an offset that takes effect."""
        return self.store.listed.is_live(self.connector)


def plain_views(store: AnyStore, connector: str, *, gone: bool) -> PlainViews | None:
    """Return the views of a connector that has offsets in this store alone; None if they have to be made from rows."""
    if isinstance(store, Store):
        return None
    from eosctl.engine.stores import as_columns

    columns = as_columns(store)
    return PlainViews(columns, connector, gone) if columns.is_plain(connector) else None


class ViewRows(Sequence[ViewRow]):
    """The rows of `views`, connector by connector."""

    def __init__(self, views: Sequence[OffsetViews | PlainViews], *, now_ms: int) -> None:
        self._views, self._now_ms = views, now_ms

    def __len__(self) -> int:
        return sum(map(len, self._views))

    def __iter__(self) -> Iterator[ViewRow]:
        return map(self._row, chain.from_iterable(self._views))

    @overload
    def __getitem__(self, index: int) -> ViewRow: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ViewRow]: ...
    def __getitem__(self, index: int | slice) -> ViewRow | Sequence[ViewRow]:
        if isinstance(index, slice):
            return list(islice(self, *index.indices(len(self))))
        return next(islice(self, range(len(self))[index], None))

    def _row(self, view: OffsetView) -> ViewRow:
        return ViewRow(**view_members(view, now_ms=self._now_ms))
