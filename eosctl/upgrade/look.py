"""One look at a whole group for `upgrade plan`, `apply`, `status` and `verify`: read, remembered and judged.

Reads only. What is remembered is the progress of a roll, and what the group forgets about its workers.

The rights that the target of an upgrade needs are judged from the cluster's ACLs: `acls check` as a gate. They are
checked before the first restart, as a worker without rights on its leader's id stops the whole group, and an admin
client that may not fence is noticed only at the next reconfiguration. Unknown rights are left open, and stop nobody.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from eosctl.acls.check import acl_findings, judge_all, split_lacking
from eosctl.acls.rules import AclIndex, RightJudgement
from eosctl.acls.wanted import gather_wanted
from eosctl.app import App
from eosctl.core.acls.lines import AclRequest
from eosctl.core.allowances import Waiver
from eosctl.core.configs.fold import ConnectorState
from eosctl.core.wording import rfc3339
from eosctl.core.workers.connector_entry import plugin_type
from eosctl.core.workers.modes import TARGETS, Mode, UpgradeWorker
from eosctl.core.workers.url import parse_worker_url
from eosctl.errors import EosctlError, InterruptedByUserError, UnsupportedError, UsageError
from eosctl.group.gather import observe_workers, read_group
from eosctl.group.members import EMPTY, STABLE, KnownNodes, NodeMember, name_nodes
from eosctl.group.modes import files_of, read_worker_file
from eosctl.group.observation.rules import Observation, RightsSeen
from eosctl.group.observed import GroupObservation
from eosctl.group.protocol import Work
from eosctl.observation.gather import observe_upgrade
from eosctl.profiles.settings_files import with_files
from eosctl.upgrade import codes
from eosctl.upgrade.drivers import Driver
from eosctl.upgrade.gate import Gate
from eosctl.upgrade.gates import DRIVER_GATE_IDS, GATE_IDS, evaluate_gates
from eosctl.upgrade.roll.step import members_of

_OWN_LOGIN = re.compile(r"(producer|consumer|admin)\.override\.(sasl\.|ssl\.|security\.|bootstrap\.servers$)")


def with_rights(app: App, observation: Observation) -> Observation:
    """Add what the ACLs say of the rights or, if they can't be read or judged, the reason."""
    if observation.target is Mode.DISABLED:
        return observation
    if app.target.client is None:
        return observation.without(["rights"], "no Kafka cluster was named")
    try:
        return replace(observation, rights=_seen(app, observation))
    except InterruptedByUserError:
        raise
    except UsageError as exc:
        return observation.without(["rights"], f"the rights can't be judged: {exc.message}")
    except EosctlError as exc:
        return observation.without(["rights"], exc.message)


def _seen(app: App, observation: Observation) -> RightsSeen:
    with app.acls() as store:
        try:
            acls = AclIndex(store.describe())
        except UnsupportedError:
            return RightsSeen()
    if observation.config_state is None:
        raise EosctlError(observation.why_unseen("config topic"))
    connectors = observation.config_state.connectors
    own_login = _own_logins(connectors)
    names = tuple(name for name in _sources(connectors) if name not in own_login)
    request = AclRequest(connectors=names, mode=observation.target.value)
    wanted = gather_wanted(app, request, look=False, connectors=connectors)
    wanted.require_principals()
    judgements, problems = judge_all(app, wanted, acls, known_topics=observation.topics or ())
    lacking, unsure = split_lacking(app, judgements, acls)
    return RightsSeen(
        judged=len(judgements),
        lacking=_sentences(app, lacking),
        unsure=(
            *_sentences(app, unsure),
            *(f"{name} logs in with {setting}, so its rights are not judged" for name, setting in own_login.items()),
            *(problem.message for problem in (*wanted.problems, *problems)),
        ),
    )


def _sources(connectors: Mapping[str, ConnectorState]) -> list[str]:
    return sorted(name for name, state in connectors.items() if plugin_type(state.config or None) == "source")


def _own_logins(connectors: Mapping[str, ConnectorState]) -> dict[str, str]:
    """Return each source connector whose clients log in differently or elsewhere, with the first property for it."""
    found = {}
    for name in _sources(connectors):
        settings = sorted(key for key in connectors[name].config or {} if _OWN_LOGIN.match(key))
        if settings:
            found[name] = settings[0]
    return found


def _sentences(app: App, judgements: Sequence[RightJudgement]) -> tuple[str, ...]:
    return tuple(f"{finding.subject}: {finding.message}" for finding in acl_findings(app, judgements))


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


NOTHING_KNOWN = Memory()


class AcceptedRisks(Struct, frozen=True):
    """The risks that this roll accepts: `accepted` gates and, on the `way_back`, what failed since the upgrade began.

    `sets_lost`: workers that left the group are given their mode where they lie, and so need not be there. `by_files`:
    where nothing but a file shows a worker's mode, that is it.
    """

    accepted: frozenset[str] = frozenset()
    way_back: bool = False
    sets_lost: bool = False
    by_files: bool = False


STRICT = AcceptedRisks()


def accepted_risks(accepted: frozenset[str], newest: Roll | None) -> AcceptedRisks:
    """Return the risks that a command accepts; raise UsageError for an unknown gate.

    During an unfinished roll, files are no evidence: a roll may have changed those of nodes that it has not restarted.
    """
    require_gates(accepted)
    by_files = codes.MODES_PROVEN in accepted and not (newest is not None and newest.unfinished)
    return AcceptedRisks(accepted=accepted, by_files=by_files)


def require_gates(names: Collection[str]) -> None:
    """Raise UsageError if one of `names` is not a gate."""
    unknown = sorted(set(names) - {*GATE_IDS, *DRIVER_GATE_IDS})
    if unknown:
        raise UsageError(
            f"there is no gate {unknown[0]}",
            hint=f"{Waiver.ACCEPT_GATE} takes {', '.join((*GATE_IDS, *DRIVER_GATE_IDS))}.",
        )


def accept_hint(gates: Sequence[Gate]) -> str:
    """Return the hint that names --accept-gate for each gate, and --timeout if a gate is unknown."""
    names = " ".join(f"{Waiver.ACCEPT_GATE} {gate.id}" for gate in gates)
    more_time = " --timeout gives a look more time." if any(gate.status == "unknown" for gate in gates) else ""
    return f"{names} continues as it is.{more_time}"


class GroupLook(Struct, frozen=True):
    """One look at the whole group, with what the journal knows of its workers added; `took_s` is how long it took.

    `lost` are workers that left the group and are given their mode where they lie; the observation is without them.
    """

    group: GroupObservation
    observation: Observation
    gates: tuple[Gate, ...]
    lost: tuple[UpgradeWorker, ...]
    took_s: float

    @property
    def members(self) -> dict[str, str]:
        """URL -> member id of all members."""
        return members_of(self.group)

    def stopping(self, *, but: frozenset[str]) -> list[Gate]:
        """Return the gates that forbid a restart, except those in `but`."""
        return [gate for gate in self.gates if gate.stops_apply and gate.id not in but]


def look(
    app: App,
    target: Mode,
    memory: Memory = NOTHING_KNOWN,
    *,
    risks: AcceptedRisks = STRICT,
    validate: bool = True,
    nodes: KnownNodes | None = None,
) -> GroupLook:
    """Look at the group as it is now, and judge it for the way to `target`; raise what `observe_workers` raises.

    `validate` as `observe_upgrade` has it. `nodes` are MirrorMaker's, by default as `memory` has them.
    """
    since_s = app.clock.monotonic_s()
    group = observe_workers(app).named_as(KnownNodes(memory.names) if nodes is None else nodes)
    observation = with_rights(app, observe_upgrade(app, group, target, validate=validate))
    members = members_of(group)
    told = tuple(replace(each, confirmed=True) for each in observation.workers) if risks.by_files else ()
    there = with_brought(told or observation.workers, memory.brought, members)
    lost = memory.lost(members, target) if group.state in (STABLE, EMPTY) else ()
    absent = [_with_files_of(app, worker) for worker in lost]
    theirs = {name for worker, paths in absent for name in (worker.name, *paths)}
    workers = [worker for worker in there if worker.mode is not Mode.ABSENT or worker.name not in theirs]
    lost = tuple(worker for worker, _paths in absent)
    seen = replace(
        observation,
        workers=(*workers, *(() if risks.sets_lost else lost)),
        way_back=risks.way_back,
    )
    gates = evaluate_gates(seen, accepted=risks.accepted)
    if codes.MEMBERS_KNOWN in risks.accepted:
        seen = replace(seen, workers=tuple(each for each in seen.workers if each.mode is not Mode.ABSENT))
    return GroupLook(group, seen, gates, lost if risks.sets_lost else (), app.clock.monotonic_s() - since_s)


def _with_files_of(app: App, worker: UpgradeWorker) -> tuple[UpgradeWorker, list[str]]:
    """Return a worker that left the group, with the evidence of its own files, and the paths of these files."""
    given = [config.properties for config in app.target.worker_configs]
    read = [read_worker_file(file.source, file.values) for file in given]
    files = files_of(worker.name, read, group_id=app.target.group_id)
    said = (f"{file.path} says {file.mode}" for file in files)
    return replace(worker, evidence=(*worker.evidence, *said)), [file.path for file in files]


def with_driver_files(app: App, driver: Driver) -> App:
    """Return the App with the workers' files as the driver finds them; without files if it does not know a worker."""
    group, _cluster_id = read_group(app)
    urls = [parse_worker_url(member.url).text for member in group.members if member.url]
    nodes = [each for each in group.members if not each.has_rest and each.url is None]
    mute = (NodeMember(each.member_id, each.host.removeprefix("/"), each.client_id) for each in nodes)
    try:
        return with_files(app, driver.files([*urls, *sorted(name_nodes(mute, {}).values())]))
    except UsageError:
        return with_files(app, ())
