"""How a worker gets another exactly-once mode and is restarted: one small class per way, behind one Protocol.

A driver does its part and comes back; whether the worker then is what it should be, `upgrade_settle` finds out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from msgspec import Struct

from eosctl.app import App
from eosctl.core.workers.modes import CONNECT_SETTING, Mode
from eosctl.errors import ConnectError, RefusedError
from eosctl.group.mirror_makers import is_node
from eosctl.group.observed import WorkerObservation
from eosctl.upgrade.drivers.manifests.deployers import Origin
from eosctl.upgrade.drivers.manifests.fields import Patch
from eosctl.upgrade.gate import Gate

SETTING = CONNECT_SETTING


class TakenBackError(ConnectError):
    """Somebody has taken back what an upgrade had set; `again` is the mode to be set before it can go on, if any."""

    def __init__(self, message: str, *, again: Mode | None = None) -> None:
        first = f"Set it to {again.value} again. " if again else ""
        super().__init__(
            message,
            hint=f"{first}Stop that tool, or change the field where it is deployed from and let eosctl watch "
            "(--no-write); --resume then goes on.",
        )


class Acted(Struct, frozen=True):
    """What a driver did, in a sentence; `backup` is the copy of the file that it changed."""

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
        """The workers' properties files, as far as they are on this machine: evidence of their modes."""

    def actions(self, workers: Sequence[str], mode: Mode, /) -> Sequence[str]:
        """What `bring` would do, for the plan, first how the mode is set; raises UsageError where it can't."""

    def check(self, app: App, workers: Sequence[str], /) -> None:
        """Looks whether it can handle all members of the group; raises EosctlError where it can't. Changes nothing."""

    def bring(self, app: App, workers: Sequence[str], mode: Mode, /) -> Acted:
        """Sets the mode and restarts; safe to do again, also for a worker that is down. Raises EosctlError."""


@runtime_checkable
class OwnsWorkers(Protocol):
    """A driver whose platform says which workers there should be; its steps bring all of them, whoever is there now.

    `watches`: somebody else makes the changes, perhaps before they are asked for.
    """

    @property
    def watches(self) -> bool: ...

    def expected(self, app: App, /) -> int:
        """How many workers there should be, as it is wanted now; raises EosctlError."""

    def absent(self, app: App, members: Sequence[WorkerObservation], /) -> Sequence[str]:
        """What to call the workers that there should be, and that are not among the members."""

    def mode(self, app: App, /) -> Mode | None:
        """The mode with which every worker that there is was made, if the platform says the same of all."""

    def place(self, app: App, /) -> str:
        """What it changes, and where, in words: a run that is resumed must change the same."""

    def match(
        self, app: App, members: Sequence[WorkerObservation], /, *, accepted: Collection[str], complete: bool
    ) -> Gate:
        """Whether the members are the workers that it owns; `complete`: every worker has to be there."""

    def gates(
        self, app: App, members: Sequence[WorkerObservation], /, *, accepted: Collection[str], complete: bool
    ) -> Sequence[Gate]:
        """What must be true of its platform before anything is written, `match` first."""

    def taken_back(self, app: App, allowed: Collection[Mode], /) -> str | None:
        """What its platform no longer has in one of these modes, and who changed it; None where it has."""

    def origins(self, app: App, /) -> Sequence[Origin]:
        """Who deploys what it changes, and what must be changed there so that the next deploy keeps it."""

    def patches(self, app: App, mode: Mode, /) -> Sequence[Patch]:
        """What it changes for a mode, for `kubectl patch`."""

    def command(self, patch: Patch, /) -> str:
        """A patch as a command to be pasted."""


@runtime_checkable
class DeletesPods(Protocol):
    """A driver that has to delete what its platform does not replace, and asks before."""

    @property
    def deleted_by_us(self) -> Collection[str]:
        """The workloads of which nothing but a deletion restarts a pod."""

    def deletes(self) -> Mapping[str, str]:
        """The names of the pods, and what is wrong with each, in a sentence."""


@runtime_checkable
class SetsAlone(Protocol):
    """A driver that can set the mode of a worker that is down, and leave it down."""

    def set_alone(self, app: App, worker: str, mode: Mode, /) -> Acted:
        """Sets the mode only, safe to do again; raises EosctlError."""


@runtime_checkable
class SetsMirrorMaker(Protocol):
    """A driver that can change the nodes of a dedicated MirrorMaker, which are no URLs."""

    def for_mirror_maker(self, setting: str, /) -> Driver:
        """The same for such nodes; `setting` is what their files call the mode, as far as that is known."""


def require_own(workers: Sequence[str], what: Callable[[str], str], *, options: str) -> None:
    """Raises RefusedError where `what` is the same for two workers: one of them would be restarted twice."""
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
