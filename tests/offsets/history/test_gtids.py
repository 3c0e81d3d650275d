"""The order of GTIDs, held to plain sets of transactions, and to plain numbers for each domain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.offsets.history.gtids import Order, compare_gtids

UUIDS = ("3e11fa47-71ca-11e1-9e33-c80aa9429562", "4f22fb58-82db-22f2-0f44-d91bb0530673")
SOURCES = (UUIDS[0], UUIDS[1], f"{UUIDS[1]}:blue")
BACK = {Order.AHEAD: Order.BEHIND, Order.BEHIND: Order.AHEAD}

transactions = st.sets(st.tuples(st.sampled_from(SOURCES), st.integers(1, 12)), min_size=1)
positions = st.dictionaries(st.integers(0, 2), st.integers(1, 5), min_size=1)


@st.composite
def spelled(draw: st.DrawFn, held: set[tuple[str, int]]) -> str:
    """A spelling of a set: as intervals, split and ordered anyhow, a source in one entry or several."""
    entries = []
    for source in {source for source, _number in held}:
        numbers = sorted(number for each, number in held if each == source)
        pieces: list[list[int]] = []
        for number in numbers:
            if pieces and pieces[-1][1] == number - 1 and draw(st.booleans()):
                pieces[-1][1] = number
            else:
                pieces.append([number, number])
        texts = [str(low) if low == high and draw(st.booleans()) else f"{low}-{high}" for low, high in pieces]
        texts = draw(st.permutations(texts))
        name = source.upper() if draw(st.booleans()) else source
        together = draw(st.booleans())
        entries += [f"{name}:{':'.join(texts)}"] if together else [f"{name}:{text}" for text in texts]
    return draw(st.sampled_from([",", ", ", ",\n"])).join(draw(st.permutations(entries)))


def order_of_sets(before: set[tuple[str, int]], after: set[tuple[str, int]]) -> Order:
    if before == after:
        return Order.EQUAL
    return Order.AHEAD if before < after else Order.BEHIND if before > after else Order.MIXED


@given(transactions, transactions, st.data())
def test_mysql_s_are_ordered_as_sets_of_transactions_are(
    before: set[tuple[str, int]], after: set[tuple[str, int]], data: st.DataObject
) -> None:
    texts = data.draw(spelled(before)), data.draw(spelled(after))
    assert compare_gtids(*texts) is order_of_sets(before, after)


@given(transactions, transactions, st.data())
def test_more_transactions_are_ahead(
    before: set[tuple[str, int]], more: set[tuple[str, int]], data: st.DataObject
) -> None:
    texts = data.draw(spelled(before)), data.draw(spelled(before | more))
    assert compare_gtids(*texts) is (Order.EQUAL if more <= before else Order.AHEAD)
    assert compare_gtids(*reversed(texts)) is (Order.EQUAL if more <= before else Order.BEHIND)


def held_by(position: dict[int, int]) -> set[tuple[str, int]]:
    """What lies up to a position, transaction by transaction."""
    return {(str(domain), number) for domain, last in position.items() for number in range(1, last + 1)}


@given(positions, positions)
def test_mariadb_s_of_one_server_are_ordered_by_what_lies_up_to_them(
    before: dict[int, int], after: dict[int, int]
) -> None:
    texts = [",".join(f"{domain}-4711-{last}" for domain, last in each.items()) for each in (before, after)]
    assert compare_gtids(texts[0], texts[1]) is order_of_sets(held_by(before), held_by(after))


mariadb = st.dictionaries(st.integers(0, 2), st.tuples(st.integers(1, 2), st.integers(1, 5)), min_size=1).map(
    lambda held: ",".join(f"{domain}-{server}-{last}" for domain, (server, last) in held.items())
)
texts = transactions.flatmap(spelled) | mariadb | st.text("0123456789abcdef-:, _\n", max_size=40)


@given(texts, texts)
def test_whatever_the_text_the_way_back_is_the_other_way(one: str, other: str) -> None:
    """A sequence of another server was ahead if it was greater, and of unknown order on the way back."""
    assert compare_gtids(one, other) is BACK.get(compare_gtids(other, one), compare_gtids(other, one))
    assert compare_gtids(other, other) is Order.EQUAL


@pytest.mark.parametrize(
    ("before", "after", "order"),
    [
        ("0-4711-2524", "0-4711-2624", Order.AHEAD),
        ("0-4711-9", "0-4711-10", Order.AHEAD),
        ("0-1-100", "0-2-101", Order.INCOMPARABLE),
        ("0-1-100", "0-2-95", Order.INCOMPARABLE),
        ("0-1-100", "0-2-100", Order.INCOMPARABLE),
        ("0-1-100,1-1-5", "0-2-95,1-1-6", Order.INCOMPARABLE),
        ("0-1-100,1-1-5", "0-1-95,1-1-6", Order.MIXED),
        ("0-1-100,1-1-5", "0-2-95,1-1-4", Order.INCOMPARABLE),
        ("0-1-100", "0-1-100,1-1-1", Order.AHEAD),
        ("0-1-100,0-2-5", "0-1-100", Order.INCOMPARABLE),
        (f"{UUIDS[0]}:1-9", "0-1-100", Order.INCOMPARABLE),
        (f"{UUIDS[0]}:1-9", f"{UUIDS[0]}:9-1", Order.INCOMPARABLE),
        (f"{UUIDS[0]}:1-9", f"{UUIDS[0]}", Order.INCOMPARABLE),
        (f"{UUIDS[0]}:1-9", f"{UUIDS[0]}:1-9:tag", Order.INCOMPARABLE),
        (f"{UUIDS[0]}:1-9:blue:1-3", f"{UUIDS[0]}:blue:1-3,{UUIDS[0]}:1-9", Order.EQUAL),
        (f"{UUIDS[0]}:1-9", f"{UUIDS[0]}:1-9:blue:1", Order.AHEAD),
        (f"{UUIDS[0]}:1-9", f"{UUIDS[1]}:1-9", Order.MIXED),
        (f"{UUIDS[0]}:5-9", f"{UUIDS[0]}:1-9223372036854775807", Order.AHEAD),
    ],
)
def test_what_is_known_of_two(before: str, after: str, order: Order) -> None:
    assert compare_gtids(before, after) is order
