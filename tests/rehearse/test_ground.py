"""When a connector is well again after a fault: what REST shows may be of a worker that is dead."""

from __future__ import annotations

import pytest

from eosctl.core.ids import WorkerId
from eosctl.core.workers.connector_entry import ConnectorEntry, PartStatus, TaskStatus
from eosctl.rehearse.ground import runs

HERE = {WorkerId("a:1"), WorkerId("b:1")}


def entry(*tasks: tuple[int, str, str], wanted: tuple[int, ...] = (0, 1), state: str = "RUNNING") -> ConnectorEntry:
    return ConnectorEntry(
        type="source",
        itself=PartStatus(state, WorkerId("a:1")),
        tasks=tuple(TaskStatus(number, each, WorkerId(worker)) for number, each, worker in tasks),
        wanted=wanted,
    )


RUN = [(0, "RUNNING", "a:1"), (1, "RUNNING", "b:1")]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (entry(*RUN), True),
        (entry(RUN[0], (1, "FAILED", "b:1")), False),
        (entry(RUN[0], (1, "RUNNING", "dead:1")), False),
        (entry(RUN[0]), False),
        (entry(*RUN, (2, "RUNNING", "a:1")), False),
        (entry(*RUN, state="STOPPED"), False),
        (entry(wanted=()), False),
    ],
    ids=["well", "a task failed", "on a dead worker", "a task to come", "a task too many", "stopped", "no tasks"],
)
def test_what_runs(seen: ConnectorEntry, expected: bool) -> None:
    assert runs(seen, HERE) is expected
