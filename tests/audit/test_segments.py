"""Batches of one partition, folded: which parts transactions have there, as tables of what comes and what is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from eosctl.audit.log.segments import Part, PartitionFold
from eosctl.core.records import Batch
from tests.audit.log_scene import batch


@dataclass
class Told:
    """What the fold says, in words."""

    words: list[str] = field(default_factory=list)

    def data(self, batch: Batch) -> None:
        self.words.append(f"data {batch.base_offset}")

    def ended(self, part: Part) -> None:
        state = "commit" if part.is_committed else "abort"
        more = " cut" if part.is_cut else " unmarked" if part.is_unmarked else ""
        self.words.append(f"{state} {part.producer_id}/{part.epoch} {part.first_offset}-{part.last_offset}{more}")

    def bare_marker(self, marker: Batch, *, may_be_cut: bool) -> None:
        self.words.append(f"bare {marker.producer_id}/{marker.producer_epoch}{' cut' if may_be_cut else ''}")

    def went_back(self, batch: Batch, newer_epoch: int) -> None:
        self.words.append(f"back {batch.producer_epoch}<{newer_epoch}")

    def lost(self, part: Part) -> None:
        self.words.append(f"lost {part.producer_id}/{part.epoch}")


def marker(offset: int, *, commit: bool | None = True, **values: Any) -> Batch:
    return batch(base_offset=offset, is_control=True, commit=commit, records=0, coordinator_epoch=0, **values)


def plain(offset: int, **values: Any) -> Batch:
    return batch(base_offset=offset, is_transactional=False, **values)


CASES: dict[str, tuple[list[Batch], list[str]]] = {
    "a transaction": (
        [batch(base_offset=0), batch(base_offset=1, last_offset=4, records=4), marker(5)],
        ["data 0", "data 1", "commit 7/0 0-4"],
    ),
    "an epoch of its own": ([batch(), marker(1, producer_epoch=1)], ["data 0", "commit 7/0 0-0"]),
    "two producers side by side": (
        [batch(), batch(base_offset=1, producer_id=8), marker(2, producer_id=8, commit=False), marker(3)],
        ["data 0", "data 1", "abort 8/0 1-1", "commit 7/0 0-0"],
    ),
    "a marker of nothing": ([marker(0), batch(base_offset=1), marker(2)], ["bare 7/0", "data 1", "commit 7/0 1-1"]),
    "no transaction": ([plain(0), plain(1, producer_id=-1)], ["data 0", "data 1"]),
    "a control record of another kind": ([batch(), marker(1, commit=None), marker(2)], ["data 0", "commit 7/0 0-0"]),
    "a lost marker": (
        [batch(), batch(base_offset=1, producer_epoch=1), marker(2, producer_epoch=1)],
        ["data 0", "data 1", "commit 7/0 0-0 unmarked", "commit 7/1 1-1"],
    ),
    "an older epoch": (
        [batch(producer_epoch=2), marker(1, producer_epoch=3), batch(base_offset=2, producer_epoch=2), marker(3)],
        ["data 0", "commit 7/2 0-0", "back 2<3", "data 2", "commit 7/2 2-2"],
    ),
    "a lost marker, and then an abort": (
        [batch(), batch(base_offset=1, producer_epoch=1), marker(2, producer_epoch=2, commit=False)],
        ["data 0", "data 1", "abort 7/0 0-0 unmarked", "abort 7/1 1-1"],
    ),
    "a marker that may lie in a hole": (
        [batch(), batch(base_offset=4, producer_epoch=1), marker(5, producer_epoch=1)],
        ["data 0", "data 4", "lost 7/0", "commit 7/1 4-4"],
    ),
    "what compaction emptied": ([batch(last_offset=3, records=0), marker(4)], ["bare 7/0 cut"]),
    "plain batches have no epochs": (
        [plain(0, producer_id=-1), plain(1, producer_id=-1, producer_epoch=-1)],
        ["data 0", "data 1"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_partition_holds(name: str) -> None:
    batches, words = CASES[name]
    told = Told()
    fold = PartitionFold(told, next_offset=batches[0].base_offset)
    for each in batches:
        fold.take(each)
    assert told.words == words
    assert list(fold.still_open()) == []


def test_what_is_still_open() -> None:
    fold = PartitionFold(Told())
    fold.take(batch())
    fold.take(batch(base_offset=1, producer_id=8))
    fold.take(marker(2))
    assert [(part.producer_id, part.first_offset, part.marker) for part in fold.still_open()] == [(8, 1, None)]


def test_a_producer_whose_first_batch_may_lie_before_the_window() -> None:
    told = Told()
    fold = PartitionFold(told, starts_inside=True)
    for each in (batch(base_offset=9), marker(10), batch(base_offset=11), marker(12)):
        fold.take(each)
    assert [word for word in told.words if "commit" in word] == ["commit 7/0 9-9 cut", "commit 7/0 11-11"]


def test_what_compaction_removed_is_counted() -> None:
    """Between batches, and out of them."""
    fold = PartitionFold(Told())
    fold.take(batch(first_timestamp_ms=1000))
    fold.take(batch(base_offset=5, first_timestamp_ms=2000))
    fold.take(batch(base_offset=6, last_offset=9, records=1, first_timestamp_ms=3000))
    fold.take(marker(10, first_timestamp_ms=4000))
    assert (fold.removed, fold.removed_ms) == (4 + 3, 4000), "the time of the marker behind it, which a broker gave"
