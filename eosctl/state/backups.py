"""Files that must survive: backups of what a write will replace, and exports; synced before use.

A backup is a record file with two more members per line: `written`, the value written over it, so that `restore` can
detect later writes of others, and `cluster_id`. A line without `offset` is a key that had no record.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from eosctl.app import App
from eosctl.core.configs.view import is_config_key
from eosctl.core.kept.record_lines import BackupEntry, read_backup_lines
from eosctl.core.records import Record, record_line
from eosctl.core.wording import json_bytes
from eosctl.errors import EosctlError, InputFileError, RefusedError
from eosctl.foreign import arguments
from eosctl.machine.files import own_folder, write_steadily, write_whole
from eosctl.machine.side_by_side import ahead

if TYPE_CHECKING:
    from eosctl.engine.columns import Table
    from eosctl.engine.planned import PlannedWrites

Piece = TypeVar("Piece")
MOST_LINES = 100_000
"""The largest number of keys in a backup that is NDJSON."""
_DIGITS = 8
"""The digits in a backup's name of the digest of its content."""
_NAME = re.compile(rf"-\d{{8}}T\d{{9}}Z-([0-9a-f]{{{_DIGITS}}})(?:-\d+)?\.ndjson$")


def keep_backup(app: App, writes: PlannedWrites, *, name: str, cluster_id: str) -> Path:
    """Store what `writes` will replace under the state directory, synced; return the new file's path.

    More than MOST_LINES records are stored in a Parquet file, as for a migration.
    """
    from eosctl.engine.backups.file import backup_lines, few_at_once
    from eosctl.engine.planned import replaced

    if len(writes) > MOST_LINES:
        path = _new_path(app, name).with_suffix(".parquet")
        tables = map(replaced, writes.tables())
        return write_columns(path, tables, cluster_id=cluster_id, name=lambda: path)
    some = chain.from_iterable(map(few_at_once, writes.tables()))
    return _keep(app, (backup_lines(replaced(each), cluster_id=cluster_id) for each in some), name=name)


def keep_record_backup(app: App, before: Record, written: bytes | None, *, name: str, cluster_id: str) -> Path:
    """Store the one record that `written` will replace, as `keep_backup` does; offset -1 means that there was none."""
    line = record_line(before, {"written": json_bytes(written), "cluster_id": cluster_id})
    return _keep(app, [f"{line}\n".encode()], name=name)


def keep_removed(app: App, records: Iterable[Record], *, name: str, cluster_id: str) -> Path:
    """Store records that are removed from a topic for good, as `keep_backup` does; `restore` refuses such a file."""
    lines = (f"{record_line(record, {'cluster_id': cluster_id})}\n".encode() for record in records)
    return _keep(app, lines, name=name)


def _keep(app: App, blocks: Iterable[bytes], *, name: str) -> Path:
    return keep_digested(_new_path(app, name), blocks)


def keep_digested(path: Path, blocks: Iterable[bytes]) -> Path:
    """Write a file whose name is `path` and a digest of its content, and is therefore given at the end."""
    sha256 = hashlib.sha256()

    def digested() -> Iterator[bytes]:
        for block in blocks:
            sha256.update(block)
            yield block

    return write_blocks(
        path, digested(), name=lambda: path.with_name(f"{path.name}-{sha256.hexdigest()[:_DIGITS]}.ndjson")
    )


def _new_path(app: App, name: str) -> Path:
    """Return the path for a backup with this name and the current time."""
    return backup_folder(app) / timed_name(name, app.clock.now_ms())


def timed_name(name: str, at_ms: int) -> str:
    """Return the name of a file with a time in UTC: such names sort by time."""
    moment = datetime.fromtimestamp(at_ms / 1000, tz=UTC).strftime("%Y%m%dT%H%M%S%f")[:-3]
    return f"{name}-{moment}Z"


def backup_folder(app: App) -> Path:
    """Return the folder of backups; raise EosctlError if it can't be created, or if others can change it."""
    with _writing(app.state_dir / "backups"):
        return own_folder(app.state_dir, "backups")


def undo_command(path: Path) -> str:
    """Return the command line that restores a backup."""
    return f"eosctl offsets restore {arguments(str(path))}"


def read_backup(path: str) -> Iterator[BackupEntry]:
    """Read the entries of a backup; raise InputFileError with the file and the line, also for a file without any.

    Raises it, too, at the end of a file whose content does not match the digest in its name, even if all lines are
    valid.
    """
    entry = None
    try:
        with Path(path).open("rb") as file:
            for entry in read_backup_lines(checked_lines(file, path), name=path):
                refuse_config(entry.before.key, name=path)
                yield entry
    except OSError as exc:
        raise InputFileError(f"cannot read {path}: {exc.strerror or exc}", hint="Check the path.") from exc
    if entry is None:
        raise InputFileError(f"{path} holds no records", hint="Is it a backup that eosctl wrote?")


def has_digest(path: str | Path) -> bool:
    """Decide whether the name of a file has the digest of what eosctl wrote."""
    return _NAME.search(Path(path).name) is not None


def checked_lines(file: Iterable[bytes], path: str | Path) -> Iterator[bytes]:
    """Yield the lines of a file; raise InputFileError at the end of one that does not match the digest in its name."""
    named, sha256 = _NAME.search(Path(path).name), hashlib.sha256()
    if named is None:
        yield from file
        return
    for line in file:
        sha256.update(line)
        yield line
    if not sha256.hexdigest().startswith(named[1]):
        raise InputFileError(
            f"{path} is not the file that eosctl wrote: its content does not match its name",
            hint="Take a whole copy. Under a name of your own a file is restored as it is, with the lines that it has.",
        )


def refuse_config(key: bytes | None, *, name: str) -> None:
    """Raise RefusedError for a record of Connect's own configuration, which may hold passwords.

    `name` is the file of the record.
    """
    if is_config_key(key):
        raise RefusedError(
            f"{name} holds configurations of connectors, tasks or the workers' session key, which are no offsets",
            hint="Change a connector with PUT /connectors/NAME/config; tasks and the session key are the leader's.",
        )


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Write lines, given without line feeds, as `write_blocks` does."""
    write_blocks(path, (f"{line}\n".encode() for line in lines))


def write_blocks(
    path: str | Path,
    blocks: Iterable[bytes],
    *,
    name: Callable[[], Path] | None = None,
    like: os.stat_result | None = None,
) -> Path:
    """Write blocks as `write_whole` does. Create no directory; raise EosctlError."""
    path = Path(path)
    with _writing(path):
        return write_whole(path, lambda file: write_steadily(file, _as_read(blocks, path)), name=name, like=like)


def write_columns(
    path: Path, tables: Iterable[Table], *, cluster_id: str | None, name: Callable[[], Path] | None = None
) -> Path:
    """Write a backup in Parquet as `write_blocks` does, for many keys; `backup_file.write_tables` has the format."""
    from eosctl.engine.backups.file import write_tables

    with _writing(path):
        return write_whole(
            path,
            lambda file: write_tables(file, ahead(_as_read(tables, path)), cluster_id=cluster_id),
            name=name,
        )


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        hint = getattr(exc, "hint", "Check space and rights.")
        raise EosctlError(
            f"cannot write {path}: {exc.strerror or exc}", hint=f"Nothing was written to Kafka. {hint}"
        ) from exc


def _as_read(pieces: Iterable[Piece], path: Path) -> Generator[Piece, None, None]:
    """Yield from `pieces`; raise EosctlError if it is these that can't be read."""
    try:
        yield from pieces
    except OSError as exc:
        raise EosctlError(
            f"cannot read {exc.filename or f'what {path} is made of'}: {exc.strerror or exc}",
            hint="Nothing was written to Kafka.",
        ) from exc
