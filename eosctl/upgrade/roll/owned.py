"""Workers that a platform owns (pods), expected even while they are not in the group; and the journal of `apply`.

The work left follows from the journal and from what the platform wants, never from which members are present.

The journal of `upgrade apply` is read from its entries, as far as the newest roll that they report.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.modes import POSSIBLE, TARGETS, Mode, UpgradeWorker
from eosctl.deadline import Deadline
from eosctl.errors import RefusedError
from eosctl.group.gather import observe_workers
from eosctl.group.observed import GroupObservation, WorkerObservation
from eosctl.group.protocol import Work
from eosctl.state.journal import EndEntry, Journal, journal_of
from eosctl.upgrade.drivers import Driver, OwnsWorkers, TakenBackError
from eosctl.upgrade.drivers.manifests.pods import Origin
from eosctl.upgrade.gate import Gate
from eosctl.upgrade.look import Brought, OpenStep, Roll, without
from eosctl.upgrade.rows import ManifestPart

_JOIN_S = 30.0


def absent_workers(app: App, driver: Driver, begun: Roll | None, group: GroupObservation) -> list[UpgradeWorker]:
    """Return the workers that an unfinished upgrade must still bring and that are no members, in their pods' mode.

    That is the mode of the newest step: the workload has it, so they come back with it.
    """
    if begun is None or not isinstance(driver, OwnsWorkers):
        return []
    newest = begun.open.mode if begun.open else begun.steps[-1][0] if begun.steps else Mode.UNKNOWN
    evidence = ("it is no member of the group now",)
    return [UpgradeWorker(name, newest, evidence=evidence) for name in driver.absent(app, _members(group))]


def left_behind(newest: Roll | None, place: str | None, *, way_back: bool) -> Roll | None:
    """Return the unfinished upgrade of the same workloads, if this is its way back: its pods may be in no group."""
    same = newest is not None and newest.unfinished and place is not None and newest.place == place
    return newest if way_back and same else None


def made_before(app: App, driver: Driver, mode: Mode, before: Collection[str | None]) -> bool:
    """Decide whether an earlier run's change has reached all workers: no member of `before` is left, all have the mode.

    A controller continues while eosctl does not run; its pods need not be restarted again. Workers whose pods are all
    new may take a moment to be in the group.
    """
    if not isinstance(driver, OwnsWorkers) or driver.mode(app) is not mode:
        return False
    for _ in Deadline.after(_JOIN_S, app.clock).rounds(1.0):
        group = observe_workers(app)
        there = {member.member_id for member in _members(group)}
        if group.stable and len(there) >= driver.expected(app):
            return there.isdisjoint(before)
    return False


def _members(group: GroupObservation) -> list[WorkerObservation]:
    return [member for member in group.members if member.member_id is not None]


def with_platform(
    app: App, driver: Driver, brought: Mode | None, workers: Sequence[UpgradeWorker]
) -> Sequence[UpgradeWorker]:
    """Give workers that joined since the mode to which this upgrade has brought all of them, as their pods were made.

    A proven mode is never overruled; nothing is added if the platform no longer has that mode.
    """
    if brought is None or not isinstance(driver, OwnsWorkers):
        return workers
    doubtful = [each for each in workers if len(POSSIBLE[each.mode]) > 1 and brought in POSSIBLE[each.mode]]
    if not doubtful or driver.mode(app) is not brought:
        return workers
    text = f"its pod was made as {brought.value}, as eosctl has set it"
    return [
        replace(each, mode=brought, evidence=(*each.evidence, text)) if each in doubtful else each for each in workers
    ]


def place_of(app: App, driver: Driver, begun: Roll | None) -> str | None:
    """Return what the driver changes and where; raise RefusedError if the upgrade was begun with something else."""
    if not isinstance(driver, OwnsWorkers):
        return None
    place = driver.place(app)
    if begun is not None and begun.place not in (None, place):
        raise RefusedError(
            f"the upgrade was begun with {begun.place}, and this is {place}; nothing was written",
            hint="Resume it with the same --workload, --namespace and --context.",
        )
    return place


def owned_gates(
    app: App, driver: Driver, begun: Roll | None, group: GroupObservation, *, accepted: Collection[str], way_back: bool
) -> Sequence[Gate]:
    """Return the gates of the driver's platform; none for a resume: restarting pods can't be compared with members."""
    if begun is not None or not isinstance(driver, OwnsWorkers):
        return ()
    return driver.gates(app, _members(group), accepted=accepted, complete=not way_back)


def match_gates(
    app: App, driver: OwnsWorkers | None, group: GroupObservation, *, accepted: Collection[str]
) -> tuple[Gate, ...]:
    """Return the gate that compares the members with the platform's workers; none without a driver."""
    return (driver.match(app, _members(group), accepted=accepted, complete=True),) if driver is not None else ()


def require_everybody(app: App, driver: Driver, group: GroupObservation) -> None:
    """Raise RefusedError if nothing is left to do but a worker of the platform is not a member."""
    missing = driver.absent(app, _members(group)) if isinstance(driver, OwnsWorkers) else ()
    if missing:
        raise RefusedError(
            f"nothing is left to be done, but {', '.join(missing)} is no member of the group: the upgrade is not "
            "finished",
            hint="See why it does not come back; then run this again.",
        )


def already_made(app: App, driver: Driver, workers: Sequence[UpgradeWorker]) -> Sequence[UpgradeWorker]:
    """Add the modes in which the pods were made, if somebody else changes them: they may be ahead."""
    if not isinstance(driver, OwnsWorkers) or not driver.watches:
        return workers
    return with_platform(app, driver, driver.mode(app), workers)


def origins_of(app: App, driver: Driver) -> Sequence[Origin]:
    """Return who deploys what the driver changes; empty if only eosctl does."""
    return driver.origins(app) if isinstance(driver, OwnsWorkers) else ()


def manifests_of(origins: Sequence[Origin], modes: Sequence[str]) -> list[ManifestPart]:
    """Return what must be changed where the workloads are deployed from, or the next deploy reverts it; in order."""
    return [
        ManifestPart(
            object=each.thing,
            field=each.field,
            deployed_by=each.deployer.words if each.deployer else None,
            held=each.held,
            words=each.words(modes),
        )
        for each in origins
    ]


def require_kept(app: App, driver: Driver, brought: Mode, *, then: Mode | None = None, resumed: bool = False) -> None:
    """Raise TakenBackError if somebody reverted what a pass has set; if the driver only watches, `then` is fine, too.

    `resumed`: a run before has set it, and this one sets it no more.
    """
    error = taken_back_error(app, driver, brought, then=then, resumed=resumed)
    if error is not None:
        raise error


def taken_back_error(
    app: App, driver: Driver, brought: Mode, *, then: Mode | None = None, resumed: bool = False
) -> TakenBackError | None:
    """Return the error that `require_kept` raises."""
    if not isinstance(driver, OwnsWorkers):
        return None
    words = driver.taken_back(app, {brought, then or brought} if driver.watches else {brought})
    return None if words is None else TakenBackError(words, again=brought if resumed else None)


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
