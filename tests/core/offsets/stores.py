"""A store of some records, as rules are asked about it."""

from __future__ import annotations

from pathlib import Path

from eosctl.core.offsets.views import Store, fold_store
from eosctl.core.records import Bounds, Record, TopicRead
from eosctl.engine.files import SpillFile

PARTITIONS = 5
NO_SPOOL = SpillFile(Path("no", "such", "folder"))
"""For what fits into memory."""


def store(*records: Record) -> Store:
    bounds = tuple(Bounds(partition, 0, 9, 9) for partition in range(PARTITIONS))
    in_order = tuple(sorted(records, key=lambda each: (each.partition, each.offset)))
    return fold_store(TopicRead("t", bounds, in_order, len(in_order)))
