"""The effect of a file's records on a store, as columns.

The newer of two records of a key counts, then keys are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from eosctl.core.offsets.records import IgnoredKey, decode_key
from eosctl.core.offsets.views import KeyAction
from eosctl.core.records import UNKNOWN
from eosctl.engine.columns import arrow_schema, batch_of_columns, filter_rows, one_array, row_numbers, same
from eosctl.engine.keys import homes_by, homes_of, owners_of, places_of, renamed, rows_of
from eosctl.engine.planned import writes_of
from eosctl.engine.reading.heads import headers_text
from eosctl.engine.rule import first_of, is_sent, newest_per_key
from eosctl.engine.stores import ColumnStore

INCOMING = arrow_schema(
    "line long, topic string, partition int, offset long, timestamp_ms long, key binary, value value, headers string"
)
"""The records of a file, with the line of each; partition, offset and timestamp are -1 if they are unknown."""

_KEEP, _WRITE, _DELETE = KeyAction.KEEP.value, KeyAction.WRITE.value, KeyAction.DELETE.value


class Superseded(NamedTuple):
    """The `line` of a record that is not written, because the one in line `by` is newer and has the same key."""

    line: int
    by: int


def belonging(incoming: pa.Table, connectors: Sequence[str]) -> pa.Table:
    """Keep the records of some connectors."""
    owners = owners_of(one_array(incoming["key"]))
    return filter_rows(incoming, pc.is_in(owners, value_set=pa.array(list(connectors), pa.string())))


def without_keyless(incoming: pa.Table) -> pa.Table:
    """Keep the records that have a key: a compacted topic takes no others."""
    return filter_rows(incoming, pc.is_valid(incoming["key"]))


def with_keys(incoming: pa.Table, keys: Sequence[bytes]) -> pa.Table:
    """Replace the keys."""
    return incoming.set_column(incoming.column_names.index("key"), "key", pa.array(keys, incoming["key"].type))


def owners_in(incoming: pa.Table) -> set[str]:
    """Return the connectors of the keys; keys that Connect ignores have none."""
    return set(pc.unique(owners_of(one_array(incoming["key"]))).drop_null().to_pylist())


def under_name(incoming: pa.Table, connector: str) -> pa.Table:
    """Put another connector's name into the keys; every other byte of them stays."""
    keys = one_array(incoming["key"])
    owners = owners_of(keys)
    renames = dict.fromkeys(pc.unique(owners).drop_null().to_pylist(), connector)
    return with_keys(incoming, renamed(keys, owners, renames).to_pylist())


def with_partitions(incoming: pa.Table, partitions: int, *, keep: bool) -> pa.Table:
    """Add `home`, the partition where Connect puts the key, and `to`, the one that the record goes to.

    With `keep` that is the partition in the file, if it has one.
    """
    to = homes = homes_of(one_array(incoming["key"]), partitions)
    if keep:
        given = incoming["partition"]
        to = pc.if_else(pc.equal(given, UNKNOWN), homes, given)
    return incoming.append_column("home", homes).append_column("to", to)


def by_home(placed: pa.Table) -> pa.Table:
    """Sort the records by `home`: all of a key are together, and mostly all that go to a partition."""
    return placed.sort_by("home")


def beyond(placed: pa.Table, partitions: int) -> list[tuple[int, int]]:
    """Return line and partition of the records that go to a partition the topic does not have, by line."""
    wrong = placed.filter(pc.greater_equal(placed["to"], partitions))
    return sorted(zip(wrong["line"].to_pylist(), wrong["to"].to_pylist(), strict=True))


def newest_incoming(placed: pa.Table, *, most: int) -> tuple[pa.Table, int, list[Superseded]]:
    """Return the newest record of each key and `to`, by key, and the others: their number, the first `most` by line.

    Within one partition the offset decides, across partitions the timestamp, then the line.
    """
    order = [("key", "ascending"), ("to", "ascending")]
    if pc.count_distinct(placed["key"]).as_py() == len(placed):
        return placed.sort_by(order), 0, []
    ranked = placed.drop_columns(["value", "headers"]).append_column("row", row_numbers(len(placed)))
    logs = first_of(ranked, ["key", "topic", "partition"], [("offset", "descending"), ("line", "descending")])
    best = first_of(logs, ["key", "to"], [("timestamp_ms", "descending"), ("line", "descending")])
    lost = ranked.filter(pc.invert(pc.is_in(ranked["line"], value_set=one_array(best["line"]))))
    first = lost.sort_by("line").slice(0, most)
    rivals = best.filter(pc.is_in(best["key"], value_set=one_array(first["key"])))
    by = dict(zip(_places(rivals), rivals["line"].to_pylist(), strict=True))
    rows = zip(first["line"].to_pylist(), _places(first), strict=True)
    superseded = [Superseded(line, by[place]) for line, place in rows]
    return placed.take(one_array(best["row"])).sort_by(order), len(lost), superseded


def _places(rows: pa.Table) -> list[tuple[bytes, int]]:
    return list(zip(rows["key"].to_pylist(), rows["to"].to_pylist(), strict=True))


def imported(incoming: pa.Table, store: ColumnStore, *, keep: bool, rewrite: bool) -> pa.Table:
    """Plan the import of the newest records (see `newest_incoming`), as WRITES.

    With `keep` a key is compared with the record on its partition. `rewrite` writes values again that are there
    already: an aborted record after such a value is then no longer the newest. A deletion of the key on another
    partition has the same effect, as it would be younger than the value.

    A partition gets the file's record for it. A write that sends nothing has in `after` the key's newest value, on
    whichever partition that is.
    """
    wanted = pa.table(
        {"topic": pa.repeat(store.topic, len(incoming)), "partition": incoming["to"], "key": incoming["key"]}
    )
    records = store.records()
    homes = homes_by(one_array(records["hash"]), store.partitions)
    there = records.filter(pc.is_in(homes, value_set=pc.unique(incoming["home"])))
    there = there.filter(pc.is_in(there["key"], value_set=one_array(wanted["key"])))
    newest = newest_per_key(there).records
    newest, replaced = newest.take(rows_of(wanted, newest)), there.take(places_of(wanted, there))
    value = incoming["value"]
    action, reason = _decided(incoming, replaced if keep else newest, replaced)
    is_equal = pc.equal(action, _KEEP)
    deleted = one_array(wanted["key"].filter(pc.equal(action, _DELETE)))
    beside = pc.and_(pc.is_valid(value), pc.is_in(wanted["key"], value_set=deleted))
    again = is_equal if rewrite else pc.and_(is_equal, beside)
    action = pc.if_else(again, pc.if_else(pc.is_null(value), _DELETE, _WRITE), action)
    reason = pc.if_else(again, "rewritten", reason)
    sends = pc.not_equal(action, _KEEP)
    is_live = pc.invert(pc.fill_null(newest["nothing"], fill_value=True))
    differs = pc.and_(is_live, pc.invert(same(newest["value"], value)))
    columns: dict[str, Any] = {name: wanted[name] for name in wanted.column_names} | {
        "connector": owners_of(one_array(incoming["key"])),
        "action": action,
        "reason": reason,
        "conflict": pc.and_(sends, differs),
        "after": pc.if_else(sends, value, newest["value"]),
        "headers": incoming["headers"],
    }
    return writes_of(columns, before=newest, replaced=replaced)


def _decided(incoming: pa.Table, there: pa.Table, replaced: pa.Table) -> tuple[Any, Any]:
    """Return action and reason, given the record `there` that counts now, and the one on the partition written to."""
    value, exists = incoming["value"], pc.is_valid(there["offset"])
    as_it_is = pc.and_(same(there["value"], value), same(replaced["value"], value))
    equal = pc.and_(pc.and_(exists, pc.is_valid(replaced["offset"])), as_it_is)
    is_older = pc.and_(
        pc.greater(incoming["timestamp_ms"], UNKNOWN),
        pc.fill_null(pc.greater(there["timestamp_ms"], incoming["timestamp_ms"]), fill_value=False),
    )
    deletes = pc.is_null(value)
    reason = pc.if_else(exists, pc.if_else(is_older, "over_newer", "differs"), "missing")
    reason = pc.if_else(equal, "equal", pc.if_else(deletes, "deleted_in_file", reason))
    return pc.if_else(equal, _KEEP, pc.if_else(deletes, _DELETE, _WRITE)), reason


def ignored_faults(writes: pa.Table) -> list[str]:
    """Explain why Connect ignores keys of the WRITES that put a record: one fault for each such key."""
    odd = writes.filter(pc.and_(is_sent(writes), pc.is_null(writes["connector"])))["key"].to_pylist()
    return [str(key.fault) for key in map(decode_key, odd) if isinstance(key, IgnoredKey)]


def of_backup(batch: pa.RecordBatch, *, first: int) -> pa.Table:
    """Convert BACKUP to INCOMING; `first` is the number of its first record in the file."""
    unknown = pa.scalar(UNKNOWN, pa.int64())
    lines = pc.add(row_numbers(batch.num_rows), first)
    numbers = [pc.fill_null(batch[name], unknown) for name in ("offset", "timestamp_ms")]
    columns = [lines, batch["topic"], batch["partition"], *numbers, batch["key"], batch["value"], batch["headers"]]
    return pa.Table.from_batches([batch_of_columns(columns, INCOMING)])


def incoming_table(columns: Sequence[Sequence[Any]]) -> pa.Table:
    """Return columns as INCOMING; the last one has Headers. No columns make an empty table."""
    *others, headers = columns or [()] * len(INCOMING)
    texts = [headers_text(each) if each else None for each in headers]
    return pa.Table.from_batches([batch_of_columns([*others, texts], INCOMING)])


def elsewhere(writes: pa.Table, most: int) -> tuple[int, list[tuple[int, int]]]:
    """Count the WRITES that put a record on another partition than the newest one of its key is on.

    Also returns the pairs of these partitions, old and new, of the first `most`.
    """
    there = writes.filter(pc.and_(is_sent(writes), pc.not_equal(writes["before_partition"], writes["partition"])))
    first = there.slice(0, most)
    return len(there), list(zip(first["before_partition"].to_pylist(), first["partition"].to_pylist(), strict=True))
