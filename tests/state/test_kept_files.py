"""Files that are kept of writes: backups, and the log below `eosctl history`."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from unittest.mock import Mock

import pytest

from eosctl.app import App
from eosctl.core.records import Record
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError
from eosctl.machine.files import write_whole
from eosctl.report import Report
from eosctl.state.audit import AuditedCommand, AuditLog
from eosctl.state.audit_file import append_entry, read_entries
from eosctl.state.backups import keep_record_backup, read_backup, write_lines
from eosctl.target import Target
from tests.fakes.clock import FakeTime


def test_a_file_that_is_written_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for line in ("one", "two"):
        write_lines(path, [line])
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [EosctlError("the topic changed"), KeyboardInterrupt()])
def test_a_file_that_is_not_written_to_its_end_leaves_no_draft(tmp_path: Path, error: BaseException) -> None:
    """An export that failed or was interrupted left a part of it in FILE.new."""

    def lines() -> Iterator[str]:
        yield "one"
        raise error

    with pytest.raises(type(error)):
        write_lines(tmp_path / "f", lines())
    assert list(tmp_path.iterdir()) == []


def test_who_reads_a_file_while_it_is_replaced_reads_all_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_lines(path, ["old"] * 3)

    def lines() -> Iterator[str]:
        for _ in range(3):
            assert path.read_text() == "old\n" * 3
            yield "new"

    with path.open() as reader:
        write_lines(path, lines())
        assert reader.read() == "old\n" * 3
    assert path.read_text() == "new\n" * 3


@pytest.fixture
def app(tmp_path: Path) -> App:
    """Its clock stands."""
    clock = FakeTime(1_700_000_000.0).clock()
    return App(Target(), Deadline.after(1, clock), tmp_path, clock=clock)


def test_two_backups_of_one_moment_are_both_kept(app: App) -> None:
    records = [Record("t", 0, offset, 0, b"k", b"%d" % offset) for offset in (1, 2)]
    paths = [keep_record_backup(app, record, b"9", name="x", cluster_id="k") for record in records]
    assert [entry.before.offset for path in paths for entry in read_backup(str(path))] == [1, 2]


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_two_processes_that_keep_backups_in_one_moment(
    app: App, tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They shared a draft: one lost lines to the other, and of Parquet the later took the place of the earlier."""
    if not links:  # as some file systems have none
        monkeypatch.setattr(os, "link", Mock(side_effect=PermissionError))

    def write(name: bytes) -> Path:
        def blocks(file: IO[bytes]) -> None:
            for number in range(3):
                file.write(name)
                if name == b"A" and number == 1:
                    others.append(write(b"B"))

        return write_whole(tmp_path / "x", blocks, name=lambda: tmp_path / "b-20231114T221320000Z.parquet")

    others = list[Path]()
    first = write(b"A")
    assert {path.name: path.read_bytes() for path in (first, *others)} == {
        "b-20231114T221320000Z-2.parquet": b"AAA",
        "b-20231114T221320000Z.parquet": b"BBB",
    }
    again = [keep_record_backup(app, Record("t", 0, 1, 0, b"k", b"v"), b"9", name="x", cluster_id="k") for _ in "ab"]
    assert len(set(again)) == 2
    assert [entry.before.offset for path in again for entry in read_backup(str(path))] == [1, 1]
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(kept) == sorted([first, *others, *again])
    assert {path.stat().st_mode & 0o077 for path in kept} == {0}


def test_a_draft_is_nobody_elses(tmp_path: Path) -> None:
    """A user's own FILE.new was overwritten and gone; a link there was followed."""
    mine, other = tmp_path / "f.new", tmp_path / "other"
    mine.symlink_to(other)
    write_lines(tmp_path / "f", ["line"])
    assert (mine.is_symlink(), other.exists()) == (True, False)


def test_a_directory_of_somebody_elses_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(EosctlError, match="cannot write"):
        write_lines(tmp_path / "typo" / "f", ["line"])
    assert list(tmp_path.iterdir()) == []


def test_what_can_not_be_read_is_not_reported_as_a_file_that_can_not_be_written(tmp_path: Path) -> None:
    """The disk of the snapshot failed, and the backup was said to have no space or rights."""

    def lines() -> Iterator[str]:
        yield "one"
        yield (tmp_path / "gone").read_text()

    with pytest.raises(EosctlError, match=f"cannot read {tmp_path / 'gone'}: No such file"):
        write_lines(tmp_path / "f", lines())
    assert not (tmp_path / "f").exists()


def test_what_is_written_bit_by_bit_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is nearly full takes a part of what it is given."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    append_entry(tmp_path / "log", {"id": "a", "text": "x" * 100})
    assert [entry["text"] for entry in read_entries(tmp_path / "log").entries] == ["x" * 100]


def test_a_line_is_added_when_no_other_process_adds_one(tmp_path: Path) -> None:
    log, done = tmp_path / "log", threading.Event()

    def add() -> None:
        append_entry(log, {"id": "a"})
        done.set()

    with log.open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        thread = threading.Thread(target=add, daemon=True)
        thread.start()
        assert not done.wait(0.3), "it was added beside what the other one adds"
        other.write(b'{"id": "cut o')
    assert done.wait(60)
    thread.join(60)
    entries = read_entries(log)
    assert (entries.damaged, [each["id"] for each in entries.entries]) == (1, ["a"])


def test_what_is_under_way_is_for_its_owner_only(tmp_path: Path) -> None:
    """An entry has the arguments of a command line, and may have the undo of a write."""
    log = AuditLog(tmp_path / "audit.jsonl", tmp_path / "writes", FakeTime().clock())
    modes: list[int] = []

    def apply() -> Report:
        modes.extend(path.stat().st_mode & 0o777 for path in [log.pending, *log.pending.iterdir(), log.path])
        return Report("x-result")

    log.record(AuditedCommand("x y", {}, (), Target()), Report("x-plan"), apply)
    assert modes == [0o700, 0o600, 0o600]
