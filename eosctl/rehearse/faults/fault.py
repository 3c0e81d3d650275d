"""What a fault is: it begins (`inject`), ends (`undo`), and says when its own effects are over (`recovered`)."""

from __future__ import annotations

from typing import ClassVar, Protocol

from eosctl.core.frozen import frozen
from eosctl.rehearse.ground import Ground


@frozen
class Setup:
    """The sandbox that faults are chosen for; `knows_tasks`: the connector's `tasks.max` is a number."""

    brokers: int
    workers: int
    kafka_version: tuple[int, int]
    knows_tasks: bool = True


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
