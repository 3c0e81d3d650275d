"""Records of one transaction: no more than the brokers, and the memory here, can take."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.engine import write as transactions
from eosctl.engine.columns import SENT, Table, batch_of_columns
from eosctl.engine.write import are_several, in_transactions

Row = tuple[str, int, bytes | None, bytes | None, None]
RECORDS = st.tuples(
    st.sampled_from(["a", "longer-name"]),
    st.integers(0, 30),
    st.sampled_from([None, b"key"]),
    st.sampled_from([None, b"", b"v" * 500]),
    st.none(),
)


def taken(records: list[Row]) -> tuple[int, int, int]:
    """How many records, about how many bytes, and how much of the coordinator's record."""
    size = sum(100 + len(key or b"") + len(value or b"") for _topic, _partition, key, value, _headers in records)
    topics = {topic for topic, *_ in records}
    return len(records), size, sum(10 + len(t) for t in topics) + 4 * len({record[:2] for record in records})


def table(records: list[Row]) -> Table:
    return Table.from_batches([batch_of_columns(list(zip(*records, strict=True)) or [()] * 5, SENT)])


@given(
    st.lists(RECORDS, max_size=60), st.integers(0, 60), st.integers(1, 20), st.integers(1, 3000), st.integers(25, 80)
)
def test_a_transaction_takes_as_much_as_it_can_and_no_more(
    records: list[Row], cut: int, most: int, most_bytes: int, most_of_partitions: int
) -> None:
    """200,000 values of a megabyte would have been one, and in memory at once."""
    limits = most, most_bytes, most_of_partitions
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in zip(("MOST_RECORDS", "MOST_BYTES", "MOST_PARTITION_BYTES"), limits, strict=True):
            patch.setattr(transactions, name, limit)
        parts = [table(records[:cut]), table(records[cut:])]
        found = [list(zip(*each.to_pydict().values(), strict=True)) for each in in_transactions(parts)]
        assert are_several(parts) == (len(found) > 1)
    assert [record for some in found for record in some] == records

    def fits(some: list[Row]) -> bool:
        return all(part <= limit for part, limit in zip(taken(some), limits, strict=True))

    assert all(fits(some) or len(some) == 1 for some in found)
    assert not any(fits([*some, later[0]]) for some, later in pairwise(found)), "not too early"
