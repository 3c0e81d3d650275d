"""The status topic's records, as REST makes its answer of them."""

from __future__ import annotations

import json

from eosctl.core.configs.fold import fold_config_topic
from eosctl.core.ids import WorkerId
from eosctl.core.records import Record
from eosctl.core.workers.connector_entry import PartStatus, read_part, read_task
from eosctl.group.protocol import CONNECTOR_ITSELF
from eosctl.group.topics import WrittenStatus, connectors_as_written, read_statuses, status_history, version_at
from tests.fakes.config_topic import config_records, created


def status(key: str, value: object, offset: int = 0) -> Record:
    text = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
    return Record("connect-status", 0, offset, -1, key.encode(), text)


RUNS: dict[str, object] = {
    "state": "RUNNING",
    "trace": None,
    "worker_id": "h/a->b/1",
    "generation": 5,
    "version": "4.3.1",
}


def test_the_newest_record_of_each_connector_and_task_counts() -> None:
    """Numbers that no task has are no tasks (`Integer.parseInt`); 5,000 digits used to end each look at the group."""
    read = read_statuses([
        status("status-connector-a", RUNS), status("status-task-a-0", {"state": "FAILED"}),
        status("status-task-a-0", RUNS), status("status-task-a-b-12", RUNS), status("status-task-gone-0", RUNS),
        status("status-task-gone-0", None), status("status-task-a-1", b"{broken"),
        status("status-topic-t:connector-a", {"topic": {}}), status(f"status-task-a-{'9' * 5000}", RUNS),
        status("status-task-a-2147483648", RUNS), Record("connect-status", 0, 9, -1, None, b"{}"),
    ])  # fmt: skip
    assert set(read) == {("a", -1), ("a", 0), ("a-b", 12)}
    assert read["a", 0] == RUNS


def test_the_answer_of_rest_is_made_of_configs_and_states() -> None:
    state = fold_config_topic(config_records(*created("a", 2)))
    entry = connectors_as_written(state, {("a", -1): RUNS, ("a", 1): RUNS, ("a", 2): RUNS})["a"]
    assert entry.itself == read_part(RUNS)
    assert entry.tasks == (read_task(1, RUNS),)
    assert entry.wanted == (0, 1)
    assert connectors_as_written(state, {})["a"].itself == PartStatus("UNASSIGNED")
    assert connectors_as_written(state, None)["a"].itself is None


def test_a_version_is_taken_only_where_all_that_is_owned_agrees() -> None:
    other: dict[str, object] = {**RUNS, "version": "4.2.0"}
    statuses: dict[tuple[str, int], dict[str, object]] = {
        ("a", 0): RUNS,
        ("a", 1): other,
        ("a", 2): {"state": "RUNNING"},
    }
    assert version_at([("a", 0), ("a", 2)], statuses) == "4.3.1"
    assert version_at([("a", 0), ("a", 1)], statuses) is None
    assert version_at([("a", 2)], statuses) is None
    assert version_at([], statuses) is None


def test_what_was_written_of_each_part_since_it_was_deleted_last() -> None:
    gone: dict[str, object] = {**RUNS, "state": "UNASSIGNED", "trace": "boom"}
    told = [
        ("status-task-c-1-0", gone), ("status-task-c-1-1", gone), ("status-connector-c-1", gone), ("other", gone),
        ("status-task-c-1-1", RUNS), ("status-task-c-1-2", b"junk"), ("status-task-c-1-0", None),
    ]  # fmt: skip
    records = [status(key, value, at)._replace(timestamp_ms=100 + at) for at, (key, value) in enumerate(told)]
    history = {work: [(each.at_ms, each.state) for each in told] for work, told in status_history(records).items()}
    assert history == {
        ("c-1", 1): [(101, "UNASSIGNED"), (104, "RUNNING")],
        ("c-1", CONNECTOR_ITSELF): [(102, "UNASSIGNED")],
    }
    assert status_history(records)["c-1", CONNECTOR_ITSELF][0] == WrittenStatus(
        102, "UNASSIGNED", WorkerId("h/a->b/1"), "boom"
    )
