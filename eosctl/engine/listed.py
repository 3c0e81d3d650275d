"""The newest offsets of a topic by connector and key, a few at a time as rows; Arrow tells which of them are plain."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.records import Record
from eosctl.core.wording import YEAR_10000_MS
from eosctl.engine.columns import NO_BYTES, one_array
from eosctl.engine.files import Spilled

_AT_ONCE = 10_000
_TOGETHER = 100
"""Longer texts have memory of their own each, which the system fills with zeros each time."""
_MOST_BYTES = 4_096
"""Of a key or value that is a column's: its row has it three times."""
_MOST_SHAPES = 10_000
_USED_AT_ONCE = 100_000
"""Rows of a table on the disk, before what they take of memory is let go of."""
_ORDER = [("connector", "ascending"), ("key", "ascending")]
LARGE = 2_000
"""A look at the keys of one connector alone takes half a millisecond: it pays from so many on."""
_ALL, _NO_COLON, _NO_COMMA, _NEITHER = (
    r"[ !#-\[\]-~]", r"[ !#-9;-\[\]-~]", r"[ !#-+\--\[\]-~]", r"[ !#-+\--9;-\[\]-~]",
)  # fmt: skip
_TEXT, _NAME = rf"(?:{_NEITHER}|{_NO_COLON}{_ALL}*{_NO_COMMA})?", f"{_NEITHER}*"
"""ASCII without escapes, no colon at the beginning and no comma at the end; and with neither anywhere."""
_SCALAR = f'(?:"{_TEXT}"|0|-?[1-9][0-9]{{0,17}}|true|false|null)'
_MAP = rf'\{{(?:"{_NAME}":{_SCALAR}(?:,"{_NAME}":{_SCALAR})*)?\}}'
"""A plain map: between members is what `,"` is, between a name and its value what `":` is, and nothing else is."""
_KEY = rf'\["{_NAME}",{_MAP}\]'
_HALF, _HEX = 8, np.frombuffer(b"0123456789ABCDEF", np.uint8)
"""Hex digits of half a log sequence number, and what each is printed as."""
_SHIFTS = np.array(range(60, -4, -4), np.uint64)
_NEWEST = ("topic", "partition", "offset", "timestamp_ms", "key", "value")


class PlainRows:
    """Some records of one connector with plain keys: columns of their JSON, as `json` spells it, to be joined.

    `value` is null where a value is not plain, `timestamp` where a year has more than four digits or there is none.
    """

    def __init__(self, rows: pa.Table, connector: str) -> None:
        self._rows = rows
        keys, times = _texts_of(rows["key"]), one_array(rows["timestamp_ms"])
        self._bare_value, self._shapes = _plain_values(one_array(rows["value"]))
        self.value = _spaced(self._bare_value)
        self.key = pc.replace_substring(keys, '"', '\\"')
        self.source_partition = _spaced(pc.utf8_slice_codeunits(keys, len(f'["{connector}",'), -1))
        self.partition, self.offset, self.timestamp_ms = (
            _texts_of(rows[name]) for name in ("partition", "offset", "timestamp_ms")
        )
        is_known = pc.and_(pc.greater_equal(times, 0), pc.less(times, YEAR_10000_MS))
        moments = _texts_of(pc.if_else(is_known, times, None).cast(pa.timestamp("ms")))
        self.timestamp = pc.replace_substring(moments, " ", "T")

    def age_ms(self, now_ms: int) -> pa.Array:
        """How long they have been there."""
        return _texts_of(pc.max_element_wise(0, pc.subtract(now_ms, one_array(self._rows["timestamp_ms"]))))

    def lsns(self, member: str, names: Sequence[str]) -> str | pa.Array:
        """`, "member": {"name": "text"}`: `lsn_texts` of the numbers, 0 or more, that values have under some names.

        It is empty for values without such a number, and for those without a member of the first name.
        """
        there = [name for name in names if any(f'"{name}":'.encode() in shape for shape in self._shapes)]
        if names[0] not in there:
            return ""
        asked = pc.if_else(pc.match_substring(self._bare_value, f'"{names[0]}":'), self._bare_value, "")
        members = joined(*(_lsn_members(asked, name) for name in there))
        wrapped = joined(f', "{member}": {{', pc.utf8_slice_codeunits(members, len(", ")), "}")
        return pc.if_else(pc.equal(members, ""), "", wrapped)

    def records(self, where: Sequence[int]) -> list[Record]:
        """Some of the records, by number."""
        return _records(self._rows.take(where)) if where else []


def joined(*pieces: str | pa.Array) -> pa.Array:
    """A text of each row; null where a column has none."""
    return pc.binary_join_element_wise(*map(_as_arrow, pieces), _as_arrow(""))


def _as_arrow(piece: str | pa.Array) -> pa.Array | pa.Scalar:
    return pa.scalar(piece, pa.large_string()) if isinstance(piece, str) else piece


def together(texts: pa.Array) -> Iterator[str]:
    """Texts, none of them null, one behind the other as they lie in memory, some at a time."""
    _valid, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    for first in range(0, len(texts), _TOGETHER):
        yield str(memoryview(data)[ends[first] : ends[min(first + _TOGETHER, len(texts))]], "utf-8")


def in_order(records: pa.Table) -> pa.Table:
    """RECORDS by connector and key, those that are nobody's at the end."""
    topics = records["topic"].dictionary_encode()  # all the same: without them it is sorted sooner
    records = records.set_column(records.column_names.index("topic"), "topic", topics).combine_chunks()
    return records.sort_by(_ORDER).combine_chunks()


class _Run:
    """Some RECORDS `in_order`; `slices` are the first row of each connector, and how many there are.

    Of a table on the disk no more stays in memory than was used lately.
    """

    def __init__(self, kept: pa.Table | Spilled) -> None:
        self._kept = kept
        self._opened: pa.Table | None = None
        self._used = 0
        runs = pc.value_counts(self._table(0)["connector"]).to_pylist()
        self.slices = dict[str, tuple[int, int]]()
        begin = 0
        for run in runs:
            if run["values"] is not None:
                self.slices[run["values"]] = begin, run["counts"]
            begin += run["counts"]
        self.owned = sum(count for _first, count in self.slices.values())

    def _table(self, rows: int) -> pa.Table:
        """All of it, of which so many rows are used now."""
        if isinstance(self._kept, pa.Table):
            return self._kept
        self._used += rows
        if self._opened is None or self._used > _USED_AT_ONCE:
            self._opened, self._used = self._kept.table(), rows
        return self._opened

    def of(self, connector: str) -> pa.Table:
        """Those of one connector."""
        first, count = self.slices.get(connector, (0, 0))
        return self._table(count).slice(first, count)

    def of_all(self) -> pa.Table:
        """Those of all connectors."""
        return self._table(self.owned).slice(0, self.owned)

    def nobodys(self) -> pa.Table:
        """Those that are no connector's."""
        return self._table(0).slice(self.owned)


class Listed:
    """RECORDS in parts, each of them `in_order`; each topic, partition and key is there once.

    Keys are looked at connector by connector where a connector has more than `large` of them on average.
    """

    def __init__(self, parts: Iterable[pa.Table | Spilled], *, large: int = LARGE) -> None:
        self._runs = list(map(_Run, parts))
        self.counts = Counter[str]()
        """How many records each connector has."""
        for run in self._runs:
            self.counts.update({connector: count for connector, (_first, count) in run.slices.items()})
        self.odd = self._odd(large)
        """The connectors of which a key is not of the form of nearly all, not at home, or maybe there in two forms."""

    def nobodys(self) -> list[Record]:
        """The records that are no connector's."""
        return [record for run in self._runs for record in _records(run.nobodys())]

    def records(self, connector: str) -> list[Record]:
        """A connector's records, by key."""
        return [record for some in self.some_records(connector) for record in some]

    def some_records(self, connector: str) -> Iterator[list[Record]]:
        """A connector's records, by key, a few at a time."""
        return map(_records, self._pieces(connector))

    def is_live(self, connector: str) -> bool:
        """Whether one of its records is more than a deletion."""
        found = (run.of(connector) for run in self._runs if connector in run.slices)
        return not all(pc.all(rows["nothing"]).as_py() for rows in found)

    def rows(self, connector: str) -> Iterator[PlainRows]:
        """A connector's records by key, a few at a time; it is none of the odd ones."""
        return (PlainRows(some, connector) for some in self._pieces(connector))

    def _pieces(self, connector: str) -> Iterator[pa.Table]:
        found = [run.of(connector) for run in self._runs if connector in run.slices]
        if len(found) > 1:
            found = [pa.concat_tables(found).combine_chunks().sort_by(_ORDER).combine_chunks()]
        return (rows.slice(first, _AT_ONCE) for rows in found for first in range(0, len(rows), _AT_ONCE))

    def _odd(self, large: int) -> set[str]:
        are_large = self.counts.total() > large * len(self.counts)
        odd, all_shapes = set[str](), set[bytes]()
        for run in self._runs:
            for rows in map(run.of, run.slices) if are_large else [run.of_all()]:
                plain, shapes = _plain(_KEY, one_array(rows["key"]))
                if len(shapes) > _MOST_SHAPES:
                    return set(self.counts)
                odd.update(pc.unique(rows["connector"].filter(pc.invert(pc.and_(plain, rows["at_home"])))).to_pylist())
                all_shapes.update(shapes)
        seen = set[tuple[str, frozenset[str]]]()
        for connector, pairs in map(_pairs, all_shapes):
            names = _names(pairs)
            if names is None or (connector, names) in seen:
                odd.add(connector)
            else:
                seen.add((connector, names))
        return odd


def _records(rows: pa.Table) -> list[Record]:
    return list(map(Record, *(rows[name].to_pylist() for name in _NEWEST)))


def _lsn_members(maps: pa.Array, name: str) -> pa.Array:
    """`, "name": "text"` for each plain map with such a number, and empty for others."""
    found = pc.struct_field(pc.extract_regex(maps, f'"{name}":(?P<number>[0-9]+)'), "number")
    return pc.fill_null(joined(f', "{name}": "', lsn_texts(found.cast(pa.int64())), '"'), "")


def lsn_texts(numbers: pa.Array) -> pa.Array:
    """`history.sources.lsn_text` of each number, at a tenth of the time: its halves in hex, and null for null."""
    values = numbers.fill_null(0).to_numpy().astype(np.uint64)
    digits = (values[:, np.newaxis] >> _SHIFTS & np.uint64(15)).reshape(-1, 2, _HALF)
    shown = np.logical_or.accumulate(digits != 0, axis=2)
    shown[:, :, -1] = True
    texts, kept = (np.ones((len(values), 2, _HALF + 1), kind) for kind in (np.uint8, np.bool_))
    texts[:, :, 1:], kept[:, :, 1:] = _HEX[digits], shown
    texts[:, 1, 0], kept[:, 0, 0] = ord("/"), False
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum(kept.sum(axis=(1, 2)), out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(texts[kept])]
    # Safe as it is: the ends are sums of what is kept of the texts, which are hex digits and slashes made here.
    return pc.if_else(pc.is_valid(numbers), pa.Array.from_buffers(pa.large_string(), len(values), buffers), None)


def _texts_of(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return one_array(column).cast(pa.large_string())


def _are(form: str, texts: pa.Array) -> pa.Array:
    """Which are of a form, and short enough; none that is null."""
    are = pc.and_(pc.match_substring_regex(texts, f"^{form}$"), pc.less_equal(pc.binary_length(texts), _MOST_BYTES))
    return pc.fill_null(are, fill_value=False)


def _plain(form: str, texts: pa.Array) -> tuple[pa.Array, list[bytes]]:
    """Which are of a form, and their different shapes.

    Mostly there is one: to see that all have the first one's takes a third of the time that finding theirs takes.
    """
    first = texts[:1]
    if pc.any(_are(form, first)).as_py():
        shape = _shapes(first)[0].as_py()
        alike = _are(re.escape(shape.decode()).replace('":0', f'":{_SCALAR}'), texts)
        if pc.all(alike).as_py():
            return alike, [shape]
    plain = _are(form, texts)
    return plain, pc.unique(_shapes(texts.filter(plain))).to_pylist()


def _plain_values(values: pa.Array) -> tuple[pa.Array, list[bytes]]:
    """The values that are plain maps with each name once, as text, and the shapes of plain maps."""
    plain, shapes = _plain(_MAP, values)
    if bad := [shape for shape in shapes if _names(_pairs(shape)) is None]:
        plain = pc.and_(plain, pc.invert(pc.is_in(_shapes(values), value_set=pa.array(bad, values.type))))
    return _texts_of(pc.if_else(plain, values, NO_BYTES)), shapes


def _spaced(maps: pa.Array) -> pa.Array:
    """Plain maps with a space after each comma and colon that separates."""
    return pc.replace_substring(pc.replace_substring(maps, '":', '": '), ',"', ', "')


def _shapes(plain: pa.Array) -> pa.Array:
    """Plain maps, or keys, with 0 for each scalar: there are few different ones, unless their names differ."""
    return pc.replace_substring_regex(plain, f":{_SCALAR}", ":0")


def _pairs(shape: bytes) -> Any:
    """What a shape holds, maps as pairs of name and value: a name may be there twice."""
    return json.loads(shape, object_pairs_hook=list)


def _names(pairs: list[tuple[str, object]]) -> frozenset[str] | None:
    """The names of a map; None where one is there twice."""
    names = frozenset(name for name, _value in pairs)
    return names if len(names) == len(pairs) else None
