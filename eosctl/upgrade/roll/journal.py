"""The journal of `upgrade apply`: its entries, and the newest roll that they report."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.modes import TARGETS, Mode
from eosctl.group.protocol import Work
from eosctl.state.journal import EndEntry, Journal, journal_of
from eosctl.upgrade.memory import Brought, OpenStep, Roll, without


def upgrade_journal(app: App, cluster_id: str) -> Journal:
    """Return the journal of the group's upgrades."""
    return journal_of(app, "upgrade", app.target.require_group_id(), cluster_id=cluster_id)


class _Begin(Struct, frozen=True):
    """The begin of a roll; `gone` are workers that were given up by then."""

    target: Mode
    driver: str
    digest: str
    time_ms: int
    connectors: Mapping[str, str]
    origin: Mode | None = None
    gone: tuple[str, ...] = ()
    way_back: bool = False
    mirror_maker: bool = False
    excused: frozenset[Work] = frozenset()
    place: str | None = None
    driver_options: tuple[str, ...] = ()
    accepted_gates: frozenset[str] = frozenset()

    def roll(self, former: Roll | None) -> Roll:
        """Return the roll as it begins."""
        return Roll(
            target=self.target,
            driver=self.driver,
            digest=self.digest,
            began_ms=self.time_ms,
            connectors=self.connectors,
            origin=self.origin,
            next_start=without(former.next_start if former else {}, self.gone),
            way_back=self.way_back,
            mirror_maker=self.mirror_maker,
            excused=self.excused,
            place=self.place,
            driver_options=self.driver_options,
            accepted=self.accepted_gates,
        )


class _Start(Struct, frozen=True):
    """The start of a step; `at_once`: a controller restarts the workers, which come back under other URLs."""

    mode: Mode
    workers: tuple[str, ...]
    members: Mapping[str, str | None]
    at_once: bool = False

    def after(self, roll: Roll) -> Roll:
        """Return the roll with this step under way."""
        kept = roll.open.backups if roll.open else ()  # it is done again
        step = OpenStep(self.mode, self.workers, self.members, backups=kept)
        starts = {name: roll.next_start.get(name, frozenset(TARGETS)) | {self.mode} for name in self.workers}
        starts = {} if self.at_once else {**roll.next_start, **starts}
        known = frozenset(self.members) | set(self.workers)
        return replace(roll, open=step, known=known, next_start=starts, stopped=None)


class _Backup(Struct, frozen=True):
    """A backup made in the step under way."""

    path: str

    def after(self, roll: Roll) -> Roll:
        """Return the roll with this backup."""
        step = roll.open
        return roll if step is None else replace(roll, open=replace(step, backups=(*step.backups, self.path)))


class _Restarted(Struct, frozen=True):
    """The end of the driver's part of the step under way."""

    words: str

    def after(self, roll: Roll) -> Roll:
        """Return the roll with its open step restarted."""
        step = roll.open
        return roll if step is None else replace(roll, open=replace(step, restarted=True, words=self.words))


class _Done(Struct, frozen=True):
    """The end of the step under way; `renamed` maps workers to the URLs under which they came back."""

    members: Mapping[str, str | None]
    renamed: Mapping[str, str] = {}
    at_once: bool = False

    def after(self, roll: Roll) -> Roll:
        """Return the roll with its open step done."""
        step = roll.open
        if step is None:
            return roll
        brought = {name: Brought(step.mode, member_id) for name, member_id in self.members.items()}
        memory = roll.memory.without(self.renamed).after(brought, at_once=self.at_once)
        known = roll.known.difference(self.renamed).union(self.renamed.values())
        steps = (*roll.steps, *((step.mode, name) for name in step.workers))
        not_started = roll.not_started.difference(step.workers)
        roll = replace(roll, brought=memory.brought, next_start=memory.next_start, known=known, not_started=not_started)
        return replace(roll, steps=steps, open=None, stopped=None)


class _Configured(Struct, frozen=True):
    """The new mode of a worker that is down and not a member."""

    worker: str
    mode: Mode

    def after(self, roll: Roll) -> Roll:
        """Return the roll with this worker done."""
        starts = {**roll.next_start, self.worker: frozenset({self.mode})}
        steps, not_started = (*roll.steps, (self.mode, self.worker)), roll.not_started | {self.worker}
        return replace(roll, next_start=starts, steps=steps, not_started=not_started, stopped=None)


class _Resume(Struct, frozen=True):
    """The begin of another run of the roll."""

    driver: str
    gone: tuple[str, ...] = ()
    driver_options: tuple[str, ...] = ()
    accepted_gates: frozenset[str] = frozenset()

    def after(self, roll: Roll) -> Roll:
        """Return the roll with the options of the run that resumes it."""
        options, accepted = self.driver_options, self.accepted_gates
        return replace(roll.without(self.gone), driver=self.driver, driver_options=options, accepted=accepted)


class _Stopped(Struct, frozen=True):
    """The end of a run before that of the roll."""

    message: str

    def after(self, roll: Roll) -> Roll:
        """Return the roll with the error that stopped it."""
        return replace(roll, stopped=self.message)


class _End(EndEntry, frozen=True):
    """The end of the roll."""

    def after(self, roll: Roll) -> Roll:
        """Return the roll as finished."""
        return replace(roll, open=None, stopped=None, ended_ms=self.time_ms)


_Later = _Start | _Backup | _Restarted | _Done | _Configured | _Resume | _Stopped | _End
_ENTRIES: Mapping[str, type[_Begin | _Later]] = {
    "begin": _Begin,
    "start": _Start,
    "backup": _Backup,
    "restarted": _Restarted,
    "done": _Done,
    "configured": _Configured,
    "resume": _Resume,
    "stopped": _Stopped,
    "end": _End,
}


def newest_roll(journal: Journal) -> Roll | None:
    """Return the newest roll in the journal, as far as the file can be read; raise EosctlError."""
    roll: Roll | None = None
    for entry in journal.read(_ENTRIES):
        roll = entry.roll(roll) if isinstance(entry, _Begin) else roll and entry.after(roll)
    return roll
