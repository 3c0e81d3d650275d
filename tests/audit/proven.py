"""`audit` as other tests call it: what they did to a connector must have left it exactly-once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.conftest import Invoke


@dataclass(frozen=True)
class Proof:
    """What the log says of a connector from the beginning on."""

    connector: Any
    rows: Sequence[Any]

    @property
    def verdict(self) -> str:
        """`exactly_once`, or not."""
        return str(self.connector["verdict"])

    @property
    def codes(self) -> set[str]:
        """Of the findings."""
        return {row["code"] for row in self.rows}


def audited(invoke: Invoke, flags: Sequence[str], connector: str, *words: str) -> Proof:
    """The log's proof; it has to be one, for a window that is not proven is a fault of the test."""
    done = invoke(*flags, "audit", "--connector", connector, "--since", "beginning", *words, "-o", "json")
    document = done.json()
    assert done.exit_code in (0, 3), document
    (found,) = document["data"]["connectors"]
    return Proof(found, document["data"]["rows"])


def assert_exactly_once(invoke: Invoke, flags: Sequence[str], connector: str, *words: str) -> None:
    """Every record that its tasks committed has its source offset in the same transaction."""
    proof = audited(invoke, flags, connector, *words)
    assert proof.verdict == "exactly_once", (proof.connector["why"], proof.rows)
