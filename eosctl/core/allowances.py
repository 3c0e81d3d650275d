"""The safety checks that a user may waive, each by one flag that names its danger.

The options of the commands and their help, the hints of refusals and the overrides in the audit log come from here.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum, unique


@unique
class Waiver(StrEnum):
    """A flag that waives one safety check; `help` says what is done without the check."""

    help: str

    def __new__(cls, flag: str, help_text: str) -> Waiver:
        """Make a member whose value is the flag itself, so that hints can name it."""
        waiver = str.__new__(cls, flag)
        waiver._value_, waiver.help = flag, help_text
        return waiver

    LIVE = "--live", "Also fence ids of running tasks; those tasks fail."
    UNKNOWN_LIVENESS = "--unknown-liveness", "Also fence ids of tasks that may be running; those that run fail."
    DISCARD_PREPARED = (
        "--discard-prepared",
        "Also fence open transactions that Flink may have prepared; prepared records are lost.",
    )
    ALLOW_LEADER = "--allow-leader", "Also fence ids that may be a Connect leader's."
    CREATE_UNKNOWN = "--create-unknown", "Also fence ids that no coordinator knows; fencing creates them."
    FORCE = "--force", "Abort even if a coordinator still has the transaction open."
    UNREAD_COORDINATOR = "--unread-coordinator", "Continue although a coordinator that may have it open can't be asked."
    HIDDEN_ID = "--hidden-id", "Abort although an id that can't be seen may have it open; its producer loses records."
    LOSE_COMMITTED = "--lose-committed", "Abort although its coordinator committed it; its records there are lost."
    UNSEEN_PARTS = "--unseen-parts", "End what can be seen of it, although other partitions of it may be open."
    ONLY_THIS_PARTITION = "--only-this-partition", "End this partition alone, and leave the rest of its transaction."
    NO_FENCE = "--no-fence", "Do not fence the ids of the old record; zombies may keep writing."
    WORKERS_DOWN = "--workers-down", "Write without asking a worker; the Connect group must be empty (checked)."
    FORCE_RUNNING = "--force-running", "Write although tasks run or may run; a running task may overwrite it."
    FORCE_SHAPE = "--force-shape", "Write although a member changes its type; the task may fail on it."
    OVERWRITE_NEWER = "--overwrite-newer", "Also replace records that someone else wrote since."
    ALLOW_OPEN_TRANSACTIONS = "--allow-open-transactions", "Ignore records hidden by open transactions."
    ACCEPT_DRIFT = "--accept-drift", "Apply despite new offsets on this side (repeatable)."
    OVERWRITE_OFFSETS = (
        "--overwrite-offsets",
        "Replace the offsets that a deleted connector of this name left; they are backed up.",
    )
    READ_TWICE = "--read-twice", "Create it although a running connector reads the same source partitions."
    READ_AGAIN = "--read-again", "Go on although the connector reads source partitions again from the beginning."
    UNKNOWN_PARTITIONS = (
        "--unknown-partitions",
        "Go on although it is unknown which source partitions are read again.",
    )
    MAY_SKIP = "--may-skip", "Change settings that may skip records of the source, or apply offsets to another one."
    START_OVER = "--start-over", "Ignore an unfinished upgrade and make a new plan."
    ACCEPT_GATE = (
        "--accept-gate",
        "Continue although this gate fails or is unknown (repeatable); what was FAILED may stay FAILED.",
    )
    ACCEPT_GONE = "--accept-gone", "Treat this worker as removed for good (repeatable)."

    @property
    def word(self) -> str:
        """The flag without its dashes, as reports list it."""
        return self.value.removeprefix("--")

    @property
    def option(self) -> str:
        """The flag as a command's parameter."""
        return self.word.replace("-", "_")


@dataclass(frozen=True, slots=True)
class Allowances:
    """The checks of an offset write, a connector or a migration that the user waived by name; results list them.

    `accept_drift` are the sides of a migration that may have new offsets since it was planned.
    """

    workers_down: bool = False
    force_running: bool = False
    force_shape: bool = False
    allow_open_transactions: bool = False
    overwrite_offsets: bool = False
    read_twice: bool = False
    read_again: bool = False
    unknown_partitions: bool = False
    may_skip: bool = False
    accept_drift: Collection[str] = ()

    def names(self) -> list[str]:
        """Return the given flags, for reports."""
        given = {
            Waiver.WORKERS_DOWN: self.workers_down,
            Waiver.FORCE_RUNNING: self.force_running,
            Waiver.FORCE_SHAPE: self.force_shape,
            Waiver.ALLOW_OPEN_TRANSACTIONS: self.allow_open_transactions,
            Waiver.OVERWRITE_OFFSETS: self.overwrite_offsets,
            Waiver.READ_TWICE: self.read_twice,
            Waiver.READ_AGAIN: self.read_again,
            Waiver.UNKNOWN_PARTITIONS: self.unknown_partitions,
            Waiver.MAY_SKIP: self.may_skip,
        }
        flags = [waiver.word for waiver, is_given in given.items() if is_given]
        return flags + [f"{Waiver.ACCEPT_DRIFT.word} {side}" for side in sorted(set(self.accept_drift))]

    def write_unstopped(self) -> bool:
        """Return whether the connector may be in a state other than STOPPED."""
        return self.workers_down or self.force_running


NOTHING_WAIVED = Allowances()
