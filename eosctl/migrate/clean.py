"""Tombstones over copies of keys on partitions other than the one that a migration writes them to."""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.app import App
from eosctl.core.offsets.migration import MigrationPlan
from eosctl.core.records import OutRecord, Record
from eosctl.migrate.targets import wait_until_visible
from eosctl.migrate.topics import app_of
from eosctl.offsets.transactions import in_transactions


def delete_copies(app: App, plan: MigrationPlan, copies: Iterable[Record]) -> int:
    """Puts a tombstone over each copy, in transactions under `plan.cleaning_id()`; returns how many.

    They come before the values: across partitions the younger record counts for whoever goes by time.
    """
    here, count = app_of(app, plan.targets[0]), 0
    tombstones = (OutRecord(copy.topic, copy.key, None, partition=copy.partition) for copy in copies)
    for records in in_transactions(tombstones):
        with here.with_whole_timeout().topics() as topics:
            written = topics.write(records, transactional_id=plan.cleaning_id())
        last_offsets: dict[tuple[str, int], int] = {}
        for each in written:
            place = each.topic, each.partition
            last_offsets[place] = max(last_offsets.get(place, -1), each.offset)
        wait_until_visible(here.with_whole_timeout(), last_offsets)
        count += len(records)
    return count
