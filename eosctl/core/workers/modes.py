"""The order in which workers change their exactly-once mode: a pure state machine from modes to passes and steps.

Nothing in Connect enforces this order. `preparing` everywhere before `enabled` anywhere, and the same on the way back:
no worker may run exactly-once tasks while the leader may be one that writes without transactions (KIP-618).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum, unique

from msgspec import Struct


@unique
class Mode(StrEnum):
    """The observed `exactly.once.source.support` of a worker; `not_enabled` is preparing or disabled."""

    ABSENT = "absent"
    OLD_VERSION = "old_version"
    DISABLED = "disabled"
    PREPARING = "preparing"
    ENABLED = "enabled"
    NOT_ENABLED = "not_enabled"
    UNKNOWN = "unknown"
    UNREACHABLE = "unreachable"


TARGETS = (Mode.DISABLED, Mode.PREPARING, Mode.ENABLED)
_ANY = frozenset(TARGETS)
POSSIBLE = {
    Mode.ABSENT: _ANY,
    Mode.OLD_VERSION: frozenset({Mode.DISABLED}),
    Mode.DISABLED: frozenset({Mode.DISABLED}),
    Mode.PREPARING: frozenset({Mode.PREPARING}),
    Mode.ENABLED: frozenset({Mode.ENABLED}),
    Mode.NOT_ENABLED: frozenset({Mode.DISABLED, Mode.PREPARING}),
    Mode.UNKNOWN: _ANY,
    Mode.UNREACHABLE: _ANY,
}


CONNECT_SETTING = "exactly.once.source.support"
MIRROR_MAKER_SETTING = f"TARGET.{CONNECT_SETTING}"
"""The setting's name for a MirrorMaker; TARGET is replaced by the alias of the target cluster."""


class UpgradeWorker(Struct, frozen=True):
    """One worker as observed; `name` is its URL, or its file where it is absent from the group.

    `setting` is the mode's property in its file. Not `confirmed`: only a file shows the mode, no running worker.
    `doubt` is why the worker that responds at its URL may be another one.
    """

    name: str
    mode: Mode
    leader: bool = False
    version: str | None = None
    health: str | None = None
    evidence: tuple[str, ...] = ()
    setting: str = CONNECT_SETTING
    confirmed: bool = True
    doubt: str = ""

    @property
    def possible(self) -> frozenset[Mode]:
        """The modes in which it may run."""
        return POSSIBLE[self.mode] if self.confirmed else _ANY


class WorkerStep(Struct, frozen=True):
    """The actions for one worker; `gates` must hold before the next step starts."""

    worker: str
    actions: tuple[str, ...]
    gates: tuple[str, ...]


class Pass(Struct, frozen=True):
    """One rolling restart that brings workers to `mode`; `barrier` must hold before its first step."""

    mode: Mode
    barrier: str
    steps: tuple[WorkerStep, ...]


_STEP_GATES = ("worker_healthy", "members_known", "group_stable", "connectors_healthy", "mode_proven")


def plan_passes(workers: Sequence[UpgradeWorker], target: Mode) -> tuple[Pass, ...]:
    """Return the passes that bring every worker to `target`, without steps for workers that certainly have that mode.

    The current leader goes last in each pass; leadership moves when it restarts, so it must be looked up again.
    """
    if target is Mode.PREPARING:
        return _passes([(Mode.PREPARING, _not_certainly(workers, Mode.PREPARING))])
    if target is Mode.ENABLED:
        first = [worker for worker in workers if Mode.DISABLED in worker.possible]
    else:
        first = [w for w in workers if Mode.ENABLED in w.possible and w.mode is not Mode.ABSENT]
    return _passes([(Mode.PREPARING, first), (target, _not_certainly(workers, target))])


def _not_certainly(workers: Sequence[UpgradeWorker], mode: Mode) -> list[UpgradeWorker]:
    return [worker for worker in workers if worker.possible != {mode}]


def _passes(wanted: Sequence[tuple[Mode, list[UpgradeWorker]]]) -> tuple[Pass, ...]:
    return tuple(
        Pass(mode, _BARRIERS[mode], tuple(_step(worker, mode) for worker in _leader_last(workers)))
        for mode, workers in wanted
        if workers
    )


_BARRIERS = {
    Mode.PREPARING: "every member of the group is known, and no other worker can join",
    Mode.ENABLED: "every worker is proven to be preparing or enabled",
    Mode.DISABLED: "no worker is enabled any more, and the aborted records are repaired",
}


def _leader_last(workers: Sequence[UpgradeWorker]) -> list[UpgradeWorker]:
    return sorted(workers, key=lambda worker: (worker.leader, worker.name))


def _step(worker: UpgradeWorker, mode: Mode) -> WorkerStep:
    actions = []
    if worker.mode is Mode.OLD_VERSION and mode is not Mode.DISABLED:
        actions.append("install Kafka Connect 3.3 or newer")
    if worker.mode in (Mode.UNKNOWN, Mode.UNREACHABLE):
        actions.append("find out which mode it runs in: nothing may be assumed of it")
    if worker.leader:
        actions.append("check that it still leads the group; if not, restart the one that does last")
    perhaps_there = worker.mode is Mode.NOT_ENABLED and mode in worker.possible
    unless = " (unless it already runs with it)" if perhaps_there else ""
    actions.append(f"set {worker.setting}={mode.value}{unless}")
    actions.append("start it, when it is wanted" if worker.mode is Mode.ABSENT else "restart it")
    gates = () if worker.mode is Mode.ABSENT else _STEP_GATES
    return WorkerStep(worker.name, tuple(actions), gates)


def downgrade_losses(
    workers: Sequence[UpgradeWorker], target: Mode, *, requiring: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return sentences that state the losses of a downgrade; empty where no worker can be above `target`.

    `requiring` are the connectors whose configs have exactly.once.support=required.
    """
    possible = {mode for worker in workers for mode in worker.possible}
    losses: list[str] = []
    if target is not Mode.ENABLED and Mode.ENABLED in possible:
        losses += [
            "Exactly-once ends with the first worker that is no longer enabled: from then on a crash, or a zombie, "
            "can write records twice.",
            "Workers that are not enabled read aborted records of the config and offsets topics: an aborted offset "
            "skips source records, an aborted connector comes alive. Both must be repaired before the first restart.",
            "Connectors with exactly.once.support=required can no longer be created or changed"
            + (f": here {', '.join(requiring)}." if requiring else "."),
        ]
    if target is Mode.DISABLED and possible & {Mode.PREPARING, Mode.ENABLED}:
        losses += [
            "The leader writes without transactions again: a leader that was replaced is no longer fenced out.",
            "Task-count records stay; when exactly-once comes back they cause one more fencing, which is safe.",
        ]
    return tuple(losses)


def blocking_modes(workers: Sequence[UpgradeWorker], mode: Mode) -> list[str]:
    """Return the reasons why a pass to `mode` may not begin with these workers.

    A worker that is enabled beside one that is, or may be, disabled is never allowed.
    """
    forbidden = {Mode.ENABLED: Mode.DISABLED, Mode.DISABLED: Mode.ENABLED}.get(mode)
    return [
        f"{worker.name} is {worker.mode.value}, so it may be {forbidden.value}"
        for worker in workers
        if forbidden is not None and forbidden in worker.possible
    ]
