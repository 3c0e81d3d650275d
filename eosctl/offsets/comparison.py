"""The exit code of a comparison of offsets, and its report of keys that were not compared."""

from __future__ import annotations

from eosctl.core.offsets.views import DiffStatus
from eosctl.core.open_transactions import OPEN_TRANSACTION
from eosctl.errors import ExitCode
from eosctl.report import Problem

HIDDEN = DiffStatus.HIDDEN.value
"""The status of a key that an open transaction hides, in every comparison."""


def comparison_exit_code(*, differing: bool, hidden: bool, strict: bool) -> ExitCode:
    """Return 3 if keys differ; else 7, or 3 if `strict`, if some could not be compared."""
    if differing or (hidden and strict):
        return ExitCode.FINDINGS
    return ExitCode.PARTIAL if hidden else ExitCode.OK


def hidden_problem(hidden: int, compared: int, *, where: str = "") -> Problem:
    """Return the problem that says how many keys were not compared; `where` begins with a space."""
    message = f"{hidden} of {compared} keys{where} can't be compared: an open transaction hides newer records of them"
    return Problem(
        OPEN_TRANSACTION, message, hint="`eosctl txn hanging` shows its producer; run again when it has ended."
    )
