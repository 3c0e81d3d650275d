"""A store of some records, as rules are asked about it."""

from __future__ import annotations

from pathlib import Path

from eosctl.core.offsets.views import Store, fold_store
from eosctl.core.records import Bounds, Record, TopicRead
from eosctl.engine.files import Spool
from eosctl.engine.reading.newest import records_table
from eosctl.engine.stores import ColumnStore

PARTITIONS = 5
NO_SPOOL = Spool(Path("no", "such", "folder"))
"""For what fits into memory."""


def store(*records: Record) -> Store:
    bounds = tuple(Bounds(partition, 0, 9, 9) for partition in range(PARTITIONS))
    in_order = tuple(sorted(records, key=lambda each: (each.partition, each.offset)))
    return fold_store(TopicRead("t", bounds, in_order, len(in_order)))


def column_store(folded: Store) -> ColumnStore:
    """The same as columns."""
    several = [record for places in folded.several.values() for record in places.values()]
    single = [record for key, record in folded.records.items() if key not in folded.several]
    records = records_table(folded.topic, [*single, *several], partitions=folded.partitions)
    return ColumnStore(folded.topic, folded.partitions, records)
