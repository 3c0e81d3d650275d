"""Tombstones over copies of keys on partitions other than the one that a migration writes them to."""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.app import App
from eosctl.core.offsets.migration import MigrationPlan
from eosctl.core.records import Record
from eosctl.engine.transactions import in_transactions
from eosctl.engine.write import tombstones
from eosctl.migrate.topics import app_of, visible_bounds


def delete_copies(app: App, plan: MigrationPlan, copies: Iterable[Record], *, timestamp_ms: int) -> int:
    """Put a tombstone over each copy, in transactions under `plan.cleaning_id()`, and return their number.

    They come before the values, and so do their timestamps: across partitions the younger record counts for readers
    that go by time.
    """
    here, count = app_of(app, plan.targets[0]), 0
    for rows in in_transactions(tombstones(copies, timestamp_ms=timestamp_ms)):
        with here.with_whole_timeout().topic_writer() as topics:
            last_offsets = topics.write_columns([rows], total=len(rows), transactional_id=plan.cleaning_id())
        with (waiting := here.with_whole_timeout()).topics() as topics:
            visible_bounds(waiting, topics, last_offsets)
        count += len(rows)
    return count
