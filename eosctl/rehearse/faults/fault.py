"""What a fault is: it begins (`inject`), ends (`undo`), and says when its own effects are over (`recovered`)."""

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

    `leaves_mode`: meanwhile the workers are not enabled, so that nobody can expect transactions.
    """

    name: ClassVar[str]
    what: ClassVar[str]
    leaves_mode: ClassVar[bool]

    @staticmethod
    def why_not(setup: Setup, /) -> str:
        """Why it can't be had in such a sandbox, in words; empty where it can."""

    def inject(self, ground: Ground, /) -> None:
        """Makes it happen; raises EosctlError where the sandbox does not do what it is asked."""

    def undo(self, ground: Ground, /) -> None:
        """Takes it back: nodes run again, settings are as they were."""

    def recovered(self, ground: Ground, /) -> bool:
        """Whether its own effects are over; that all tasks run is asked besides."""

    def verify(self, ground: Ground, /) -> None:
        """Miss the fault where nothing shows that it hit, now that all is well again; raises EosctlError."""


class Simple:
    """What most faults have in common: any sandbox has them, and nothing but the tasks has to recover."""

    leaves_mode: ClassVar[bool] = False

    @staticmethod
    def why_not(_setup: Setup) -> str:
        """Nothing."""
        return ""

    def undo(self, _ground: Ground) -> None:
        """Nothing is to be taken back."""

    def recovered(self, _ground: Ground) -> bool:
        """At once."""
        return True

    def verify(self, _ground: Ground) -> None:
        """What `inject` saw is enough."""


class RestartsTasks(Simple):
    """A fault that ends all tasks: new ones take their transactional ids, which fences the former."""

    def verify(self, ground: Ground) -> None:
        """Each of the tasks that run now must have done so."""
        ground.require_traces(ground.all_tasks())
