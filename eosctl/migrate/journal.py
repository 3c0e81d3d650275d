"""The journal of a migration: which stages of a plan began and ended, and under which ids it wrote.

It lies in the plan's snapshot folder, beside the files that the stages need.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum, unique
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.offsets.migration import MigrationPlan
from eosctl.deadline import Clock
from eosctl.foreign import shell_word
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
