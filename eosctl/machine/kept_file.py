"""Files that stay: what the cache keeps, made once and never why anything fails; and a rename that is durable."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eosctl.core.frozen import frozen


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
