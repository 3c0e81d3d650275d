"""The commands that resume an upgrade, and that take it back to the mode in which it began."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eosctl.core.allowances import Waiver
from eosctl.core.workers.modes import POSSIBLE, Mode
from eosctl.foreign import shell_words
from eosctl.upgrade.roll.prepare import PreparedRoll


def origin_of(modes: Iterable[Mode]) -> Mode | None:
    """Return the one mode of the members before the upgrade; None if it is unknown or differs.

    For workers known only as not enabled it is disabled: the mode of every group that never used exactly-once.
    """
    found = {mode for mode in modes if mode is not Mode.ABSENT}
    if found in ({Mode.ENABLED}, {Mode.PREPARING}):
        return found.pop()
    return Mode.DISABLED if found and not any(Mode.ENABLED in POSSIBLE[mode] for mode in found) else None


def undo_command(roll: PreparedRoll, *, unfinished: bool) -> str | None:
    """Return the command that goes back, with the driver's options; None without a mode to go back to.

    One that is not finished has to be forgotten first.
    """
    origin = roll.begun.origin if roll.begun else origin_of(worker.mode for worker in roll.plan.workers)
    if origin is None or origin is roll.target:
        return None
    words = ["eosctl", "upgrade", "apply", "--to", origin.value, "--driver", roll.driver.name]
    return shell_words(*words, *roll.request.driver_options, *([Waiver.START_OVER] if unfinished else ()))


def resume_command(roll: PreparedRoll) -> str:
    """Return the command that resumes, with the options of the driver and its gates."""
    return command_to_resume(roll.driver.name, roll.request.driver_options, roll.request.accepted)


def command_to_resume(driver: str, options: Sequence[str], accepted: Iterable[str]) -> str:
    """Return the command that resumes a roll known only from the journal."""
    gates = [word for name in sorted(accepted) for word in (Waiver.ACCEPT_GATE, name)]
    return shell_words("eosctl", "upgrade", "apply", "--resume", "--driver", driver, *options, *gates)
