"""The journal of a migration, and the snapshots of earlier ones.

The journal records which stages of a plan began and ended, and under which ids it wrote. It lies in the plan's snapshot
folder, beside the files that the stages need.

Snapshots of earlier migrations are measured and removed. Backups are never removed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum, unique
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.offsets.migration import MigrationPlan
from eosctl.core.wording import counted
from eosctl.deadline import Clock
from eosctl.errors import EosctlError
from eosctl.foreign import shell_word
from eosctl.migrate import codes
from eosctl.report import Problem
from eosctl.state.journal import EndEntry, Journal

BACKUP_NAME = "backup.parquet"
"""The name of the backup in the snapshot folder."""


@unique
class Stage(StrEnum):
    """The stages of an apply, in order."""

    BACKUP = "backup"
    CREATE = "create"
    CLEAN = "clean"
    WRITE = "write"
    VERIFY = "verify"


def stages_of(plan: MigrationPlan) -> list[Stage]:
    """Return the stages of an apply of `plan`."""
    return [stage for stage in Stage if stage is not Stage.CLEAN or plan.stale_copies]


class EarlierRuns(Struct, frozen=True):
    """The work of earlier runs of the same plan.

    `done` are the stages that ended; `write_tasks` is the number of tasks that wrote, 0 if none began to. `cleaned_ms`
    is the timestamp of the last tombstones over copies, 0 if there are none.
    """

    begun: bool = False
    started: frozenset[Stage] = frozenset()
    done: frozenset[Stage] = frozenset()
    write_tasks: int = 0
    cleaned_ms: int = 0
    ended: bool = False


class _Begin(Struct, frozen=True):
    time_ms: int


class _Started(Struct, frozen=True):
    stage: Stage
    tasks: int | None = None
    timestamp_ms: int | None = None


class _Done(Struct, frozen=True):
    stage: Stage


_ENTRIES: Mapping[str, type[_Begin | _Started | _Done | EndEntry]] = {
    "begin": _Begin,
    "started": _Started,
    "done": _Done,
    "end": EndEntry,
}


def resume_command(folder: Path) -> str:
    """Return the command line that goes on with the plan whose snapshot is `folder`."""
    return f"eosctl offsets migrate --plan {shell_word(str(folder / 'plan.json'))} --yes --resume"


def migration_journal(folder: Path, clock: Clock) -> Journal:
    """Return the journal of the plan whose snapshot is `folder`."""
    return Journal(folder / "journal.ndjson", clock)


def read_earlier_runs(journal: Journal) -> EarlierRuns:
    """Read the journal; raises EosctlError if it can't be read."""
    past = EarlierRuns()
    for entry in journal.read(_ENTRIES):
        match entry:
            case _Begin():
                past = replace(past, begun=True)
            case _Started(stage, tasks, timestamp_ms):
                past = _started(past, stage, past.write_tasks if tasks is None else tasks)
                past = replace(past, cleaned_ms=max(past.cleaned_ms, timestamp_ms or 0))
            case _Done(stage):
                past = replace(past, done=past.done | {stage})
            case EndEntry():
                past = replace(past, ended=True)
    return past


def _started(past: EarlierRuns, stage: Stage, write_tasks: int) -> EarlierRuns:
    """Note that a stage has begun: begun again, it is no longer done, nor are the stages after it."""
    stages = list(Stage)
    over = frozenset(each for each in past.done if stages.index(each) < stages.index(stage))
    return replace(past, started=past.started | {stage}, done=over, write_tasks=write_tasks)


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
