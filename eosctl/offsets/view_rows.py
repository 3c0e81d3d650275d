"""The rows of `offsets list`: each is made when it is printed, and as JSON without what a program can't tell apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import NoReturn, overload

import msgspec

from eosctl.core.offsets.views import Flag, OffsetView, OffsetViews
from eosctl.machine.ahead import ahead
from eosctl.offsets.history.sources import LSN_MEMBERS
from eosctl.offsets.rows import ViewRow, view_members
from eosctl.offsets.stores.large import PlainViews
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

    def texts(self, encode: Encode, *members: str | None) -> Iterator[Sequence[str]]:
        """What `encode` makes of these members of each row; None is the whole row."""
        if members == (None,):
            yield from ((text,) for some in self.lines(encode) for text in some.split("\n")[:-1])
            return
        for row in map(plain, self):
            yield [encode(row if member is None else row[member]) for member in members]

    def lines(self, encode: Encode) -> Iterator[str]:
        """What `encode` makes of each row, with a newline behind it; some at a time."""
        for are_plain, views in groupby(self._views, lambda each: isinstance(each, PlainViews)):
            if are_plain:
                plain_ones = (each for each in views if isinstance(each, PlainViews))
                some = ahead(lines for each in plain_ones for lines in self._plain_lines(each, encode))
                yield from chain.from_iterable(some)
            else:
                yield from (self._line(view, encode) for each in views for view in each)

    def _line(self, view: OffsetView, encode: Encode) -> str:
        return f"{self._quick_text(view) or encode(plain(self._row(view)))}\n"

    def _plain_lines(self, views: PlainViews, encode: Encode) -> Iterator[Iterable[str]]:
        """The rows of plain keys, in a tenth of the time: all parts of them are JSON already."""
        from eosctl.engine.listed import joined, together

        connector, topic = encode(views.connector), encode(views.store.topic)
        flags = encode([Flag.CONNECTOR_GONE.value] if views.gone else [])
        for rows in views.rows():
            lines = joined(
                f'{{"connector": {connector}, "source_partition": ', rows.source_partition,
                ', "key": "', rows.key, f'", "stores": {{"global": {{"topic": {topic}, "partition": ',
                rows.partition, ', "offset": ', rows.offset, ', "timestamp": "', rows.timestamp, 'Z", "timestamp_ms": ',
                rows.timestamp_ms, ', "value": ', rows.value, rows.lsns("lsn", LSN_MEMBERS),
                '}, "dedicated": null}, "effective": {"documented": ', rows.value, ', "runtime": ', rows.value,
                '}, "age_ms": ', rows.age_ms(self._now_ms), f', "flags": {flags}}}\n',
            )  # fmt: skip
            if not lines.null_count:
                yield together(lines)
                continue
            texts = lines.to_pylist()
            others = rows.records([number for number, text in enumerate(texts) if text is None])
            yield self._with_odd(texts, iter(views.views_of(others)), encode)

    def _with_odd(self, texts: Iterable[str | None], odd: Iterator[OffsetView], encode: Encode) -> Iterator[str]:
        """Not `ahead`: how deep a value may be nested depends on the stack of the thread that reads it."""
        return (self._line(next(odd), encode) if text is None else text for text in texts)

    def _quick_text(self, view: OffsetView) -> str | None:
        """The row in a third of the time; None where msgspec reads or writes something otherwise than `json` does."""
        try:
            partition = _exact_json(view.key.raw)[1]
            return exact_text(ViewRow(**view_members(view, partition, now_ms=self._now_ms, value_of=_exact_value)))
        except (_FractionError, msgspec.DecodeError, UnicodeError, TypeError, OverflowError, RecursionError):
            return None
