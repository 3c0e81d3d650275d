"""Where records go."""

from __future__ import annotations

import pyarrow as pa

from eosctl.core.offsets.murmur2 import partition_for
from eosctl.engine.keys.homes import hash_column
from eosctl.engine.write import placed


def test_a_key_stays_where_the_target_has_it() -> None:
    decisions = pa.table(
        {
            "topic": ["t", "u", "t"],
            "partition": pa.array([4, None, None], pa.int32()),
            "partitions": pa.array([5, 7, 5], pa.int32()),
            "key": pa.array([b"a", b"b", b"c"]),
            "hash": hash_column(pa.array([b"a", b"b", b"c"])),
            "value": pa.array([b"{}", None, b"{}"]),
        }
    )
    found = placed(decisions)
    assert found["partition"].to_pylist() == [4, partition_for(b"b", 7), partition_for(b"c", 5)]
    assert found.column_names == ["topic", "partition", "key", "value"]
