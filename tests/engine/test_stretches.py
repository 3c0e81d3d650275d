"""Some records of a topic as lines: many at once are the lines one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.records import Record, record_line
from eosctl.engine.backups.file import record_lines
from eosctl.engine.reading.ranges import partitions_together
from eosctl.engine.reading.stretches import run_of_records
from tests.core.kept.test_record_lines import PLAIN
from tests.core.test_record_file import RECORDS


@given(st.lists(PLAIN, max_size=5) | st.lists(PLAIN | RECORDS, max_size=5))
def test_many_lines_at_once_are_the_lines_one_by_one(records: list[Record]) -> None:
    stretch = run_of_records(records, read=len(records))
    assert (
        b"".join(map(record_lines, stretch.blocks())) == "".join(f"{record_line(each)}\n" for each in records).encode()
    )
    assert stretch.records() == records
    assert stretch.tombstones() == sum(each.value is None for each in records)


def test_values_of_some_keys_are_changed() -> None:
    """Nobody else is asked for a new value."""
    records = [Record("t", 0, 1, 2, key, b"v") for key in (b"task-1", None, b"other", b"task-2")]

    def change(record: Record) -> Record:
        return record._replace(value=None) if record.key == b"task-2" else record

    changed, count = run_of_records(records, read=4).changed([b"task-"], change)
    assert ([each.value for each in changed.records()], count, changed.read) == ([b"v", b"v", b"v", None], 1, 4)


def test_small_partitions_are_read_together_and_large_ones_alone() -> None:
    """An export held the whole topic; all partitions one by one would be slow where there are a thousand."""
    counts = {0: 10, 1: 20, 2: 60_000, 4: 49_999, 5: 1, 6: 1}
    assert list(partitions_together(counts, 50_000)) == [[0, 1], [2], [4, 5], [6]]
