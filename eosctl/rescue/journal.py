"""What the journal of `rescue` tells that the cluster can't: which tasks were restarted, and from where they started.

REST calls a task RUNNING before it runs, so that after a kill only the epochs noted before the restart tell which of
them have taken their ids since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from eosctl.core.configs.fold import ConnectorState
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.state.journal import Journal

Touched = Mapping[TransactionalId, tuple[ProducerId, int] | None]
"""Transactional id -> producer id and epoch; None for an id that no coordinator knows."""


@dataclass(frozen=True, slots=True)
class UnfinishedRescue:
    """A rescue that was begun and never ended: `done` maps steps to what they said, in order.

    `commit_offset` tells the task set; `restarted` holds the ids of the tasks that were to be restarted, as they were.
    """

    commit_offset: int | None
    began_ms: int
    done: Mapping[str, str] = field(default_factory=dict)
    restarted: Touched | None = None


def unfinished_rescue(journal: Journal, connector: ConnectorState) -> UnfinishedRescue | None:
    """The rescue under way, as far as the file tells and is about the connector's newest task set; raises EosctlError.

    A run that goes on with an earlier one adds to it.
    """
    begun: UnfinishedRescue | None = None
    for entry in journal.entries():
        match entry.get("event"):
            case "begin":
                begun = _begun(entry, begun)
            case "start" if begun is not None and "restarted" in entry:
                begun = replace(begun, restarted={**(begun.restarted or {}), **_touched(entry["restarted"])})
            case "done" if begun is not None:
                begun = replace(begun, done={**begun.done, str(entry["step"]): str(entry["detail"])})
            case "end":
                begun = None
    return begun if begun is not None and begun.commit_offset == connector.commit_offset else None


def _begun(entry: Mapping[str, Any], earlier: UnfinishedRescue | None) -> UnfinishedRescue:
    commit_offset = entry.get("commit_offset")
    if earlier is not None and earlier.commit_offset == commit_offset:
        return earlier
    return UnfinishedRescue(commit_offset, int(entry["time_ms"]))


def _touched(noted: Mapping[str, Any]) -> Touched:
    return {
        TransactionalId(each): None if epoch is None else (ProducerId(int(epoch[0])), int(epoch[1]))
        for each, epoch in noted.items()
    }
