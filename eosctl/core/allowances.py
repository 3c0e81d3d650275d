"""The safety checks of offset writes and migrations that a user may waive, each by the flag that names its danger."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Allowances:
    """Safety checks that the user waived by name; they are listed in plan and result.

    `drift` are the sides of a migration that may have new offsets since it was planned.
    """

    workers_down: bool = False
    force_running: bool = False
    force_shape: bool = False
    open_transactions: bool = False
    drift: frozenset[str] = frozenset()

    def names(self) -> list[str]:
        """The flags as given, for reports."""
        given = {
            "workers-down": self.workers_down,
            "force-running": self.force_running,
            "force-shape": self.force_shape,
            "allow-open-transactions": self.open_transactions,
        }
        flags = [name for name, is_given in given.items() if is_given]
        return flags + [f"accept-drift {side}" for side in sorted(self.drift)]

    def write_unstopped(self) -> bool:
        """Whether the connector may be in another state than STOPPED."""
        return self.workers_down or self.force_running


NOTHING_WAIVED = Allowances()
