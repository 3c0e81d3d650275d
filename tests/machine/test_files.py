"""Files and folders that others could have made or may change: what is opened, what is refused, what is left of it."""

from __future__ import annotations

import multiprocessing
import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

import pytest

from eosctl.errors import RefusedError
from eosctl.machine.class_archive import KeptFile
from eosctl.machine.files import (
    NamedFiles,
    NotOursError,
    file_in_memory,
    followed,
    open_own,
    own_folder,
    own_users,
    read_own,
    why_not_ours,
    write_whole,
)
from tests.fakes.clock import PLENTY_S
from tests.fakes.other_users import NOBODY, OTHER, as_user, link_for, make_for, shared_folder

pytestmark = pytest.mark.root
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder of root's that all may enter."""
    with shared_folder() as folder:
        yield folder


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder where everybody may put, and take away, what they like."""
    with shared_folder(0o777) as folder:
        yield folder


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def is_ours(path: Path) -> bool:
    return why_not_ours(path.stat()) is None


@pytest.mark.parametrize(
    ("uid", "gid", "mode", "ours"),
    [
        (0, 0, 0o644, True),
        (0, 0, 0o600, True),
        (0, 0, 0o664, True),  # root's group has no other members
        (0, OTHER, 0o644, True),
        (0, OTHER, 0o664, False),
        (0, 0, 0o646, False),
        (NOBODY, NOBODY, 0o600, False),
    ],
)
def test_a_file_is_ours_where_nobody_else_can_change_it(
    tmp_path: Path, uid: int, gid: int, mode: int, ours: bool
) -> None:
    path = tmp_path / "f"
    path.write_text("x")
    os.chown(path, uid, gid)
    path.chmod(mode)
    assert (why_not_ours(path.stat()) is None) is ours
    if ours:
        assert read_own(path) == b"x"
    else:
        with pytest.raises(NotOursError):
            read_own(path)


def test_another_user_takes_roots_files_and_their_own_and_no_others(shared: Path) -> None:
    made = [make_for(uid, shared / str(uid), b"x") for uid in (0, NOBODY, OTHER)]
    assert [as_user(NOBODY, partial(is_ours, path)) for path in made] == [
        True, True, False,
    ]  # fmt: skip
    assert as_user(NOBODY, lambda: (read_own(made[0]), read_own(made[1]))) == (b"x", b"x")
    with pytest.raises(OSError, match=f"belongs to user {OTHER}"):
        as_user(NOBODY, lambda: read_own(made[2]))


@pytest.mark.parametrize(("gid", "ours"), [(OTHER, True), (0, True), (NOBODY, False), (OTHER + 1, False)])
def test_a_group_that_is_the_pods_alone_may_write(shared: Path, gid: int, ours: bool) -> None:
    """Kubernetes lets the group of a pod's volumes write all that is in them, and nobody else has that group."""
    path = make_for(OTHER, shared / "f", b"x")
    os.chown(path, OTHER, gid)
    path.chmod(0o660)
    assert as_user(OTHER, partial(is_ours, path)) is ours


def test_who_became_root_by_sudo_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", str(OTHER))
    assert own_users() == {0, OTHER}
    assert as_user(NOBODY, own_users) == {0, NOBODY}, "what the environment says counts for root alone"


@pytest.mark.parametrize(
    ("by", "folder_mode", "is_followed"),
    [(0, 0o755, True), (NOBODY, 0o755, False), (0, 0o1777, True), (NOBODY, 0o1777, False), (0, 0o777, False)],
)
def test_links_that_others_can_set_are_not_followed(by: int, folder_mode: int, is_followed: bool) -> None:
    with shared_folder(folder_mode) as folder:
        (folder / "f").write_text("x")
        link = link_for(by, folder / "link", folder / "f")
        if is_followed:
            assert (followed(link), read_own(link)) == (folder / "f", b"x")
            write_whole(link, lambda file: file.write(b"new"))
            assert (link.is_symlink(), (folder / "f").read_bytes()) == (True, b"new")
        else:
            for act in (followed, read_own, lambda path: write_whole(path, lambda file: file.write(b"new"))):
                with pytest.raises(NotOursError):
                    act(link)
            assert (folder / "f").read_text() == "x"


def test_links_that_a_cluster_manager_sets_are_followed(shared: Path) -> None:
    """Secrets are mounted as links of root's, to files that a group may read."""
    (shared / "..2026").mkdir()
    (shared / "..data").symlink_to("..2026")
    secret = shared / "..2026" / "password"
    secret.write_text("pw")
    os.chown(secret, 0, NOBODY)
    secret.chmod(0o440)
    (shared / "password").symlink_to("..data/password")

    def read() -> bytes:
        files = NamedFiles()
        found = files.read(shared / "password")
        files.require_private(shared / "password", "a secret")
        files.require_private(shared / "password", "a command", readable=True)
        return found

    assert as_user(NOBODY, read) == b"pw"
    secret.chmod(0o444)
    with pytest.raises(OSError, match="RefusedError"):
        as_user(NOBODY, read)


def test_a_file_is_judged_as_it_was_when_it_was_read(tmp_path: Path) -> None:
    path, files = make_for(NOBODY, tmp_path / "f", b"command"), NamedFiles()
    assert files.read(path) == b"command"
    path.unlink()
    path.write_text("one's own")
    with pytest.raises(RefusedError, match=f"belongs to user {NOBODY}"):
        files.require_private(path, "a command", readable=True)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for act in (read_own, lambda path: write_whole(path, lambda file: file.write(b"x"))):
        with pytest.raises(OSError, match="no regular file"):
            act(tmp_path / "pipe")


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_folders_and_files_are_their_owners_only_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        folder = own_folder(tmp_path / "state" / "eosctl", "backups")
        os.close(open_own(folder / "a", os.O_RDWR | os.O_CREAT))
        write_whole(folder / "b", lambda file: file.write(b"x"))
    finally:
        os.umask(before)
    made = [tmp_path / "state", folder.parent, folder, folder / "a", folder / "b"]
    assert [mode_of(path) for path in made] == [0o700, 0o700, 0o700, 0o600, 0o600]


@pytest.mark.parametrize("which", ["eosctl", "eosctl/backups"])
@pytest.mark.parametrize("kind", ["of another", "open", "a link"])
def test_a_folder_that_others_can_change_is_refused(shared: Path, which: str, kind: str) -> None:
    folder = shared / which
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    if kind == "a link":
        (shared / "there").mkdir()
        link_for(NOBODY, folder, shared / "there")
    else:
        folder.mkdir()
        os.chown(folder, NOBODY if kind == "of another" else 0, -1)
        folder.chmod(0o777 if kind == "open" else 0o700)
    with pytest.raises(NotOursError) as refused:
        own_folder(shared / "eosctl", "backups")
    assert str(folder) in str(refused.value.strerror)
    assert refused.value.hint


def test_a_file_that_another_made_before_is_not_written_into(open_to_all: Path) -> None:
    """An export with passwords belonged to who had made its draft, and all could read it."""
    path = make_for(NOBODY, open_to_all / "out", b"theirs", mode=0o666)
    with path.open("rb") as theirs:
        write_whole(path, lambda file: file.write(b"secret"))
        assert theirs.read() == b"theirs"
    assert (path.read_bytes(), path.stat().st_uid, mode_of(path)) == (b"secret", 0, 0o600)


def test_a_file_is_made_like_another_before_anything_is_in_it(shared: Path) -> None:
    path = make_for(NOBODY, shared / "f", b"old", mode=0o640)
    seen: list[os.stat_result] = []

    def write(file: IO[bytes]) -> None:
        seen.append(os.fstat(file.fileno()))
        file.write(b"new")

    write_whole(path, write, like=path.stat())
    for status in (*seen, path.stat()):
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (NOBODY, NOBODY, 0o640)
    assert path.read_bytes() == b"new"


def test_two_processes_that_write_one_file_at_once(tmp_path: Path) -> None:
    """The first ended well, with a file that was half the other's."""
    path, both, size = tmp_path / "out", FORK.Barrier(2), 1 << 20

    def export(letter: bytes) -> None:
        def write(file: IO[bytes]) -> None:
            file.write(letter * size)
            file.flush()
            both.wait(PLENTY_S)
            file.write(letter * size)

        write_whole(path, write)

    processes = [FORK.Process(target=export, args=(letter,)) for letter in (b"a", b"b")]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PLENTY_S)
    assert [process.exitcode for process in processes] == [0, 0]
    assert path.read_bytes() in (b"a" * 2 * size, b"b" * 2 * size)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("spoil", [lambda path: os.chown(path, NOBODY, -1), lambda path: path.chmod(0o666)])
@pytest.mark.parametrize("what", ["file", "folder"])
def test_the_cache_has_no_file_that_others_can_change(tmp_path: Path, spoil: Callable[[Path], None], what: str) -> None:
    """A JVM maps what is in it, and runs it."""
    (tmp_path / "draft").write_bytes(b"classes")
    kept = KeptFile(tmp_path / "cache", "classes", ".jsa")
    kept.keep(tmp_path / "draft")
    path = kept.path()
    assert path is not None
    assert (path.read_bytes(), mode_of(path)) == (b"classes", 0o600)
    spoil(path if what == "file" else path.parent)
    assert kept.path() is None


def test_a_key_of_the_settings_is_a_file_for_as_long_as_it_is_read() -> None:
    with file_in_memory("key") as name:
        assert Path(name).read_text() == "key"
    assert not Path(name).exists()


def test_a_file_system_without_rights_takes_files_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FAT and some shares refuse every chmod: no backup could be written there."""

    def refuse(_descriptor: int, _mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchmod", refuse)
    assert write_whole(tmp_path / "f", lambda file: file.write(b"x")).read_bytes() == b"x"
