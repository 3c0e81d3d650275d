"""upgrade apply: decides what is to be done, and whether it may be; `roll` does it.

The plan follows from what is seen now and, where a run was cut off, from its journal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.core.workers.config import WorkerConfig
from eosctl.core.workers.modes import Mode, UpgradeWorker, downgrade_losses
from eosctl.core.workers.url import parse_worker_url
from eosctl.errors import RefusedError, StalePlanError, UnsupportedError, UsageError
from eosctl.group.members import EMPTY, STABLE, is_node
from eosctl.group.protocol import Work
from eosctl.observation.gather import mirror_maker_setting
from eosctl.state.journal import Journal
from eosctl.upgrade import codes
from eosctl.upgrade.drivers import Driver, SetsAlone, SetsMirrorMaker
from eosctl.upgrade.drivers.manifests.pods import Origin
from eosctl.upgrade.gate import Gate
from eosctl.upgrade.look import (
    NOTHING_KNOWN,
    STRICT,
    AcceptedRisks,
    GroupLook,
    Memory,
    OpenStep,
    Roll,
    accepted_risks,
    describe_roll,
    known_nodes,
    look,
    require_gates,
    with_driver_files,
)
from eosctl.upgrade.plan import PlannedPass, UpgradePlan, make_plan
from eosctl.upgrade.roll.owned import (
    absent_workers,
    already_made,
    left_behind,
    newest_roll,
    origins_of,
    owned_gates,
    place_of,
    require_everybody,
    upgrade_journal,
    with_platform,
)
from eosctl.upgrade.roll.states import excused_work, states_of

# what the first pass fixes itself
_MENDED_BY_THE_ROLL = frozenset({codes.NO_MIXED_MODES})
# what a step that was cut off leaves behind, and its repetition fixes; `_unhealthy_others` judges the other workers
_MENDED_BY_THE_OPEN_STEP = frozenset(
    {codes.MEMBERS_KNOWN, codes.WORKER_VERSIONS, codes.WORKER_HEALTH, codes.CONNECTORS_HEALTHY}
)
# what nobody can be asked while no worker is there
_MENDED_BY_ANY_WORKER = frozenset({codes.GROUP_STABLE, codes.SAME_KAFKA_CLUSTER, codes.OWN_CLUSTERS})


class RollRequest(Struct, frozen=True):
    """`target` None: that of the plan file, or of the roll that is resumed. `accepted` are gates, by their ids.

    `gone` are workers (URLs) that will never start again. `driver_options` are the words that the driver was given, for
    commands that say how to go back.
    """

    target: Mode | None = None
    plan: UpgradePlan | None = None
    resume: bool = False
    start_over: bool = False
    accepted: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    settle_timeout_s: float = 600.0
    driver_options: tuple[str, ...] = ()


class PreparedRoll(Struct, frozen=True):
    """A roll that may begin or continue. `passes` are still to do, after the step `open`, if there is one.

    `blocking` are the gates that forbid it; `connectors` are the states to be reached again after every step, except
    those `excused`. `dead` are workers that are not members: their mode is set while they are down, and they are
    started when all others have the target mode. `gone` are given up. `gates` are all that were looked at, those of the
    driver's platform included; `place` is what the driver changes there. `mirror_maker`: the workers are a dedicated
    MirrorMaker's, without REST. `configs` are the workers' files. `mended` are the gates that the first step fixes.
    `origins` are the deployers of the changed objects.
    """

    request: RollRequest
    target: Mode
    plan: UpgradePlan
    driver: Driver
    view: GroupLook
    passes: tuple[PlannedPass, ...]
    open: OpenStep | None
    begun: Roll | None
    blocking: tuple[Gate, ...]
    connectors: Mapping[str, str]
    excused: frozenset[Work]
    journal: Journal
    cluster_id: str
    mended: frozenset[str] = frozenset()
    risks: AcceptedRisks = STRICT
    memory: Memory = NOTHING_KNOWN
    dead: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    gates: tuple[Gate, ...] = ()
    place: str | None = None
    mirror_maker: bool = False
    configs: tuple[WorkerConfig, ...] = ()
    origins: tuple[Origin, ...] = ()

    def steps(self) -> list[tuple[Mode, str]]:
        """Return the steps still to do, worker by worker; the current leader comes last."""
        first = [(self.open.mode, name) for name in self.open.workers] if self.open else []
        leader = self.view.group.leader_name
        ordered = [
            (each.mode, sorted(each.workers, key=lambda name: (name not in self.dead, name == leader, name)))
            for each in self.passes
        ]
        found = first + [(mode, name) for mode, names in ordered for name in names]
        return found + [(self.target, name) for name in sorted(self.dead) if (self.target, name) not in found]


class _Past(Struct, frozen=True):
    """The state in the journal and what follows from it: the roll to resume, workers given up, accepted risks."""

    journal: Journal
    newest: Roll | None
    begun: Roll | None
    gone: frozenset[str]
    target: Mode
    place: str | None
    risks: AcceptedRisks

    @property
    def open(self) -> OpenStep | None:
        """The step that was begun and not ended."""
        return self.begun.open if self.begun else None

    @property
    def memory(self) -> Memory:
        """The modes known of workers that were restarted."""
        return self.begun.memory if self.begun else self.newest.lost_memory if self.newest else NOTHING_KNOWN

    @property
    def taken_up(self) -> Roll | None:
        """The roll to go on with, or the one of the same workloads from which this is the way back."""
        return self.begun or left_behind(self.newest, self.place, way_back=self.risks.way_back)

    def dead(self, view: GroupLook) -> frozenset[str]:
        """Return the workers that are not members and are to be started, even if this roll has set their mode."""
        left = self.begun.not_started if self.begun else frozenset()
        under_way = self.open.workers if self.open else ()
        lost = {worker.name for worker in self.lost(view)}
        return frozenset(lost | left).difference(view.members, under_way)

    def lost(self, view: GroupLook) -> list[UpgradeWorker]:
        """Return the workers that left the group, without those of the open step."""
        return [worker for worker in view.lost if self.open is None or worker.name not in self.open.workers]


def prepare_roll(app: App, request: RollRequest, driver: Driver) -> PreparedRoll:
    """Look at the group and decide what to do; write nothing.

    Raises RefusedError for a roll that was begun and not finished (or none, with `resume`), StalePlanError if the
    workers are no longer as in the plan file, UsageError, and what `observe_workers` raises.
    """
    require_gates(request.accepted)
    with app.transactions() as admin:
        cluster_id = admin.cluster_id()
    past = _read_past(app, request, driver, upgrade_journal(app, cluster_id))
    nodes = known_nodes(past.memory, past.open.members, past.open.workers) if past.open else None
    with_files = with_driver_files(app, driver)
    view = look(with_files, past.target, past.memory, risks=past.risks, nodes=nodes)
    mirror_maker = view.group.is_mirror_maker or (past.begun is not None and past.begun.mirror_maker)
    if mirror_maker:
        driver = _for_mirror_maker(with_files, driver)
    _require_gone(past.gone, view)
    workers = _to_bring(app, driver, past, view)
    plan = make_plan(workers, past.target, kafka_cluster_id=cluster_id, group_id=app.target.group_id)
    if request.plan is not None and past.begun is None:
        plan = _still_so(request.plan, plan)
    owned = _platform_gates(app, request, driver, past, view=view, plan=plan)
    mended = _mended(past.open, view, driver, nobody_left=past.open is None and past.taken_up is not None)
    stopping = [*view.stopping(but=mended), *(gate for gate in owned if gate.stops_apply)]
    return PreparedRoll(
        request=request,
        target=past.target,
        plan=plan,
        driver=driver,
        view=view,
        passes=plan.passes,
        open=past.open,
        begun=past.begun,
        blocking=(*_unhealthy_others(past.begun, view, driver, past.risks), *stopping),
        connectors=past.taken_up.connectors if past.taken_up else states_of(view.observation),
        excused=excused_work(view.observation, past.begun, past.risks),
        journal=past.journal,
        cluster_id=cluster_id,
        mended=mended,
        memory=past.memory,
        risks=past.risks,
        dead=past.dead(view),
        gone=past.gone,
        gates=(*view.gates, *owned),
        place=past.place,
        mirror_maker=mirror_maker,
        configs=with_files.target.worker_configs,
        origins=tuple(origins_of(app, driver)),
    )


def _read_past(app: App, request: RollRequest, driver: Driver, journal: Journal) -> _Past:
    newest = newest_roll(journal)
    gone = _gone(request, newest)
    newest = newest.without(gone) if newest else None
    begun = _begun(app, request, newest, journal)
    target = _target(request, begun)
    place, risks = place_of(app, driver, begun), _risks(request, target, newest, begun, driver)
    return _Past(journal, newest, begun, gone, target, place, risks)


def _to_bring(app: App, driver: Driver, past: _Past, view: GroupLook) -> Sequence[UpgradeWorker]:
    """Return the workers to plan for: those in the group, those that left it, and those that the platform reports."""
    workers = _after_open(view.observation.workers, past.open, at_once=driver.at_once)
    workers = [*workers, *past.lost(view), *absent_workers(app, driver, past.taken_up, view.group)]
    if past.open is not None:
        return workers
    if past.begun is not None and past.begun.steps:
        return with_platform(app, driver, past.begun.steps[-1][0], workers)
    return already_made(app, driver, workers)


def _platform_gates(
    app: App, request: RollRequest, driver: Driver, past: _Past, *, view: GroupLook, plan: UpgradePlan
) -> Sequence[Gate]:
    """Return the platform's gates against the roll; none while a step is open."""
    if past.open is not None:
        return ()
    if not plan.passes:
        require_everybody(app, driver, view.group)
        return ()
    driver.check(app, sorted(view.members))
    way_back = past.risks.way_back
    return owned_gates(app, driver, past.begun, view.group, accepted=request.accepted, way_back=way_back)


def _still_so(planned: UpgradePlan, now: UpgradePlan) -> UpgradePlan:
    """Return the plan of the file; raise StalePlanError if it would be another one now."""
    difference = planned.difference(now)
    if difference is not None:
        raise StalePlanError(f"the plan is stale: {difference}; nothing was written", hint="Plan again.")
    return planned


def _gone(request: RollRequest, newest: Roll | None) -> frozenset[str]:
    """Return the workers given up by name; raise UsageError for one that no upgrade of the group knows."""
    gone = frozenset(name if is_node(name) else parse_worker_url(name).text for name in request.gone)
    known = (newest.known | newest.next_start.keys()) if newest else frozenset()
    strangers = sorted(gone - known)
    if strangers:
        raise UsageError(
            f"{Waiver.ACCEPT_GONE} {strangers[0]}: no upgrade of this group knows that worker",
            hint=f"It knows {', '.join(sorted(known)) or 'none'}; a worker that was given up is not missed any more.",
        )
    return gone


def _require_gone(gone: frozenset[str], view: GroupLook) -> None:
    there = sorted(gone & view.members.keys())
    if there:
        raise RefusedError(f"{Waiver.ACCEPT_GONE} {there[0]}: it is a member of the group; nothing was written")


def _risks(
    request: RollRequest, target: Mode, newest: Roll | None, begun: Roll | None, driver: Driver
) -> AcceptedRisks:
    way_back = begun.way_back if begun else newest is not None and newest.is_taken_back_by(target)
    sets_lost = isinstance(driver, SetsAlone) and target is not Mode.ENABLED
    return replace(accepted_risks(request.accepted, newest), way_back=way_back, sets_lost=sets_lost)


def _mended(open_step: OpenStep | None, view: GroupLook, driver: Driver, *, nobody_left: bool) -> frozenset[str]:
    """Return the gates that the first pass fixes, and those that repeating the open step fixes.

    `nobody_left`: an upgrade left pods behind of which none may be a member; then no worker can be asked.

    While a controller restarts pods, workers that are members may not answer yet: the step waits for what is unknown.
    """
    if open_step is None:
        empty = nobody_left and driver.at_once and view.group.state == EMPTY
        return _MENDED_BY_THE_ROLL | (_MENDED_BY_THE_OPEN_STEP | _MENDED_BY_ANY_WORKER if empty else frozenset())
    mended = _MENDED_BY_THE_ROLL | _MENDED_BY_THE_OPEN_STEP
    if view.group.state == EMPTY:
        return mended | _MENDED_BY_ANY_WORKER
    untold = {gate.id for gate in view.gates if gate.status == "unknown" or gate.id == codes.GROUP_STABLE}
    return mended | (_MENDED_BY_ANY_WORKER & untold) if driver.at_once else mended


def _for_mirror_maker(app: App, driver: Driver) -> Driver:
    """Return the driver for nodes of a dedicated MirrorMaker; raise UnsupportedError if it has none."""
    if not isinstance(driver, SetsMirrorMaker):
        raise UnsupportedError(
            f"--driver {driver.name} knows nothing of a dedicated MirrorMaker; nothing was written",
            hint="--driver command edits each node's file and runs your --restart-command; --driver print says what "
            "to do.",
        )
    return driver.for_mirror_maker(mirror_maker_setting(app))


def _unhealthy_others(begun: Roll | None, view: GroupLook, driver: Driver, risks: AcceptedRisks) -> list[Gate]:
    """Return the gate that fails for known workers, other than the open step's, that are gone or do not answer.

    Pods may come back under other names, so none is missed if a controller restarts them.
    """
    if (
        begun is None
        or driver.at_once
        or view.group.state not in (STABLE, EMPTY)
        or codes.MEMBERS_KNOWN in risks.accepted
    ):
        return []
    under_way = {*(begun.open.workers if begun.open else ()), *(worker.name for worker in view.lost)}
    silent = {worker.name for worker in view.observation.workers if worker.mode is Mode.UNREACHABLE}
    unhealthy = sorted(((begun.known - view.members.keys()) | silent) - under_way)
    text = f"{', '.join(unhealthy)}, seen when the upgrade ran last, is no member of the group now, or does not answer"
    fix = (
        "Start it if it does not run, else see its log for why it is away; if it is gone for good, say so with "
        f"{Waiver.ACCEPT_GONE} and its URL."
    )
    return [Gate(codes.MEMBERS_KNOWN, "fail", text, fix)] if unhealthy else []


def _begun(app: App, request: RollRequest, newest: Roll | None, journal: Journal) -> Roll | None:
    """Return the roll to resume; raise RefusedError if it is not the one requested, or another eosctl works on it."""
    unfinished = newest if newest is not None and newest.unfinished else None
    if request.resume:
        if unfinished is None:
            raise RefusedError("there is no unfinished upgrade of this group to resume", hint="Leave out --resume.")
        if request.target not in (None, unfinished.target):
            raise RefusedError(
                f"the unfinished upgrade leads to {unfinished.target.value}, not to {request.target}",
                hint=f"Leave out --to, or use {Waiver.START_OVER} in place of --resume.",
            )
        if request.plan is not None and request.plan.digest() != unfinished.digest:
            raise RefusedError("the unfinished upgrade was begun with another plan", hint="Leave the plan out.")
        return unfinished
    if unfinished is not None and not request.start_over:
        journal.refuse_held(f"the upgrade of group {app.target.group_id}")
        raise RefusedError(
            f"{describe_roll(unfinished)}; nothing was written",
            hint=f"--resume continues with it; {Waiver.START_OVER} forgets it and plans anew, from what is seen now.",
        )
    return None


def _target(request: RollRequest, begun: Roll | None) -> Mode:
    named = [mode for mode in (request.target, request.plan and request.plan.target, begun and begun.target) if mode]
    if not named:
        raise UsageError("the mode is not named", hint="Give a plan file, or --to.")
    if len(set(named)) > 1:
        raise UsageError(f"the plan leads to {named[1].value}, not to {named[0].value}", hint="Leave out --to.")
    return named[0]


def _after_open(workers: Sequence[UpgradeWorker], step: OpenStep | None, *, at_once: bool) -> list[UpgradeWorker]:
    """Return the workers as they will be when the open step has been repeated.

    A worker that is down meanwhile is no member; the journal knows it. Pods may come back under other names.
    """
    if step is None:
        return list(workers)
    if at_once:
        return [_brought(worker, step.mode) for worker in workers if worker.mode is not Mode.ABSENT]
    others = [worker for worker in workers if worker.name not in step.workers and worker.mode is not Mode.ABSENT]
    seen = {worker.name: worker for worker in workers}
    again = [seen.get(name) or UpgradeWorker(name, step.mode) for name in step.workers]
    return [*others, *(_brought(worker, step.mode) for worker in again)]


def _brought(worker: UpgradeWorker, mode: Mode) -> UpgradeWorker:
    return replace(worker, mode=mode, confirmed=True)


def losses(roll: PreparedRoll) -> tuple[str, ...]:
    """Return what a downgrade costs, in sentences."""
    seen = roll.view.observation
    return downgrade_losses(seen.workers, roll.target, requiring=seen.requiring_exactly_once())
