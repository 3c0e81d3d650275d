"""The rows of the gates before an upgrade, and their text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal, TypeVar

from eosctl.core.allowances import Waiver
from eosctl.foreign import printable
from eosctl.output.cells import Brief
from eosctl.output.rows import Printed
from eosctl.upgrade.gate import Gate, GateStatus


class GatePart(Printed):
    """A check before a change of the workers' mode."""

    id: Annotated[str, "The name of the gate; `eosctl explain GATE` says what it is about."]
    status: Annotated[GateStatus, "Whether the gate passes."]
    evidence: Annotated[object, "What its status is known by."]
    fix: Annotated[str, "What to do about it."]
    stops_apply: Annotated[bool, "Whether `upgrade apply` restarts no worker as long as the gate is like this."]
    accepted: Annotated[bool, "Whether the command line accepts it as it is."]


class OpenGatePart(GatePart):
    """A gate that does not pass."""

    status: Annotated[Literal["fail", "unknown"], "Whether the gate fails."]


Part = TypeVar("Part", bound=GatePart)


def gate_part(gate: Gate) -> GatePart:
    """Return the gate as a document has it."""
    return _part(GatePart, gate)


def open_gates(gates: Iterable[Gate]) -> list[OpenGatePart]:
    """Return the gates that do not pass."""
    return [_part(OpenGatePart, gate) for gate in gates if gate.status != "pass"]


def _part(kind: type[Part], gate: Gate) -> Part:
    return kind(
        id=str(gate.id),
        status=gate.status,
        evidence=gate.evidence,
        fix=gate.fix,
        stops_apply=gate.stops_apply,
        accepted=gate.accepted,
    )


def gate_lines(gates: Sequence[GatePart]) -> Iterable[str]:
    """Render the gates that do not pass, and how many do; `-o wide` has these too.

    Gates that are unknown for one reason are one paragraph: what each would need is not known, either.
    """
    yield from ("", "gates")
    unknown: dict[str, list[GatePart]] = {}
    for gate in gates:
        if gate.status == "unknown":
            unknown.setdefault(str(gate.evidence), []).append(gate)
    for gate in gates:
        same = unknown.get(str(gate.evidence), [gate]) if gate.status == "unknown" else [gate]
        whole = list(_paragraph([gate], gate.fix))
        if gate.status == "pass":
            yield Brief("", whole=whole[:1])
        elif len(same) == 1:
            yield from whole
        elif same[0] is gate:
            first, *others = _paragraph(same, "Let eosctl see this, and plan again. -o wide has the fix of each.")
            yield from (Brief(first, whole=whole), *(Brief(line, whole=()) for line in others))
        else:
            yield Brief("", whole=whole)
    passed = sum(gate.status == "pass" for gate in gates)
    counted = f"all {passed}" if passed == len(gates) else f"{passed} of {len(gates)}"
    yield Brief(f"  {counted} pass (-o wide shows them)" if passed else "  none passes", whole=())


def _paragraph(gates: Sequence[GatePart], fix: str) -> Iterator[str]:
    """Yield gates with the same status and evidence, their fix, and whether `upgrade apply` stops at one."""
    ids = ", ".join(gate.id for gate in gates)
    yield f"  {gates[0].status:<7}  {ids}: {printable(str(gates[0].evidence))}"
    yield f"           fix: {printable(fix)}"
    accepts = " ".join(f"{Waiver.ACCEPT_GATE} {gate.id}" for gate in gates if gate.stops_apply)
    if accepts:
        yield f"           apply stops here, unless it is given {accepts}"
