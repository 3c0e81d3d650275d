"""The warning of copies of keys on partitions other than the one that is written to."""

from __future__ import annotations

from eosctl.core.wording import counted
from eosctl.offsets import codes
from eosctl.report import Problem


def stale_problem(copies: int, *, where: str = "") -> Problem:
    """Warn that so many copies get tombstones; `where` begins with a comma."""
    return Problem(
        codes.STALE_COPIES,
        f"{counted(copies, 'older copy', 'older copies')} of keys that are written lie on other partitions{where}, and "
        "get tombstones",
        hint="Until compaction has removed those (delete.retention.ms) a worker that starts may read one last: "
        "restart none before, or look at its offsets afterwards.",
    )
