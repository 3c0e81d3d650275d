"""The newest offsets of a topic by connector and key, a few at a time as rows, and which of them are plain."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.records import Record
from eosctl.engine.columns import one_array
from eosctl.engine.files import SpilledTable
from eosctl.engine.reading.headers import headers_in

_AT_ONCE = 10_000
_MOST_BYTES = 4_096
"""The most bytes of a plain key: its row has it three times."""
_MOST_SHAPES = 10_000
_USED_AT_ONCE = 100_000
"""Rows used of a table on the disk, before their memory is released."""
_ORDER = [("connector", "ascending"), ("key", "ascending")]
_ALL, _NO_COLON, _NO_COMMA, _NEITHER = (
    r"[ !#-\[\]-~]", r"[ !#-9;-\[\]-~]", r"[ !#-+\--\[\]-~]", r"[ !#-+\--9;-\[\]-~]",
)  # fmt: skip
_TEXT, _NAME = rf"(?:{_NEITHER}|{_NO_COLON}{_ALL}*{_NO_COMMA})?", f"{_NEITHER}*"
"""ASCII without escapes, no colon at the beginning and no comma at the end; and with neither anywhere."""
_SCALAR = f'(?:"{_TEXT}"|0|-?[1-9][0-9]{{0,17}}|true|false|null)'
_MAP = rf'\{{(?:"{_NAME}":{_SCALAR}(?:,"{_NAME}":{_SCALAR})*)?\}}'
"""A plain map: `,"` occurs only between members, and `":` only between a name and its value."""
_KEY = rf'\["{_NAME}",{_MAP}\]'
_NEWEST = ("topic", "partition", "offset", "timestamp_ms", "key", "value")


def in_order(records: pa.Table) -> pa.Table:
    """Sort RECORDS by connector and key; those of no connector come last."""
    at, topics = records.column_names.index("topic"), records["topic"].dictionary_encode()  # all the same
    found = records.set_column(at, "topic", topics).combine_chunks().sort_by(_ORDER).combine_chunks()
    return found.set_column(at, "topic", found["topic"].cast(pa.string()))


class _Run:
    """A table of RECORDS `in_order`; `slices` are the first row and the number of rows of each connector.

    Of a table on the disk only recently used rows stay in memory.
    """

    def __init__(self, kept: pa.Table | SpilledTable) -> None:
        self._kept = kept
        self._opened: pa.Table | None = None
        self._used = 0
        runs = pc.value_counts(self.table()["connector"]).to_pylist()
        self.slices = dict[str, tuple[int, int]]()
        begin = 0
        for run in runs:
            if run["values"] is not None:
                self.slices[run["values"]] = begin, run["counts"]
            begin += run["counts"]
        self.owned = sum(count for _first, count in self.slices.values())

    def table(self) -> pa.Table:
        """Return all records, those of connectors first."""
        return self._kept if isinstance(self._kept, pa.Table) else self._kept.table()

    def of(self, connector: str) -> pa.Table:
        """Return the records of one connector."""
        first, count = self.slices.get(connector, (0, 0))
        self._used += count
        if self._opened is None or self._used > _USED_AT_ONCE:
            self._opened, self._used = self.table(), count
        return self._opened.slice(first, count)

    def unowned(self) -> pa.Table:
        """Return the records that belong to no connector."""
        return self.table().slice(self.owned)


class Listed:
    """RECORDS in parts, each `in_order`; each topic, partition and key is there once."""

    def __init__(self, parts: Iterable[pa.Table | SpilledTable]) -> None:
        self._runs = list(map(_Run, parts))
        self.counts = Counter[str]()
        """How many records each connector has."""
        for run in self._runs:
            self.counts.update({connector: count for connector, (_first, count) in run.slices.items()})

    def tables(self) -> Iterator[pa.Table]:
        """Yield the records, part by part."""
        return (run.table() for run in self._runs)

    def unowned(self) -> list[Record]:
        """Return the records that belong to no connector."""
        return [record for run in self._runs for record in _records(run.unowned())]

    def records(self, connector: str) -> list[Record]:
        """Return a connector's records, by key."""
        return [record for some in self.some_records(connector) for record in some]

    def some_records(self, connector: str) -> Iterator[list[Record]]:
        """Yield a connector's records, by key, a few at a time."""
        return map(_records, self._pieces(connector))

    def is_live(self, connector: str) -> bool:
        """Tell whether one of the connector's records is more than a deletion."""
        found = (run.of(connector) for run in self._runs if connector in run.slices)
        return not all(pc.all(rows["nothing"]).as_py() for rows in found)

    def _pieces(self, connector: str) -> Iterator[pa.Table]:
        found = [run.of(connector) for run in self._runs if connector in run.slices]
        if len(found) > 1:
            found = [pa.concat_tables(found).combine_chunks().sort_by(_ORDER).combine_chunks()]
        return (rows.slice(first, _AT_ONCE) for rows in found for first in range(0, len(rows), _AT_ONCE))

    @cached_property
    def odd(self) -> set[str]:
        """The connectors with a key that is not of the usual form, not at home, or possibly there in two forms."""
        odd, shapes = set[str](), set[bytes]()
        for rows in (run.table().slice(0, run.owned) for run in self._runs):
            keys = one_array(rows["key"])
            plain = _are_plain(keys)
            odd.update(pc.unique(rows["connector"].filter(pc.invert(pc.and_(plain, rows["at_home"])))).to_pylist())
            shapes.update(pc.unique(_shapes(keys.filter(plain))).to_pylist())
            if len(shapes) > _MOST_SHAPES:
                return set(self.counts)
        seen = set[tuple[str, frozenset[str]]]()
        for connector, pairs in map(_pairs, shapes):
            names = _names(pairs)
            if names is None or (connector, names) in seen:
                odd.add(connector)
            else:
                seen.add((connector, names))
        return odd


def _records(rows: pa.Table) -> list[Record]:
    raws = rows["headers"].to_pylist()
    headers = [() if raw is None else headers_in(raw) for raw in raws]
    return list(map(Record, *(rows[name].to_pylist() for name in _NEWEST), headers))


def _are_plain(keys: pa.Array) -> pa.Array:
    """Mark the keys that have the usual form and are short enough; a null key is not marked."""
    are = pc.and_(pc.match_substring_regex(keys, f"^{_KEY}$"), pc.less_equal(pc.binary_length(keys), _MOST_BYTES))
    return pc.fill_null(are, fill_value=False)


def _shapes(plain: pa.Array) -> pa.Array:
    """Return plain keys with 0 for each scalar: there are few distinct ones, unless their names differ."""
    return pc.replace_substring_regex(plain, f":{_SCALAR}", ":0")


def _pairs(shape: bytes) -> Any:
    """Return the connector of a shape, and its map as pairs of name and value: a name may be there twice."""
    return json.loads(shape, object_pairs_hook=list)


def _names(pairs: list[tuple[str, object]]) -> frozenset[str] | None:
    """Return the names of a map; None if one is there twice."""
    names = frozenset(name for name, _value in pairs)
    return names if len(names) == len(pairs) else None
