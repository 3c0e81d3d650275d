"""The file of the audit log and `eosctl history`: JSON lines, each added whole and synced."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from eosctl.machine.files import make_folder, open_own, sync_directory
from eosctl.report import Json

_LOOKS, _LOOK_S = 5000, 0.001
AuditEntry = Mapping[str, Any]
"""A line of the log, of this version of eosctl or of an older one."""


class Entries(Struct, frozen=True):
    """The content of a log; `damaged` counts lines that are no entries, such as lines cut off by a crash."""

    entries: Sequence[AuditEntry]
    damaged: int


def log_path(named: str | None, state_dir: Path) -> Path:
    """Return the path of the log: the file that the user named, else one in the state directory."""
    return Path(named).expanduser() if named else state_dir / "audit.jsonl"


def read_entries(path: Path) -> Entries:
    """Read every entry of the log at `path`, none if there is no file; raise OSError."""
    try:
        lines = [line for line in path.read_bytes().splitlines() if line]
    except FileNotFoundError:
        return Entries((), 0)
    found = [entry for entry in map(entry_in, lines) if entry]
    return Entries(found, len(lines) - len(found))


def append_entry(path: Path, entry: Mapping[str, Json]) -> None:
    """Add one line, synced, whole even when two processes write at once; raise OSError."""
    line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
    with appending(path) as descriptor:
        size = os.fstat(descriptor).st_size
        cut_off = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        write_all(descriptor, b"\n" * cut_off + line)


@contextmanager
def appending(path: Path) -> Iterator[int]:
    """Open and lock the file for appending; create it, readable by its owner only, if it is missing."""
    make_folder(path.parent)
    is_new = not path.exists()
    descriptor = open_own(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    try:
        if is_new:
            sync_directory(path.parent)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data` and sync it; raise OSError."""
    while data:
        data = data[os.write(descriptor, data) :]
    os.fsync(descriptor)


def lock_now(descriptor: int) -> bool:
    """Take the lock on an open file; return False if another process has it. Wait for a process that only checks."""
    for _ in range(_LOOKS):
        if _lock(descriptor, fcntl.LOCK_EX):
            return True
        if not _lock(descriptor, fcntl.LOCK_SH):  # granted beside a process that only checks
            return False
        time.sleep(_LOOK_S)
    return False


def is_locked(descriptor: int) -> bool:
    """Decide whether another process has the lock on an open file."""
    if not _lock(descriptor, fcntl.LOCK_SH):
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def entry_in(text: bytes) -> dict[str, object]:
    """Parse an entry; return an empty one if `text` is none."""
    from eosctl.core.kept.plan_file import json_of  # who writes rarely reads any

    try:
        found = json_of(text, mend=True)  # names on the command line may be no UTF-8
    except ValueError:
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("id"), str) else {}
