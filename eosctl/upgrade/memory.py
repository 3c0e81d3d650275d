"""The memory of upgrades: the progress of a roll, and what the group forgets about its workers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.wording import rfc3339
from eosctl.core.workers.modes import TARGETS, Mode, UpgradeWorker
from eosctl.group.mirror_makers import KnownNodes
from eosctl.group.protocol import Work

_Value = TypeVar("_Value")


class Brought(Struct, frozen=True):
    """A worker that the roll brought to `mode`; the same `member_id` in the group means the same process."""

    mode: Mode
    member_id: str | None


class OpenStep(Struct, frozen=True):
    """A step that has not ended; `restarted` means that the driver did its part.

    `members` are all members of the group before it (URL -> member id). `backups` are the copies made in it.
    """

    mode: Mode
    workers: tuple[str, ...]
    members: Mapping[str, str | None]
    restarted: bool = False
    words: str = ""
    backups: tuple[str, ...] = ()


class Roll(Struct, frozen=True):
    """The newest roll in the journal; `connectors` are their states at its beginning.

    `known` are all members that its newest step saw; `steps` are those that are done. `next_start` has the modes in
    which each worker of this and former rolls may start next. `way_back`: it takes back the roll before; `excused` are
    connectors and tasks that did not run when it began. `stopped` is the error that ended its last run, if it was
    recorded; `ended_ms` is None while it is not finished. `origin` is the mode to go back to, if there is one. `place`
    is what the driver changes, and where, if it is known. `mirror_maker`: the workers are a dedicated MirrorMaker's.
    `driver_options` and `accepted` gates are those of its last run. `not_started` are workers that were not members,
    whose mode was set while they were down, and that were not started since.
    """

    target: Mode
    driver: str
    digest: str
    began_ms: int
    connectors: Mapping[str, str]
    brought: Mapping[str, Brought] = {}
    known: frozenset[str] = frozenset()
    next_start: Mapping[str, frozenset[Mode]] = {}
    way_back: bool = False
    excused: frozenset[Work] = frozenset()
    steps: tuple[tuple[Mode, str], ...] = ()
    open: OpenStep | None = None
    stopped: str | None = None
    ended_ms: int | None = None
    origin: Mode | None = None
    place: str | None = None
    mirror_maker: bool = False
    driver_options: tuple[str, ...] = ()
    accepted: frozenset[str] = frozenset()
    not_started: frozenset[str] = frozenset()

    @property
    def unfinished(self) -> bool:
        """True if it was begun and has not ended."""
        return self.ended_ms is None

    @property
    def memory(self) -> Memory:
        """The modes of workers that this roll knows."""
        return Memory(self.brought, self.next_start)

    @property
    def lost_memory(self) -> Memory:
        """The memory for another roll: start modes and, for MirrorMaker, whose modes nothing else shows, all modes."""
        return Memory(self.brought if self.mirror_maker else {}, self.next_start)

    def is_taken_back_by(self, target: Mode) -> bool:
        """Decide whether a roll to `target` is the way back from this one, or continues its way back."""
        before, after = TARGETS.index(self.target), TARGETS.index(target)
        return after < before or (self.way_back and after <= before)

    def without(self, gone: Collection[str]) -> Roll:
        """Return a copy that expects nothing any more of the workers in `gone`."""
        step = self.open
        if step is not None:
            members = {name: member_id for name, member_id in step.members.items() if name not in gone}
            workers = tuple(name for name in step.workers if name not in gone)
            step = replace(step, members=members, workers=workers) if workers else None
        return replace(
            self,
            open=step,
            known=self.known.difference(gone),
            next_start=without(self.next_start, gone),
            not_started=self.not_started.difference(gone),
        )


class Memory(Struct, frozen=True):
    """The modes to which a journal's rolls brought workers, and the modes in which workers may start next."""

    brought: Mapping[str, Brought] = {}
    next_start: Mapping[str, frozenset[Mode]] = {}

    @property
    def names(self) -> Mapping[str, str | None]:
        """The ids of the members that were brought to a mode, by name."""
        return {name: each.member_id for name, each in self.brought.items()}

    def after(self, brought: Mapping[str, Brought], *, at_once: bool = False) -> Memory:
        """Return a copy with the workers just brought; with `at_once`, they come back under other URLs."""
        starts = {} if at_once else {name: frozenset({each.mode}) for name, each in brought.items()}
        return Memory({**self.brought, **brought}, {**self.next_start, **starts})

    def without(self, names: Collection[str]) -> Memory:
        """Return a copy without workers that no longer exist."""
        return Memory(without(self.brought, names), without(self.next_start, names))

    def lost(self, members: Collection[str], target: Mode) -> tuple[UpgradeWorker, ...]:
        """Return the workers that left the group and may come back in another mode than `target`."""
        return tuple(
            UpgradeWorker(name, Mode.ABSENT, evidence=(f"it left the group, and may come back {_either(modes)}",))
            for name, modes in sorted(self.next_start.items())
            if name not in members and modes != {target}
        )


def _either(modes: Collection[Mode]) -> str:
    return " or ".join(mode.value for mode in TARGETS if mode in modes)


def without(there: Mapping[str, _Value], gone: Collection[str]) -> dict[str, _Value]:
    """Return the entries of `there` whose names are not in `gone`."""
    return {name: value for name, value in there.items() if name not in gone}


def with_brought(
    workers: Sequence[UpgradeWorker], brought: Mapping[str, Brought], members: Mapping[str, str | None]
) -> tuple[UpgradeWorker, ...]:
    """Add what the roll knows: a worker that is still the same member has kept the mode to which it was brought.

    A mode changes by a restart only, and a restarted worker is another member. What is proven is never overruled.
    """
    return tuple(_with_brought(worker, brought.get(worker.name), members.get(worker.name)) for worker in workers)


def _with_brought(worker: UpgradeWorker, brought: Brought | None, member_id: str | None) -> UpgradeWorker:
    if brought is None or member_id is None or member_id != brought.member_id:
        return worker
    if len(worker.possible) == 1 or brought.mode not in worker.possible:
        return worker
    text = f"brought to {brought.mode.value} by eosctl, and not restarted since (the same group member)"
    return replace(worker, mode=brought.mode, confirmed=True, evidence=(*worker.evidence, text))


def known_nodes(memory: Memory, members: Mapping[str, str | None], restarted: Sequence[str] = ()) -> KnownNodes:
    """Return the members; those not restarted by the roll can't be distinguished from others on the same host."""
    alike = frozenset(name for name, each in members.items() if memory.names.get(name) != each)
    return KnownNodes({**memory.names, **members}, tuple(restarted), alike)


def describe_roll(roll: Roll) -> str:
    """Describe a roll in a sentence."""
    done = ", ".join(f"{name} {mode.value}" for mode, name in roll.steps) or "nothing"
    text = f"an upgrade to {roll.target.value} was begun at {rfc3339(roll.began_ms)}"
    if not roll.unfinished:
        return f"{text} and finished at {rfc3339(roll.ended_ms)}"
    under_way = f"; under way: {', '.join(roll.open.workers)} to {roll.open.mode.value}" if roll.open else ""
    return f"{text} and not finished; done: {done}{under_way}"
