"""The backup of a migration: what the target had for every key that is sent, durable before the first write."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from eosctl.core.records import Record
from eosctl.report import json_bytes


def keep_backup(path: Path, records: Iterable[Record]) -> None:
    """Writes `records` as a record file (NDJSON), synced; a key that the target lacks is a tombstone without offset."""
    draft = path.with_suffix(".new")
    with draft.open("w", encoding="utf-8") as file:
        for record in records:
            file.write(_line(record))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _line(record: Record) -> str:
    line: dict[str, object] = {"topic": record.topic, "partition": record.partition}
    if record.offset >= 0:
        line |= {"offset": record.offset, "timestamp_ms": record.timestamp_ms}
    line |= {"key": json_bytes(record.key), "value": json_bytes(record.value)}
    return json.dumps(line, ensure_ascii=False) + "\n"
