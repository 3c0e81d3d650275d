"""What others on this machine put into eosctl's folders, or beside its files, is neither taken for its own nor lost."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from eosctl.app import App
from eosctl.core.records import Record
from eosctl.deadline import Clock, Deadline
from eosctl.errors import EosctlError, RefusedError
from eosctl.output.log_file import LogFile
from eosctl.report import Report
from eosctl.state.audit import AuditedCommand, AuditLog
from eosctl.state.audit_file import is_locked, lock_now
from eosctl.state.backups import keep_record_backup
from eosctl.state.journal import Journal
from eosctl.target import Target
from eosctl.txn.applications.report import Seen, keep_seen, read_seen
from tests.conftest import Invoke
from tests.fakes.clock import PLENTY_S
from tests.fakes.other_users import NOBODY, link_for, make_for, shared_folder
from tests.state.audit_scene import lines

FORK = multiprocessing.get_context("fork")
ACTION = AuditedCommand("x y", {}, (), Target())
PLAN = Report("x-plan")
EVIL = b'{"id":"$(touch PWNED)","outcome":"killed","log":"%s"}'


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / ".bashrc"
    path.write_text("# mine\n")
    return path


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    return AuditLog(tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.writes", Clock())


def problems(invoke: Invoke, log: AuditLog) -> list[tuple[str, str]]:
    done = invoke("history", "-o", "json", environ={"EOSCTL_AUDIT_LOG": str(log.path)})
    assert done.exit_code == 0, done.stderr
    document = done.json()
    assert document["data"]["rows"] == []
    return [(each["code"], each["message"]) for each in document["errors"]]


@pytest.mark.root
@pytest.mark.parametrize("whose", ["folder", "file", "link"])
def test_a_write_under_way_that_another_put_there_is_named_and_no_line_is_made_of_it(
    invoke: Invoke, log: AuditLog, victim: Path, whose: str
) -> None:
    """Root's `eosctl history` appended to the file that another's file named: root's next shell ran what it said."""
    log.pending.mkdir(mode=0o777 if whose == "folder" else 0o700)
    path = log.pending / "x.json"
    if whose == "link":
        make_for(0, victim.with_name("evil"), EVIL % os.fsencode(victim))
        link_for(NOBODY, path, victim.with_name("evil"))
    else:
        make_for(NOBODY, path, EVIL % os.fsencode(victim))
    if whose == "folder":
        os.chown(log.pending, NOBODY, NOBODY)
    ((code, message),) = problems(invoke, log)
    assert (code, str(log.pending if whose == "folder" else path) in message) == ("pending_not_ours", True)
    assert victim.read_text() == "# mine\n"
    assert path.is_symlink() or path.exists(), "it is left for who looks into it"
    assert not log.path.exists()
    if whose == "folder":
        with pytest.raises(RefusedError, match=f"{log.pending} belongs to user {NOBODY}"):
            log.record(ACTION, PLAN, lambda: Report("x-result"))
    else:
        log.record(ACTION, PLAN, lambda: Report("x-result"))
        assert [entry["outcome"] for entry in lines(log.path)] == ["ok"]


def test_the_line_of_a_killed_write_goes_into_the_log_whatever_its_file_says(log: AuditLog, victim: Path) -> None:
    log.pending.mkdir(mode=0o700)
    for name, entry in {"a": {"id": "a", "outcome": None, "log": str(victim)}, "b": {"id": "b"}}.items():
        (log.pending / f"{name}.json").write_text(json.dumps(entry))
    assert log.add_killed() == []
    assert [(entry["id"], entry["outcome"]) for entry in lines(log.path)] == [("a", "killed"), ("b", "killed")]
    assert victim.read_text() == "# mine\n"
    assert list(log.pending.iterdir()) == []


@pytest.mark.root
@pytest.mark.parametrize("what", ["audit log", "log file"])
def test_lines_are_not_added_where_anothers_link_leads(victim: Path, what: str) -> None:
    with shared_folder(0o777) as folder:
        link = link_for(NOBODY, folder / "log", victim)
        open_it: dict[str, Callable[[], object]] = {
            "audit log": lambda: AuditLog(link, folder / "writes", Clock()).require_writable(),
            "log file": lambda: LogFile(link, Clock()),
        }
        with pytest.raises(EosctlError, match="others on this machine can set"):
            open_it[what]()
        assert victim.read_text() == "# mine\n"
        own = folder / "mine"
        own.mkdir()
        (own / "log").symlink_to(victim)
        LogFile(own / "log", Clock()).close()


def test_a_log_file_may_be_a_device() -> None:
    LogFile(Path("/dev/null"), Clock()).close()


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App(Target(), Deadline.after(1), tmp_path / "state" / "eosctl")


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_all_that_is_kept_is_its_owners_only_whatever_the_umask(app: App, umask: int) -> None:
    """Folders were open to all with a umask of 0, files of the last look with the usual one."""
    before = os.umask(umask)
    try:
        keep_record_backup(app, Record("t", 0, 1, 0, b"k", b"v"), b"9", name="x", cluster_id="k")
        Journal(app.state_dir / "journals" / "j.ndjson", Clock()).write("begin")
        keep_seen(app, "c", Seen(1, {"a": 1}))
        log = AuditLog(app.state_dir / "audit.jsonl", app.state_dir / "writes", Clock(), app.state_dir)
        log.record(ACTION, PLAN, lambda: Report("x-result"))
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in app.state_dir.parent.rglob("*")}
    assert len(modes) == 9
    assert {path: mode for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)} == {}


@pytest.mark.parametrize("folder", ["", "backups", "journals", "applications"])
def test_a_state_folder_that_others_can_change_is_refused(app: App, folder: str) -> None:
    app.state_dir.mkdir(parents=True)
    there = app.state_dir / folder
    there.mkdir(exist_ok=True)
    there.chmod(0o777)
    log = AuditLog(app.state_dir / "audit.jsonl", app.state_dir / "writes", Clock(), app.state_dir)
    acts: dict[str, Callable[[], object]] = {
        "": log.require_writable,
        "backups": lambda: keep_record_backup(app, Record("t", 0, 1, 0, b"k", b"v"), b"9", name="x", cluster_id="k"),
        "journals": lambda: Journal(there / "j.ndjson", Clock()).write("begin"),
        "applications": lambda: keep_seen(app, "c", Seen(1, {"a": 1})),
    }
    with pytest.raises((EosctlError, OSError), match=f"{there} has mode 0777"):
        acts[folder]()
    assert list(there.iterdir()) == []


@pytest.mark.root
def test_the_last_look_of_another_is_none(app: App) -> None:
    keep_seen(app, "c", Seen(1, {"a": 1}))
    (path,) = (app.state_dir / "applications").iterdir()
    assert read_seen(app, "c") == Seen(1, {"a": 1})
    os.chown(path, NOBODY, -1)
    assert read_seen(app, "c") is None


@pytest.mark.root
def test_a_journal_of_another_is_neither_read_nor_taken_for_free(tmp_path: Path) -> None:
    path = make_for(NOBODY, tmp_path / "journals.ndjson", b'{"event": "end", "time_ms": 1}\n')
    journal = Journal(path, Clock())
    for act in (journal.entries, journal.holder, lambda: journal.write("begin")):
        with pytest.raises(EosctlError, match=f"belongs to user {NOBODY}"):
            act()
    with pytest.raises(EosctlError, match=f"belongs to user {NOBODY}"), journal.hold("it"):
        pass
    assert path.read_bytes() == b'{"event": "end", "time_ms": 1}\n'


def test_who_only_looks_keeps_no_writer_away(tmp_path: Path) -> None:
    """A writer was refused, and told to wait for a process that was not at work."""
    path = tmp_path / "journals" / "j.ndjson"
    journal = Journal(path, Clock())
    journal.write("begin")
    looks = FORK.Event()

    def look() -> None:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            looks.set()
            time.sleep(0.3)

    looker = FORK.Process(target=look)
    looker.start()
    assert looks.wait(60)
    assert journal.holder() is None
    with journal.hold("it"):
        assert str(journal.holder()).startswith(f"process {os.getpid()}")
    looker.join(60)


def test_of_many_that_take_the_lock_at_once_one_has_it(tmp_path: Path) -> None:
    path, everybody, answers = tmp_path / "lock", FORK.Barrier(4), FORK.SimpleQueue()
    path.touch()

    def take() -> None:
        for _ in range(50):
            with path.open("r+b") as file:
                everybody.wait(60)
                answers.put(lock_now(file.fileno()))
                everybody.wait(60)

    processes = [FORK.Process(target=take) for _ in range(4)]
    for process in processes:
        process.start()
    taken = [answers.get() for _ in range(200)]
    for process in processes:
        process.join(60)
    assert (sum(taken), [process.exitcode for process in processes]) == (50, [0] * 4)
    with path.open("r+b") as file, path.open("rb") as look:
        assert (is_locked(look.fileno()), lock_now(file.fileno()), is_locked(look.fileno())) == (False, True, True)


def test_profiles_that_are_set_at_once_are_all_there(tmp_path: Path) -> None:
    """Of two changes at once one was lost."""
    file = tmp_path / "eosctl" / "config.yaml"
    environ = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "eosctl", "profile", "set", f"p{number}", f"group_id=g{number}"],
            env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for number in range(6)
    ]  # fmt: skip
    for process in processes:
        _out, err = process.communicate(timeout=PLENTY_S)
        assert process.returncode == 0, err
    assert all(f"group_id: g{number}" in file.read_text() for number in range(6))
    assert list(file.parent.iterdir()) == [file]
