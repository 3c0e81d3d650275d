"""Which duplicates no mode allows: by the phase of the run in which a record came first."""

from __future__ import annotations

import pytest

from eosctl.rehearse.log import Phase, comes_in_a_run, duplicates, held_against
from eosctl.rehearse.rows import FoundPart

UP, DOWN = Phase(True), Phase(False)


def twice(count: int, *, offsets: int = 1) -> FoundPart:
    evidence = {"count": count, "first_offset": 10, "last_offset": 9 + offsets}
    return FoundPart(code="duplicate", severity="error", subject="t-0", message="x", evidence=evidence)


@pytest.mark.parametrize(
    ("phases", "counts", "of_enabled", "of_others"),
    [
        ([UP], [3], 3, 0),
        ([UP, DOWN, UP], [9, 4, 1], 6, 3),
        ([DOWN, UP], [5, 2], 2, 3),
        ([UP, DOWN, UP], [0, 0, 0], 0, 0),
        ([UP, DOWN, UP], [0, 1, 1], 1, 0),
    ],
    ids=["one phase", "some of each", "an upgrade", "none", "one came while it was counted"],
)
def test_a_record_counts_in_the_phase_in_which_it_came_first(
    phases: list[Phase], counts: list[int], of_enabled: int, of_others: int
) -> None:
    """`counts` are of windows from the begin of each phase to the end: both records of a pair lie in them."""
    found = duplicates(phases, [[twice(count)] if count else [] for count in counts])
    assert (found.of_enabled.total(), found.of_others.total()) == (of_enabled, of_others)


def test_gaps_are_wrong_in_any_mode_and_duplicates_as_many_as_are_wrong() -> None:
    gap = FoundPart(code="gap", severity="error", subject="t-0", message="x", evidence={})
    other = FoundPart(code="transaction_without_offsets", severity="error", subject="t-0", message="x", evidence={})
    wrong = duplicates([UP, DOWN], [[twice(9)], [twice(4)]]).of_enabled
    held = list(held_against([gap, other, twice(9)], wrong))
    assert [each.code for each in held] == ["gap", "duplicate"]
    assert held[1].evidence == {**twice(9).evidence, "count": 5}  # type: ignore[dict-item]
    assert list(held_against([twice(9)], duplicates([DOWN], [[twice(9)]]).of_enabled)) == []


@pytest.mark.parametrize(("count", "offsets", "expected"), [(5, 5, True), (5, 15, True), (5, 16, False), (2, 2, False)])
def test_a_run_is_one_record_after_the_other(count: int, offsets: int, expected: bool) -> None:
    assert comes_in_a_run([twice(count, offsets=offsets)]) is expected
