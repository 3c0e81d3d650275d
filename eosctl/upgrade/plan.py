"""upgrade plan: looks at the whole group, judges the gates and lays out the passes; changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import UNSET

from eosctl.app import App
from eosctl.core.workers.modes import Mode, Pass, downgrade_losses, plan_passes
from eosctl.errors import ExitCode, UsageError
from eosctl.report import Report
from eosctl.state.backups import write_lines
from eosctl.upgrade.drivers import Driver
from eosctl.upgrade.hard import plan_hard_downgrade
from eosctl.upgrade.look import NOTHING_KNOWN, GroupLook, Lenience, look
from eosctl.upgrade.plan_file import make_plan, plan_file_text
from eosctl.upgrade.roll.journal import newest_roll, upgrade_journal
from eosctl.upgrade.roll.owned import manifests_of, origins_of, owned_gates, place_of
from eosctl.upgrade.rows import UPGRADE_PLAN, PlanData, PlanSummary, gate_part, pass_part, worker_row


def plan_upgrade(
    app: App,
    target: Mode,
    *,
    hard: bool = False,
    plan_out: Path | None = None,
    validate: bool = True,
    driver: Driver | None = None,
) -> Report:
    """The passes that lead to `target` and the gates on the way; exit 3 when a gate fails.

    `plan_out` is a file that `upgrade apply` takes.
    Without `validate` no connector is asked for its verdict, and the gates that rest on it are unknown.
    With a `driver` whose platform owns the workers, the gates of that, too.
    With `hard`, `data.hard` has what an older Connect needs besides. Raises UsageError for `hard` with another target,
    and what `observe_workers` raises; what else can't be looked at makes its gates unknown.
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
            plan=plan.digest(),
            plan_file=None if plan_out is None else str(plan_out),
        ),
        target={"kafka_cluster_id": observation.kafka_cluster_id, "group_id": app.target.group_id},
        exit_code=ExitCode.FINDINGS if "fail" in statuses else ExitCode.OK,
    )


def _modes(passes: Sequence[Pass], target: Mode) -> list[str]:
    """What is set, one after the other."""
    return [each.mode.value for each in passes] or [target.value]


def _look(app: App, target: Mode, *, validate: bool) -> tuple[GroupLook, bool]:
    """What is seen of the group, and what this machine's journal knows of workers that left it, or come back.

    And whether this is the way back from an upgrade that the journal has.
    """
    roll = None
    if app.target.client is not None and app.target.group_id is not None:
        with app.transactions() as admin:
            roll = newest_roll(upgrade_journal(app, admin.cluster_id()))
    lenience = Lenience(way_back=roll is not None and roll.is_taken_back_by(target))
    view = look(app, target, roll.lost_memory if roll else NOTHING_KNOWN, lenience=lenience, validate=validate)
    return view, lenience.way_back
