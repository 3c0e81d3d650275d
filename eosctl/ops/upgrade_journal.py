"""What the journal of `upgrade apply` tells: how far a roll came, and what the group forgets about its workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eosctl.core.upgrade import POSSIBLE, Mode, UpgradeWorker
from eosctl.ops.app import App
from eosctl.ops.journal import Journal, journal_of


@dataclass(frozen=True, slots=True)
class Brought:
    """A worker that the roll brought to `mode`; the same `member_id` in the group is the same process as then."""

    mode: Mode
    member_id: str | None


@dataclass(frozen=True, slots=True)
class OpenStep:
    """A step that was begun and not ended; `restarted` means that the driver did its part.

    `members` are all members of the group before it (URL -> member id).
    """

    mode: Mode
    workers: tuple[str, ...]
    members: Mapping[str, str | None]
    restarted: bool = False
    words: str = ""


@dataclass(frozen=True, slots=True)
class Roll:
    """The newest roll in the journal; `connectors` are their states at its beginning.

    `known` are all members that its newest step saw; `steps` are those that are done.
    `stopped` says why its last run ended, if it could say so; `ended_ms` is None while it is not finished. `origin` is
    the mode to go back to, if there is one.
    """

    target: Mode
    driver: str
    digest: str
    began_ms: int
    connectors: Mapping[str, str]
    brought: Mapping[str, Brought] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    steps: tuple[tuple[Mode, str], ...] = ()
    open: OpenStep | None = None
    stopped: str | None = None
    ended_ms: int | None = None
    origin: Mode | None = None

    @property
    def unfinished(self) -> bool:
        """Whether it was begun and did not come to its end."""
        return self.ended_ms is None


def upgrade_journal(app: App, cluster_id: str) -> Journal:
    """The journal of the group's upgrades."""
    return journal_of(app, "upgrade", app.target.require_group_id(), cluster_id=cluster_id)


def newest_roll(journal: Journal) -> Roll | None:
    """The roll that began last, as far as the file tells; raises EosctlError."""
    roll: Roll | None = None
    for entry in journal.entries():
        roll = _began(entry) if entry.get("event") == "begin" else roll and _after(roll, entry)
    return roll


def _began(entry: Mapping[str, Any]) -> Roll:
    return Roll(
        target=Mode(entry["target"]),
        driver=str(entry["driver"]),
        digest=str(entry["digest"]),
        began_ms=int(entry["time_ms"]),
        connectors=dict(entry["connectors"]),
        origin=Mode(entry["origin"]) if entry.get("origin") else None,
    )


def _after(roll: Roll, entry: Mapping[str, Any]) -> Roll:
    match entry.get("event"):
        case "start":
            step = OpenStep(Mode(entry["mode"]), tuple(entry["workers"]), dict(entry["members"]))
            return replace(roll, open=step, known=frozenset(step.members) | set(step.workers), stopped=None)
        case "restarted" if roll.open is not None:
            return replace(roll, open=replace(roll.open, restarted=True, words=str(entry["words"])))
        case "done" if roll.open is not None:
            mode, members = roll.open.mode, entry["members"]
            brought = {name: Brought(mode, members[name]) for name in members}
            steps = (*roll.steps, *((mode, name) for name in roll.open.workers))
            return replace(roll, brought={**roll.brought, **brought}, steps=steps, open=None, stopped=None)
        case "stopped":
            return replace(roll, stopped=str(entry["message"]))
        case "end":
            return replace(roll, open=None, stopped=None, ended_ms=int(entry["time_ms"]))
    return roll


def with_brought(
    workers: Sequence[UpgradeWorker], brought: Mapping[str, Brought], members: Mapping[str, str | None]
) -> tuple[UpgradeWorker, ...]:
    """Adds what the roll knows: a worker that is still the member it was has kept the mode it was brought to.

    A mode changes by a restart only, and a restarted worker is another member. What is proven is never overruled.
    """
    return tuple(_with_brought(worker, brought.get(worker.name), members.get(worker.name)) for worker in workers)


def _with_brought(worker: UpgradeWorker, brought: Brought | None, member_id: str | None) -> UpgradeWorker:
    if brought is None or member_id is None or member_id != brought.member_id:
        return worker
    if len(POSSIBLE[worker.mode]) == 1 or brought.mode not in POSSIBLE[worker.mode]:
        return worker
    text = f"brought to {brought.mode.value} by eosctl, and not restarted since (the same group member)"
    return replace(worker, mode=brought.mode, evidence=(*worker.evidence, text))
