"""Every code and word that can be explained, collected from the modules that declare them.

The list of modules is written out; a test holds it complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import ModuleType

from eosctl import errors
from eosctl.acls import codes as acls
from eosctl.audit import codes as audit
from eosctl.checks import codes as checks
from eosctl.codes import Code
from eosctl.collect import codes as collect
from eosctl.connectors import codes as connectors
from eosctl.core import open_transactions
from eosctl.core.configs import behind
from eosctl.core.offsets import codes as offsets_topics
from eosctl.core.workers import codes as metrics
from eosctl.explain.words import EXIT_CODES, WORDS
from eosctl.failures import codes as failures
from eosctl.fence import codes as fence
from eosctl.group import codes as group
from eosctl.migrate import codes as migrate
from eosctl.observation.connectors import codes as connector_configs
from eosctl.offsets import codes as offsets
from eosctl.offsets.edit import codes as edits
from eosctl.offsets.files import codes as files
from eosctl.offsets.lint import codes as lint
from eosctl.offsets.switch import codes as switch
from eosctl.rehearse import codes as rehearse
from eosctl.rescue import codes as rescue
from eosctl.state import codes as state
from eosctl.task_counts import codes as task_counts
from eosctl.txn import codes as txn
from eosctl.upgrade import codes as upgrade

MODULES = (
    *(errors, open_transactions, behind, offsets_topics, metrics, collect),
    *(state, failures, group, connectors, txn, acls, fence),
    *(offsets, edits, files, lint, switch, task_counts, migrate),
    *(rescue, connector_configs, upgrade, checks, audit, rehearse),
)
"""The modules that declare codes."""
KINDS = ("error", "warning", "finding", "gate", "exit code", "word")
"""Types of entries, as docs/codes.md has them."""
_IN_THEIR_OWN_ORDER = ("gate", "exit code", "word")


def known_entries() -> list[Code]:
    """Return everything that can be explained, by type; codes by name, gates in the order of their repair."""
    declared = {each: each for module in MODULES for each in _codes_of(module)}
    entries = (*declared, *EXIT_CODES, *WORDS)
    return [entry for kind in KINDS for entry in _in_order(kind, entries)]


def finding_codes() -> Sequence[str]:
    """Return the codes that a finding can have: also failed gates, warnings and errors."""
    return [entry for entry in known_entries() if entry.kind in ("finding", "gate", "warning", "error")]


def _codes_of(module: ModuleType) -> Iterable[Code]:
    """Yield the codes that a module declares, and those of its errors."""
    for value in vars(module).values():
        if isinstance(value, Code):
            yield value
        elif isinstance(value, type) and issubclass(value, errors.EosctlError):
            yield value.code


def _in_order(kind: str, entries: Iterable[Code]) -> list[Code]:
    found = [entry for entry in entries if entry.kind == kind]
    return found if kind in _IN_THEIR_OWN_ORDER else sorted(found)
