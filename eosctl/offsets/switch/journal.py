"""Reads the journal of `offsets switch`, above all what the cluster forgets: whether the connector ran before."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from eosctl.state.journal import EndEntry, Journal


class UnfinishedSwitch(Struct, frozen=True):
    """A switch that was begun and never ended: its origin and target, and the state of the connector then.

    `tasks` is the number that it had then. `resumed`: it may have run on the target since. `deletions`: deletions at
    the origin move along.
    """

    origin: str
    target: str
    state: str
    began_ms: int
    done: tuple[str, ...] = ()
    resumed: bool = False
    deletions: bool = True
    tasks: int = 1


class _Begin(Struct, frozen=True):
    origin: str
    target: str
    state: str
    time_ms: int
    done: tuple[str, ...] | None = None
    deletions: bool = True
    tasks: int = 1

    def switch(self) -> UnfinishedSwitch:
        """Return the switch that began with this entry."""
        done = self.done or ()
        move = (self.origin, self.target, self.state)
        return UnfinishedSwitch(*move, self.time_ms, done, "resume" in done, self.deletions, self.tasks)


class _Start(Struct, frozen=True):
    step: str


class _Done(Struct, frozen=True):
    step: str


_ENTRIES: Mapping[str, type[_Begin | _Start | _Done | EndEntry]] = {
    "begin": _Begin,
    "start": _Start,
    "done": _Done,
    "end": EndEntry,
}


def newest_target(journal: Journal) -> str | None:
    """Return the target of the newest switch, ended or not; None if there was none. Raises EosctlError."""
    begun = journal.read({"begin": _Begin})
    return begun[-1].target if begun else None


def unfinished_switch(journal: Journal) -> UnfinishedSwitch | None:
    """Return the switch in progress, as far as the file shows; raise EosctlError."""
    begun: UnfinishedSwitch | None = None
    for entry in journal.read(_ENTRIES):
        match entry:
            case _Begin():
                begun = entry.switch()
            case _Start("resume") if begun is not None:
                begun = replace(begun, resumed=True)
            case _Done(step) if begun is not None:
                begun = replace(begun, done=(*begun.done, step))
            case EndEntry():
                begun = None
    return begun
