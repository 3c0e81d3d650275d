"""Drivers, which give a worker another exactly-once mode and restart it: one small class each, one Protocol.

A driver does its part and returns; `roll.settle` finds out whether the worker then is as it should be.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from msgspec import Struct

from eosctl.app import App
from eosctl.core.workers.modes import CONNECT_SETTING, Mode
from eosctl.errors import ConnectError, RefusedError
from eosctl.group.members import is_node
from eosctl.group.observed import WorkerObservation
from eosctl.upgrade.drivers.manifests.fields import Patch
from eosctl.upgrade.drivers.manifests.pods import Origin
from eosctl.upgrade.gate import Gate

SETTING = CONNECT_SETTING


class TakenBackError(ConnectError):
    """Somebody has reverted what an upgrade had set; `again` is the mode to set before it can continue, if any."""

    def __init__(self, message: str, *, again: Mode | None = None) -> None:
        first = f"Set it to {again.value} again. " if again else ""
        super().__init__(
            message,
            hint=f"{first}Stop that tool, or change the field where it is deployed from and let eosctl watch "
            "(--no-write); --resume then continues.",
        )


class DriverResult(Struct, frozen=True):
    """A driver's report of what it did, in a sentence; `backup` is the copy of the file that it changed."""

    words: str
    backup: str | None = None


class Driver(Protocol):
    """`at_once`: something else restarts all workers one after the other, so a whole pass is one step.

    `waits_for_person`: nothing limits how long a restart may take to be seen.
    """

    name: ClassVar[str]
    at_once: ClassVar[bool]
    waits_for_person: ClassVar[bool]

    def files(self, workers: Sequence[str], /) -> Sequence[Path]:
        """Return the workers' properties files, as far as they are on this machine: evidence of their modes."""

    def actions(self, workers: Sequence[str], mode: Mode, /) -> Sequence[str]:
        """Return what `bring` would do, for the plan, first how the mode is set; raise UsageError if it can't."""

    def check(self, app: App, workers: Sequence[str], /) -> None:
        """Check that the driver can handle all members of the group; raise EosctlError if it can't. Change nothing."""

    def bring(self, app: App, workers: Sequence[str], mode: Mode, /) -> DriverResult:
        """Set the mode and restart; safe to repeat, also for a worker that is down. Raise EosctlError."""


@runtime_checkable
class OwnsWorkers(Protocol):
    """A driver whose platform knows which workers should run; its steps bring all of them, present or not.

    `watches`: somebody else makes the changes, perhaps before they are due.
    """

    @property
    def watches(self) -> bool: ...

    def expected(self, app: App, /) -> int:
        """Return how many workers the platform should run now; raise EosctlError."""

    def absent(self, app: App, members: Sequence[WorkerObservation], /) -> Sequence[str]:
        """Name the workers that should run and are not among the members."""

    def mode(self, app: App, /) -> Mode | None:
        """Return the mode with which every existing worker was made, if it is the same for all."""

    def place(self, app: App, /) -> str:
        """Describe what the driver changes and where: a resumed run must change the same."""

    def match(
        self, app: App, members: Sequence[WorkerObservation], /, *, accepted: Collection[str], complete: bool
    ) -> Gate:
        """Compare the members with the platform's workers; `complete`: every worker has to be a member."""

    def gates(
        self, app: App, members: Sequence[WorkerObservation], /, *, accepted: Collection[str], complete: bool
    ) -> Sequence[Gate]:
        """Judge what must be true of the platform before anything is written, `match` first."""

    def taken_back(self, app: App, allowed: Collection[Mode], /) -> str | None:
        """Describe what no longer has one of these modes, and who changed it; None if everything has."""

    def origins(self, app: App, /) -> Sequence[Origin]:
        """Return who deploys what the driver changes, and what to change there so that the next deploy keeps it."""

    def patches(self, app: App, mode: Mode, /) -> Sequence[Patch]:
        """Return what the driver changes for a mode, for `kubectl patch`."""

    def command(self, patch: Patch, /) -> str:
        """Return the command that applies a patch, ready to paste."""


@runtime_checkable
class DeletesPods(Protocol):
    """A driver that has to delete what its platform does not replace, and asks before."""

    @property
    def deleted_by_us(self) -> Collection[str]:
        """The workloads of which nothing but a deletion restarts a pod."""

    def deletes(self) -> Mapping[str, str]:
        """Return the names of the pods and, in a sentence each, what is wrong with them."""


@runtime_checkable
class SetsAlone(Protocol):
    """A driver that can set the mode of a worker that is down, and leave it down."""

    def set_alone(self, app: App, worker: str, mode: Mode, /) -> DriverResult:
        """Set the mode only; safe to repeat. Raise EosctlError."""


@runtime_checkable
class SetsMirrorMaker(Protocol):
    """A driver that can change the nodes of a dedicated MirrorMaker, which are no URLs."""

    def for_mirror_maker(self, setting: str, /) -> Driver:
        """Return this driver for MirrorMaker nodes; `setting` is the name of the mode in their files, if known."""


def require_own(workers: Sequence[str], what: Callable[[str], str], *, options: str) -> None:
    """Raise RefusedError if `what` is the same for two workers: one of them would be restarted twice."""
    seen: dict[str, str] = {}
    for worker in workers:
        other = seen.setdefault(what(worker), worker)
        if other != worker:
            raise RefusedError(
                f"{what(worker)} is the same for {other} and {worker}, so one of them would never be changed; "
                "nothing was written",
                hint=f"Use {'{host} or {number}' if is_node(worker) else '{url}, {host} or {port}'} in {options}. "
                "All members of the group have to be changed.",
            )
