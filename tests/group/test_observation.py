"""What an observation of a group answers by itself."""

from __future__ import annotations

from eosctl.core.ids import WorkerId
from eosctl.core.workers.connector_entry import ConnectorEntry, PartStatus, TaskStatus
from eosctl.group.observation.rules import observed_connector
from tests.group.observations import good


def test_the_parts_of_a_connector_are_itself_and_its_tasks() -> None:
    itself = PartStatus("RUNNING", WorkerId("w0:8083"))
    tasks = (TaskStatus(0, "FAILED", WorkerId("w1:8083"), "java.lang.Error"), TaskStatus(1, "RUNNING", WorkerId("")))
    seen = observed_connector("c", ConnectorEntry(type="source", config={}, itself=itself, tasks=tasks))
    assert seen.states == {"connector": "RUNNING", "task 0": "FAILED", "task 1": "RUNNING"}
    assert seen.workers == {"connector": "w0:8083", "task 0": "w1:8083"}
    assert seen.traces == {"task 0": "java.lang.Error"}
    assert (seen.failed(), seen.running()) == (["task 0"], [1])
    untold = observed_connector("c", ConnectorEntry(type="source", config={}, itself=None, tasks=tasks))
    assert list(untold.states) == ["task 0", "task 1"]


def test_what_could_not_be_looked_at_is_forbidden_only_where_a_right_is_lacking() -> None:
    unseen = good().without(["topics", "kafka"], "away")
    assert (unseen.why_unseen("kafka"), unseen.forbidden) == ("away", frozenset())
    refused = unseen.without(["topics"], "no right", forbidden=True)
    assert (refused.why_unseen("topics"), refused.forbidden) == ("no right", frozenset({"topics"}))
    assert refused.without(["topics"], "away again").forbidden == frozenset()
