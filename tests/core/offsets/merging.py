"""A merge of stores given as rows: by the columns that `offsets merge` uses, and key by key as it was specified."""

from __future__ import annotations

from eosctl.core.offsets.decision import Cell, KeyAction, decide
from eosctl.core.offsets.migration import PART_BYTES
from eosctl.core.offsets.views import PlannedWrite, Prefer, Store, connector_keys, policy_of
from eosctl.core.records import Record
from eosctl.engine.planned import rows_of
from eosctl.engine.reading.newest import records_table
from eosctl.engine.stores import ColumnStore, merge_stores


def columns(store: Store) -> ColumnStore:
    """A store as columns: the newest record of each partition and key."""
    scattered = [record for found in store.several.values() for record in found.values()]
    records = [*(record for key, record in store.records.items() if key not in store.several), *scattered]
    table = records_table(store.topic, records, partitions=store.partitions)
    return ColumnStore(store.topic, store.partitions, table)


def plan_merge(
    source: Store,
    target: Store,
    connector: str,
    *,
    into: str,
    prefer: Prefer = Prefer.DEDICATED,
    fallback: bool = False,
    part_bytes: int = PART_BYTES,
) -> list[PlannedWrite]:
    """What `offsets merge` plans."""
    pairs = {connector: (columns(source), columns(target))}
    tables = merge_stores(pairs, policy_of(into, prefer), fallback=fallback, part_bytes=part_bytes)
    return [write for table in tables for write in rows_of(table)]


def merged_key_by_key(
    source: Store,
    target: Store,
    connector: str,
    *,
    into: str,
    prefer: Prefer = Prefer.DEDICATED,
    fallback: bool = False,
) -> list[PlannedWrite]:
    """What it should plan, by `decide` for each key."""
    policy, keys = policy_of(into, prefer), connector_keys((source, target), connector)
    found = []
    for key in keys:
        offered, there = source.records.get(key.raw), target.records.get(key.raw)
        decision = decide(_cell(offered), _cell(there), policy, fallback=fallback and prefer is not Prefer.NEWEST)
        value = there.value if there else None
        if decision.action in (KeyAction.WRITE, KeyAction.DELETE):
            value = offered.value if offered and decision.action is KeyAction.WRITE else None
        partition = there.partition if there else target.home(key.raw)
        before, replaces = there, target.at(key.raw, partition)
        found.append(
            PlannedWrite(
                decision.action, decision.reason, key, target.topic, partition, before, value, replaces,
                decision.conflict,
            )
        )  # fmt: skip
    return found


def _cell(record: Record | None) -> Cell | None:
    return None if record is None else Cell(record.value, record.timestamp_ms)
