"""How decisions lie in their files, and who reads which of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eosctl.core.offsets.views import Policy
from eosctl.engine.columns import DECISIONS
from eosctl.engine.files import part_file, part_files, read_table, tables_in, write_table
from eosctl.migrate.spark import parts as module
from eosctl.migrate.spark.parts import keep_writers, land_decisions, rows_of_writer, rows_sent, to_write
from tests.migrate.spark.test_parts import outcome, plan


def placed_rows(topics: list[str], partitions: list[int]) -> pa.Table:
    """Decisions that send a record to each of these places."""
    count = len(topics)
    columns: dict[str, Any] = {one.name: pa.nulls(count, one.type) for one in DECISIONS}
    columns |= {"topic": topics, "partition": partitions, "action": ["write"] * count}
    columns["key"] = [b"%d" % number for number in range(count)]
    return pa.table([pa.array(columns[one.name], one.type) for one in DECISIONS], schema=DECISIONS)


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows are read of files of decisions."""
    seen: list[int] = []

    def counted(*what: Any, **how: Any) -> Iterator[pa.Table]:
        for rows in tables_in(*what, **how):
            seen.append(len(rows))
            yield rows

    monkeypatch.setattr(module, "tables_in", counted)
    return seen


def test_decisions_lie_where_they_go(tmp_path: Path, rows_read: list[int]) -> None:
    """With a thousand topics each writer read all of every file, and so did each task that read back."""
    count = 30_000
    given = placed_rows([f"t{number % 30:02}@p" for number in range(count)], [number % 4 for number in range(count)])
    land_decisions(tmp_path, 0, given, parts=100)
    found = read_table(part_file(tmp_path, 0))
    assert sorted(found.to_pylist(), key=str) == sorted(given.to_pylist(), key=str)
    places = list(zip(found["topic"].to_pylist(), found["partition"].to_pylist(), strict=True))
    assert places == sorted(places)
    one = to_write(part_file(tmp_path, 0), {("t07", 1)})
    assert set(one["topic"].to_pylist()) == {"t07"}
    assert (len(one), sum(rows_read)) == (500, 1000), "two places of 500 rows share a batch"


def test_what_is_in_order_is_landed_as_it_is(tmp_path: Path) -> None:
    given = placed_rows(["a"] * 5 + ["b"] * 3, [0, 0, 1, 7, 7, 0, 0, 2])
    land_decisions(tmp_path, 3, given, parts=1)
    assert read_table(part_file(tmp_path, 3)) == given


@pytest.mark.parametrize("count", [0, 1, 250_000])
def test_any_number_of_decisions_can_be_landed(tmp_path: Path, rows_read: list[int], count: int) -> None:
    land_decisions(tmp_path, 0, placed_rows(["t"] * count, [5] * count), parts=4)
    assert len(read_table(part_file(tmp_path, 0))) == len(to_write(part_file(tmp_path, 0), {("t", 5)})) == count
    rows_read.clear()
    assert not len(to_write(part_file(tmp_path, 0), {("t", 4), ("t", 6), ("s", 5)}))
    assert sum(rows_read) == 0


@pytest.mark.parametrize("alone", [False, True])
def test_writers_send_every_row_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: bool) -> None:
    """Each its part of the keys, or its partitions, to which nobody else writes: together the same rows."""
    if alone:
        monkeypatch.setattr("eosctl.core.offsets.migration._MANY_PARTITIONS", 1)
        monkeypatch.setattr("eosctl.core.offsets.migration._FULLER", 2.0)
    wanted = plan(Policy.TAKE_SOURCE, ((0, 2), (1,)))
    outcome(tmp_path, wanted, 1)
    decisions = tmp_path / "decisions"
    keep_writers(decisions, wanted)
    names = ["topic", "partition", "key"]
    expected = pa.concat_tables(map(to_write, part_files(decisions))).to_pylist()
    sent = [rows_of_writer(decisions, number) for number in range(2)]
    assert all(map(len, sent))
    assert sorted(pa.concat_tables(sent).to_pylist(), key=str) == sorted(expected, key=str)
    places = [set(zip(*(rows[name].to_pylist() for name in names[:2]), strict=True)) for rows in sent]
    assert places[0].isdisjoint(places[1]) is alone
    some = {("to-a", 0), ("to-z", 2)}
    there = [row for rows in rows_sent(decisions, some) for row in rows.to_pylist()]
    assert there
    assert sorted(there, key=str) == sorted(
        (row for row in expected if (row["topic"], row["partition"]) in some), key=str
    )
    for file in part_files(decisions):  # as an earlier eosctl left it
        write_table(file, read_table(file).replace_schema_metadata(None))
    assert [row for rows in rows_sent(decisions, some) for row in rows.to_pylist()] == there
    assert not sum(map(len, rows_sent(decisions, {("to-a", 99)})))
