"""What the journal of `offsets switch` tells, above all what the cluster forgets: whether the connector ran before."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from eosctl.state.journal import EndEntry, Journal


class UnfinishedSwitch(Struct, frozen=True):
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


class _Begin(Struct, frozen=True):
    origin: str
    target: str
    state: str
    time_ms: int
    done: tuple[str, ...] | None = None
    deletions: bool = True
    tasks: int = 1

    def switch(self) -> UnfinishedSwitch:
        """The switch that began so."""
        done = self.done or ()
        there = (self.origin, self.target, self.state)
        return UnfinishedSwitch(*there, self.time_ms, done, "resume" in done, self.deletions, self.tasks)


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
    """Where the newest switch was to lead, over or not; None where there was none. Raises EosctlError."""
    begun = journal.read({"begin": _Begin})
    return begun[-1].target if begun else None


def unfinished_switch(journal: Journal) -> UnfinishedSwitch | None:
    """The switch under way, as far as the file shows; raises EosctlError."""
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
