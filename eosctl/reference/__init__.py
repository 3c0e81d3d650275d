"""What every code and word means, and what to do next: `eosctl explain` and docs/codes.md print these tables.

Data only. A test collects every code in the source and wants it here; another writes docs/codes.md.
"""

from __future__ import annotations

from eosctl.reference.entry import Entry
from eosctl.reference.errors import ERRORS
from eosctl.reference.findings import FINDINGS
from eosctl.reference.gates import GATES
from eosctl.reference.problems import WARNINGS
from eosctl.reference.words import EXIT_CODES, WORDS

SECTIONS: dict[str, tuple[Entry, ...]] = {
    "error": ERRORS,
    "warning": WARNINGS,
    "finding": FINDINGS,
    "gate": GATES,
    "exit code": EXIT_CODES,
    "word": WORDS,
}
"""Type of entry -> entries; a code is in one of them only."""


def known_entries() -> list[tuple[str, Entry]]:
    """(type, entry) of everything that can be explained."""
    return [(kind, entry) for kind, entries in SECTIONS.items() for entry in entries]


def finding_codes() -> list[str]:
    """What can stand as the code of a finding: gates that fail and what a check could not see are findings, too."""
    return [entry.code for kind, entry in known_entries() if kind in ("finding", "gate", "warning", "error")]


__all__ = ["SECTIONS", "Entry", "finding_codes", "known_entries"]
