"""The rows of `offsets list`, each made when it is printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, overload

from msgspec import Struct

from eosctl.core.offsets.names import GLOBAL
from eosctl.core.offsets.views import AnyStore, OffsetView, OffsetViews, Store, offset_views
from eosctl.core.records import Record
from eosctl.offsets.rows import ViewRow, view_members

if TYPE_CHECKING:
    from eosctl.engine.stores import ColumnStore


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
