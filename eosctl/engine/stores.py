"""Offsets topics as columns, and the writes of a merge of two of them.

The newest offsets of a topic are listed by connector and key, a few at a time as rows, with those marked that are
plain.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from eosctl.core.offsets.migration import PART_BYTES, ConnectorRoute
from eosctl.core.offsets.views import AnyStore, KeyAction, Policy, Store, fold_store
from eosctl.core.records import Bounds, Record, TopicRead
from eosctl.engine.columns import RECORDS, filter_rows, one_array, row_sizes
from eosctl.engine.files import SpilledTable
from eosctl.engine.keys import home_of, rows_of
from eosctl.engine.planned import writes_of
from eosctl.engine.reading.heads import headers_in
from eosctl.engine.reading.newest import records_table
from eosctl.engine.rule import claims_of, decide, is_sent, newest_per_key, strongest
from eosctl.engine.write import placed

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


class ColumnStore(AnyStore, frozen=True, kw_only=True):
    """An offsets topic as columns.

    `listed` has the newest record of each partition and key. `rest` has as rows those of them that belong to no
    connector, or whose connector Arrow can't read.
    """

    listed: Listed
    rest: Store

    def shown(self) -> set[str]:
        """Return the connectors whose offsets can be seen."""
        return set(self.listed.counts) | self.rest.shown()

    def records(self) -> pa.Table:
        """Return the newest record of each partition and key (RECORDS)."""
        return pa.concat_tables([RECORDS.empty_table(), *self.listed.tables()])

    def newest(self, connectors: Iterable[str]) -> pa.Table:
        """Return the newest record of each key of some connectors."""
        wanted = pa.array(list(connectors), pa.string())
        chosen = (filter_rows(table, pc.is_in(table["connector"], value_set=wanted)) for table in self.listed.tables())
        return newest_per_key(pa.concat_tables([RECORDS.empty_table(), *chosen])).records

    def is_plain(self, connector: str) -> bool:
        """Tell whether nothing but the value can be remarkable about any key of a connector."""
        elsewhere = self.hidden_keys.keys() | self.rest.connectors.keys() | self.listed.odd
        return connector in self.listed.counts and connector not in elsewhere

    def of(self, connector: str) -> Store:
        """Return the offsets of one connector, as rows."""
        keys = (key.raw for key in self.rest.connectors.get(connector, ()))
        others = (self.rest.several.get(raw, {0: self.rest.records[raw]}).values() for raw in keys)
        return self.with_records([*self.listed.records(connector), *chain.from_iterable(others)])

    def with_records(self, records: Sequence[Record]) -> Store:
        """Return some of the store's records as rows."""
        rows = _folded(self.topic, self.partitions, records)
        return replace(rows, blocked=self.blocked, hidden=self.hidden, hidden_keys=self.hidden_keys)


def column_store(topic: str, partitions: int, parts: Iterable[pa.Table | SpilledTable]) -> ColumnStore:
    """Return the newest RECORDS of each partition and key as a store; each of the parts is `in_order`."""
    listed = Listed(parts)
    rest = _folded(topic, partitions, listed.unowned())
    return ColumnStore(topic, partitions, listed=listed, rest=rest, ignored=rest.ignored, partition_for=home_of)


def as_columns(store: AnyStore) -> ColumnStore:
    """Convert any store to columns."""
    if isinstance(store, ColumnStore):
        return store
    if not isinstance(store, Store):
        raise TypeError(f"{store!r} is no store")
    single = (record for key, record in store.records.items() if key not in store.several)
    several = (record for places in store.several.values() for record in places.values())
    records = records_table(store.topic, [*single, *several], partitions=store.partitions)
    found = column_store(store.topic, store.partitions, [in_order(records)])
    return replace(found, blocked=store.blocked, hidden=store.hidden, hidden_keys=store.hidden_keys)


def _folded(topic: str, partitions: int, records: Sequence[Record]) -> Store:
    bounds = tuple(Bounds(partition, 0, 0, 0) for partition in range(partitions))
    return fold_store(TopicRead(topic, bounds, tuple(records), len(records), partition_for=home_of))


Pairs = Mapping[str, tuple[AnyStore, AnyStore]]
"""Connector -> its source store, and the target store to complete."""


def merge_stores(pairs: Pairs, policy: Policy, *, fallback: bool, part_bytes: int = PART_BYTES) -> Iterator[pa.Table]:
    """Plan the writes that complete the targets, as WRITES, by connector and key; `fallback` as in `rule.decide`.

    Every key of a connector in either store ends in exactly one action. A key stays on the partition where the target
    has it: a record elsewhere would make two, of which a worker takes any. There are several tables if the stores have
    more than `part_bytes`, as each copies the values a few times.
    """
    routes = [ConnectorRoute(connector, connector, target.topic) for connector, (_source, target) in pairs.items()]
    sources, targets = ({stores[side].topic: stores[side] for stores in pairs.values()} for side in (0, 1))
    source, target = (_newest_of(pairs, side) for side in (0, 1))
    sizes = {name: store.partitions for name, store in targets.items()}
    for offered, held in _in_parts(source, target, part_bytes):
        claims = strongest(claims_of(offered, routes, sources=list(sources)), policy)
        decisions = decide(claims, held, sizes, policy, fallback=fallback and policy is not Policy.NEWEST)
        only = held.filter(pc.is_null(rows_of(held, claims)))
        rows = pa.concat_tables([_decided(decisions), _kept(only)])
        yield rows.sort_by(_ORDER)


def _newest_of(pairs: Pairs, side: int) -> pa.Table:
    """Return the newest record of each key that a store on one side has of its connectors."""
    connectors: dict[int, list[str]] = {}
    for connector, stores in pairs.items():
        connectors.setdefault(id(stores[side]), []).append(connector)
    found = (as_columns(pairs[names[0]][side]).newest(names) for names in connectors.values())
    return pa.concat_tables([RECORDS.empty_table(), *found])


def _in_parts(source: pa.Table, target: pa.Table, part_bytes: int) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield both sides (RECORDS) in parts of about `part_bytes`, in order: all records of a key are in one part."""
    if source.nbytes + target.nbytes <= part_bytes:
        yield source, target
        return
    names = ["connector", "key"]
    both = pa.concat_tables([source.select(names), target.select(names)])
    order = pc.sort_indices(both, sort_keys=_ORDER)
    ends = pc.cumulative_sum(pa.concat_arrays([row_sizes(source), row_sizes(target)]).take(order))
    keys = one_array(both["key"].take(order))
    again = pa.concat_arrays([pa.array([False]), one_array(pc.equal(keys[1:], keys[:-1]))])
    numbers = pc.fill_null_forward(pc.if_else(again, pa.scalar(None, pa.int64()), pc.divide(ends, part_bytes)))
    for number in pc.unique(numbers):
        rows = order.filter(pc.equal(numbers, number)).cast(pa.int64())
        of_target = pc.greater_equal(rows, len(source))
        offered = source.take(rows.filter(pc.invert(of_target)))
        yield offered, target.take(pc.subtract(rows.filter(of_target), len(source)))


def _decided(decisions: pa.Table) -> pa.Table:
    there = {name: decisions[f"target_{name}"] for name in ("offset", "timestamp_ms", "headers")}
    there |= {"partition": decisions["partition"], "value": decisions["before"]}
    columns = {name: decisions[name] for name in ("connector", "topic", "key", "action", "reason", "conflict")} | {
        "partition": placed(decisions)["partition"],
        "after": pc.if_else(is_sent(decisions), decisions["value"], decisions["before"]),
        "headers": pa.nulls(len(decisions), pa.string()),
    }
    return writes_of(columns, before=there, replaced=there)


def _kept(records: pa.Table) -> pa.Table:
    """Return WRITES that keep the records which only the target has."""
    columns = {name: records[name] for name in ("connector", "topic", "partition", "key")} | {
        "action": pa.repeat(KeyAction.KEEP.value, len(records)),
        "reason": pa.repeat("only_in_target", len(records)),
        "conflict": pa.repeat(pa.scalar(value=False), len(records)),
        "after": records["value"],
        "headers": pa.nulls(len(records), pa.string()),
    }
    return writes_of(columns, before=records, replaced=records)
