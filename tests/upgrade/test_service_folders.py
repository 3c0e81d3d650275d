"""Root changes a worker's file in a folder of the service's user, who may put there what they like at any moment."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Clock, Deadline
from eosctl.errors import EosctlError
from eosctl.target import Target
from eosctl.upgrade.drivers.programs import edit_mode, stamp
from eosctl.upgrade.drivers.systemd import SystemdDriver
from tests.fakes.clock import FakeTime
from tests.fakes.other_users import NOBODY, OTHER, link_for, make_for, shared_folder

pytestmark = pytest.mark.root
BEFORE = b"group.id=g\nexactly.once.source.support=disabled\n"
AFTER = BEFORE.replace(b"disabled", b"enabled")
WORKER = "http://w1.example:8083"
Change = Callable[[Path], str]


@pytest.fixture
def home() -> Iterator[Path]:
    """The service's folder, with worker.properties in it."""
    with shared_folder() as folder:
        make_for(NOBODY, folder / "worker.properties", BEFORE, mode=0o640)
        os.chown(folder, NOBODY, NOBODY)
        yield folder


@pytest.fixture
def app(tmp_path: Path) -> App:
    """Its clock stands: names with the time in them can be foreseen."""
    clock = FakeTime(1_700_000_000.0).clock()
    return App(Target(), Deadline.after(60, Clock()), tmp_path / "state", clock=clock)


@pytest.fixture(params=["here", "by sudo", "over ssh"])
def change(request: pytest.FixtureRequest, app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Change:
    """Sets the mode in a file; the path of the backup."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    put(programs, "sudo", 'shift 2; exec "$@"')
    put(programs, "ssh", 'for script; do :; done; exec sh -c "$script"')

    def by(path: Path) -> str:
        if request.param == "here":
            return str(edit_mode(path, Mode.ENABLED, app.clock).backup)
        over = "ops@w1" if request.param == "over ssh" else None
        driver = SystemdDriver("connect", str(path), over, sudo=over is None)
        return str(driver.set_alone(app, WORKER, Mode.ENABLED).backup).removeprefix("ops@w1:")

    return by


def put(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def what(path: Path) -> tuple[bytes, int, int, int]:
    status = path.lstat()
    return path.read_bytes(), status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)


def test_links_where_drafts_used_to_be_give_no_file_away(home: Path, change: Change, tmp_path: Path) -> None:
    """A file of root's that a link there led to was overwritten, and given to the service's user."""
    shadow = make_for(0, tmp_path / "shadow", b"root:secret", mode=0o600)
    path = home / "worker.properties"
    for name in (".worker.properties.eosctl", "worker.properties.eosctl"):
        link_for(NOBODY, home / name, shadow)
    backup = change(path)
    assert what(shadow) == (b"root:secret", 0, 0, 0o600)
    assert what(path) == (AFTER, NOBODY, NOBODY, 0o640)
    assert what(Path(backup)) == (BEFORE, NOBODY, NOBODY, 0o640)
    assert len(list(home.iterdir())) == 4


def test_a_link_where_the_backup_goes_is_not_followed(app: App, home: Path, change: Change, tmp_path: Path) -> None:
    shadow = make_for(0, tmp_path / "shadow", b"root:secret", mode=0o600)
    path = home / "worker.properties"
    link_for(NOBODY, home / f"{path.name}.{stamp(app.clock)}.bak", shadow)
    backup = change(path)
    assert what(shadow) == (b"root:secret", 0, 0, 0o600)
    assert (what(path)[0], what(Path(backup))[0]) == (AFTER, BEFORE)


def test_a_link_of_the_service_s_user_stays(home: Path, change: Change) -> None:
    link = link_for(NOBODY, home / "current.properties", home / "worker.properties")
    backup = change(link)
    assert link.is_symlink()
    assert what(home / "worker.properties") == (AFTER, NOBODY, NOBODY, 0o640)
    assert what(Path(backup)) == (BEFORE, NOBODY, NOBODY, 0o640)


def test_a_link_of_anybody_else_s_is_refused(home: Path, change: Change) -> None:
    link = link_for(OTHER, home / "current.properties", home / "worker.properties")
    with pytest.raises(EosctlError, match="others on this machine can set"):
        change(link)
    assert what(home / "worker.properties")[0] == BEFORE


@pytest.mark.parametrize("through", ["a link", "a chain of links"])
def test_a_link_of_the_service_s_user_leads_to_no_file_of_root_s(
    home: Path, change: Change, tmp_path: Path, through: str
) -> None:
    """Over ssh and by sudo, root's worker of another group got the mode, and a backup beside it."""
    other = make_for(0, tmp_path / "other.properties", BEFORE, mode=0o600)
    link = link_for(NOBODY, home / "current.properties", other)
    if through == "a chain of links":
        link = link_for(0, tmp_path / "first.properties", link)
    with pytest.raises(EosctlError, match="others on this machine can set"):
        change(link)
    assert what(other) == (BEFORE, 0, 0, 0o600)
    assert not list(tmp_path.glob("other.properties.*"))


@pytest.mark.parametrize("then", ["rm -rf -- {work} && ln -s -- {victim} {work}", "chown 65534 -- {work}"])
def test_a_folder_that_was_changed_meanwhile_is_not_worked_in(
    app: App, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """The service's user may rename root's folder, and put a link in its place."""
    victim, programs = tmp_path / "victim", tmp_path / "bin"
    for folder in (victim, programs):
        folder.mkdir()
    (victim / "new").write_text("root's")
    (victim / "old").write_text("root's")
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    put(programs, "sudo", 'shift 2; exec "$@"')
    swap = then.format(work='"$work"', victim=shlex.quote(str(victim)))
    put(programs, "mktemp", f'work=$(PATH=/usr/bin:/bin mktemp "$@"); {swap}; printf %s "$work"')
    with pytest.raises(EosctlError, match="somebody else has set"):
        SystemdDriver("connect", str(home / "worker.properties"), sudo=True).set_alone(app, WORKER, Mode.ENABLED)
    assert what(home / "worker.properties") == (BEFORE, NOBODY, NOBODY, 0o640)
    assert {path.name: path.read_text() for path in victim.iterdir()} == {"new": "root's", "old": "root's"}
