"""Files that stay: what the cache keeps, made once and never why anything fails; and a rename that is durable."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import IO
from uuid import uuid4

from eosctl.core.frozen import frozen

_BEGIN_EVERY_BYTES = 1 << 24


@frozen
class KeptFile:
    """The file of this `name` in `folder`. Its size is part of its file name: one that breaks off is none."""

    folder: Path
    name: str
    suffix: str

    def path(self) -> Path | None:
        """Where the file is; None while nobody has made it."""
        for path in self.folder.glob(f"{self.name}-*{self.suffix}"):
            with suppress(OSError):
                if path.stem == f"{self.name}-{path.stat().st_size}":
                    return path
        return None

    def keep(self, draft: Path) -> None:
        """Copies `draft` into the cache unless a file is there already: whole or not at all, without a word if not."""
        if self.path() is not None:
            return
        copy = self.folder / f"{self.name}.{os.getpid()}.new"
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            import shutil  # its codecs are for those who make a file

            try:
                with draft.open("rb") as source, copy.open("wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
                    target.flush()
                    os.fsync(target.fileno())
                copy.replace(self.folder / f"{self.name}-{copy.stat().st_size}{self.suffix}")
            finally:
                copy.unlink(missing_ok=True)


@contextmanager
def gone_on_failure(draft: Path) -> Iterator[None]:
    """Takes `draft` away where the block fails or is interrupted."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def draft_beside(path: Path) -> Path:
    """Return a name beside `path` that nobody else has, or can foresee."""
    return path.with_name(f".{uuid4().hex}.new")


def write_whole(path: Path, write: Callable[[IO[bytes]], object], *, name: Callable[[], Path] | None = None) -> Path:
    """Write a file that is there whole or not at all, and synced, readable by its owner only; return its path.

    That is `path`, whose file it replaces, or the `name` that is only known when all is written, with a number where
    there is such a file: what has been kept is never replaced. Raises OSError, and what `write` raises.
    """
    draft = draft_beside(path)
    with gone_on_failure(draft):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(draft, flags, 0o600), "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if name is None:
            draft.replace(path)
        else:
            path = _named(draft, name())
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


def write_steadily(file: IO[bytes], blocks: Iterable[bytes]) -> None:
    """Writes all blocks to a file from its beginning, and lets the disk begin with them while others are made.

    So who syncs it in the end has little to wait for; an error of the disk is still that sync's to raise.
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
    """Linux begins to write what is said to be needed no more in memory; other systems do what they like."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(descriptor, begin, size, os.POSIX_FADV_DONTNEED)


def sync_directory(directory: Path) -> None:
    """Makes a rename, or a new file, durable."""
    sync_file(directory)


def sync_file(path: Path) -> None:
    """Makes what is written in a file durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
