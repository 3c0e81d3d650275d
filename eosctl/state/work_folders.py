"""Temporary folders that a run removes; after a kill, the next run removes them.

A lock, which ends with the process, distinguishes a killed run's folder from one in use.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eosctl.errors import EosctlError
from eosctl.machine.files import make_folder


@contextmanager
def work_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Create a folder in `parent` that is removed after the block unless renamed; first remove those of killed runs.

    Raises EosctlError if it can't be created.
    """
    try:
        make_folder(parent)
        for left in parent.glob(f"{prefix}*"):
            _remove_unless_in_use(left)
        folder, lock = _new(parent, prefix)
    except OSError as exc:
        raise EosctlError(
            f"cannot make a folder in {parent}: {exc.strerror or exc}", hint="Check the path, space and rights."
        ) from exc
    try:
        yield folder
    finally:
        os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)


def _new(parent: Path, prefix: str) -> tuple[Path, int]:
    """Create a folder with its lock; retry if another run removes it before it is locked."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        lock = _lock(folder)
        if lock is not None and folder.exists():
            return folder, lock
        if lock is not None:
            os.close(lock)


def _remove_unless_in_use(folder: Path) -> None:
    lock = _lock(folder)
    if lock is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _lock(folder: Path) -> int | None:
    """Lock `folder` and return the descriptor that holds the lock; None if it is in use, gone or another user's."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if os.fstat(descriptor).st_uid == os.getuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
    except BlockingIOError:
        pass
    os.close(descriptor)
    return None
