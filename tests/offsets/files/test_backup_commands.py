"""`restore`, `verify` and `export --backup` of a backup in Parquet, as eosctl keeps many keys; topics in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from eosctl.core.records import UNKNOWN
from eosctl.engine.backups.file import BACKUP
from eosctl.engine.columns import batch_of_rows
from eosctl.state.backups import read_backup, write_columns
from tests.conftest import Outcome
from tests.fakes.offset_topics import IN_OWN, OffsetWorld

GLOBAL, OWN = "connect-offsets", "own"
A, B, ODD = b'["c",{"f":"a"}]', b'["c",{"f":"b"}]', b"\xff"
Run = Callable[..., Outcome]


@pytest.fixture
def world() -> OffsetWorld:
    world = OffsetWorld()
    world.topics.add_topic(GLOBAL, 5)
    world.topics.add_topic(OWN, 5)
    world.topics.put(GLOBAL, A, b'{"n":1}')
    world.topics.put(GLOBAL, B, b"\xfe")
    world.topics.put(OWN, B, b'{"n":7}')
    world.connect.add("c", IN_OWN, state="STOPPED")
    return world


@pytest.fixture
def lines(run: Run) -> Path:
    """Of a merge that wrote one key where there was none, and one over another."""
    words = ("merge", "--connector", "c", "--into", "dedicated", "--prefer", "global", "--yes", "-o", "json")
    return Path(run(*words).json()["data"]["backup"])


@pytest.fixture
def columns(lines: Path, tmp_path: Path) -> str:
    """The same in Parquet."""
    return packed(lines, tmp_path / "backup.parquet")


def packed(lines: Path, path: Path) -> str:
    entries = list(read_backup(str(lines)))
    rows = [(*entry.before[:6], None, entry.written) for entry in entries]
    assert {entry.before.offset for entry in entries} == {UNKNOWN, 0}
    batch = batch_of_rows(rows, BACKUP)
    return str(write_columns(path, [pa.Table.from_batches([batch])], cluster_id=entries[0].cluster_id))


def test_it_is_verified_and_restored_as_lines_are(run: Run, world: OffsetWorld, lines: Path, columns: str) -> None:
    for words in (("verify",), ("verify", "--before"), ("restore", "--dry-run")):
        of_lines, of_columns = (run(words[0], str(path), *words[1:], "-o", "json") for path in (lines, columns))
        assert of_columns.stdout == of_lines.stdout.replace(str(lines), columns)
        assert of_columns.exit_code == of_lines.exit_code
    assert run("restore", columns, "--yes").exit_code == 0
    assert world.topics.newest(OWN) == {A: None, B: b'{"n":7}'}
    assert run("verify", columns, "--before").exit_code == 0


def test_a_merge_of_many_keys_keeps_its_own_so(run: Run, world: OffsetWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eosctl.state.backups.MOST_LINES", 1)
    words = ("merge", "--connector", "c", "--into", "dedicated", "--prefer", "global", "--yes", "-o", "json")
    kept = Path(run(*words).json()["data"]["backup"])
    assert (kept.suffix, kept.stat().st_mode & 0o777) == (".parquet", 0o600)
    assert run("verify", str(kept)).exit_code == 0
    undone = run("restore", str(kept), "--yes", "-o", "json").json()["data"]
    assert world.topics.newest(OWN) == {A: None, B: b'{"n":7}'}
    assert Path(undone["backup"]).suffix == ".parquet"
    assert run("verify", str(kept), "--before").exit_code == 0


def test_it_is_exported_as_the_lines_that_it_stands_for(run: Run, lines: Path, columns: str, tmp_path: Path) -> None:
    out = tmp_path / "out.ndjson"
    done = run("export", "--backup", columns, str(out), "-o", "json").json()
    assert out.read_bytes() == lines.read_bytes()
    assert out.stat().st_mode & 0o077 == 0
    assert done["data"]["summary"] == {"records": 2, "tombstones": 1, "records_read": 2}
    assert (done["data"]["backup"], done["data"]["topic"]) == (columns, None)
    for words in (("-o", "ndjson"), ("-",)):
        assert run("export", "--backup", columns, *words).stdout == lines.read_text()
    assert run("export", "--backup", columns, "--connector", "d").stdout == ""


def test_what_a_backup_can_not_be_exported_as(run: Run, columns: str, lines: Path) -> None:
    both = run("export", "--backup", columns, "--store", GLOBAL)
    assert (both.exit_code, both.stdout) == (2, "")
    assert (run("export").exit_code, run("export", "--backup", columns, "--format", "rest").exit_code) == (2, 2)
    assert run("export", "--backup", columns, "-o", "json").exit_code == 2
    no_parquet = run("export", "--backup", str(lines))
    assert (no_parquet.exit_code, no_parquet.stdout) == (2, "")
    assert "lines already" in no_parquet.stderr


def test_one_that_is_damaged_writes_nothing(run: Run, world: OffsetWorld, columns: str) -> None:
    before, path = world.topics.newest(OWN), Path(columns)
    path.write_bytes(path.read_bytes()[:-1])
    for words in (("restore", columns, "--yes"), ("verify", columns), ("export", "--backup", columns)):
        done = run(*words)
        assert (done.exit_code, "is cut off or damaged" in done.stderr) == (2, True)
    assert world.topics.newest(OWN) == before


def test_a_pipe_is_no_backup_to_verify(run: Run, lines: Path) -> None:
    """Its first line was taken for a look, and the rest was read as all: `verify <(zcat FILE.gz)`."""
    read_end, write_end = os.pipe()
    os.write(write_end, lines.read_bytes())
    os.close(write_end)
    done = run("verify", f"/dev/fd/{read_end}")
    os.close(read_end)
    assert (done.exit_code, "is a pipe" in done.stderr) == (2, True)


def test_that_of_another_cluster_is_refused(run: Run, lines: Path, tmp_path: Path) -> None:
    other = [{**json.loads(line), "cluster_id": "other"} for line in lines.read_text().splitlines()]
    changed = tmp_path / "changed.ndjson"
    changed.write_text("".join(f"{json.dumps(each)}\n" for each in other))
    done = run("restore", packed(changed, tmp_path / "b.parquet"), "--yes")
    assert (done.exit_code, "is a backup of cluster other" in done.stderr) == (6, True)


@pytest.mark.parametrize("words", [("verify",), ("restore", "--yes")], ids="".join)
def test_lines_that_are_not_all_of_a_backup_are_refused(run: Run, lines: Path, words: tuple[str, ...]) -> None:
    """Cut off where a line ends, a copy was verified and restored without a word."""
    whole = lines.read_bytes()
    lines.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    done = run(words[0], str(lines), *words[1:])
    assert (done.exit_code, "not the file that eosctl wrote" in done.stderr) == (2, True)
    lines.write_bytes(whole)
    assert run("verify", str(lines)).exit_code == 0


def test_some_lines_of_a_backup_may_be_taken_under_another_name(run: Run, lines: Path, tmp_path: Path) -> None:
    some = tmp_path / "some.ndjson"
    some.write_bytes(lines.read_bytes().splitlines(keepends=True)[0])
    assert run("verify", str(some)).exit_code == 0


def test_configs_of_connectors_are_refused(run: Run, tmp_path: Path) -> None:
    """They were shown and backed up, passwords too."""
    batch = batch_of_rows([("t", 0, 1, 1, b"connector-x", b"{}", None, None)], BACKUP)
    path = write_columns(tmp_path / "b.parquet", [pa.Table.from_batches([batch])], cluster_id=None)
    done = run("restore", str(path), "--yes")
    assert (done.exit_code, "which are no offsets" in done.stderr) == (6, True)


def test_it_is_imported_as_its_lines_are(run: Run, world: OffsetWorld, lines: Path, columns: str) -> None:
    plans = [run("import", str(path), "--store", GLOBAL, "--dry-run", "-o", "json").json() for path in (lines, columns)]
    assert plans[1]["data"]["rows"] == plans[0]["data"]["rows"]
    assert plans[1]["data"]["summary"] == plans[0]["data"]["summary"]
    assert run("import", columns, "--store", GLOBAL, "--connector", "c", "--yes").exit_code == 0
    assert world.topics.newest(GLOBAL) == {A: None, B: b'{"n":7}'}
