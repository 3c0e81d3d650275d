"""The safety checks that a user may waive, each by one flag that names its danger.

The options of the commands and their help, the hints of refusals and the overrides in the audit log come from here.
"""

from __future__ import annotations

from enum import StrEnum, unique

from eosctl.core.frozen import frozen


@unique
class Waiver(StrEnum):
    """A flag that waives one safety check; `help` says what is done without the check."""

    help: str

    def __new__(cls, flag: str, help_text: str) -> Waiver:
        """The member is the flag itself, so that hints can name it."""
        waiver = str.__new__(cls, flag)
        waiver._value_, waiver.help = flag, help_text
        return waiver

    LIVE = "--live", "Also ids of tasks that run now; those tasks fail."
    UNKNOWN_LIVENESS = "--unknown-liveness", "Also ids of tasks of which nobody can say whether they run."
    DISCARD_PREPARED = "--discard-prepared", "Also open transactions that Flink may have prepared; lost then."
    ALLOW_LEADER = "--allow-leader", "Also what may be the id of a Connect leader."
    CREATE_UNKNOWN = "--create-unknown", "Also ids that no coordinator knows: fencing creates them."
    FORCE = "--force", "Also if a coordinator still knows the transaction, or can't be asked."
    NO_FENCE = "--no-fence", "Leave the ids of the old record unfenced: zombies may write on."
    WORKERS_DOWN = "--workers-down", "The Connect group is empty (checked)."
    FORCE_RUNNING = "--force-running", "Write although tasks run or may run."
    FORCE_SHAPE = "--force-shape", "Write although a member's type changes; a task may fail on it."
    OVERWRITE_NEWER = "--overwrite-newer", "Also take back what someone else wrote since."
    ALLOW_OPEN_TRANSACTIONS = "--allow-open-transactions", "Go on without what open transactions hide."
    ACCEPT_DRIFT = "--accept-drift", "Write what the plan has read, though newer offsets came."
    START_OVER = "--start-over", "Forget an unfinished upgrade and plan anew."
    ACCEPT_GATE = (
        "--accept-gate",
        "Go on though this gate fails or can't be told (repeatable); what FAILED before may stay so.",
    )
    ACCEPT_GONE = "--accept-gone", "This worker will never start again: do not miss it (repeatable)."

    @property
    def word(self) -> str:
        """The flag without its dashes, as reports list it."""
        return self.value.removeprefix("--")

    @property
    def option(self) -> str:
        """The flag as a command's parameter."""
        return self.word.replace("-", "_")


@frozen
class Allowances:
    """The checks of an offset write or a migration that the user waived by name; plan and result list them.

    `accept_drift` are the sides of a migration that may have new offsets since it was planned.
    """

    workers_down: bool = False
    force_running: bool = False
    force_shape: bool = False
    allow_open_transactions: bool = False
    accept_drift: frozenset[str] = frozenset()

    def names(self) -> list[str]:
        """The flags as given, for reports."""
        given = {
            Waiver.WORKERS_DOWN: self.workers_down,
            Waiver.FORCE_RUNNING: self.force_running,
            Waiver.FORCE_SHAPE: self.force_shape,
            Waiver.ALLOW_OPEN_TRANSACTIONS: self.allow_open_transactions,
        }
        flags = [waiver.word for waiver, is_given in given.items() if is_given]
        return flags + [f"{Waiver.ACCEPT_DRIFT.word} {side}" for side in sorted(self.accept_drift)]

    def write_unstopped(self) -> bool:
        """Whether the connector may be in another state than STOPPED."""
        return self.workers_down or self.force_running


NOTHING_WAIVED = Allowances()
