"""Planned writes as columns are the writes one by one: shown, counted, kept, sent, and read back."""

from __future__ import annotations

import os
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eosctl.core.offsets.records import decode_key
from eosctl.core.offsets.views import KeyAction, PlannedWrite
from eosctl.core.records import Headers, Record, record_line
from eosctl.core.wording import json_bytes
from eosctl.engine.backups.file import backup_lines
from eosctl.engine.files import SpilledTable, SpillFile, spilled_if_several
from eosctl.engine.planned import PlannedWrites, replaced
from eosctl.engine.reading.heads import headers_text
from tests.engine.test_rule import table

KEYS = [b'["a",{"p":1}]', b'["\xc3\xbc", {"q":2}]', b"\xff\x00", b"", b'["b",null]', b'["\\ud800",{}]']
VALUES = [b"1", None, b"", b"null", b'{"n":"\\\\"}', b"\xff", b"\x00\x1f\x7f", b"\xe2\x80\xa8"]
HEADERS: list[Headers] = [(), (("h", b"\xff"), ("", None))]
CHANCE = random.Random(1)  # noqa: S311 - not for secrets


def some_write() -> PlannedWrite:
    topic, partition, key, one_of = CHANCE.choice(["t", 'ü"']), CHANCE.randint(0, 2), CHANCE.choice(KEYS), CHANCE.choice

    def record(partition: int, headers: Headers) -> Record | None:
        offset, timestamp_ms = CHANCE.randint(0, 9), CHANCE.randint(-1, 9)
        found = Record(topic, partition, offset, timestamp_ms, key, one_of(VALUES), headers)
        return one_of([None, found])

    return PlannedWrite(
        one_of(list(KeyAction)), one_of(["equal", "missing"]), decode_key(key), topic, partition,
        record(CHANCE.randint(0, 2), ()), one_of(VALUES), record(partition, one_of(HEADERS)), one_of([False, True]),
        one_of(HEADERS),
    )  # fmt: skip


MANY = st.lists(st.sampled_from([some_write() for _ in range(400)]), max_size=8)
"""Made once: to draw each of their members anew took longer than what is tested."""


def one_by_one(rows: list[PlannedWrite]) -> list[PlannedWrite]:
    sends = [write for write in rows if write.action in (KeyAction.WRITE, KeyAction.DELETE)]
    return sorted(sends, key=lambda write: write.after is not None)


@given(MANY, st.integers(0, 8))
def test_columns_are_the_writes_one_by_one(rows: list[PlannedWrite], cut: int) -> None:
    """Wherever a plan is cut into parts."""
    parts = [part for some in (rows[:cut], rows[cut:]) for part in PlannedWrites.of(some).tables()]
    planned, sends = PlannedWrites(parts), [write for write in rows if write.sends()]
    assert (list(planned), planned == PlannedWrites(parts), len(planned)) == (rows, True, len(rows))
    assert (list(planned.sends()), bool(planned.sends())) == (sends, bool(sends))
    assert (planned.actions, planned.conflicts) == (Counter(w.action for w in rows), sum(w.conflict for w in rows))
    assert planned.sends().topics == sorted({write.topic for write in sends})
    assert planned.because("equal") == [write for write in rows if write.reason == "equal"]
    changed = [*rows[:-1], replace(rows[-1], after=b"other")] if rows else []
    assert PlannedWrites.of(rows) == planned, "a plan that is made again may be cut elsewhere"
    assert not rows or planned != PlannedWrites.of(changed)
    assert planned.digest() == PlannedWrites(parts).digest()
    assert planned.digest().startswith("sha256:")
    assert not rows or planned.digest() != PlannedWrites.of(changed).digest()
    sent = [tuple(row.values()) for each in planned.in_order_of_sending() for row in each.to_pylist()]
    assert sent == [(w.topic, w.partition, w.key.raw, w.after, headers_text(w.headers)) for w in one_by_one(rows)]


def test_what_is_done_to_no_key_and_to_an_empty_one_is_not_the_same() -> None:
    """Nor are a tombstone and an empty value, nor a text that ends in the next one's."""
    records = [Record("t", 0, 0, 0, key, value) for key, value in [(b"", None), (b"", b""), (b"a", b"b"), (b"ab", b"")]]
    writes = [
        PlannedWrite(KeyAction.WRITE, "missing", decode_key(each.key or b""), "t", 0, None, each.value, None, False, ())
        for each in records
    ]
    digests = {PlannedWrites.of([write]).digest() for write in writes}
    keyless = PlannedWrites.of(writes[:1])
    [table_of] = keyless.tables()
    nobody = table_of.set_column(table_of.column_names.index("key"), "key", pa.nulls(1, pa.binary()))
    assert len(digests | {PlannedWrites([nobody]).digest()}) == 5


@given(MANY, st.integers(1, 3), st.lists(st.sampled_from(["written", "differs", "unchanged"]), min_size=8))
def test_of_many_those_that_went_wrong_come_first_then_those_that_change(
    rows: list[PlannedWrite], limit: int, outcomes: list[str]
) -> None:
    settled = ("written", "unchanged")
    parts = [part for some in (rows[:4], rows[4:]) for part in PlannedWrites.of(some).tables()]
    texts = [pa.array(outcomes[: len(rows[:4])], pa.string()), pa.array(outcomes[4 : len(rows)], pa.string())]
    pairs = list(zip(rows, outcomes, strict=False))
    if len(rows) > limit:
        pairs = sorted(pairs, key=lambda pair: (pair[1] in settled, pair[0].action is KeyAction.KEEP))[:limit]
    assert PlannedWrites(parts).first(limit, texts, settled=settled) == pairs
    assert len(PlannedWrites(parts).first(limit)) == len(rows[:limit]) or len(rows) <= limit


@given(MANY)
def test_the_lines_of_a_backup_are_the_lines_one_by_one(rows: list[PlannedWrite]) -> None:
    expected = ""
    for write in rows:
        absent = Record(write.topic, write.partition, -1, -1, write.key.raw, None)
        more = {"written": json_bytes(write.after), "cluster_id": 'abc"'}
        expected += f"{record_line(write.replaces or absent, more)}\n"
    found = b"".join(backup_lines(replaced(each), cluster_id='abc"') for each in PlannedWrites.of(rows).tables())
    assert found.decode() == expected


def test_tables_that_wait_on_the_disk_are_the_same_and_leave_no_file(tmp_path: Path) -> None:
    spool = SpillFile(tmp_path / "parts")
    assert not (tmp_path / "parts").exists(), "nothing is made for nothing"
    records = [Record("t", 0, number, 1, b"k%d" % number, None) for number in range(1000)]
    tables = [table(records[:count]) for count in (1000, 0, 7, 1)]
    spilled = list(map(spool.put, tables))
    assert list(map(len, spilled)) == [1000, 0, 7, 1]
    assert [each.table() for each in reversed(spilled)] == tables[::-1]
    assert list((tmp_path / "parts").iterdir()) == []


def test_many_tables_on_the_disk_are_one_open_file(tmp_path: Path) -> None:
    """A large restore ended where a process may have no more open files: at 250,000 keys for each."""
    before, spool = len(os.listdir("/proc/self/fd")), SpillFile(tmp_path)
    spilled = [spool.put(table([Record("t", 0, number, 1, b"k", b"v")])) for number in range(50)]
    assert len(os.listdir("/proc/self/fd")) == before + 1
    assert [each.table()["offset"].to_pylist() for each in spilled] == [[number] for number in range(50)]
    del spool, spilled
    assert len(os.listdir("/proc/self/fd")) == before


def test_two_threads_share_a_file(tmp_path: Path) -> None:
    spool = SpillFile(tmp_path)
    tables = [table([Record("t", 0, at, at, b"k%d" % at, b"v" * at) for at in range(number)]) for number in range(60)]
    with ThreadPoolExecutor(4) as pool:
        spilled = list(pool.map(spool.put, tables))
    assert [each.table() for each in spilled] == tables


def test_one_table_stays_in_memory_and_each_of_several_waits_on_the_disk(tmp_path: Path) -> None:
    tables = [table([Record("t", 0, number, 1, b"k", None)]) for number in range(3)]
    for count in range(4):
        found = list(spilled_if_several(iter(tables[:count]), SpillFile(tmp_path)))
        assert [isinstance(one, SpilledTable) for one in found] == [count > 1] * count
        assert [one.table() if isinstance(one, SpilledTable) else one for one in found] == tables[:count]
