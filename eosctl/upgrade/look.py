"""One look at a whole group for `upgrade plan`, `apply`, `status` and `verify`: read, remembered and judged.

Reads only.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.core.workers.modes import Mode, UpgradeWorker
from eosctl.core.workers.url import parse_worker_url
from eosctl.errors import UsageError
from eosctl.group.gather import observe_workers, read_group
from eosctl.group.members import EMPTY, STABLE
from eosctl.group.mirror_makers import KnownNodes, NodeMember, name_nodes
from eosctl.group.modes import files_of, read_worker_file
from eosctl.group.observation.rules import Observation
from eosctl.group.observed import GroupObservation
from eosctl.observation.gather import observe_upgrade
from eosctl.profiles.worker_files import with_files
from eosctl.upgrade import codes
from eosctl.upgrade.drivers import Driver
from eosctl.upgrade.gate import Gate
from eosctl.upgrade.gates import DRIVER_GATE_IDS, GATE_IDS, evaluate_gates
from eosctl.upgrade.memory import Memory, Roll, with_brought
from eosctl.upgrade.rights import with_rights
from eosctl.upgrade.roll.step import members_of

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
