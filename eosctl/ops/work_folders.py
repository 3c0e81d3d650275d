"""Folders that a run works in and leaves none of: after a kill the next run takes them away.

A lock tells a killed run's folder from one in use: it goes with the process.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def work_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A folder in `parent` that is gone after the block unless it was renamed; those of killed runs go first."""
    parent.mkdir(parents=True, exist_ok=True)
    with _locked(parent):  # else another run could take away what is made here and not locked yet
        for left in parent.glob(f"{prefix}*"):
            _remove_unless_in_use(left)
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        lock = _lock(folder, fcntl.LOCK_NB)
    try:
        yield folder
    finally:
        os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)


def _remove_unless_in_use(folder: Path) -> None:
    try:
        lock = _lock(folder, fcntl.LOCK_NB)
    except OSError:  # in use, or just gone
        return
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    lock = _lock(folder)
    try:
        yield
    finally:
        os.close(lock)


def _lock(folder: Path, mode: int = 0) -> int:
    """A descriptor that holds the lock of `folder` until it is closed; raises BlockingIOError where it may not wait."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
