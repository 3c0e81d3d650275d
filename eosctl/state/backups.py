"""Files that must survive: backups of what a write will replace, and exports; synced before anyone relies on them.

A backup is a record file with two members more per line: `written`, the value that was put over it, so that `restore`
can see whether someone else wrote since, and `cluster_id`. A line without `offset` is a key that had no record.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Callable, Generator, Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from eosctl.app import App
from eosctl.core.configs.view import is_config_key
from eosctl.core.kept.record_lines import BackupEntry, read_backup_lines
from eosctl.core.record_file import encode_bytes, record_line
from eosctl.core.records import Record
from eosctl.errors import EosctlError, InputFileError, RefusedError
from eosctl.machine.ahead import ahead
from eosctl.machine.kept_file import gone_on_failure, sync_directory, write_steadily

if TYPE_CHECKING:
    from eosctl.engine.columns import Table
    from eosctl.engine.planned import PlannedWrites

Piece = TypeVar("Piece")
MOST_LINES = 100_000
"""Keys of a backup that is NDJSON."""


def keep_backup(app: App, writes: PlannedWrites, *, name: str, cluster_id: str) -> Path:
    """Stores what `writes` will replace under the state directory, synced; returns the new file's path.

    More than MOST_LINES go into a Parquet file, as those of a migration do.
    """
    from eosctl.engine.backups.lines import backup_lines, few_at_once
    from eosctl.engine.planned import replaced

    if len(writes) > MOST_LINES:
        path = _new_path(app, name).with_suffix(".parquet")
        return write_columns(path, map(replaced, writes.tables()), cluster_id=cluster_id, make_directory=True)
    some = chain.from_iterable(map(few_at_once, writes.tables()))
    return _keep(app, (backup_lines(replaced(each), cluster_id=cluster_id) for each in some), name=name)


def keep_record_backup(app: App, before: Record, written: bytes | None, *, name: str, cluster_id: str) -> Path:
    """Stores the one record that `written` will replace, as `keep_backup` does; offset -1 means that there was none."""
    line = record_line(before, {"written": encode_bytes(written), "cluster_id": cluster_id})
    return _keep(app, [f"{line}\n".encode()], name=name)


def keep_removed(app: App, records: Iterable[Record], *, name: str, cluster_id: str) -> Path:
    """Stores records that are taken out of a topic for good, as `keep_backup` does; `restore` takes no such file."""
    lines = (f"{record_line(record, {'cluster_id': cluster_id})}\n".encode() for record in records)
    return _keep(app, lines, name=name)


def _keep(app: App, blocks: Iterable[bytes], *, name: str) -> Path:
    """Writes a file whose name has a digest of its content, and so gets it at the end."""
    sha256 = hashlib.sha256()

    def digested() -> Iterator[bytes]:
        for block in blocks:
            sha256.update(block)
            yield block

    path = _new_path(app, name)
    return write_blocks(
        path,
        digested(),
        make_directory=True,
        final=lambda: path.with_name(f"{path.name}-{sha256.hexdigest()[:8]}.ndjson"),
    )


def _new_path(app: App, name: str) -> Path:
    """Where a file with this name is kept, and now."""
    moment = datetime.fromtimestamp(app.clock.now_ms() / 1000, tz=UTC).strftime("%Y%m%dT%H%M%S%f")[:-3]
    return app.state_dir / "backups" / f"{name}-{moment}Z"


def undo_command(path: Path) -> str:
    """The command line that puts back what a backup holds."""
    return shlex.join(["eosctl", "offsets", "restore", str(path)])


def read_backup(path: str) -> Iterator[BackupEntry]:
    """The entries of a backup; raises InputFileError that names the file and the line, also for one without any."""
    entry = None
    try:
        with Path(path).open("rb") as file:
            for entry in read_backup_lines(file, name=path):
                refuse_config(entry.before.key, name=path)
                yield entry
    except OSError as exc:
        raise InputFileError(f"cannot read {path}: {exc.strerror or exc}", hint="Check the path.") from exc
    if entry is None:
        raise InputFileError(f"{path} holds no records", hint="Is it a backup that eosctl wrote?")


def refuse_config(key: bytes | None, *, name: str) -> None:
    """Raises RefusedError for a record of Connect's own configuration: it would be shown and backed up, passwords too.

    `name` is the file that it is from.
    """
    if is_config_key(key):
        raise RefusedError(
            f"{name} holds configurations of connectors, tasks or the workers' session key, which are no offsets",
            hint="Change a connector with PUT /connectors/NAME/config; tasks and the session key are the leader's.",
        )


def write_lines(path: str | Path, lines: Iterable[str], *, make_directory: bool = False) -> None:
    """`write_blocks` of lines, which have no line feeds yet."""
    write_blocks(path, (f"{line}\n".encode() for line in lines), make_directory=make_directory)


def write_blocks(
    path: str | Path,
    blocks: Iterable[bytes],
    *,
    make_directory: bool = False,
    final: Callable[[], Path] | None = None,
) -> Path:
    """Writes a file that is there whole or not at all, and synced, readable by its owner only; returns its path.

    That is `final()`, where that is only known when all is written. Only a directory of eosctl's own is made; raises
    EosctlError.
    """
    path = Path(path)
    return _write_whole(
        path, lambda file: write_steadily(file, _as_read(blocks, path)), make_directory=make_directory, final=final
    )


def write_columns(path: Path, tables: Iterable[Table], *, cluster_id: str | None, make_directory: bool = False) -> Path:
    """`write_blocks` of a backup in Parquet, for many keys; the tables are those of `backup_file.write_tables`."""
    from eosctl.engine.backups.file import write_tables

    return _write_whole(
        path,
        lambda file: write_tables(file, ahead(_as_read(tables, path)), cluster_id=cluster_id),
        make_directory=make_directory,
    )


def _write_whole(
    path: Path,
    write: Callable[[IO[bytes]], object],
    *,
    make_directory: bool = False,
    final: Callable[[], Path] | None = None,
) -> Path:
    draft = path.with_name(f"{path.name}.new")
    try:
        if make_directory:
            path.parent.mkdir(parents=True, exist_ok=True)
        with gone_on_failure(draft):
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            path = final() if final is not None else path
            draft.replace(path)
        sync_directory(path.parent)
    except OSError as exc:
        raise EosctlError(
            f"cannot write {path}: {exc.strerror or exc}", hint="Nothing was written to Kafka. Check space and rights."
        ) from exc
    return path


def _as_read(pieces: Iterable[Piece], path: Path) -> Generator[Piece, None, None]:
    """`pieces`; raises EosctlError where it is these that can't be read."""
    try:
        yield from pieces
    except OSError as exc:
        raise EosctlError(
            f"cannot read {exc.filename or f'what {path} is made of'}: {exc.strerror or exc}",
            hint="Nothing was written to Kafka.",
        ) from exc
