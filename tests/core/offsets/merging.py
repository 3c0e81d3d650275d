"""A merge of stores given as rows: by the columns that `offsets merge` uses, and key by key as it was specified."""

from __future__ import annotations

from pyarrow import concat_tables

from eosctl.core.offsets.migration import PART_BYTES, ConnectorRoute
from eosctl.core.offsets.views import KeyAction, PlannedWrite, Policy, Prefer, Store, connector_keys, policy_of
from eosctl.core.records import Record
from eosctl.engine import rule
from eosctl.engine.columns import RECORDS, Table
from eosctl.engine.planned import rows_of
from eosctl.engine.reading.newest import records_table
from eosctl.engine.stores import merge_stores
from tests.fakes.decision import Cell, Decision, KeyClaim, decide


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
    pairs = {connector: (source, target)}
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


def decided_by_columns(
    claims: list[KeyClaim], target: Cell | None, policy: Policy, *, fallback: bool = False
) -> tuple[KeyClaim, Decision]:
    """`decide_claims` by the rule of merge and migrate, of at least one claim."""
    routes = [ConnectorRoute("old", "new", "t"), ConnectorRoute("new", "new", "t")]
    sources = [f"s{claim.precedence}" for claim in sorted(claims, key=lambda claim: claim.precedence)]
    tables = [
        _one_record(f"s{claim.precedence}", b'["old",{}]' if claim.renamed else b'["new",{}]', claim.cell, number)
        for number, claim in enumerate(claims)
    ]
    there = RECORDS.empty_table() if target is None else _one_record("t", b'["new",{}]', target, 0)
    offered = rule.claims_of(concat_tables(tables), routes, sources=list(dict.fromkeys(sources)))
    [row] = rule.decide(rule.strongest(offered, policy), there, {"t": 3}, policy, fallback=fallback).to_pylist()
    return claims[row["source_offset"]], Decision(KeyAction(row["action"]), row["reason"], row["conflict"])


def decide_by_columns(source: Cell | None, target: Cell | None, policy: Policy, *, fallback: bool = False) -> Decision:
    """`decide` by the same; of a key that no source has the rule is not asked."""
    if source is None:
        return decide(source, target, policy, fallback=fallback)
    return decided_by_columns([KeyClaim(source, False, 0, "new")], target, policy, fallback=fallback)[1]


def _one_record(topic: str, key: bytes, cell: Cell, offset: int) -> Table:
    return records_table(topic, [Record(topic, 0, offset, cell.timestamp_ms, key, cell.value)], partitions=3)
