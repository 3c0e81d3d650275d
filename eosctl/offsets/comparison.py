"""What every comparison of offsets says of keys that an open transaction hides: that they were not compared."""

from __future__ import annotations

from eosctl.core.offsets.views import DiffStatus
from eosctl.core.open_transactions import OPEN_TRANSACTION
from eosctl.errors import ExitCode
from eosctl.report import Problem

HIDDEN = DiffStatus.HIDDEN.value
"""The status of such a key in every comparison."""


def comparison_exit_code(*, differing: bool, hidden: bool, strict: bool) -> ExitCode:
    """3 for keys that differ; 7, or 3 where it is to be `strict`, where some could not be compared."""
    if differing or (hidden and strict):
        return ExitCode.FINDINGS
    return ExitCode.PARTIAL if hidden else ExitCode.OK


def hidden_problem(hidden: int, compared: int, *, where: str = "") -> Problem:
    """Says of how many keys nothing is said; `where` begins with a space."""
    message = f"{hidden} of {compared} keys{where} can't be compared: an open transaction hides newer records of them"
    return Problem(
        OPEN_TRANSACTION, message, hint="`eosctl txn hanging` shows its producer; run again when it has ended."
    )
