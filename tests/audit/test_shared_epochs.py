"""Which transactions have offsets, by epoch or by the time of their markers: what is sure, and what nobody can say."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from eosctl.audit.log.ledger import Has, Ledger
from eosctl.audit.log.segments import Part, _margins
from eosctl.core.ids import ProducerId
from tests.audit.log_scene import OUT, batch


def part(ended_ms: int, *, at: int = 0, first_ms: int | None = None, epoch: int = 0, bump: int = 0) -> Part:
    began_ms = ended_ms - 5 if first_ms is None else first_ms
    made = Part(OUT, at, ProducerId(7), epoch, 0, 0, began_ms, began_ms, 1, is_cut=False)
    marker = batch(is_control=True, commit=True, producer_epoch=epoch + bump, first_timestamp_ms=ended_ms, records=0)
    made.end(marker, raises_epoch=bump > 0)
    return made


def judged(offsets: Iterable[Part], outputs: Iterable[Part]) -> tuple[list[int], int]:
    """When those ended that surely have no offsets, and of how many nobody can say."""
    known = Ledger()
    for each in offsets:
        known.note_offsets(each, Has.OFFSET)
    known.close_offsets()
    found = [each.ended_ms for one in outputs for each in known.without(one)]
    unsure = 0
    for _producer, parts, count in known.finish_shared():
        found += [each.ended_ms for each in parts]
        unsure += count
    return found, unsure


def test_every_second_transaction_without_offsets_is_no_proof() -> None:
    """Each partition had a cursor of its own, so that one transaction with offsets paid for its neighbours."""
    outputs = [part(number * 100, at=number % 12) for number in range(600)]
    offsets = [part(number * 100) for number in range(0, 600, 2)]
    _found, unsure = judged(offsets, outputs)
    assert unsure >= 300
    assert judged((part(number * 100) for number in range(600)), outputs) == ([], 0), "of an honest one all are sure"


@pytest.mark.parametrize("apart_ms", [500, 1000, 2000])
def test_some_transactions_without_offsets_among_many(apart_ms: int) -> None:
    outputs = [part(number * apart_ms) for number in range(600)]
    found, unsure = judged([part(number * apart_ms) for number in range(600) if number % 100], outputs)
    assert len(found) + unsure >= 6
    assert found or apart_ms < 2000


def test_a_transaction_may_have_parts_everywhere() -> None:
    """Their markers are some milliseconds apart, also those of several offsets partitions."""
    outputs = [part(number * 50 + at, at=at) for at in range(3) for number in range(100)]
    offsets = [part(number * 50 + at, at=at) for at in range(2) for number in range(100)]
    assert judged(offsets, outputs) == ([], 0)


def test_two_offsets_partitions_do_not_pay_for_two_transactions() -> None:
    offsets = [part(10_000, at=0), part(10_001, at=1)]
    assert judged(offsets, [part(10_000), part(10_300)]) == ([], 1)


def test_a_workers_clock_says_nothing() -> None:
    """A worker two seconds ahead of the brokers was accused: its records seemed to be younger than their markers."""
    outputs = [part(number * 1000 + 900, first_ms=number * 1000 + 2000) for number in range(20)]
    offsets = [part(number * 1000 + 900, first_ms=number * 1000 + 2890) for number in range(20)]
    assert judged(offsets, outputs) == ([], 0)


@pytest.mark.parametrize("skew_ms", [-300, 300, 900])
def test_the_clocks_of_brokers_may_differ(skew_ms: int) -> None:
    """Of one partition, whose transactions are in order: none is accused, however close they are."""
    found, _unsure = judged(
        [part(5_000 + number * 200) for number in range(50)],
        [part(5_000 + number * 200 + skew_ms) for number in range(50)],
    )
    assert found == []
    assert judged([part(5_000)], [part(5_000 + skew_ms)]) == ([], 1), "of one, nobody can say that they differ"


@pytest.mark.parametrize(("offsets_ms", "output_ms"), [(10_005, 70_000), (70_000, 10_005)])
def test_a_marker_that_came_late_accuses_nobody(offsets_ms: int, output_ms: int) -> None:
    """The leader of one of the partitions was away for a minute: nobody can say whose the offsets are."""
    assert judged([part(offsets_ms), part(90_000)], [part(output_ms), part(90_000)]) == ([], 1)


def test_offsets_of_the_next_transaction_are_its_own() -> None:
    assert judged([part(40_000)], [part(10_000), part(40_000)]) == ([10_000], 0)
    assert judged([part(10_000)], [part(10_000), part(40_000)]) == ([40_000], 0)
    assert judged([part(60_000)], [part(10_000), part(40_000), part(60_000)]) == ([10_000, 40_000], 0)


def test_one_transaction_with_offsets_is_that_of_one_part_of_a_partition() -> None:
    found, unsure = judged([part(10_005)], [part(10_005), part(10_006), part(10_007)])
    assert len(found) + unsure >= 2


def test_with_an_epoch_of_its_own_time_says_nothing() -> None:
    """Clocks may be hours apart: the epoch decides."""
    offsets = [part(10_005, epoch=4, bump=1)]
    assert judged(offsets, [part(9_000_005, epoch=4, bump=1)]) == ([], 0)
    assert judged(offsets, [part(10_005, epoch=5, bump=1)]) == ([10_005], 0)


SKEWS_MS = [-5000, -3000, -1500, -900, -300, 30, 500, 1200, 2000, 3000, 5000]


@pytest.mark.parametrize("every_ms", [50, 200, 500, 1000, 5000])
@pytest.mark.parametrize("skew_ms", SKEWS_MS)
def test_clocks_that_are_seconds_apart_accuse_nobody(skew_ms: int, every_ms: int) -> None:
    """With the clocks of two leaders 1.2 s apart, each honest connector was accused."""
    found, _unsure = judged(
        [part(10_000 + number * every_ms + skew_ms) for number in range(20)],
        [part(10_000 + number * every_ms) for number in range(20)],
    )
    assert found == []


@pytest.mark.parametrize("every_ms", [50, 200, 500, 1000, 5000])
@pytest.mark.parametrize("skew_ms", [0, *SKEWS_MS])
def test_a_neighbours_offsets_prove_nothing_whatever_the_clocks_are(skew_ms: int, every_ms: int) -> None:
    """One of twenty transactions has records and no offsets, and another one offsets and no records."""
    known = Ledger()
    for number in range(20):
        if number != 8:
            known.note_offsets(part(10_000 + number * every_ms + skew_ms), Has.OFFSET)
    known.close_offsets()
    doubts = sum(len(known.without(part(10_000 + number * every_ms))) for number in range(20) if number != 12)
    doubts += sum(len(parts) + unsure for _producer, parts, unsure in known.finish_shared())
    doubts += len(list(known.shared_without_records(since_ms=0, until_ms=1 << 60)))
    assert doubts


def test_a_transaction_that_deletes_offsets_only_has_none() -> None:
    """It took those of the next one, which had no records."""
    known = Ledger()
    for ended_ms, has in ((10_000, Has.OFFSET), (10_500, Has.DELETION), (11_000, Has.OFFSET), (12_000, Has.OFFSET)):
        known.note_offsets(part(ended_ms), has)
    known.close_offsets()
    found = [each for at in (10_000, 10_500, 12_000) for each in known.without(part(at))]
    ((_producer, parts, unsure),) = known.finish_shared()
    assert (found, list(parts), unsure) == ([], [], 1)
    assert list(known.shared_without_records(since_ms=-1, until_ms=1 << 60)) == [(7, 11_000)]


def test_a_marker_is_the_same_transactions_up_to_a_quarter_of_the_way_to_the_next() -> None:
    assert list(_margins([1000, 1040, 1200, 2000])) == [10, 10, 20, 20]
