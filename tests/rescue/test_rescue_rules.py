"""Which connectors are a case for rescue, and what a written record changes: tables."""

from __future__ import annotations

from typing import Any

import pytest

from eosctl.core.configs.fold import ConnectorState
from eosctl.core.configs.records import task_count_value
from eosctl.core.ids import TransactionalId, WorkerId
from eosctl.core.transactions import FENCING_FAILED, TransactionState
from eosctl.core.workers.connector_entry import TaskStatus
from eosctl.report import plain
from eosctl.rescue.rules import RescueVerdict, diagnose
from eosctl.task_counts.rules import AliveTask, decision_after_commit
from eosctl.task_counts.write_rows import decisions, left_out, with_record

TRACE = f"org.apache.kafka.connect.errors.ConnectException: {FENCING_FAILED}\n\tat org.apache..."
FORWARD = "ConnectRestException: IO Error trying to forward REST request: Idle timeout expired: 30000/30000 ms"
OTHER = "java.lang.IllegalStateException: no such table"


def connector(**changes: Any) -> ConnectorState:
    """Two tasks, three recorded, fencing due."""
    values: dict[str, Any] = {
        "config": {"connector.class": "X"},
        "target_state": "STARTED",
        "task_count": 2,
        "task_count_record": 3,
        "pending_fencing": True,
        "commit_offset": 10,
        "record_offset": 5,
    }
    return ConnectorState("c", **{**values, **changes})


def tasks(*seen: tuple[str, str]) -> list[TaskStatus]:
    return [TaskStatus(number, state, WorkerId("w:1"), trace) for number, (state, trace) in enumerate(seen)]


FENCED_OUT = (("FAILED", TRACE), ("FAILED", TRACE))


@pytest.mark.parametrize(
    ("changes", "seen", "verdict"),
    [
        ({}, FENCED_OUT, RescueVerdict.FENCE),
        ({}, (("FAILED", TRACE), ("FAILED", FORWARD)), RescueVerdict.FENCE),
        ({}, (("FAILED", TRACE), ("RUNNING", "")), RescueVerdict.OTHER),  # it waits for a round that would hit it later
        ({}, (("FAILED", TRACE), ("UNASSIGNED", "")), RescueVerdict.OTHER),
        ({}, (("FAILED", OTHER), ("FAILED", OTHER)), RescueVerdict.OTHER),
        ({}, (("RUNNING", ""), ("RUNNING", "")), RescueVerdict.OTHER),
        ({}, (("FAILED", TRACE),), RescueVerdict.OTHER),
        ({}, (), RescueVerdict.OTHER),
        ({"target_state": "STOPPED"}, FENCED_OUT, RescueVerdict.OTHER),
        ({"target_state": "PAUSED"}, FENCED_OUT, RescueVerdict.OTHER),
        ({"inconsistent": True}, FENCED_OUT, RescueVerdict.OTHER),
        ({"task_count_record": None}, FENCED_OUT, RescueVerdict.OTHER),  # the leader has nobody to fence
        ({"task_count_record": 0}, FENCED_OUT, RescueVerdict.OTHER),
        ({"task_count_record": 1, "task_count": 1}, FENCED_OUT[:1], RescueVerdict.OTHER),
        ({"task_count_record": 1}, FENCED_OUT, RescueVerdict.FENCE),
        ({"pending_fencing": False}, FENCED_OUT, RescueVerdict.RESTART),
        ({"pending_fencing": False}, (("RUNNING", ""), ("FAILED", FORWARD)), RescueVerdict.RESTART),
        ({"pending_fencing": False}, (("FAILED", TRACE), ("FAILED", OTHER)), RescueVerdict.OTHER),
        ({"pending_fencing": False}, (("RUNNING", ""), ("RUNNING", "")), RescueVerdict.HEALTHY),
        ({"pending_fencing": False}, (("RUNNING", ""), ("UNASSIGNED", "")), RescueVerdict.OTHER),
        ({"pending_fencing": False}, (), RescueVerdict.OTHER),
    ],
)
def test_verdict(changes: dict[str, Any], seen: tuple[tuple[str, str], ...], verdict: RescueVerdict) -> None:
    assert diagnose(connector(**changes), tasks(*seen)).verdict is verdict


def test_the_diagnosis_tells_what_was_seen() -> None:
    assert diagnose(connector(), tasks(("FAILED", TRACE), ("RUNNING", ""))).seen == (
        "2 tasks (1 FAILED, 1 RUNNING; 1 FAILED in zombie fencing); the record of 3 (offset 5) is older than the "
        "newest task commit (offset 10), target state STARTED"
    )


@pytest.mark.parametrize(
    ("recorded", "fences", "words"),
    [
        (None, 0, "there is no record"),
        (-1, 0, "fences the 0 recorded"),
        (0, 0, "fences the 0 recorded"),
        (1, 1, "if the new set has one task, that task does it"),
        (2, 2, "fences the 2 recorded"),
    ],
)
def test_the_next_commit_makes_the_leader_fence_what_is_recorded(recorded: int | None, fences: int, words: str) -> None:
    later = decision_after_commit(connector(task_count_record=recorded))
    assert (later.fence_count, later.writes) == (fences, None)
    assert words in later.reason


def test_a_new_record_suppresses_what_was_due() -> None:
    before, after = connector(), with_record(connector(), 0)
    assert after == connector(task_count_record=0, record_offset=None, pending_fencing=False)
    assert [plain(decisions(each)) for each in (before, after)] == [
        {
            "now": {
                "would_fence_count": 3,
                "would_write": before.task_count,
                "reason": "task configs are newer than the record: fences the 3 recorded",
            },
            "after_next_commit": {"would_fence_count": 3, "reason": "fences the 3 recorded"},
        },
        {
            "now": {
                "would_fence_count": 0,
                "would_write": None,
                "reason": "no task commit since the record: no id is fenced",
            },
            "after_next_commit": {"would_fence_count": 0, "reason": "fences the 0 recorded"},
        },
    ]


@pytest.mark.parametrize(
    ("count", "fenced", "missed"), [(0, set(), [0, 2]), (1, set(), [2]), (3, set(), []), (0, {"g-c-0"}, [2])]
)
def test_ids_beyond_the_count_are_left_out_unless_they_are_fenced(
    count: int, fenced: set[str], missed: list[int]
) -> None:
    alive = [AliveTask(number, TransactionalId(f"g-c-{number}"), TransactionState.EMPTY) for number in (0, 2)]
    assert [task.task for task in left_out(alive, count, fenced=fenced)] == missed


def test_the_value_is_byte_for_byte_what_a_leader_writes() -> None:
    assert task_count_value(130) == b'{"task-count":130}'
