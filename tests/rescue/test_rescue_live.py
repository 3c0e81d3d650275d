"""`task-counts write` and `rescue` on a real worker: it fences what was written, and runs again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.audit.proven import assert_exactly_once
from tests.sandbox_fixtures import GROUP, FileSource, wait_until

pytestmark = pytest.mark.live

Invoke = Any


@pytest.fixture
def run(invoke: Invoke, target_flags: list[str]) -> Any:
    """Runs eosctl on the stack; returns the document of a command that exits 0."""

    def document(*words: str) -> Any:
        outcome = invoke(*words, "-o", "json", *target_flags)
        assert outcome.exit_code == 0, outcome.stderr
        return outcome.json()["data"]

    return document


def states(invoke: Invoke, flags: list[str], ids: list[str]) -> dict[str, tuple[int, int]]:
    """Epoch and transaction timeout of each id that is known; 90000 is the mark of Connect's own fencing."""
    rows = invoke("txn", "describe", *ids, "-o", "json", *flags).json()["data"].get("rows", [])
    return {row["transactional_id"]: (row["producer_epoch"], row["transaction_timeout_ms"]) for row in rows}


def raise_record(run: Any, source: FileSource, count: int) -> list[str]:
    """Stops the connector, writes `count`; returns the ids that the worker has to fence at the resume."""
    source.stop_and_wait()
    wait_until(
        lambda: run("task-counts", "show", source.name)["rows"][0]["target_state"] == "STOPPED",
        what="the stop to be read",
    )
    result = run("task-counts", "write", source.name, "--count", str(count), "--yes")
    (row,) = result["rows"]
    assert (row["outcome"], row["after"]["task_count"]) == ("written", count)
    assert row["decision_after"]["after_next_commit"]["would_fence_count"] == count
    (shown,) = run("task-counts", "show", source.name)["rows"]
    assert (shown["recorded"], shown["pending_fencing"]) == (count, False)
    return [f"{GROUP}-{source.name}-{task}" for task in range(count)]


def test_the_worker_fences_what_the_written_record_says(
    invoke: Invoke, run: Any, target_flags: list[str], file_source: FileSource
) -> None:
    file_source.append("one")
    file_source.put()
    file_source.wait_running()
    file_source.wait_position(4)
    refused = invoke("task-counts", "write", file_source.name, "--count", "3", "--yes", *target_flags)
    assert refused.exit_code == 6
    assert "has 1 task (task 0 is RUNNING" in refused.stderr

    ids = raise_record(run, file_source, 3)
    for zombie in ids[1:]:
        run("fence", zombie, "--create-unknown", "--yes")  # as if tasks 1 and 2 had run once
    before = states(invoke, target_flags, ids)
    assert {timeout_ms for _epoch, timeout_ms in before.values()} == {30_000}
    file_source.set_state("resume")
    file_source.wait_running()
    after = wait_until(
        lambda: (now := states(invoke, target_flags, ids)) and now[ids[0]][1] == 60_000 and now,
        what="task 0 to take its id",
    )
    assert [after[each][1] for each in ids] == [60_000, 90_000, 90_000]
    assert all(after[each][0] > before[each][0] for each in ids)
    (row,) = run("task-counts", "show", file_source.name)["rows"]
    assert (row["recorded"], row["findings"]) == (1, [])
    file_source.append("two")
    file_source.wait_position(8)


def test_rescue_heals_what_connects_own_round_could_not(
    invoke: Invoke, run: Any, target_flags: list[str], file_source: FileSource
) -> None:
    """One id every 4 s, and a new config while the round goes on: the task fails as in a connector of 100 tasks."""
    slow = {"admin.override.retry.backoff.ms": "4000", "admin.override.retry.backoff.max.ms": "4000"}
    file_source.append("one")
    file_source.put(**slow)
    file_source.wait_running()
    file_source.wait_position(4)
    healthy = run("rescue", "--connector", file_source.name, "--yes")
    assert (healthy["rows"], healthy["summary"]["verdict"]) == ([], "healthy")

    ids = raise_record(run, file_source, 5)
    file_source.set_state("resume")
    wait_until(
        lambda: 90_000 in [timeout_ms for _epoch, timeout_ms in states(invoke, target_flags, ids).values()],
        what="the worker's round to begin",
    )
    file_source.put(**{"batch.size": "7"})
    refused = invoke("rescue", "--connector", file_source.name, "--yes", *target_flags)
    assert refused.exit_code == 6
    assert "this is no case for rescue" in refused.stderr
    wait_until(lambda: file_source.task_states() == ["FAILED"], what="the round to fail the task")

    result = run("rescue", "--connector", file_source.name, "--yes")
    assert [(row["action"], row["outcome"]) for row in result["rows"]] == [
        ("fence", "done"),
        ("write", "done"),
        ("restart", "done"),
        ("watch", "done"),
    ]
    assert "1 FAILED in zombie fencing" in result["seen"]
    assert result["cure"] == dict.fromkeys(slow, "10")
    assert states(invoke, target_flags, ids)[ids[0]][1] == 60_000
    file_source.append("two")
    file_source.wait_position(8)
    assert run("rescue", "--connector", file_source.name, "--yes")["rows"] == []
    assert_exactly_once(invoke, target_flags, file_source.name)
