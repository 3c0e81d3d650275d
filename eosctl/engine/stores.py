"""Offsets topics as columns, and what a merge of two of them writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.frozen import frozen
from eosctl.core.offsets.decision import KeyAction, Policy
from eosctl.core.offsets.migration import PART_BYTES, ConnectorRoute
from eosctl.core.offsets.views import AnyStore
from eosctl.engine.columns import RECORDS, one_array, row_sizes, those
from eosctl.engine.keys.matching import rows_of
from eosctl.engine.planned import WRITES
from eosctl.engine.reading.headers import headers_texts
from eosctl.engine.rule import claims_of, decide, is_sent, newest_per_key, strongest
from eosctl.engine.write import placed


@frozen
class ColumnStore(AnyStore):
    """An offsets topic: `records` (RECORDS) are the newest of each partition and key."""

    records: pa.Table = field(default_factory=RECORDS.empty_table)

    def shown(self) -> set[str]:
        """The connectors whose offsets can be seen."""
        return set(pc.unique(self.records["connector"]).drop_null().to_pylist())

    def newest(self, connectors: Iterable[str]) -> pa.Table:
        """The newest record of each key of some connectors."""
        chosen = pc.is_in(self.records["connector"], value_set=pa.array(list(connectors), pa.string()))
        return newest_per_key(those(self.records, chosen)).records


Pairs = Mapping[str, tuple[ColumnStore, ColumnStore]]
"""Connector -> the store to take from, and the one to complete."""


def merge_stores(pairs: Pairs, policy: Policy, *, fallback: bool, part_bytes: int = PART_BYTES) -> Iterator[pa.Table]:
    """What the targets must be given, as WRITES, by connector and key; `fallback` as in `rule.decide`.

    Every key of a connector in either store ends in exactly one action. A key stays on the partition where the target
    has it: a record elsewhere would make two, of which a worker takes any. There are several tables where the stores
    have more than `part_bytes`, as each copies the values a few times.
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
    """The newest record of each key that a store on one side has of its connectors."""
    connectors: dict[int, list[str]] = {}
    for connector, stores in pairs.items():
        connectors.setdefault(id(stores[side]), []).append(connector)
    found = (pairs[names[0]][side].newest(names) for names in connectors.values())
    return pa.concat_tables([RECORDS.empty_table(), *found])


_ORDER = [("connector", "ascending"), ("key", "ascending")]


def _in_parts(source: pa.Table, target: pa.Table, part_bytes: int) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Both sides (RECORDS) in parts of about so many bytes, in order: all that is known of a key is in one."""
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
    before = {
        "before_partition": decisions["partition"],
        "before_offset": decisions["target_offset"],
        "before_timestamp_ms": decisions["target_timestamp_ms"],
        "before": decisions["before"],
    }
    after = pc.if_else(is_sent(decisions), decisions["value"], decisions["before"])
    partitions = placed(decisions)["partition"]
    rows = decisions.set_column(decisions.column_names.index("partition"), "partition", partitions)
    return _writes(rows, before, after, decisions["target_headers"])


def _kept(records: pa.Table) -> pa.Table:
    """What the target alone has."""
    texts = {"action": KeyAction.KEEP.value, "reason": "only_in_target"}
    rows = records.append_column("conflict", pa.repeat(pa.scalar(value=False), len(records)))
    for name, text in texts.items():
        rows = rows.append_column(name, pa.repeat(text, len(records)))
    before = {"before" if name == "value" else f"before_{name}": records[name] for name in _OF_RECORDS}
    return _writes(rows, before, records["value"], records["headers"])


_OF_RECORDS = ("partition", "offset", "timestamp_ms", "value")


def _writes(rows: pa.Table, before: Mapping[str, Any], after: Any, headers: Any) -> pa.Table:
    """WRITES of keys that are replaced where they are; `headers` are those of what is there."""
    columns = {name: rows[name] for name in ("connector", "topic", "partition", "key", "action", "reason", "conflict")}
    columns |= {
        **before,
        "after": after,
        "headers": pa.nulls(len(rows), pa.string()),
        "replaced_offset": before["before_offset"],
        "replaced_timestamp_ms": before["before_timestamp_ms"],
        "replaced": before["before"],
        "replaced_headers": headers_texts(headers),
    }
    return pa.table([columns[name] for name in WRITES.names], schema=WRITES)
