"""Every code and word that can be explained, collected from the modules that declare them.

The list of modules is written out; a test holds it complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import ModuleType

from eosctl import errors
from eosctl.codes import Code
from eosctl.explain.words import EXIT_CODES, WORDS
from eosctl.reference import SECTIONS

MODULES: tuple[ModuleType, ...] = ()
"""Where codes are declared."""
KINDS = ("error", "warning", "finding", "gate", "exit code", "word")
"""Types of entries, as docs/codes.md has them."""
_IN_THEIR_OWN_ORDER = ("gate", "exit code", "word")


def known_entries() -> list[Code]:
    """Everything that can be explained, by type; codes by name, gates in the order in which they are repaired."""
    declared = [each for module in (errors, *MODULES) for each in _codes_of(module)]
    former = [Code(one.code, kind, one.meaning, one.next) for kind, some in SECTIONS.items() for one in some]
    entries = {str(each): each for each in (*declared, *former, *EXIT_CODES, *WORDS)}
    return [entry for kind in KINDS for entry in _in_order(kind, entries.values())]


def finding_codes() -> Sequence[str]:
    """What can stand as the code of a finding: gates that fail and what a check could not see are findings, too."""
    return [entry for entry in known_entries() if entry.kind in ("finding", "gate", "warning", "error")]


def _codes_of(module: ModuleType) -> Iterable[Code]:
    """What a module declares by name, and the codes of its errors."""
    for value in vars(module).values():
        if isinstance(value, Code):
            yield value
        elif isinstance(value, type) and issubclass(value, errors.EosctlError):
            yield value.code


def _in_order(kind: str, entries: Iterable[Code]) -> list[Code]:
    found = [entry for entry in entries if entry.kind == kind]
    return found if kind in _IN_THEIR_OWN_ORDER else sorted(found)
