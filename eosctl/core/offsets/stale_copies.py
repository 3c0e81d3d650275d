"""Copies of a key on partitions other than the one that is written to: tombstones for them. Pure.

A worker reads the partitions of an offsets topic in no order, so that any copy may be the one that it reads last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from eosctl.core.offsets.decision import KeyAction
from eosctl.core.offsets.records import is_nothing
from eosctl.core.offsets.views import PlannedWrite, Store, live

STALE_COPY = "stale_copy"


def with_stale_copies(writes: Iterable[PlannedWrite], stores: Mapping[str, Store]) -> list[PlannedWrite]:
    """Add to `writes`, after each, tombstones for the live copies of its key on other partitions; `stores` by topic.

    Afterwards the key has its value, or none, on one partition only. A value that stays is written once more: otherwise
    the tombstones would be newer, and count for readers that compare timestamps.
    """
    return [each for write in writes for each in _with_tombstones(write, stores[write.topic])]


def _with_tombstones(write: PlannedWrite, store: Store) -> Iterator[PlannedWrite]:
    tombstones = list(_tombstones(write, store))
    stays = not write.sends() and not is_nothing(write.after)
    yield replace(write, action=KeyAction.WRITE, reason="rewritten") if tombstones and stays else write
    yield from tombstones


def _tombstones(write: PlannedWrite, store: Store) -> Iterator[PlannedWrite]:
    newest = store.records.get(write.key.raw)
    copies = {} if newest is None else store.several.get(write.key.raw, {newest.partition: newest})
    for partition, record in sorted(copies.items()):
        if partition != write.partition and live(record) is not None:
            yield PlannedWrite(
                KeyAction.DELETE,
                STALE_COPY,
                write.key,
                write.topic,
                partition,
                before=record,
                after=None,
                replaces=record,
            )
