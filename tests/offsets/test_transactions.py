"""Records of one transaction: no more than the brokers, and the memory here, can take."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.records import OutRecord
from eosctl.offsets import transactions
from eosctl.offsets.transactions import are_several, in_transactions

RECORDS = st.builds(
    OutRecord,
    st.sampled_from(["a", "longer-name"]),
    st.sampled_from([None, b"key"]),
    st.sampled_from([None, b"", b"v" * 500]),
    st.none() | st.integers(0, 30),
)


def taken(records: list[OutRecord]) -> tuple[int, int, int]:
    """How many records, about how many bytes, and how much of the coordinator's record."""
    size = sum(100 + len(each.key or b"") + len(each.value or b"") for each in records)
    topics = {each.topic for each in records}
    return len(records), size, sum(10 + len(t) for t in topics) + 4 * len({(e.topic, e.partition) for e in records})


@given(st.lists(RECORDS, max_size=60), st.integers(1, 20), st.integers(1, 3000), st.integers(1, 80))
def test_a_transaction_takes_as_much_as_it_can_and_no_more(
    records: list[OutRecord], most: int, most_bytes: int, most_of_partitions: int
) -> None:
    """200,000 values of a megabyte would have been one, and in memory at once."""
    limits = most, most_bytes, most_of_partitions
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in zip(("MOST_RECORDS", "MOST_BYTES", "MOST_PARTITION_BYTES"), limits, strict=True):
            patch.setattr(transactions, name, limit)
        found = list(in_transactions(records))
        assert are_several(records) == (len(found) > 1)
    assert [record for some in found for record in some] == records

    def fits(some: list[OutRecord]) -> bool:
        return all(part <= limit for part, limit in zip(taken(some), limits, strict=True))

    assert all(fits(some) or len(some) == 1 for some in found)
    assert not any(fits([*some, later[0]]) for some, later in pairwise(found)), "not too early"
