"""Backups that do not fit into memory: cut into parts of whole partitions, however many, and however large."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import pyarrow as pa
import pytest

from eosctl.engine import files as grouped
from eosctl.engine.backups.entries import ENTRIES, BackupEntries
from eosctl.engine.columns import batch_of_rows, row_sizes
from eosctl.engine.files import SpillFile

AT_ONCE = 90


def pieces(rows: list[tuple[str, int, bytes, bytes | None]]) -> Iterator[pa.RecordBatch]:
    full = [(topic, partition, 0, 1, key, value, None, b"w", True) for topic, partition, key, value in rows]
    return (batch_of_rows(full[begin : begin + AT_ONCE], ENTRIES) for begin in range(0, len(full), AT_ONCE))


def random_rows(rng: random.Random, *, large: int) -> list[tuple[str, int, bytes, bytes | None]]:
    values = [None, b"", b"v", b"v" * large]
    topics = ["t1", "t10", "t2", "\u00fc"]
    return [
        (rng.choice(topics), rng.randrange(12), b"k%d" % rng.randrange(100), rng.choice(values)) for _ in range(900)
    ]


@pytest.mark.parametrize(("most_rows", "most_bytes"), [(100, 1 << 28), (10**6, 30_000), (1, 1), (10**6, 1 << 28)])
def test_a_part_has_whole_partitions_and_no_more_than_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_rows: int, most_bytes: int
) -> None:
    """Values of a megabyte once made parts of 500 GB: only keys were counted."""
    rows = random_rows(random.Random(20), large=2_000)  # noqa: S311 - the same rows every time
    monkeypatch.setattr(grouped, "PART_RECORDS", most_rows)
    monkeypatch.setattr(grouped, "PART_BYTES", most_bytes)
    backup = BackupEntries(pieces(rows), SpillFile(tmp_path))
    for _again in range(2):
        parts = list(backup.tables())
        found = [[tuple(row[name] for name in ENTRIES.names) for row in part.to_pylist()] for part in parts]
        places = [{row[:2] for row in part} for part in found]
        assert sum(map(len, places)) == len(set().union(*places)), "a partition is in one part"
        for place in set().union(*places):
            of_place = [(row[4], row[5]) for part in found for row in part if row[:2] == place]
            assert of_place == [row[2:] for row in rows if row[:2] == place], "in the order of the file"
        sizes = [(len(part), sum(row_sizes(part).to_pylist())) for part in parts]
        fits = [count <= most_rows and size <= most_bytes for count, size in sizes]
        assert all(fit or len(part) == 1 for fit, part in zip(fits, places, strict=True))
    assert backup.is_large() == (len(parts) > 1)


def test_partitions_of_ten_thousand_topics_are_put_together_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was counted anew for each of them took hours."""
    monkeypatch.setattr(grouped, "PART_RECORDS", 8_000)
    backup = BackupEntries(
        pieces([(f"t{number % 5000}", number % 5, b"k", b"v") for number in range(20_000)]), SpillFile(tmp_path)
    )
    begun_s = process_time()
    assert sum(map(len, backup.tables())) == 20_000
    assert process_time() - begun_s < 1
