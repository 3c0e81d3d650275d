"""The action for each key: the one rule of merge and migrate, over columns; tests hold it to a rule for one key.

    newest = newest_per_key(source_records)                  # of all source stores
    claims = claims_of(newest.records, routes, sources=["connect-offsets"])
    decided = decide(strongest(claims, policy), newest_per_key(target_records).records, sizes, policy)

Tables in, tables out, nothing read or written. Keys and values stay binary and are compared as bytes. A null value is a
deletion, a fact like any other and never a missing one, and so are no bytes and JSON null, for Connect reads them so.
All records of a key must be in the tables of one call: `places` brings them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eosctl.core.offsets.migration import ConnectorRoute
from eosctl.core.offsets.views import KeyAction, Policy
from eosctl.engine.columns import DECISIONS, RECORDS, dictionary_of, filter_rows, meaning, one_array, row_numbers, same
from eosctl.engine.keys import are_repeated, hash_column, renamed, rows_of

_SENDS = pa.array([KeyAction.WRITE.value, KeyAction.DELETE.value], pa.string())


class Newest(Struct, frozen=True):
    """The newest record of each topic and key, and how many keys were `scattered` over partitions of their topic."""

    records: pa.Table
    scattered: int = 0


def newest_per_key(records: pa.Table) -> Newest:
    """Return the newest record of each topic and key, of RECORDS.

    Within a partition the offset says which is newest. Offsets of different partitions can't be compared: there the
    timestamp decides, then the place where Connect's producer puts the key, as in `views.fold_store`. Only keys that
    may occur several times are ranked; `records` need not have been folded.
    """
    single, several = _single_and_several(records)
    if several is None:
        return Newest(single)
    of_partitions = _newest_per_place(several)
    found = of_partitions.group_by(["topic", "key"]).aggregate([([], "count_all")])
    scattered = pc.sum(pc.greater(found["count_all"], 1)).as_py() or 0
    order = [(name, "descending") for name in ("timestamp_ms", "at_home", "offset", "partition")]
    newest = first_of(of_partitions, ["topic", "key"], order) if scattered else of_partitions
    return Newest(pa.concat_tables([single, newest]), scattered)


def newest_per_place(records: pa.Table) -> pa.Table:
    """Return the newest record of each topic, partition and key, of RECORDS."""
    single, several = _single_and_several(records)
    return single if several is None else pa.concat_tables([single, _newest_per_place(several)])


def _newest_per_place(records: pa.Table) -> pa.Table:
    return first_of(records, ["topic", "key", "partition"], [("offset", "descending")])


def _single_and_several(rows: pa.Table) -> tuple[pa.Table, pa.Table | None]:
    """Split rows into those whose topic and key occur once, and those that may occur several times, None for none."""
    repeated = are_repeated(rows)
    several = rows.filter(repeated)
    if len(several.group_by(["topic", "key"]).aggregate([])) == len(several):
        return rows, None  # nearly always: of half a million keys some sixty have the hash of another
    return filter_rows(rows, pc.invert(repeated)), several


def first_of(rows: pa.Table, key: list[str], order: list[tuple[str, str]]) -> pa.Table:
    """Return the first row of each key, in the given order."""
    ranked = pa.table({name: rows[name] for name in dict.fromkeys([*key, *(name for name, _ in order)])})
    for name, _ in order:
        if pa.types.is_boolean(ranked[name].type):  # which Arrow does not sort by
            ranked = ranked.set_column(ranked.column_names.index(name), name, ranked[name].cast(pa.int8()))
    best = pc.sort_indices(ranked, sort_keys=order)
    keys = pa.table({name: rows[name].take(best) for name in key}).append_column("rank", row_numbers(len(rows)))
    first = keys.group_by(key).aggregate([("rank", "min")])["rank_min"]
    return rows.take(best.take(one_array(first)))


def claims_of(newest: pa.Table, routes: Sequence[ConnectorRoute], *, sources: Sequence[str]) -> pa.Table:
    """Return the records of routed connectors as claims: with the topic and key that each will have in the target.

    `sources` are in order of precedence. `value` is null for every deletion, in whichever form: nothing else is ever
    sent for one.
    """
    chosen = filter_rows(newest, pc.is_in(newest["connector"], value_set=_texts(route.connector for route in routes)))
    connectors = one_array(chosen["connector"])
    names = dictionary_of(connectors, {r.connector: r.target_connector for r in routes}, pa.string())
    topics = dictionary_of(connectors, {r.connector: r.target_topic for r in routes}, pa.string())
    renames = {r.connector: r.target_connector for r in routes if r.connector != r.target_connector}
    order = {name: number for number, name in enumerate(sources)}
    keys = renamed(given := one_array(chosen["key"]), connectors, renames)
    is_renamed = pc.not_equal(connectors, names)
    return pa.table(
        {
            "connector": connectors,
            "target_connector": names,
            "source_topic": chosen["topic"],
            "source_partition": chosen["partition"],
            "source_offset": chosen["offset"],
            "timestamp_ms": chosen["timestamp_ms"],
            "source_key": _only(given, is_renamed) if renames else pa.nulls(len(given), given.type),
            "value": meaning(chosen["value"], chosen["nothing"]),
            "topic": topics,
            "key": keys,
            "hash": chosen["hash"] if keys is given else hash_column(keys),
            "renamed": is_renamed,
            "precedence": dictionary_of(one_array(chosen["topic"]), order, pa.int32()),
        }
    )


def _only(keys: pa.Array, which: pa.Array) -> pa.Array:
    """Return `keys` with null for the others: Arrow's `if_else` would keep the bytes of these."""
    return keys.take(pc.if_else(which, row_numbers(len(keys)), pa.scalar(None, pa.int64())))


def _texts(names: Iterable[str]) -> pa.Array:
    return pa.array(list(names), pa.string())


def strongest(claims: pa.Table, policy: Policy) -> pa.Table:
    """Return the claim that counts for each target key, with `collides` and the number of `claims` to the key.

    A record that already has the final name counts as present, a renamed one as incoming: so `keep-target` and `fail`
    prefer the first, `take-source` the second; `newest` prefers the later timestamp. Then the source with precedence. A
    rename that brings two different values onto one key is a conflict, whatever the target has.
    """
    single, several = _single_and_several(claims)
    count = len(single)
    found = single.append_column("collides", _all(count, value=False))
    found = found.append_column("claims", pa.repeat(pa.scalar(1, pa.int64()), count))
    return found if several is None else pa.concat_tables([found, _weighed(several, policy)])


def _weighed(claims: pa.Table, policy: Policy) -> pa.Table:
    key = ["topic", "key"]
    weighed = claims.append_column("live", pc.is_valid(claims["value"]).cast(pa.int8()))
    weighed = weighed.append_column("as", claims["renamed"].cast(pa.int8()))
    facts = weighed.group_by(key).aggregate(
        [([], "count_all"), ("as", "min"), ("as", "max"), ("live", "sum"), ("value", "count_distinct")]
    )
    mixed = pc.not_equal(facts["as_min"], facts["as_max"])
    some_deleted = pc.and_(pc.greater(facts["live_sum"], 0), pc.less(facts["live_sum"], facts["count_all"]))
    differ = pc.or_(some_deleted, pc.greater(facts["value_count_distinct"], 1))
    facts = pa.table(
        {**{name: facts[name] for name in key}, "collides": pc.and_(mixed, differ), "claims": facts["count_all"]}
    )
    best = first_of(weighed, key, [*_rank(policy), *_WEAKER]).drop_columns(["live", "as"])
    there = rows_of(best, facts)
    return best.append_column("collides", facts["collides"].take(there)).append_column(
        "claims", facts["claims"].take(there)
    )


_WEAKER = (
    *(("precedence", "ascending"), ("timestamp_ms", "descending")),
    *(("source_offset", "descending"), ("source_partition", "ascending")),
)


def _rank(policy: Policy) -> list[tuple[str, str]]:
    if policy is Policy.NEWEST:
        return [("timestamp_ms", "descending"), ("as", "ascending")]
    return [("as", "descending" if policy is Policy.TAKE_SOURCE else "ascending")]


def _all(count: int, *, value: bool) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.bool_()), count)


def wanted(records: pa.Table, claims: pa.Table) -> pa.Table:
    """Return the `records` whose hash is that of a claimed key; in a large target they are few."""
    if not len(records):
        return records  # to look up no hash takes the time of the claims all the same
    return records.filter(pc.is_in(records["hash"], value_set=one_array(claims["hash"])))


def decide(
    claims: pa.Table, target: pa.Table, sizes: Mapping[str, int], policy: Policy, *, fallback: bool = False
) -> pa.Table:
    """Decide on each target key, as DECISIONS.

    `claims` are the `strongest`, `target` is RECORDS, newest of each key, `sizes` are the numbers of partitions of the
    target topics.

    A target without a record takes a live value and needs no tombstone. A difference is a conflict, and so is a
    deletion against a value, for which `newest` keeps the target unless the source's timestamp is later. `delete` sends
    a tombstone, whatever form the source's deletion has. With `fallback` a deletion counts as no record, so that a
    value on either side stands: the view that KIP-618 documents of a connector's two stores.
    """
    found = target.take(there := rows_of(claims, target)) if len(target) else _nowhere(len(claims))
    exists = pc.is_valid(there) if len(target) else _all(len(claims), value=False)
    facts = _Facts(
        deleted=pc.is_null(claims["value"]),
        there=exists,
        same=same(claims["value"], meaning(found["value"], found["nothing"])),
        gone=pc.fill_null(found["nothing"], fill_value=False),
        newer=pc.fill_null(pc.greater(claims["timestamp_ms"], found["timestamp_ms"]), fill_value=False),
        collides=claims["collides"],
    )
    action, reason, conflict = facts.outcome(policy, fallback=fallback)
    of_target = (
        ("partition", "partition"),
        *((f"target_{name}", name) for name in ("offset", "timestamp_ms", "headers")),
    )
    columns: dict[str, Any] = {name: claims[name] for name in claims.column_names if name in DECISIONS.names}
    columns |= {name: found[of] for name, of in (*of_target, ("before", "value"), ("before_nothing", "nothing"))}
    columns |= {
        "partitions": dictionary_of(one_array(claims["topic"]), dict(sizes), pa.int32()),
        "target_exists": exists, "action": action, "reason": reason, "conflict": conflict,
    }  # fmt: skip
    return pa.table([columns[name] for name in DECISIONS.names], schema=DECISIONS)


def _nowhere(count: int) -> pa.Table:
    return pa.table({field.name: pa.nulls(count, field.type) for field in RECORDS})


class _Facts(Struct, frozen=True):
    """The facts about each claimed key, as columns of booleans.

    `deleted`: the source's value is a deletion. `there`: the target has the key. `same`: both values mean the same.
    `gone`: the target's value is a deletion. `newer`: the source's record is newer. `collides`: a rename brings another
    value onto the key.
    """

    deleted: Any
    there: Any
    same: Any
    gone: Any
    newer: Any
    collides: Any

    def outcome(self, policy: Policy, *, fallback: bool) -> tuple[Any, Any, Any]:
        """Return action, reason and conflict of each key: the first branch that holds."""
        absent, differs = pc.invert(self.there), pc.and_(self.there, pc.invert(self.same))
        never, always = pc.and_(self.there, absent), pc.or_(self.there, absent)
        stands = {Policy.KEEP_TARGET: always, Policy.NEWEST: pc.invert(self.newer)}.get(policy, never)
        fails = policy is Policy.FAIL
        branches = [
            (self.collides if fails else never, KeyAction.CONFLICT, "rename_collides"),
            (pc.and_(absent, self.deleted), KeyAction.KEEP, "nothing_to_delete"),
            (absent, KeyAction.WRITE, "missing"),
            (self.same, KeyAction.KEEP, "equal"),
            (self.deleted if fallback else never, KeyAction.KEEP, "deleted_in_source"),
            (self.gone if fallback else never, KeyAction.WRITE, "deleted_in_target"),
            (always if fails else never, KeyAction.CONFLICT, "undecided"),
            (stands, KeyAction.KEEP, "conflict_kept"),
            (self.deleted, KeyAction.DELETE, "source_taken"),
            (always, KeyAction.WRITE, "source_taken"),
        ]
        conditions, actions, words = zip(*branches, strict=True)
        numbers = [pa.scalar(number, pa.int8()) for number in range(len(branches))]
        taken = one_array(pc.case_when(pc.make_struct(*conditions), *numbers))
        action, reason = (pa.array(each, pa.string()).take(taken) for each in (list(actions), list(words)))
        return action, reason, pc.or_(differs, self.collides)


def is_sent(decisions: pa.Table) -> Any:
    """Tell which decisions send something."""
    return pc.is_in(decisions["action"], value_set=_SENDS)


def sent(decisions: pa.Table) -> pa.Table:
    """Return the decisions that send something."""
    return filter_rows(decisions, is_sent(decisions))
