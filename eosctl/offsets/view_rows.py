"""The rows of `offsets list`: each is made when it is printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import overload

from eosctl.core.offsets.views import OffsetView, OffsetViews
from eosctl.offsets.rows import ViewRow, view_members
from eosctl.offsets.stores.large import PlainViews


class ViewRows(Sequence[ViewRow]):
    """The rows of `views`, those of some connectors one after the other."""

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
