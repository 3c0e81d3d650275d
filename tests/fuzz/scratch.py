"""A file for readers that take paths: one folder for the process, which goes with it."""

from __future__ import annotations

import atexit
import tempfile
from functools import cache
from pathlib import Path


@cache
def _folder() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="eosctl-fuzz-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def put(name: str, data: bytes) -> Path:
    """A file of that name with these bytes, readable by its owner only."""
    path = _folder() / name
    path.write_bytes(data)
    path.chmod(0o600)
    return path
