"""Reads from the journal of `rescue` what the cluster can't show: restarted tasks, and their epochs before.

REST reports a task RUNNING before it runs, so after a kill only the epochs noted before the restart show which tasks
have taken their ids since.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.configs.fold import ConnectorState
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.state.journal import EndEntry, Journal

IdStates = Mapping[TransactionalId, tuple[ProducerId, int] | None]
"""Transactional id -> producer id and epoch; None for an id that no coordinator knows."""


class UnfinishedRescue(Struct, frozen=True):
    """A rescue that was begun and never ended: `done` maps steps to their details, in order.

    `commit_offset` identifies the task set; `restarted` holds the ids of the tasks to restart, with their state before.
    """

    commit_offset: int | None
    began_ms: int
    done: Mapping[str, str] = {}
    restarted: IdStates | None = None


class _Begin(Struct, frozen=True):
    time_ms: int
    commit_offset: int | None = None


class _Start(Struct, frozen=True):
    restarted: IdStates | None = None


class _Done(Struct, frozen=True):
    step: str
    detail: str


_ENTRIES: Mapping[str, type[_Begin | _Start | _Done | EndEntry]] = {
    "begin": _Begin,
    "start": _Start,
    "done": _Done,
    "end": EndEntry,
}


def unfinished_rescue(journal: Journal, connector: ConnectorState) -> UnfinishedRescue | None:
    """Return the unfinished rescue of the connector's newest task set, by the journal; raise EosctlError.

    A run that continues an earlier one adds to it.
    """
    begun: UnfinishedRescue | None = None
    for entry in journal.read(_ENTRIES):
        match entry:
            case _Begin():
                begun = _begun(entry, begun)
            case _Start(restarted) if begun is not None and restarted is not None:
                begun = replace(begun, restarted={**(begun.restarted or {}), **restarted})
            case _Done(step, detail) if begun is not None:
                begun = replace(begun, done={**begun.done, step: detail})
            case EndEntry():
                begun = None
    return begun if begun is not None and begun.commit_offset == connector.commit_offset else None


def _begun(entry: _Begin, earlier: UnfinishedRescue | None) -> UnfinishedRescue:
    if earlier is not None and earlier.commit_offset == entry.commit_offset:
        return earlier
    return UnfinishedRescue(entry.commit_offset, entry.time_ms)
