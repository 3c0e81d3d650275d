"""The backup of a migration: what the target had for every key that is sent, durable before the first write."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from eosctl.core.record_file import record_line
from eosctl.core.records import Record


def keep_backup(path: Path, records: Iterable[Record]) -> None:
    """Writes `records` as a record file (NDJSON), synced; a key that the target lacks is a tombstone without offset."""
    draft = path.with_suffix(".new")
    with draft.open("w", encoding="utf-8") as file:
        for record in records:
            file.write(record_line(record) + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
