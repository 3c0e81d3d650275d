"""Snapshots of earlier migrations: their size, and removing them. Backups are never removed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from eosctl.core.wording import counted
from eosctl.deadline import Clock
from eosctl.errors import EosctlError
from eosctl.migrate import codes
from eosctl.migrate.journal import BACKUP_NAME, migration_journal, read_earlier_runs
from eosctl.report import Problem

_KEPT = frozenset({BACKUP_NAME, "backup.ndjson", "journal.ndjson", "plan.json"})
"""The files that stay; backups of earlier versions are lines."""
_OLD_S = 7 * 86_400
"""The age at which a plan that was not applied counts as over."""


class OldSnapshots(Struct, frozen=True):
    """The snapshots that are no longer needed: their parts, without backup, journal and plan."""

    folders: int
    parts: Sequence[Path]
    size: int

    def problem(self, snapshots: Path) -> Problem | None:
        """Return a warning with their size; None if there are none."""
        if not self.parts:
            return None
        take = counted(self.folders, "older snapshot takes", "older snapshots take")
        message = f"{take} {_in_words(self.size)} in {snapshots}"
        return Problem(codes.OLD_SNAPSHOTS, message, hint="--prune removes them; backups stay.")

    def remove(self) -> None:
        """Remove them; parts that can't be removed stay, and are counted again the next time."""
        for part in self.parts:
            if part.is_dir():
                shutil.rmtree(part, ignore_errors=True)
            else:
                with suppress(OSError):
                    part.unlink()


def old_snapshots(snapshots: Path, clock: Clock, *, besides: Path) -> OldSnapshots:
    """Find the snapshots of plans that were applied to the end, or not begun for a week; not that of plan `besides`.

    A plan that was begun and cut off stays: `--resume` needs it.
    """
    folders = [folder for folder in _folders(snapshots) if folder != besides and _is_over(folder, clock)]
    parts = [(folder, part) for folder in folders for part in folder.iterdir() if part.name not in _KEPT]
    return OldSnapshots(
        len({folder for folder, _part in parts}),
        [part for _folder, part in parts],
        sum(_size(part) for _folder, part in parts),
    )


def _folders(snapshots: Path) -> Iterator[Path]:
    for plan in sorted(snapshots.glob("*/plan.json")):
        if not plan.parent.name.startswith("."):  # a planning that is under way
            yield plan.parent


def _is_over(folder: Path, clock: Clock) -> bool:
    try:
        journal = migration_journal(folder, clock)
        past = read_earlier_runs(journal)
        if journal.holder() is not None:
            return False
        return past.ended or (not past.begun and clock.now_s() - (folder / "plan.json").stat().st_mtime > _OLD_S)
    except (EosctlError, OSError, ValueError, KeyError):
        return False


def _size(part: Path) -> int:
    """Return the size in bytes of a file, or of all files in a folder."""
    size = 0
    for each in [part, *part.rglob("*")] if part.is_dir() else [part]:
        with suppress(OSError):
            size += each.stat().st_size if each.is_file() else 0
    return size


def _in_words(size: int) -> str:
    for unit, bytes_of in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= bytes_of:
            return f"{size / bytes_of:.1f} {unit}"
    return counted(size, "byte")
