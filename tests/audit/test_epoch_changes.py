"""The ends of epochs: where transactions begin to have epochs of their own, restarts, fences, and clocks in between."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eosctl.audit.log.ledger import Has, Ledger, SourcePartition, Transaction
from eosctl.audit.log.segments import Part, SharedEpoch
from eosctl.core.ids import ProducerId
from eosctl.core.records import Batch
from tests.audit.log_scene import batch
from tests.audit.test_shared_epochs import judged, part
from tests.fakes.world import OFFSETS

PRODUCER = ProducerId(7)


def aborted(ended_ms: int, *, epoch: int = 0, bump: int = 0, at: int = 0, after_ms: int = -1) -> Part:
    made = replace(part(ended_ms, at=at, epoch=epoch), marker=None, has_own_epoch=False, after_ms=after_ms)
    marker = batch(is_control=True, commit=False, producer_epoch=epoch + bump, first_timestamp_ms=ended_ms, records=0)
    made.end(marker, raises_epoch=bump > 0)
    return made


def ledger(*offsets: Part) -> Ledger:
    """Of offsets of the connector that were committed."""
    made = Ledger()
    for each in offsets:
        made.note_offsets(replace(each, topic=OFFSETS), Has.OFFSET)
    made.close_offsets()
    return made


def bare(epoch: int) -> Batch:
    return batch(is_control=True, commit=True, producer_epoch=epoch, records=0)


def test_the_last_transaction_of_an_epoch_has_its_own_offsets() -> None:
    """After an upgrade it took those of one of before, which shared its epoch."""
    shared, last = part(10_000, epoch=3), part(20_000, epoch=3, bump=1)
    assert judged([shared], [shared, last]) == ([20_000], 0)
    assert judged([shared, last], [shared, last]) == ([], 0)
    assert judged([last], [shared, last]) == ([10_000], 0), "nor does one of before take those of the last one"


def test_the_last_transaction_of_an_epoch_has_its_own_records() -> None:
    shared, last = part(10_000, epoch=3), part(20_000, epoch=3, bump=1)
    known = ledger(shared, last)
    known.note_output(shared)
    found = list(known.without_records(PRODUCER, since_ms=-1, until_ms=1 << 62))
    assert found == [Transaction(PRODUCER, 3)]
    known.note_output(last)
    assert list(known.without_records(PRODUCER, since_ms=-1, until_ms=1 << 62)) == []


def test_one_that_was_aborted_before_an_upgrade_is_not_torn() -> None:
    """Its epoch was that of the first transaction with an epoch of its own; its neighbours' offsets were compacted."""
    last = part(20_000, epoch=3, bump=1)
    known = ledger(last)
    known.note_output(last)
    known.note_output(aborted(10_000, epoch=3))
    assert [known.is_certainly_torn(each) for each in known.torn(PRODUCER)] == [False]
    before = part(5_000, epoch=2, bump=1)
    known.note_output(before)
    assert [known.is_certainly_torn(each) for each in known.torn(PRODUCER)] == [True]


@pytest.mark.parametrize(("to", "is_new"), [(3, False), (4, False), (5, True)])
def test_an_upgrade_is_no_start(to: int, is_new: bool) -> None:
    """Epoch 3 was shared, and its last transaction raised it: 4 came without a start, and 5 did not."""
    known = ledger(part(10_000, epoch=3), part(20_000, epoch=3, bump=1))
    assert known.began_anew(PRODUCER, 3, to) is is_new
    assert ledger(part(10_000, epoch=3)).began_anew(PRODUCER, 3, 4)


def test_offsets_that_are_compacted_may_be_those_of_a_marker_that_was_lost() -> None:
    """The next marker ended the part, and only that one's time was compared with what is gone."""
    known = ledger(part(50_000, epoch=3, bump=1))
    known.complete_since_ms = 20_000
    mine = part(60_000, epoch=1, bump=2)
    assert not known.is_missing_from(mine)
    mine.is_unmarked, mine.after_ms = True, 9_000
    assert known.is_missing_from(mine)


def test_fast_transactions_with_several_offsets_partitions_are_counted_one_by_one() -> None:
    """Markers within 20 ms were one transaction's: of five that took 5 ms there seemed to be three."""
    offsets = [part(830), part(839, at=2), part(847, at=2), part(851), part(860)]
    skewed = [part(ended_ms - 2_300) for ended_ms in (836, 842, 855, 863)]
    assert judged(offsets, skewed)[0] == []


@pytest.mark.parametrize(("offsets_ms", "outputs_ms"), [((0, 100_000), (0, 60_000)), ((0, 60_000), (40_000, 60_000))])
def test_the_first_or_the_last_marker_may_come_late(offsets_ms: tuple[int, ...], outputs_ms: tuple[int, ...]) -> None:
    found, unsure = judged([part(100_000 + each) for each in offsets_ms], [part(100_000 + each) for each in outputs_ms])
    assert (found, unsure > 0) == ([], True)


@pytest.mark.parametrize(
    ("abort", "may_be"),
    [
        (aborted(30_000, after_ms=10_000), True),
        (aborted(30_000, after_ms=20_000), False),
        (aborted(25_000, after_ms=20_000), False),
        (aborted(30_000, after_ms=10_000, bump=1), False),
        (aborted(19_995, after_ms=10_000, bump=1), True),
    ],
)
def test_an_abort_among_commits_of_the_same_epoch(abort: Part, may_be: bool) -> None:
    """After a fence nothing is committed; any other abort may be of a part of what was committed before."""
    shared = [part(10_000), part(20_000)]
    known = ledger(*shared)
    for each in shared:
        known.without(each)
    assert known.may_be_committed(abort) is may_be


def test_an_epoch_that_is_given_was_raised_by_no_fence() -> None:
    known = ledger(part(10_000), part(20_000), part(90_000, epoch=1))
    for each in (part(10_000), part(20_000)):
        known.without(each)
    assert known.may_be_committed(aborted(30_000, after_ms=10_000, bump=1))


def test_clocks_that_are_apart_hide_no_commit() -> None:
    """The leader's clock is 300 ms ahead of that of the offsets: what they say is compared by that."""
    known = ledger(*(part(number * 10_000) for number in range(1, 4)))
    for number in range(1, 4):
        known.without(part(number * 10_000 + 300))
    still_open = replace(part(0), marker=None, after_ms=20_300)
    assert known.may_be_over(still_open)
    assert not known.may_be_over(replace(still_open, after_ms=30_300))
    assert known.may_be_committed(aborted(30_250, after_ms=20_300)) is False
    assert known.may_be_committed(aborted(30_350, after_ms=20_300))


def test_a_marker_without_records_is_kept_under_the_epoch_of_its_transaction() -> None:
    known = Ledger()
    known.bare_marker(bare(4), may_be_cut=False)
    known.bare_marker(bare(0), may_be_cut=False)
    assert known.bare_commits == {Transaction(PRODUCER, 3)}


def test_offsets_that_no_part_took() -> None:
    """Of deletions, too, as Connect deletes none without records; where no part is in the epoch, they are others'."""
    shared = SharedEpoch()
    for ended_ms, has_offset in ((10_000, True), (20_000, False), (30_000, True)):
        shared.note(part(ended_ms, at=1), has_offset=has_offset)
    shared.close()
    assert list(shared.unclaimed(-1, 1 << 61)) == [10_000, 30_000]
    shared.take(part(10_000))
    assert list(shared.unclaimed(-1, 1 << 61)) == [20_000, 30_000]
    assert list(shared.unclaimed(20_001, 1 << 61)) == [30_000]
    assert list(shared.unclaimed(20_000, 29_999)) == [20_000]
    shared.take(part(30_500))
    assert list(shared.unclaimed(-1, 1 << 61)) == [20_000]


def test_where_no_transaction_shows_it_clocks_may_be_five_seconds_apart() -> None:
    shared = SharedEpoch()
    shared.note(part(10_000, at=1))
    shared.close()
    mine = part(0, at=2)
    assert [shared.may_have_ended_after(mine, at_ms) for at_ms in (14_979, 14_980)] == [True, False]
    assert [shared.may_have_ended_between(mine, -1, at_ms) for at_ms in (4_979, 4_980)] == [False, True]
    same = part(0, at=1)
    assert [shared.may_have_ended_after(same, at_ms) for at_ms in (9_979, 9_980)] == [True, False]
    assert [shared.may_have_ended_between(same, -1, at_ms) for at_ms in (9_979, 9_980)] == [False, True]


@pytest.mark.parametrize(
    ("first", "second", "is_after"),
    [
        ((7, 2, 1_000), (7, 1, 90_000), True),
        ((7, 1, 90_000), (7, 2, 1_000), False),
        ((7, 1, 6_001), (7, 1, 1_000), True),
        ((7, 1, 6_000), (7, 1, 1_000), False),
        ((8, 0, 6_001), (7, 1, 1_000), True),
        ((8, 9, 6_000), (7, 1, 1_000), False),
    ],
)
def test_what_a_commit_comes_after(first: tuple[int, int, int], second: tuple[int, int, int], is_after: bool) -> None:
    one, other = (
        SourcePartition(b"k", (OFFSETS, 0), 1, ProducerId(producer_id), epoch, at_ms)
        for producer_id, epoch, at_ms in (first, second)
    )
    assert one.is_certainly_after(other) is is_after
