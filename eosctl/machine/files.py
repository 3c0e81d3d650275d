"""Files and folders that others could have made or may change: one judge of them, one way to open and to write them.

A file is one's own if only root and the user who runs eosctl can change it. Where others can't put a link, a link is
followed and stays; any other is refused. The opened file is judged, never its name a moment earlier.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import IO
from uuid import uuid4

from eosctl.errors import InputFileError, RefusedError
from eosctl.foreign import shell_word

_BEGIN_EVERY_BYTES = 1 << 24
_MOST_LINKS = 40
_DRAFT = r"\.[0-9a-f]{32}\.new"
_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotOursError(OSError):
    """Others could have made a file, folder or link, or may change it; `strerror` says which and why."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(errno.EPERM, why)
        self.hint = hint


def own_users() -> frozenset[int]:
    """Return root, the user who runs eosctl, and the one who became root by sudo: they could do all that it does."""
    me, by_sudo = os.geteuid(), os.environ.get("SUDO_UID", "")
    return frozenset({0, me, *([int(by_sudo)] if me == 0 and by_sudo.isdecimal() else ())})


def why_not_ours(status: os.stat_result, owners: Collection[int] = ()) -> str | None:
    """Return how users other than `owners` can change a file or folder; None where they can't."""
    if status.st_uid not in own_users() | set(owners):
        return f"belongs to user {status.st_uid}, who can change it"
    mode = stat.S_IMODE(status.st_mode)
    if mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not _is_private_group(status)):
        return f"has mode {mode:04o}: others on this machine can change it"
    return None


def _is_private_group(status: os.stat_result) -> bool:
    """Return whether the group has no members but the owner and root, so that it may write.

    Many systems give each user a group of that name, which the umask lets write new files; Kubernetes gives a pod's
    volumes a group without a name; OpenShift's are root's.
    """
    import grp
    import pwd

    try:
        group = grp.getgrgid(status.st_gid)
    except KeyError:
        return status.st_gid in (os.getegid(), *os.getgroups())
    try:
        owner = pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        owner = ""
    return (status.st_gid == 0 or group.gr_name == owner) and set(group.gr_mem) <= {owner, "root"}


def _require_ours(path: Path, status: os.stat_result, what: str) -> None:
    why = why_not_ours(status)
    if why is not None:
        change = "chmod go-w" if status.st_uid in own_users() else f"chown {os.geteuid()}"
        raise NotOursError(
            f"the {what} {path} {why}",
            f"Look at what is in it. If that is right: {change} {shell_word(str(path))}; else remove it.",
        )


def followed(path: Path, *, owners: Collection[int] = ()) -> Path:
    """Return where the links lead that `path` may be, none of them from others than oneself, root and `owners`.

    Raises NotOursError, and OSError for too many links.
    """
    for _ in range(_MOST_LINKS):
        try:
            link = path.lstat()
        except FileNotFoundError:
            return path
        if not stat.S_ISLNK(link.st_mode):
            return path
        folder = path.parent.stat()
        is_open = not folder.st_mode & stat.S_ISVTX and why_not_ours(folder, owners) is not None
        if is_open or link.st_uid not in own_users() | set(owners):
            raise NotOursError(
                f"{path} is a link that others on this machine can set", "Name the file that it leads to, or another."
            )
        path = path.parent / os.readlink(path)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def open_regular(path: Path, flags: int = os.O_RDONLY) -> tuple[int, os.stat_result]:
    """Return a descriptor of a regular file that is not a link, and its status; O_CREAT makes it for its owner only.

    Raises OSError, also for any other kind of file: opening a pipe would wait.
    """
    try:
        descriptor = os.open(path, flags | _SAFELY, 0o600)
    except OSError as exc:
        if exc.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a link") from exc
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file")
    return descriptor, status


def open_own(path: Path, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a file that only its owner can change.

    With O_CREAT it is made, readable by its owner only. Raises OSError; NotOursError where others can change it.
    """
    real = followed(path)
    descriptor, status = open_regular(real, flags)
    try:
        _require_ours(real, status, "file")
    except NotOursError:
        os.close(descriptor)
        raise
    return descriptor


def read_own(path: Path) -> bytes:
    """Return the contents of a file that only its owner can change; raises OSError."""
    with open(open_own(path), "rb") as file:
        return file.read()


def own_folder(base: Path, *below: str) -> Path:
    """Return the folder `below` in `base`, both made where they are missing, for their owner only whatever the umask.

    Raises OSError; NotOursError where others can change the contents of one of them.
    """
    folders = [base]
    for name in below:
        folders.append(folders[-1] / name)
    for folder in folders:
        make_folder(folder)
        real = followed(folder)
        status = real.stat()
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, f"{real} is no folder")
        _require_ours(real, status, "folder")
    return folders[-1]


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, for their owner only, as the XDG specification asks; raises OSError."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not folder.is_dir():  # else another eosctl was quicker
            raise


class NamedFiles:
    """Files that the user named; each is judged as it was at its reading."""

    def __init__(self) -> None:
        self._read: dict[str, os.stat_result] = {}

    def read(self, path: str | Path) -> bytes:
        """Return the contents; raises InputFileError."""
        try:
            with Path(path).expanduser().open("rb") as file:
                self._read[str(path)] = os.fstat(file.fileno())
                return file.read()
        except (OSError, ValueError) as exc:
            reason = getattr(exc, "strerror", None) or exc
            raise InputFileError(f"cannot read {path}: {reason}", hint="Check the path and its rights.") from exc

    def require_private(self, path: str | Path, holds: str, *, readable: bool = False) -> None:
        """Refuse a file that others can read, or a `readable` one that they can change.

        Root's file may be read by its group, like the files that a cluster manager mounts. A pipe is private; a missing
        file is left to its reader. Raises RefusedError.
        """
        where = Path(path).expanduser()
        try:
            found = self._read.get(str(path)) or where.stat()
        except OSError:
            return
        if not stat.S_ISREG(found.st_mode):
            return
        if readable:
            why, change = why_not_ours(found), "go-w"
        else:
            is_open = found.st_mode & (0o037 if found.st_uid == 0 else 0o077)
            mode = f"{stat.S_IMODE(found.st_mode):04o}"
            why, change = (f"has mode {mode}: others on this machine can get at it" if is_open else None), "600"
        if why is None:
            return
        own = f"chmod {change} {shell_word(str(where))}, or name a copy of your own with that mode."
        raise RefusedError(
            f"{path} holds {holds} and {why}",
            hint=own if not readable or found.st_uid in own_users() else "Name a copy of your own.",
        )


@contextmanager
def gone_on_failure(draft: Path) -> Iterator[None]:
    """Take `draft` away where the block fails or is interrupted."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def write_whole(
    path: Path,
    write: Callable[[IO[bytes]], object],
    *,
    name: Callable[[], Path] | None = None,
    mode: int = 0o600,
    like: os.stat_result | None = None,
    synced: bool = True,
) -> Path:
    """Write a file completely or not at all, synced and readable by its owner only; return its path.

    The path is `path`, where links of one's own are followed and an existing file is replaced, or the `name` that is
    only known when everything is written, with a number if that file exists: a kept file is never replaced. It has
    another `mode`, or rights and owner `like` another file's, from when it has content. A file that a killed run would
    make anew need not be `synced`. Raises OSError, and the errors of `write`.
    """
    if name is None:
        path = followed(path, owners=() if like is None else (like.st_uid,))
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "it is no regular file")
    draft = path.with_name(f".{uuid4().hex}.new")  # no other process has this name, or can foresee it
    with gone_on_failure(draft):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(draft, flags, 0o600), "wb") as file:
            if like is not None and (os.geteuid(), os.getegid()) != (like.st_uid, like.st_gid):
                os.fchown(file.fileno(), like.st_uid, like.st_gid)
            wanted = mode if like is None else stat.S_IMODE(like.st_mode)
            if wanted != 0o600:  # which it was made with; FAT and some shares refuse every change
                os.fchmod(file.fileno(), wanted)
            write(file)
            file.flush()
            if synced:
                os.fsync(file.fileno())
        if name is None:
            draft.replace(path)
        else:
            path = _named(draft, name())
    if synced:
        sync_directory(path.parent)
    return path


def _named(draft: Path, path: Path) -> Path:
    """Give a draft the name `path`, or that with the first number that is free."""
    for free in chain([path], (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2))):
        with suppress(FileExistsError):
            try:
                os.link(draft, free)
                draft.unlink()
            except FileExistsError:
                raise
            except OSError:  # a file system without hard links: an empty file keeps the name until the draft has it
                os.close(os.open(free, os.O_CREAT | os.O_EXCL, 0o600))
                draft.replace(free)
            return free
    raise AssertionError("numbers end")


def remove_old_drafts(folder: Path, *, before_s: float) -> None:
    """Remove the drafts of `write_whole` that killed runs left in a folder and nobody has written to since a time."""
    for draft in folder.glob(".*.new"):
        with suppress(OSError):
            if re.fullmatch(_DRAFT, draft.name) and draft.lstat().st_mtime < before_s:
                draft.unlink()


def write_steadily(file: IO[bytes], blocks: Iterable[bytes]) -> None:
    """Write all blocks to a file from its beginning, and let the disk begin with them while others are made.

    So the final sync has little to wait for; it raises the disk's errors.
    """
    begun = written = 0
    for block in blocks:
        file.write(block)
        written += len(block)
        if written - begun >= _BEGIN_EVERY_BYTES:
            file.flush()
            _begin_to_write(file.fileno(), begun, written - begun)
            begun = written


def _begin_to_write(descriptor: int, begin: int, size: int) -> None:
    """Tell the operating system that written data will not be read again soon.

    Linux then begins to write it to disk; other systems may do nothing.
    """
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(descriptor, begin, size, os.POSIX_FADV_DONTNEED)


def sync_directory(directory: Path) -> None:
    """Make a rename, or a new file, durable."""
    sync_file(directory)


def sync_file(path: Path) -> None:
    """Make the written contents of a file durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def file_in_memory(text: str) -> Iterator[str]:
    """Give the name of a file that holds `text`: OpenSSL reads keys and certificates from files only.

    It is one in memory where there are such, and nothing of it stays however eosctl ends; else a private one meanwhile.
    """
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").exists():
        with os.fdopen(os.memfd_create("certificate"), "w") as file:
            file.write(text)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    import tempfile  # most systems have files in memory

    with tempfile.NamedTemporaryFile(mode="w", encoding="utf-8") as made:  # with mode 0600
        made.write(text)
        made.flush()
        yield made.name
