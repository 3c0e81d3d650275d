"""A fault: it begins (`inject`), ends (`undo`), and reports when its own effects are over (`recovered`)."""

from __future__ import annotations

from typing import ClassVar, Protocol

from msgspec import Struct

from eosctl.rehearse.ground import Ground


class Setup(Struct, frozen=True):
    """The sandbox that faults are chosen for; `knows_tasks`: the connector's `tasks.max` is a number.

    `has_one_task`: the connector never makes more. `single_replicas`: its config asks for topics of one replica.
    """

    brokers: int
    workers: int
    kafka_version: tuple[int, int]
    knows_tasks: bool = True
    has_one_task: bool = False
    single_replicas: bool = False


class Fault(Protocol):
    """One kind of fault; `what` ends the sentence "will …" of the plan. An object of it is used once.

    `leaves_mode`: the workers are not enabled meanwhile, so that no transactions can be expected.
    """

    name: ClassVar[str]
    what: ClassVar[str]
    leaves_mode: ClassVar[bool]

    @staticmethod
    def why_not(setup: Setup, /) -> str:
        """Return why the fault is impossible in such a sandbox, in words; empty if it is possible."""

    def inject(self, ground: Ground, /) -> None:
        """Make the fault happen; raise EosctlError if the sandbox fails to do so."""

    def undo(self, ground: Ground, /) -> None:
        """Undo the fault: nodes run again, settings are as they were."""

    def recovered(self, ground: Ground, /) -> bool:
        """Decide whether the fault's own effects are over; that all tasks run is checked besides."""

    def verify(self, ground: Ground, /) -> None:
        """Record a miss if nothing shows that the fault hit, now that all is well again; raise EosctlError."""


class SimpleFault:
    """The defaults of most faults: any sandbox has them, and nothing but the tasks has to recover."""

    leaves_mode: ClassVar[bool] = False

    @staticmethod
    def why_not(_setup: Setup) -> str:
        """Return no reason: any sandbox has it."""
        return ""

    def undo(self, _ground: Ground) -> None:
        """Undo nothing."""

    def recovered(self, _ground: Ground) -> bool:
        """Return True: nothing else has to recover."""
        return True

    def verify(self, _ground: Ground) -> None:
        """Require nothing: what `inject` saw is enough."""


class RestartsTasks(SimpleFault):
    """A fault that ends all tasks: new ones take their transactional ids, which fences the former."""

    def verify(self, ground: Ground) -> None:
        """Require that each task that runs now was started since."""
        ground.require_traces(ground.all_tasks())
