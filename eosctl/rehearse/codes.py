"""The findings of a rehearsal itself; those of an audit have codes of their own."""

from __future__ import annotations

from eosctl.codes import error, finding

TASKS_NOT_RUNNING = finding(
    "tasks_not_running",
    "After a fault of a rehearsal, not all tasks of the connector ran again in time.",
    "`eosctl rehearse --faults NAME --seed N --keep` repeats it and leaves the sandbox with its logs.",
)
REHEARSAL_ENDED_EARLY = error(
    "rehearsal_ended_early",
    "A rehearsal ended before its last fault; the rows say what was seen until then.",
    "Repeat it with the same --seed; --keep leaves the sandbox with its logs.",
)
SANDBOX_LEFT = error(
    "sandbox_left",
    "The sandbox of a rehearsal could not be stopped at its end; the rows are those of the whole rehearsal.",
    "Stop it with `eosctl sandbox down --name NAME`.",
)
