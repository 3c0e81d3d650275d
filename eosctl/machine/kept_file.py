"""Files that stay: what the cache keeps, made once and never why anything fails; and a rename that is durable."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

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
