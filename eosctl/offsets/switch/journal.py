"""What the journal of `offsets switch` tells, above all what the cluster forgets: whether the connector ran before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from eosctl.state.journal import Journal


@dataclass(frozen=True, slots=True)
class UnfinishedSwitch:
    """A switch that was begun and never ended: from where to where, and the state the connector was in.

    `tasks` is how many it had then. `resumed`: it may have run on the target since. `deletions`: what is deleted at the
    origin goes along.
    """

    origin: str
    target: str
    state: str
    began_ms: int
    done: tuple[str, ...] = ()
    resumed: bool = False
    deletions: bool = True
    tasks: int = 1


def unfinished_switch(journal: Journal) -> UnfinishedSwitch | None:
    """The switch under way, as far as the file tells; raises EosctlError."""
    begun: UnfinishedSwitch | None = None
    for entry in journal.entries():
        match entry.get("event"):
            case "begin":
                begun = _begun(entry)
            case "start" if begun is not None and entry["step"] == "resume":
                begun = replace(begun, resumed=True)
            case "done" if begun is not None:
                begun = replace(begun, done=(*begun.done, str(entry["step"])))
            case "end":
                begun = None
    return begun


def _begun(entry: Mapping[str, Any]) -> UnfinishedSwitch:
    origin, target, state = (str(entry[name]) for name in ("origin", "target", "state"))
    done, deletions = tuple(entry.get("done") or ()), bool(entry.get("deletions", True))
    tasks = int(entry.get("tasks", 1))
    return UnfinishedSwitch(origin, target, state, int(entry["time_ms"]), done, "resume" in done, deletions, tasks)
