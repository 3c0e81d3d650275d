"""upgrade plan: looks at the whole group, judges the gates and lays out the passes; changes nothing.

The plan is a value: the workers as seen, and the order in which they change their mode. It can be reviewed, kept and
applied later (`core.kept.plan_file`).

The downgrade to an older Connect has parts besides its mode: offsets, aborted records, and one or two rolls. An older
worker (below 3.3) knows no `offsets.storage.topic`, no task-count records and no fencing, and it reads aborted records.
Everything it should find has to be in the global topic, committed. This only plans; it reads and writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import UNSET, Struct, convert

from eosctl.app import App
from eosctl.core.clients.own_brokers import CLUSTER_PROPERTY
from eosctl.core.configs.records import OFFSETS_TOPIC
from eosctl.core.ids import connector_path, stop_request
from eosctl.core.kept.plan_file import PlanFormat, digest_of
from eosctl.core.workers.modes import (
    CONNECT_SETTING,
    POSSIBLE,
    Mode,
    Pass,
    UpgradeWorker,
    downgrade_losses,
    plan_passes,
)
from eosctl.errors import ExitCode, UsageError
from eosctl.foreign import arguments, shell_word
from eosctl.group.observation.rules import Observation, ObservedConnector
from eosctl.plugins.look import NamedPlugins, planned_plugins
from eosctl.report import Report
from eosctl.state.backups import write_lines
from eosctl.upgrade.drivers import Driver
from eosctl.upgrade.gate_rows import gate_part
from eosctl.upgrade.gates import plugins_gate
from eosctl.upgrade.look import NOTHING_KNOWN, AcceptedRisks, GroupLook, look
from eosctl.upgrade.roll.owned import manifests_of, newest_roll, origins_of, owned_gates, place_of, upgrade_journal
from eosctl.upgrade.rows import (
    UPGRADE_PLAN,
    AbortedConfigPart,
    AbortedOffsetsPart,
    HardPart,
    OffsetsCopyPart,
    PlanData,
    PlanSummary,
    RepairRecord,
    Variant,
    pass_part,
    worker_row,
)

REPAIR_FILE = "repair.ndjson"


def plan_hard_downgrade(observation: Observation) -> HardPart:
    """Plan `data.hard`: what to copy, what to repair, and both variants; `unknown` has what was not seen."""
    looked_at = {
        "connectors": observation.connectors,
        "aborted offsets": observation.aborted_offsets,
        "config topic": observation.differing_connectors,
    }
    return HardPart(
        offsets=[row for each in observation.sources() if (row := _offsets_row(each, observation)) is not None],
        aborted_offsets=_aborted_offsets(observation),
        aborted_configs=[_aborted_config(name, observation) for name in observation.differing_connectors or ()],
        variants=[_TWO_STEP, _ONE_STEP],
        unknown=[f"{what}: {observation.why_unseen(what)}" for what, seen in looked_at.items() if seen is None],
    )


def _offsets_row(connector: ObservedConnector, observation: Observation) -> OffsetsCopyPart | None:
    """Return how the connector's own offsets get into the global topic; None if they are already there."""
    topic, elsewhere = connector.config.get(OFFSETS_TOPIC), connector.config.get(CLUSTER_PROPERTY)
    if elsewhere is None and topic in (None, "", observation.offset_topic):
        return None
    quoted, there = shell_word(connector.name), topic or observation.offset_topic
    if elsewhere is not None:
        store = shell_word(f"{there}@PROFILE")
        commands = [f"eosctl offsets merge --connector {quoted} --into global --from {store} --prefer dedicated"]
        note = f"its offsets lie on the cluster {elsewhere}: PROFILE is a profile that leads there. Stop it first."
    else:
        commands = [
            f"eosctl offsets switch --connector {quoted} --to global",
            f"eosctl offsets merge --connector {quoted} --into global",
        ]
        note = "the first moves it for good; the second will do if it is STOPPED until the older version runs."
    return OffsetsCopyPart(
        connector=connector.name, offsets_topic=there, cluster=elsewhere, commands=commands, note=note
    )


def _aborted_offsets(observation: Observation) -> AbortedOffsetsPart:
    """Return the committed records to write again; older workers would start from the aborted ones and skip records."""
    records = [convert(each.repair(), RepairRecord) for each in observation.aborted_offsets or ()]
    again = "eosctl upgrade plan --to disabled --hard -o json"
    commands = [
        f"{again} | jq -c '.data.hard.aborted_offsets.records[]' > {REPAIR_FILE}",
        f"eosctl offsets import {REPAIR_FILE} --store global --keep-partitions --rewrite",
    ]
    return AbortedOffsetsPart(records=records, commands=commands if records else [])


def _aborted_config(name: str, observation: Observation) -> AbortedConfigPart:
    """Return the steps that make the leader write the committed state of a connector again, as the newest record."""
    there = {each.name for each in observation.connectors or ()}
    url = connector_path(name)
    if name in there:
        # a stop and a resume write every record of it again: task configs, commit, task-count record, target state
        steps = [
            f"eosctl connectors stop {arguments(name)}",
            f"GET {url}/config, PUT {url}/config with the same body",
            f"eosctl connectors resume {arguments(name)}; then eosctl connectors stop or pause, as it was",
        ]
    else:
        steps = [f'POST /connectors with the name {name} and "initial_state": "STOPPED"', f"DELETE {url}"]
    return AbortedConfigPart(connector=name, exists=name in there, steps=steps)


_COMMON: Sequence[str] = (
    "eosctl offsets export --store global FILE, and each dedicated topic: the way back if offsets are lost",
    f"stop every source connector ({stop_request()}), and fence its ids (eosctl fence --connector NAME)",
    "copy the offsets of connectors with a topic of their own into the global one: data.hard.offsets",
    "write committed records again where aborted ones are the newest: data.hard.aborted_offsets and aborted_configs",
    "plan again: no_aborted_records, no_aborted_offsets and no_open_transactions must pass",
)
_TWO_STEP = Variant(
    name="two_step",
    recommended=True,
    steps=[
        *_COMMON,
        "restart worker by worker with preparing, then with disabled: the passes of this plan, still on this version",
        "resume the connectors and see that they go on where they were",
        "install the older version worker by worker",
    ],
    risks=[
        "Three rolling restarts. After the first worker of the first, nothing is exactly-once any more.",
        "Until the last, each step can be taken back; after it, offsets live in the global topic only.",
    ],
)
_ONE_STEP = Variant(
    name="one_step",
    recommended=False,
    steps=[
        *_COMMON,
        "stop every worker, and see that the group is empty (eosctl workers list)",
        "install the older version everywhere, without exactly.once.source.support",
        "start the workers and resume the connectors",
    ],
    risks=[
        "Every connector, sinks too, stands still from the first worker's stop to the last one's start.",
        "It must not be done as a roll: an old worker beside an enabled one can lead without transactions, and nothing "
        "can fence its tasks.",
        "No gate looks at the result before the older version runs, and it reads every aborted record that was missed.",
        "It logs an error per task-count record (invalid key tasks-fencing-…), which is harmless.",
    ],
)


_FILES = PlanFormat("eosctl-upgrade-plan", 1, "upgrade plan")


class PlannedWorker(Struct, frozen=True):
    """A worker as seen when planned."""

    name: str
    mode: Mode
    version: str | None

    def agrees_with(self, now: PlannedWorker) -> bool:
        """Decide whether `now` can be the same worker in the same mode."""
        return self.version == now.version and POSSIBLE[now.mode] <= POSSIBLE[self.mode]


class PlannedPass(Struct, frozen=True):
    """One rolling restart; workers by name, as the leader is looked up when the pass runs."""

    mode: Mode
    workers: tuple[str, ...]


class UpgradePlan(Struct, frozen=True):
    """The passes that bring the workers of one Connect group to `target`."""

    kafka_cluster_id: str | None
    group_id: str | None
    target: Mode
    workers: tuple[PlannedWorker, ...]
    passes: tuple[PlannedPass, ...]

    def digest(self) -> str:
        """Return the SHA-256 of the canonical JSON, in hex."""
        return digest_of(self)

    def difference(self, other: UpgradePlan) -> str | None:
        """Describe how `other`, a later look, contradicts this plan; None if it does not.

        A mode that is known better now (`disabled`, where it was `not_enabled`) is no contradiction.
        """
        if (self.kafka_cluster_id, self.group_id) != (other.kafka_cluster_id, other.group_id):
            return (
                f"the plan is for group {self.group_id} on cluster {self.kafka_cluster_id}, not for {other.group_id} "
                f"on {other.kafka_cluster_id}"
            )
        mine, theirs = _by_name(self.workers), _by_name(other.workers)
        for name in sorted(mine.keys() | theirs.keys()):
            before, now = mine.get(name), theirs.get(name)
            if before is None or now is None or not before.agrees_with(now):
                return f"{name} was {_words(before)} and is {_words(now)}"
        return None


def _by_name(workers: Sequence[PlannedWorker]) -> dict[str, PlannedWorker]:
    return {worker.name: worker for worker in workers}


def _words(worker: PlannedWorker | None) -> str:
    return "not there" if worker is None else f"{worker.mode.value} (version {worker.version})"


def make_plan(
    workers: Sequence[UpgradeWorker], target: Mode, *, kafka_cluster_id: str | None, group_id: str | None
) -> UpgradePlan:
    """Make the plan of the passes that `plan_passes` lays out for these workers."""
    return UpgradePlan(
        kafka_cluster_id,
        group_id,
        target,
        tuple(sorted(map(_planned, workers), key=lambda worker: worker.name)),
        tuple(
            PlannedPass(each.mode, tuple(sorted(step.worker for step in each.steps)))
            for each in plan_passes(workers, target)
        ),
    )


def _planned(worker: UpgradeWorker) -> PlannedWorker:
    """Return the worker as planned, without the version of a MirrorMaker node: only some running connectors show it."""
    return PlannedWorker(worker.name, worker.mode, worker.version if worker.setting == CONNECT_SETTING else None)


def plan_file_text(plan: UpgradePlan) -> str:
    """Return the text that `--plan-out` writes."""
    return _FILES.text(plan)


def read_plan(text: str, *, path: str) -> UpgradePlan:
    """Read a plan file; raise InputFileError if it is not a plan or was changed after it was written."""
    return _FILES.read(text, UpgradePlan, path=path)


def plan_upgrade(
    app: App,
    target: Mode,
    *,
    hard: bool = False,
    plan_out: Path | None = None,
    validate: bool = True,
    driver: Driver | None = None,
    plugins: NamedPlugins | None = None,
) -> Report:
    """Return the passes that lead to `target` and the gates before them; exit 3 if a gate fails.

    `plan_out` is a file for `upgrade apply`. Without `validate` no connector validates its config, and the gates that
    need it are unknown. With a `driver` whose platform owns the workers, its gates are added, with `plugins` that of
    these. With `hard`, `data.hard` has the additional steps for an older Connect. Raises UsageError for `hard` with
    another target, and what `observe_workers` raises; whatever else can't be read makes its gates unknown.
    """
    if hard and target is not Mode.DISABLED:
        raise UsageError(
            "--hard is about an older Connect, so it goes with --to disabled", hint="Leave one of them out."
        )
    view, way_back = _look(app, target, validate=validate)
    observation, gates, place = view.observation, view.gates, None
    if driver is not None:
        place = place_of(app, driver, None)
        gates += tuple(owned_gates(app, driver, None, view.group, accepted=(), way_back=way_back))
    looked_at = plugins.look(app.on_event) if plugins is not None else None
    gates += (plugins_gate(looked_at),) if looked_at is not None else ()
    passes = plan_passes(observation.workers, target)
    statuses = [gate.status for gate in gates]
    plan = make_plan(
        observation.workers,
        target,
        kafka_cluster_id=observation.kafka_cluster_id,
        group_id=app.target.group_id,
    )
    if plan_out is not None:
        write_lines(plan_out, plan_file_text(plan).splitlines())
    return Report(
        kind=UPGRADE_PLAN,
        rows=[worker_row(worker) for worker in observation.workers],
        summary=PlanSummary(
            target_mode=target.value,
            passes=len(passes),
            steps=sum(len(each.steps) for each in passes),
            gates={status: statuses.count(status) for status in ("pass", "fail", "unknown")},
        ),
        data=PlanData(
            passes=[pass_part(each) for each in passes],
            gates=[gate_part(gate) for gate in gates],
            losses=list(downgrade_losses(observation.workers, target, requiring=observation.requiring_exactly_once())),
            hard=plan_hard_downgrade(observation) if hard else UNSET,
            place=place or UNSET,
            manifests=manifests_of(origins_of(app, driver), _modes(passes, target)) if driver else UNSET,
            plugins=planned_plugins(looked_at) if looked_at is not None else UNSET,
            plan=plan.digest(),
            plan_file=None if plan_out is None else str(plan_out),
        ),
        target={"kafka_cluster_id": observation.kafka_cluster_id, "group_id": app.target.group_id},
        exit_code=ExitCode.FINDINGS if "fail" in statuses else ExitCode.OK,
    )


def _modes(passes: Sequence[Pass], target: Mode) -> list[str]:
    """Return the modes to set, in order."""
    return [each.mode.value for each in passes] or [target.value]


def _look(app: App, target: Mode, *, validate: bool) -> tuple[GroupLook, bool]:
    """Look at the group, with what this machine's journal knows of workers that left it or may come back.

    And whether this is the way back from an upgrade that the journal has.
    """
    roll = None
    if app.target.client is not None and app.target.group_id is not None:
        with app.transactions() as admin:
            roll = newest_roll(upgrade_journal(app, admin.cluster_id()))
    risks = AcceptedRisks(way_back=roll is not None and roll.is_taken_back_by(target))
    view = look(app, target, roll.lost_memory if roll else NOTHING_KNOWN, risks=risks, validate=validate)
    return view, risks.way_back
