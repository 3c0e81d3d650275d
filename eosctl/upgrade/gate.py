"""The result of one check before a change of the workers' mode; `gates` has the checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from eosctl.codes import Code

GateStatus = Literal["pass", "fail", "unknown"]


class Gate(Struct, frozen=True):
    """The outcome of one check.

    `guards_data`: to go on without knowing may lose records, or send them twice. `accepted`: the user goes on with it.
    """

    id: Code
    status: GateStatus
    evidence: str
    fix: str = ""
    guards_data: bool = False
    accepted: bool = False

    @property
    def stops_apply(self) -> bool:
        """True if no worker may be restarted while the gate has this status."""
        return not self.accepted and (self.status == "fail" or (self.status == "unknown" and self.guards_data))

    @property
    def verb(self) -> str:
        """The verb of a sentence about a gate that does not pass."""
        return "fails" if self.status == "fail" else "is unknown"


class GateVerdict(Struct, frozen=True):
    """`failures` make a gate fail, else `unknowns` make it unknown, else it passes with `proof`.

    `fix` is for this case alone, where there is more to say than to everybody whom the gate stops.
    """

    proof: str = ""
    failures: Sequence[str] = ()
    unknowns: Sequence[str] = ()
    fix: str = ""
