"""An upgrade's plan as a value: the workers as seen, and the order in which they change their mode.

It can be reviewed, kept and applied later (`core.kept.plan_file`).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from eosctl.core.kept.plan_file import PlanFormat, digest_of
from eosctl.core.workers.modes import CONNECT_SETTING, POSSIBLE, Mode, UpgradeWorker, plan_passes

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
