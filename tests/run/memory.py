"""Where a run keeps its files: in memory, where there is plenty.

Journals, backups and brokers make their files durable thousands of times: on a disk each time is waited for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - what is made there has a name of its own
FAST_BYTES, LIVE_BYTES = 1 << 30, 8 << 30
"""The room that is asked for: many times what a run has used."""


def memory_folder(
    needed_bytes: int, *, folder: Path = _SHARED_MEMORY, look: Callable[[Path], os.statvfs_result] = os.statvfs
) -> Path | None:
    """`folder`, if so much is free there and programs may run there, as tests write some; None otherwise.

    So it is where the caller says by $TMPDIR where temporary files belong.
    """
    if "TMPDIR" in os.environ or not os.access(folder, os.W_OK):
        return None
    found = look(folder)
    may_run = not found.f_flag & os.ST_NOEXEC
    return folder if may_run and found.f_bavail * found.f_frsize >= needed_bytes else None
