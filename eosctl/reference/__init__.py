"""What every code and word means, and what to do next: `eosctl explain` and docs/codes.md print these tables.

Data only. A test collects every code in the source and wants it here; another writes docs/codes.md.
"""

from __future__ import annotations

from eosctl.reference.entry import Entry
from eosctl.reference.errors import ERRORS
from eosctl.reference.findings import FINDINGS
from eosctl.reference.gates import GATES
from eosctl.reference.problems import WARNINGS

SECTIONS: dict[str, tuple[Entry, ...]] = {
    "error": ERRORS,
    "warning": WARNINGS,
    "finding": FINDINGS,
    "gate": GATES,
}
"""Type of entry -> entries; a code is in one of them only."""


__all__ = ["SECTIONS", "Entry"]
