"""One connector of REST's answer, taken apart once for all who ask."""

from __future__ import annotations

import pytest

from eosctl.core.ids import WorkerId
from eosctl.core.workers.connector_entry import ConnectorEntry, PartStatus, TaskStatus, read_entry


def test_an_entry_has_config_states_and_the_newest_task_set() -> None:
    entry = {
        "info": {
            "type": "source", "config": {"a": 1, "b": None},
            "tasks": [{"connector": "c", "task": 1}, {"connector": "c", "task": 0}],
        },
        "status": {
            "connector": {"state": "RUNNING", "worker_id": "w:1"},
            "tasks": [{"id": 0, "state": "FAILED", "worker_id": "w:2", "trace": "boom"}, {"id": 1, "trace": None}],
        },
    }  # fmt: skip
    assert read_entry(entry) == ConnectorEntry(
        "source", {"a": "1"}, PartStatus("RUNNING", WorkerId("w:1")),
        (TaskStatus(0, "FAILED", WorkerId("w:2"), "boom"), TaskStatus(1, "unknown", WorkerId(""))), (0, 1),
    )  # fmt: skip


@pytest.mark.parametrize(
    "entry", [{}, {"info": None, "status": None}, {"info": {"tasks": None}, "status": {"tasks": 1}}]
)
def test_what_is_not_told_is_left_out(entry: dict[str, object]) -> None:
    assert read_entry(entry) == ConnectorEntry("unknown", {}, None, (), ())


def test_the_type_is_taken_from_the_status_where_the_info_does_not_tell() -> None:
    assert read_entry({"info": {"type": ""}, "status": {"type": "sink"}}).type == "sink"


def test_the_workers_are_those_of_all_parts() -> None:
    tasks = (TaskStatus(0, "RUNNING", WorkerId("w:2")), TaskStatus(1, "UNASSIGNED", WorkerId("")))
    entry = ConnectorEntry("source", {}, PartStatus("RUNNING", WorkerId("w:1")), tasks)
    assert entry.workers() == {"w:1", "w:2"}
    assert ConnectorEntry().workers() == frozenset()


def test_its_words_have_each_state_and_why_the_first_failure() -> None:
    tasks = (
        TaskStatus(0, "RUNNING", WorkerId("w:1")),
        TaskStatus(1, "FAILED", WorkerId("w:2"), "ConnectException: no file\n\tat line 1"),
        TaskStatus(2, "FAILED", WorkerId("w:2"), "another"),
    )
    entry = ConnectorEntry("source", {}, PartStatus("RUNNING", WorkerId("w:1")), tasks, (0, 1, 2))
    assert entry.in_words() == (
        "connector RUNNING; task 0 RUNNING, task 1 FAILED, task 2 FAILED; ConnectException: no file"
    )
    assert ConnectorEntry().in_words() == "connector unknown; no tasks"
