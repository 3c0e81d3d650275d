"""Which connectors' own offsets topics stood still while the global one went on."""

from __future__ import annotations

import pytest

from eosctl.core.offsets.views import Store, fold_store
from eosctl.core.records import Bounds, Record, TopicRead
from eosctl.group.observation.rules import SLACK_MS, StaleOffsets, stale_offsets

A, A_SPACED, B = b'["c",{"f":"a"}]', b'["c", {"f":"a"}]', b'["c",{"f":"b"}]'
HOUR_MS = 3_600_000


def store(topic: str, *records: tuple[bytes, bytes | None, int]) -> Store:
    there = tuple(Record(topic, 0, at, ms, key, value) for at, (key, value, ms) in enumerate(records))
    return fold_store(TopicRead(topic, (Bounds(0, 0, len(there), len(there)),), there, len(there)))


@pytest.mark.parametrize(
    ("own", "common", "keys", "behind_ms"),
    [
        ([(A, b'{"n":1}', 0)], [(A, b'{"n":2}', HOUR_MS)], 1, HOUR_MS),
        ([(A, b'{"n":1}', 0)], [(A_SPACED, b'{"n":2}', HOUR_MS)], 1, HOUR_MS),
        ([(A, b'{"n":1}', 0)], [(A, b'{"n":2}', HOUR_MS), (B, b'{"n":2}', 2 * HOUR_MS)], 2, 2 * HOUR_MS),
        ([(A, None, 0)], [(A, b'{"n":2}', HOUR_MS)], 1, HOUR_MS),
        ([], [(A, b'{"n":2}', HOUR_MS)], 1, None),
    ],
)
def test_stale(
    own: list[tuple[bytes, bytes | None, int]],
    common: list[tuple[bytes, bytes | None, int]],
    keys: int,
    behind_ms: int | None,
) -> None:
    found = stale_offsets("c", store("own", *own), store("global", *common))
    assert found == StaleOffsets("c", "own", keys, behind_ms)


@pytest.mark.parametrize(
    ("own", "common"),
    [
        ([], []),
        ([(A, b'{"n":1}', 0)], [(A, b'{"n":1}', HOUR_MS)]),
        ([(A, b'{"n":1}', 0)], [(A, b'{"n":2}', SLACK_MS)]),
        ([(A, b'{"n":1}', 0), (B, b'{"n":9}', HOUR_MS)], [(A, b'{"n":2}', HOUR_MS)]),
        ([(A, b'{"n":1}', 0)], [(A, None, HOUR_MS)]),
        ([(A, b'{"n":1}', 0)], [(b'["other",{"f":"a"}]', b'{"n":2}', HOUR_MS)]),
    ],
)
def test_not_stale(own: list[tuple[bytes, bytes | None, int]], common: list[tuple[bytes, bytes | None, int]]) -> None:
    """Equal ones, the lag of the global copy, topics that go on, deletions, and other connectors."""
    assert stale_offsets("c", store("own", *own), store("global", *common)) is None
