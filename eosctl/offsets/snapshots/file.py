"""The files of snapshots: their names, their folder, and what one of them has of a connector.

A snapshot is a record file with a header (`core.kept.snapshot_header`). Its name ends in a digest of its content, so
that a part of a file is never taken for the whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from msgspec import Struct

from eosctl.app import App
from eosctl.core.kept.snapshot_header import SNAPSHOT, SnapshotHeader, read_header
from eosctl.core.offsets.records import decode_key
from eosctl.core.records import Record, numbered_documents
from eosctl.errors import EosctlError, InputFileError, RefusedError
from eosctl.machine.files import open_own
from eosctl.offsets import codes
from eosctl.offsets.history.events import ConnectorFilter, name_in_keys
from eosctl.report import Problem
from eosctl.state.backups import checked_lines, has_digest

_ENDING = ".ndjson"


class SnapshotFile(Struct, frozen=True):
    """A snapshot on the disk."""

    path: Path
    header: SnapshotHeader

    def is_of(self, cluster_id: str, group_id: str | None) -> bool:
        """Decide whether it is of this cluster, and not of another group."""
        groups = {self.header.group_id, group_id} - {None}
        return self.header.kafka_cluster_id == cluster_id and len(groups) < 2

    def has_connector(self, connector: str) -> bool:
        """Decide whether the records of this connector were kept."""
        return not self.header.connectors or connector in self.header.connectors

    def is_whole(self) -> bool:
        """Decide whether the file can be read, and has the content that its name promises."""
        try:
            with _opened(self.path) as file:
                for _line in checked_lines(file, self.path):
                    pass
        except InputFileError:
            return False
        return True

    def records_of(self, connector: str) -> list[Record]:
        """Read the records of one connector; raise InputFileError for a file that is damaged or not whole."""
        keep, found = ConnectorFilter(connector), list[Record]()
        quoted = f'"{name_in_keys(connector).decode()}"'
        name = json.dumps(quoted, ensure_ascii=False)[1:-1].encode()
        with _opened(self.path) as file:
            for number, line in enumerate(checked_lines(file, self.path), start=1):
                # a key that is spelled otherwise has a backslash in it, and one that is no UTF-8 is base64
                if name in line or b"\\\\" in line or b'{"base64"' in line:
                    records = numbered_documents([line], name=str(self.path), first=number)
                    found += keep([record for _number, _document, record in records])
        return found

    def without_record(self) -> list[str]:
        """Return the connectors that the snapshot was asked for, and that it has no record of; none for all."""
        missing = set(self.header.connectors)
        with _opened(self.path) as file:
            for _number, _document, record in numbered_documents(file, name=str(self.path)):
                if not missing:
                    break
                missing.discard(decode_key(record.key).connector or "")
        return sorted(missing)


def snapshot_folder(app: App) -> Path:
    """Return the folder where snapshots are kept unless another one is named."""
    return app.state_dir / "snapshots"


def read_snapshot(path: Path) -> SnapshotFile:
    """Read the header of a snapshot; raise InputFileError for another file, or one without the digest in its name."""
    with _opened(path) as file:
        header = read_header(file.readline(), name=str(path))
    if header is None:
        raise InputFileError(
            f"{path} is no snapshot of `eosctl offsets snapshot`",
            hint="`eosctl offsets import` takes any record file.",
        )
    if not has_digest(path):
        raise InputFileError(
            f"{path} does not have the name that eosctl gave it, so that it is not known whether the file is whole",
            hint="Give it that name again; `eosctl offsets import` takes it under any name.",
        )
    return SnapshotFile(path, header)


def require_of(app: App, file: SnapshotFile, cluster_id: str, connector: str) -> SnapshotFile:
    """Return the snapshot; raise RefusedError if it is of another cluster, group or connector."""
    header, group_id = file.header, app.target.group_id
    if not file.is_of(cluster_id, group_id):
        theirs, ours = ("cluster", header.kafka_cluster_id), cluster_id
        if header.kafka_cluster_id == cluster_id:
            theirs, ours = ("group", header.group_id or "unknown"), group_id or "unknown"
        raise RefusedError(
            f"{file.path} is a snapshot of {' '.join(theirs)}, this is {ours}; nothing was written",
            hint="Check -b and -g, or name the profile of that cluster with -p.",
        )
    if not file.has_connector(connector):
        raise RefusedError(
            f"{file.path} has the offsets of {', '.join(header.connectors)} only; nothing was written",
            hint="Name another snapshot.",
        )
    return file


def snapshots_in(folder: Path) -> tuple[list[SnapshotFile], list[Problem]]:
    """Return the snapshots in a folder, oldest first, and problems with those that can't be read; none without it."""
    found, problems = list[SnapshotFile](), list[Problem]()
    try:
        names = sorted(os.listdir(folder)) if folder.exists() else []
    except OSError as exc:
        raise EosctlError(
            f"cannot read {folder}: {exc.strerror or exc}", hint="Check the path and its rights."
        ) from exc
    for name in names:
        if name.startswith(f"{SNAPSHOT}-") and name.endswith(_ENDING):
            try:
                found.append(read_snapshot(folder / name))
            except InputFileError as exc:
                problems.append(unread(exc))
    return sorted(found, key=lambda each: (each.header.taken_ms, each.path.name)), problems


def unread(error: EosctlError) -> Problem:
    """Return the problem of a snapshot that can't be read."""
    return Problem(codes.SNAPSHOT_UNREAD, error.message, hint=error.hint, unseen=True)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with os.fdopen(open_own(path), "rb") as file:
            yield file
    except OSError as exc:
        hint = getattr(exc, "hint", "Check the path and its rights.")
        raise InputFileError(f"cannot read {path}: {exc.strerror or exc}", hint=hint) from exc
