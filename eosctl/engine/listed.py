"""The newest offsets of a topic by connector and key, a few at a time as rows; which of them have the form of nearly
all says Arrow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.records import Record
from eosctl.engine.columns import NO_BYTES, one_array

_AT_ONCE = 20_000
_MOST_SHAPES = 10_000
_TEXT, _NAME = r"[ !#-\[\]-~]*", r"[ !#-9;-\[\]-~]*"
"""ASCII without escapes; and without colons."""
_SCALAR = f'(?:"{_TEXT}"|0|-?[1-9][0-9]{{0,17}}|true|false|null)'
_MAP = rf'\{{(?:"{_NAME}":{_SCALAR}(?:,"{_NAME}":{_SCALAR})*)?\}}'
"""A plain map. The first colon stands before a value, and the next one after that, and so on."""
_KEY = rf'\["{_NAME}",{_MAP}\]'
_NEWEST = ("topic", "partition", "offset", "timestamp_ms", "key", "value")


class PlainRow(NamedTuple):
    """A record with a plain key as text, and its `value` as text where that is plain, too: what is read and written
    again as it is, but for spaces."""

    record: Record
    key: str
    value: str | None


class Listed:
    """RECORDS, each topic, partition and key once."""

    def __init__(self, records: pa.Table) -> None:
        self._nobodys = records.filter(pc.is_null(records["connector"]))
        self._rows = records.sort_by([("connector", "ascending"), ("key", "ascending")])
        self._rows = self._rows.slice(0, len(records) - len(self._nobodys)).combine_chunks()
        self.slices = dict[str, tuple[int, int]]()
        begin = 0
        for run in pc.value_counts(self._rows["connector"]).to_pylist():
            self.slices[run["values"]] = begin, run["counts"]
            begin += run["counts"]
        self.odd = self._odd()
        """The connectors of which a key is not of the form of nearly all, not at home, or maybe there in two forms."""

    def nobodys(self) -> list[Record]:
        """The records that are no connector's."""
        return _records(self._nobodys)

    def records(self, connector: str) -> list[Record]:
        """A connector's records, by key."""
        return _records(self._slice(connector))

    def is_live(self, connector: str) -> bool:
        """Whether one of its records is more than a deletion."""
        return not pc.all(self._slice(connector)["nothing"]).as_py()

    def rows(self, connector: str) -> Iterator[list[PlainRow]]:
        """A connector's records by key, a few at a time; it is none of the odd ones."""
        found = self._slice(connector)
        for first in range(0, len(found), _AT_ONCE):
            some = found.slice(first, _AT_ONCE)
            keys = some["key"].cast(pa.string()).to_pylist()
            yield list(map(PlainRow, _records(some), keys, _plain_values(one_array(some["value"]))))

    def _slice(self, connector: str) -> pa.Table:
        return self._rows.slice(*self.slices.get(connector, (0, 0)))

    def _odd(self) -> set[str]:
        keys = one_array(self._rows["key"])
        is_plain = pc.and_(pc.match_substring_regex(keys, f"^{_KEY}$"), self._rows["at_home"])
        odd = set(pc.unique(self._rows["connector"].filter(pc.invert(is_plain))).to_pylist())
        shapes = pc.unique(_shapes(keys.filter(is_plain))).to_pylist()
        if len(shapes) > _MOST_SHAPES:
            return set(self.slices)
        seen = set[tuple[str, frozenset[str]]]()
        for connector, pairs in map(_pairs, shapes):
            names = frozenset(name for name, _value in pairs)
            if len(names) < len(pairs) or (connector, names) in seen:
                odd.add(connector)
            seen.add((connector, names))
        return odd


def _records(rows: pa.Table) -> list[Record]:
    return list(map(Record, *(rows[name].to_pylist() for name in _NEWEST)))


def _plain_values(values: pa.Array) -> list[str | None]:
    """The values that are plain maps with each name once."""
    plain = pc.fill_null(pc.match_substring_regex(values, f"^{_MAP}$"), fill_value=False)
    shapes = _shapes(pc.if_else(plain, values, b"{}"))
    distinct = pc.unique(shapes).to_pylist()
    good = [shape for shape in distinct if len(dict(pairs := _pairs(shape))) == len(pairs)]
    if len(good) < len(distinct):
        plain = pc.and_(plain, pc.is_in(shapes, value_set=pa.array(good, shapes.type)))
    texts: list[str | None] = pc.if_else(plain, values, NO_BYTES).cast(pa.large_string()).to_pylist()
    return texts


def _shapes(plain: pa.Array) -> pa.Array:
    """Plain maps, or keys, with 0 for each scalar: there are few different ones, unless their names differ."""
    return pc.replace_substring_regex(plain, f":{_SCALAR}", ":0")


def _pairs(shape: bytes) -> Any:
    """What a shape holds, maps as pairs of name and value: a name may be there twice."""
    return json.loads(shape, object_pairs_hook=list)
