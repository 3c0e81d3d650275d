"""Plans the setting and resetting of single offsets: the keys, stores and partitions to write.

Existing keys keep their bytes; a key is made up only for a source partition that no store has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eosctl.core.java.json import encode_key
from eosctl.core.offsets.decision import KeyAction
from eosctl.core.offsets.names import DEDICATED, GLOBAL
from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.core.offsets.stale_copies import with_stale_copies
from eosctl.core.offsets.views import PlannedWrite, Store, connector_keys, live
from eosctl.errors import UsageError


def plan_set(stores: Mapping[str, Store], wanted: OffsetKey, value: bytes) -> list[PlannedWrite]:
    """Plan `value` for the source partition of `wanted` in every store, the dedicated one first, as Connect does.

    Copies of its keys on other partitions get tombstones. Every spelling with a live value is written, since a task
    asks for one of them and it is not known for which. Raises UsageError for a source partition that no connector can
    have.
    """
    ordered = [stores[name] for name in (DEDICATED, GLOBAL) if name in stores]
    keys = spellings_to_set(ordered, wanted)
    writes = [_set(key, store, value) for store in ordered for key in keys]
    return with_stale_copies(writes, {store.topic: store for store in ordered})


def spellings_to_set(stores: Sequence[Store], wanted: OffsetKey) -> list[OffsetKey]:
    """Return the keys to write a value under: the live spellings, else the one deleted last, else Connect's own."""
    known = spellings(stores, wanted)
    alive = [key for key in known if any(live(store.records.get(key.raw)) for store in stores)]
    if alive:
        return alive
    if known:
        return [max(known, key=lambda key: _last_change_ms(key, stores))]
    made = decode_key(encode_key(wanted.connector, wanted.partition))
    if not isinstance(made, OffsetKey):
        raise UsageError(f"{wanted.partition!r} cannot be a source partition")
    return [made]


def spellings(stores: Iterable[Store], wanted: OffsetKey) -> list[OffsetKey]:
    """Return the keys that mean the source partition of `wanted`, by their bytes."""
    return [key for key in connector_keys(stores, wanted.connector) if key.identity == wanted.identity]


def _last_change_ms(key: OffsetKey, stores: Iterable[Store]) -> int:
    return max(store.records[key.raw].timestamp_ms for store in stores if key.raw in store.records)


def _set(key: OffsetKey, store: Store, value: bytes) -> PlannedWrite:
    present, partition = store.records.get(key.raw), store.home(key.raw)
    replaces = store.at(key.raw, partition)
    equal = present is not None and present.value == value and present.partition == partition
    return PlannedWrite(
        KeyAction.KEEP if equal else KeyAction.WRITE,
        "equal" if equal else "set",
        key,
        store.topic,
        partition,
        before=present,
        after=value,
        replaces=replaces,
    )


def plan_reset(stores: Mapping[str, Store], keys: Iterable[OffsetKey]) -> list[PlannedWrite]:
    """Plan tombstones for `keys` on every partition with a value, in the global store first (KAFKA-15018).

    In the other order, a crash in between would leave an old global value, which is documented to come back.
    """
    ordered = [stores[name] for name in (GLOBAL, DEDICATED) if name in stores]
    return [write for store in ordered for key in keys for write in _resets(key, store)]


def _resets(key: OffsetKey, store: Store) -> Iterable[PlannedWrite]:
    newest = store.records.get(key.raw)
    if newest is None:
        return
    for partition, record in sorted(store.several.get(key.raw, {newest.partition: newest}).items()):
        gone = live(record) is None
        yield PlannedWrite(
            KeyAction.KEEP if gone else KeyAction.DELETE,
            "deleted_already" if gone else "reset",
            key,
            store.topic,
            partition,
            before=record,
            after=record.value if gone else None,
            replaces=record,
        )
