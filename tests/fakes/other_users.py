"""Other users of this machine: what they make, and what eosctl does when one of them runs it.

What makes their files is a test with the mark `root`.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

from tests.fakes.clock import PLENTY_S

NOBODY, OTHER = 65534, 4711
T = TypeVar("T")
_FORK = multiprocessing.get_context("fork")


@contextmanager
def shared_folder(mode: int = 0o755) -> Iterator[Path]:
    """A folder that every user can enter, as those of pytest are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(mode)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def as_user(uid: int, do: Callable[[], T]) -> T:
    """What `do` returns in a process of that user; raises what it raises."""
    ours, theirs = _FORK.Pipe()
    process = _FORK.Process(target=_do, args=(uid, do, theirs))
    process.start()
    theirs.close()
    try:
        result, error = ours.recv()
    finally:
        process.join(PLENTY_S)
    if error is not None:
        raise error
    found: T = result
    return found


def _do(uid: int, do: Callable[[], object], answer: Connection) -> None:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    try:
        answer.send((do(), None))
    except Exception as exc:
        answer.send((None, OSError(type(exc).__name__, str(exc))))


def make_for(uid: int, path: Path, content: bytes = b"", *, mode: int = 0o644) -> Path:
    """A file of that user's."""
    path.write_bytes(content)
    os.chown(path, uid, uid)
    path.chmod(mode)
    return path


def link_for(uid: int, path: Path, target: Path) -> Path:
    """A link that that user has set."""
    path.symlink_to(target)
    os.lchown(path, uid, uid)
    return path
