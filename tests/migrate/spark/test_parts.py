"""However the keys are divided, what a migration decides, counts, samples and backs up is the same; no Spark runs."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eosctl.core.offsets.migration import ONE_PART, ConnectorRoute, MigrationPlan, Parts, PlannedTopic, Snapshot, Tally
from eosctl.core.offsets.views import Policy
from eosctl.core.records import Record
from eosctl.engine.files import KeyParts, land, next_reader, older_in, part_file, part_files, read_part, read_table
from eosctl.engine.reading.newest import Fold
from eosctl.migrate.spark.parts import compare_part, decide_part, land_stale, sample_of
from tests.engine.test_rule import random_records, table
from tests.synced_files import SyncedFiles

NOTHING = Tally(0, 0, 0, 0, 0, 0, 0, 0, {})
SIZES = {"first": 3, "second": 3, "to-a": 3, "to-z@p": 3}
ROUTES = (ConnectorRoute("a", "a", "to-a"), ConnectorRoute("b", "c", "to-z@p"), ConnectorRoute("c", "c", "to-z@p"))
DIVIDED: list[Parts] = [((0, 2), (1,)), ((0,), (1,), (2,)), ((0, 1, 2, 3), (4,)), tuple((n,) for n in range(7))]


def topics(*names: str) -> tuple[PlannedTopic, ...]:
    return tuple(PlannedTopic(name, name, SIZES[name], 1) for name in names)


def plan(policy: Policy, parts: Parts) -> MigrationPlan:
    sources, targets = topics("second", "first"), topics("to-a", "to-z@p")
    return MigrationPlan("cluster", None, policy, sources, targets, ROUTES, NOTHING, "", parts=parts)


def folds_of(records: Sequence[Record], readers: int) -> Iterator[list[Fold]]:
    """What so many readers give, each of its own partitions, the keys of which do not fit into memory."""
    for reader in range(readers):
        mine = [each for each in records if each.partition % readers == reader]
        half = len(mine) // 2
        yield [_fold(piece) for piece in (mine[:half], mine[half:])]


def _fold(records: Sequence[Record]) -> Fold:
    newest = {(each.topic, each.partition, each.key): each for each in records}
    kept = list(newest.values())
    return Fold(table(kept), len(records) - len(kept), len(records), SIZES)


def land_side(records: Sequence[Record], folder: Path, places: KeyParts, *, readers: int) -> list[Snapshot]:
    folder.mkdir(parents=True)
    return [land(folder, number, folds, places) for number, folds in enumerate(folds_of(records, readers))]


def outcome(folder: Path, wanted: MigrationPlan, readers: int) -> tuple[Any, ...]:
    rng = random.Random(3)  # noqa: S311 - the same records every time
    source = random_records(rng, ("first", "second"), 900, keys=60)
    target = random_records(rng, ("to-a", "to-z@p"), 500, keys=60)
    landed = land_side(source, folder / "source", KeyParts(wanted.parts, wanted.renames()), readers=readers)
    land_side(target, folder / "target", KeyParts(wanted.parts), readers=readers)
    for each in ("decisions", "sample", "stale"):
        (folder / each).mkdir()
    found = [decide_part(folder, number, wanted) for number in range(len(wanted.parts))]
    stale = [land_stale(folder, number) for number in range(len(wanted.parts))]
    decided = [row for file in part_files(folder / "decisions") for row in read_table(file).to_pylist()]
    copies = [row for file in part_files(folder / "stale") for row in read_table(file).to_pylist()]
    counts = Counter[Any]()
    for part in found:
        counts["scattered"] += part.scattered
        counts.update({("keys", name): count for name, count in part.keys.items()})
        counts.update({("groups", group[:2], n): count for group in part.groups for n, count in enumerate(group[2:])})
    places = [(row["topic"], row["partition"], row["key"]) for row in copies]
    assert sum(stale) == len(copies) == len(set(places)), "one tombstone for each place, however often it was written"
    assert bool(copies) is (wanted.policy in (Policy.NEWEST, Policy.TAKE_SOURCE))
    rows = sum(part.rows for part in found)
    assert sum(one.records for one in landed) == len(source) == older_in(folder / "source") + rows
    assert not all(one.in_place for one in landed)
    for number, size in Snapshot.united(landed).part_bytes.items():
        assert read_part(folder / "source", number).nbytes == pytest.approx(size, rel=0.2)
    assert frozenset[str]().union(*(one.connectors for one in landed)) == {"a", "b", "c", "ü", "other"}
    return sorted(decided, key=_place), sorted(copies, key=str), counts


def _place(row: dict[str, Any]) -> tuple[str, bytes]:
    return row["topic"], row["key"]


@pytest.mark.parametrize("policy", list(Policy))
def test_the_parts_decide_nothing(tmp_path: Path, policy: Policy) -> None:
    """Records that are not where they should be, renames and several sources sent all keys through a shuffle."""
    expected = outcome(tmp_path / "one", plan(policy, ONE_PART), 1)
    assert len(expected[0]) > 100
    assert {row["claims"] for row in expected[0]} >= {1, 2, 3}
    for number, parts in enumerate(DIVIDED):
        assert outcome(tmp_path / str(number), plan(policy, parts), 1 + number) == expected


def test_decisions_survive_a_power_cut(tmp_path: Path, synced: SyncedFiles) -> None:
    """After one in the middle of the write, --resume found empty files."""
    for side in ("source", "target"):
        _land_folds(tmp_path / side, [_fold([Record("first", 0, 0, 1, b'["a",{"n":1}]', b"{}")])])
    for each in ("decisions", "sample"):
        (tmp_path / each).mkdir()
    decide_part(tmp_path, 0, plan(Policy.NEWEST, ONE_PART))
    decisions = part_file(tmp_path / "decisions", 0)
    assert decisions.read_bytes() in synced.kept(decisions)


def test_each_place_of_a_stale_copy_is_there_once(tmp_path: Path) -> None:
    """Several versions of a copy, which one reader or several had found, gave several tombstones and backup lines."""
    key = b'["a",{"n":1}]'
    versions = [Record("to-a", partition, offset, 5, key, b"{}") for partition in (0, 1, 2) for offset in (3, 4, 5)]
    newer = Record("first", 0, 9, 9, key, b'{"new":1}')
    _land_folds(tmp_path / "source", [_fold([newer])])
    _land_folds(tmp_path / "target", [_fold([each]) for each in versions])
    for each in ("decisions", "sample", "stale"):
        (tmp_path / each).mkdir()
    decide_part(tmp_path, 0, plan(Policy.TAKE_SOURCE, ONE_PART))
    assert land_stale(tmp_path, 0) == 2
    copies = read_table(part_file(tmp_path / "stale", 0)).to_pylist()
    assert [row["offset"] for row in copies] == [5, 5]
    tombstones = [each._replace(offset=6, value=None) for each in versions[2::3]]
    _land_folds(tmp_path / "again", [_fold([each]) for each in [*versions, *tombstones]])
    found = compare_part(tmp_path, 0, tmp_path / "again", side="target", since=True, limit=9)
    assert [each.actual for each in found.mismatches] == [None], "the copies that were put away were still reported"


def _land_folds(folder: Path, folds: list[Fold]) -> None:
    folder.mkdir()
    land(folder, 0, folds, KeyParts(ONE_PART))


def test_a_key_is_in_one_part(tmp_path: Path) -> None:
    """Also one that is renamed, under whatever name it is found."""
    places = KeyParts(((0,), (1,), (2, 3, 4)), {"b": "a"})
    rng = random.Random(5)  # noqa: S311 - the same records every time
    records = random_records(rng, ("first",), 500, keys=50)
    land_side(records, tmp_path / "source", places, readers=2)
    where: dict[bytes, set[int]] = {}
    for number in range(3):
        for key in read_part(tmp_path / "source", number)["key"].to_pylist():
            where.setdefault(re.sub(rb'\["(b|\\u0062)"', b'["a"', b"none" if key is None else key), set()).add(number)
    assert max(map(len, where.values())) == 1
    assert set().union(*where.values()) == {0, 1, 2}


def test_a_reader_that_is_tried_again_takes_its_own_place(tmp_path: Path) -> None:
    rows = [Record("first", 0, number, 1, b"k%d" % number, b"{}") for number in range(4)]
    land(tmp_path, 7, [_fold(rows[:2]), _fold(rows[2:])], KeyParts(ONE_PART))
    land(tmp_path, 7, [_fold(rows[:3])], KeyParts(ONE_PART))
    assert sorted(read_part(tmp_path, 0)["offset"].to_pylist()) == [0, 1, 2]


def test_a_reader_has_one_file_however_much_it_reads(tmp_path: Path) -> None:
    """It had one for each million keys, or for each ten thousand records of a file, and every part looked into all."""
    rows = [Record("first", 0, number, 1, b"k%d" % number, b"{}") for number in range(40)]
    places = KeyParts(((0,), (1,), (2,)))
    land(tmp_path, 7, [_fold(rows[at : at + 4]) for at in range(0, 40, 4)], places)
    assert (len(list(tmp_path.iterdir())), next_reader(tmp_path)) == (1, 8)
    parts = [read_part(tmp_path, number) for number in range(3)]
    assert sorted(offset for part in parts for offset in part["offset"].to_pylist()) == list(range(40))
    assert all(map(len, parts))


def test_a_task_that_dies_leaves_no_file(tmp_path: Path) -> None:
    class Dying(KeyParts, frozen=True):
        def split(self, fold: Fold) -> Iterator[tuple[int, pa.RecordBatch]]:
            yield 0, fold.records.to_batches()[0]
            raise OSError("killed")

    with pytest.raises(OSError, match="killed"):
        land(tmp_path, 0, [_fold([Record("first", 0, 0, 1, b"k", b"{}")])], Dying(ONE_PART))
    assert not list(tmp_path.iterdir())


def test_a_sample_is_of_what_changes_first(tmp_path: Path) -> None:
    outcome(tmp_path, plan(Policy.NEWEST, ONE_PART), 1)
    decisions = read_table(part_file(tmp_path / "decisions", 0))
    changes = sum(action != "keep" for action in decisions["action"].to_pylist())
    shown = sample_of(decisions, changes + 2).to_pylist()
    assert [row["action"] == "keep" for row in shown] == [False] * changes + [True] * 2
    assert [_place(row) for row in shown[:-2]] == sorted(_place(row) for row in shown[:-2])
    assert len(sample_of(decisions, 3)) == 3
