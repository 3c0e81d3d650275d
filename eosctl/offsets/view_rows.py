"""The rows of `offsets list`: each is made when it is printed, and as JSON without what a program can't tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import NoReturn, overload

import msgspec

from eosctl.core.offsets.views import OffsetView, OffsetViews
from eosctl.offsets.rows import ViewRow, view_members
from eosctl.output.documents import exact_text
from eosctl.report import Encode, plain


class _FractionError(Exception):
    """A number that msgspec may spell otherwise than `json`."""


def _refuse_fraction(_text: str) -> NoReturn:
    raise _FractionError


_exact_json = msgspec.json.Decoder(float_hook=_refuse_fraction).decode


def _exact_value(value: bytes | None) -> object:
    return None if value is None else _exact_json(value)


class ViewRows(Sequence[ViewRow]):
    """The rows of `views`, those of some connectors one after the other."""

    def __init__(self, views: Sequence[OffsetViews], *, now_ms: int) -> None:
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

    def texts(self, encode: Encode, *members: str | None) -> Iterator[Sequence[str]]:
        """What `encode` makes of these members of each row; None is the whole row."""
        for view in chain.from_iterable(self._views):
            if members == (None,) and (text := self._quick_text(view)) is not None:
                yield (text,)
                continue
            row = plain(self._row(view))
            yield [encode(row if member is None else row[member]) for member in members]

    def _quick_text(self, view: OffsetView) -> str | None:
        """The row in a third of the time; None where msgspec reads or writes something otherwise than `json` does."""
        try:
            partition = _exact_json(view.key.raw)[1]
            return exact_text(ViewRow(**view_members(view, partition, now_ms=self._now_ms, value_of=_exact_value)))
        except (_FractionError, msgspec.DecodeError, UnicodeError, TypeError, OverflowError, RecursionError):
            return None
