"""What was sent, found again in the order of sending, writer by writer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.records import Headers
from eosctl.engine.columns import VALUES
from eosctl.engine.compare import SentInOrder, is_all_there
from eosctl.engine.reading.batches import PIECE, Piece
from eosctl.engine.reading.heads import headers_text, raw_headers
from eosctl.engine.reading.ranges import OffsetRange

Sent = tuple[int, bytes | None, bytes | None]
"""Partition, key and value."""
RANGES = [OffsetRange("t", number, 0, 100) for number in range(3)]
MINE: list[Sent] = [(0, b"a", b"1"), (0, b"b", None), (1, b"c", b"2")]
YOURS: list[Sent] = [(0, b"d", b"3"), (1, b"e", b"4"), (1, b"f", b"5")]


def table(rows: Sequence[Sent]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * 3
    kinds = (pa.int32(), VALUES, VALUES)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.table([pa.repeat("t", len(rows)), *arrays], names=["topic", "partition", "key", "value"])


def piece(*rows: tuple[int, Sent], headers: Headers = ()) -> Piece:
    """Records by their producers, in the order of the log; all have the same headers."""
    places, keys, values = (pa.array([row[number] for _who, row in rows]) for number in range(3))
    numbers = pa.array(range(len(rows)), pa.int64())
    columns = [places.cast(pa.int32()), numbers, numbers, keys.cast(VALUES), values.cast(VALUES)]
    columns.append(pa.array([raw_headers(headers)] * len(rows), VALUES))
    return Piece(pa.RecordBatch.from_arrays(columns, schema=PIECE), np.array([who for who, _row in rows], np.int64))


def are_found(sent: Sequence[Sequence[Sent]], *pieces: Piece) -> bool:
    found = SentInOrder(map(table, sent), RANGES).count_in(pieces)
    assert found in (None, sum(len(each.columns) for each in pieces))
    return found is not None


@given(st.data())
def test_writers_may_come_between_each_other(data: st.DataObject) -> None:
    """In any order of theirs, in pieces of any length; partitions come one after the other, or not."""
    places = st.tuples(st.integers(0, 2), st.none() | st.binary(max_size=2))
    rows = data.draw(st.lists(st.lists(places, max_size=8), min_size=1, max_size=3))
    sent = [
        [(place, b"%d-%d" % (who, n), value) for n, (place, value) in enumerate(some)] for who, some in enumerate(rows)
    ]
    log, left = list[tuple[int, Sent]](), {who: list(some) for who, some in enumerate(sent) if some}
    while left:
        who = data.draw(st.sampled_from(sorted(left)))
        log.append((who, left[who].pop(0)))
        if not left[who]:
            del left[who]
    cut = data.draw(st.integers(0, len(log)))
    assert are_found(sent, *(piece(*some) for some in (log[:cut], log[cut:]) if some))


LOG = [(7, MINE[0]), (8, YOURS[0]), (7, MINE[1]), (8, YOURS[1]), (7, MINE[2]), (8, YOURS[2])]


@pytest.mark.parametrize(
    "log",
    [
        LOG[:-1],
        LOG[1:],
        [*LOG, (9, (2, b"x", b"foreign"))],
        [*LOG, (7, (1, b"c", b"again"))],
        [*LOG[:2], (7, (0, b"b", b"")), *LOG[3:]],
        [*LOG[:2], (7, (0, b"B", None)), *LOG[3:]],
        [LOG[2], *LOG[:2], *LOG[3:]],
        [(9, (0, b"a", b"1")), *LOG],
        [],
    ],
)
def test_anything_else_is_no_proof(log: Sequence[tuple[int, Sent]]) -> None:
    """What lacks, what somebody else has written, another value or key, another order, what came twice."""
    assert are_found([MINE, YOURS], piece(*LOG))
    assert not are_found([MINE, YOURS], *([piece(*log)] if log else []))


KEPT = st.tuples(st.integers(0, 1), st.sampled_from([b"a", b"b", None]), st.sampled_from([None, b"1", b"2"]))


@given(st.lists(st.lists(KEPT, max_size=6), min_size=1, max_size=3), st.data())
def test_what_is_proven_is_all_that_is_there(sent: list[list[Sent]], data: st.DataObject) -> None:
    """Of any log, also one that is nearly the one that was sent: a yes means the same records, as often."""
    log = [(data.draw(st.sampled_from([7, 7 + who])), row) for who, rows in enumerate(sent) for row in rows]
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, len(log)))
        log[at : at + data.draw(st.integers(0, 1))] = [(data.draw(st.integers(7, 9)), data.draw(KEPT))]
    log = data.draw(st.permutations(log))
    if are_found(sent, *([piece(*log)] if log else [])):
        assert Counter(row for _who, row in log) == Counter(row for rows in sent for row in rows)


def test_what_went_elsewhere_is_for_others() -> None:
    """Each reader has some ranges, and the rows of all writers."""
    expected = SentInOrder([table(MINE), table(YOURS)], RANGES[1:])
    found = [(who, (place - 1, key, value)) for who, (place, key, value) in LOG if place]
    assert expected.count_in([piece(*found)]) == len(found)


def test_one_writer_sends_tables_one_after_the_other() -> None:
    """In a partition the rows of the second come behind those of the first."""
    deletions, others = [(0, b"b", None), (1, b"d", None)], [(0, b"a", b"1"), (2, b"c", b"2")]
    log = piece(*((7, row) for row in [*deletions, *others]))
    assert is_all_there([log], [table(deletions), table(others)], RANGES)
    assert not is_all_there([log], [table(others), table(deletions)], RANGES)
    assert not is_all_there([log], [table(deletions)], RANGES)
    assert not is_all_there([], [table(deletions)], RANGES)
    assert is_all_there([], [table([])], RANGES)


def test_other_headers_are_no_proof() -> None:
    """A restore that lost the headers of what it put back was "written"."""
    headers: Headers = (("origin", b"\xff"), ("origin", None))
    sent = table(MINE).append_column("headers", pa.array([headers_text(headers)] * len(MINE)))
    log = [(7, row) for row in MINE]
    assert is_all_there([piece(*log, headers=headers)], [sent], RANGES)
    assert not is_all_there([piece(*log)], [sent], RANGES)
    assert not is_all_there([piece(*log, headers=headers)], [table(MINE)], RANGES)
