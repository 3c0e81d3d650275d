"""`offsets export --backup`: converts a Parquet backup to lines, the format of small backups. Asks no broker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from eosctl.app import App
from eosctl.engine.backups.file import BackupFile, is_columnar, open_backup
from eosctl.engine.backups.lines import backup_lines
from eosctl.errors import UsageError
from eosctl.offsets.files.rows import OFFSETS_EXPORT, ExportData, ExportSummary
from eosctl.report import Report
from eosctl.state.backups import write_blocks


def unpacked_blocks(backup: str, *, connectors: tuple[str, ...] = ()) -> Iterator[bytes]:
    """Yield the lines of a backup, many at a time; raise InputFileError."""
    return _unpacking(backup, connectors).blocks()


def unpack_backup(app: App, backup: str, *, connectors: tuple[str, ...] = (), path: str) -> Report:
    """Write the lines of a backup to a file, whole or not at all; raise InputFileError."""
    unpacking = _unpacking(backup, connectors)
    write_blocks(path, unpacking.blocks())
    kept = unpacking.kept
    return Report(
        kind=OFFSETS_EXPORT,
        summary=ExportSummary(records=unpacking.records, tombstones=unpacking.tombstones, records_read=kept.records),
        data=ExportData(file=path, topic=None, format="ndjson", backup=backup),
        target={"kafka_cluster_id": kept.cluster_id, "group_id": app.target.group_id},
    )


def _unpacking(backup: str, connectors: tuple[str, ...]) -> _Unpacking:
    """Open a Parquet backup; raise UsageError for another readable file: backups of a few keys are lines."""
    file = Path(backup)
    if file.is_file() and os.access(file, os.R_OK) and not is_columnar(file):
        raise UsageError(f"{backup} is no Parquet file", hint="Is it NDJSON? Then it holds lines already.")
    return _Unpacking(open_backup(backup), connectors)


@dataclass(slots=True)
class _Unpacking:
    """An open backup `kept`, and the numbers of `records` yielded so far and of `tombstones` among them."""

    kept: BackupFile
    connectors: tuple[str, ...]
    records: int = 0
    tombstones: int = 0

    def blocks(self) -> Iterator[bytes]:
        """Yield the lines, many at a time."""
        for rows in self.kept.tables(self.connectors):
            self.records += len(rows)
            self.tombstones += rows["value"].null_count
            yield backup_lines(rows, cluster_id=self.kept.cluster_id)
