"""Tasks that run and commit nothing, or write without transactions: what is found, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.ids import TransactionalId
from eosctl.group.observation.rules import QuietTask
from eosctl.observation.connectors.commit_age import commit_age
from eosctl.observation.connectors.exactly_once import task_audit
from tests.group.observations import ENABLED, good, source
from tests.observation.rule_cases import DAY_MS, UNKNOWN, configured, found


@pytest.mark.parametrize(
    ("since_start", "said"),
    [
        (False, "c/0 is RUNNING, and nothing was committed for 8 m"),
        (True, "c/0 is RUNNING, and has committed nothing since it was started (its connector's task set is 8 m old)"),
    ],
)
def test_a_task_that_runs_and_commits_nothing_is_information(since_start: bool, said: str) -> None:
    """With its replication slot held by somebody else it was RUNNING, and every check was content."""
    quiet = {TransactionalId("g-c-0"): QuietTask(8 * 60_000, since_start=since_start)}
    [finding] = found(commit_age, replace(good(), quiet=quiet))
    assert (finding.code, finding.severity, finding.certain) == ("nothing_committed", "info", True)
    assert (finding.message, finding.evidence) == (
        said,
        {"transactional_id": "g-c-0", "quiet_ms": 8 * 60_000, "worker": None},
    )


@pytest.mark.parametrize(("workers", "where"), [({"task 0": "w0:8083"}, "on w0:8083,"), ({}, "on a worker,")])
def test_a_task_that_writes_without_transactions_is_said_with_its_worker(workers: dict[str, str], where: str) -> None:
    changes: dict[str, Any] = {**UNKNOWN, "connectors": source(workers=workers)}
    seen = replace(good(), workers=ENABLED, **changes)
    [finding] = found(task_audit, seen)
    assert f"c/0 is RUNNING {where} and is not exactly-once: no coordinator knows g-c-0" in finding.message


@pytest.mark.parametrize(
    ("quiet_ms", "interval_ms", "said"),
    [(299_999, "1000", False), (300_000, "1000", True), (399_999, "200000", False), (400_000, "200000", True)],
)
def test_how_long_a_task_may_commit_nothing(quiet_ms: int, interval_ms: str, *, said: bool) -> None:
    """Five minutes, or twice the interval of one that commits by the clock."""
    seen = replace(
        good(),
        quiet={TransactionalId("g-c-0"): QuietTask(quiet_ms, since_start=False)},
        **configured(**{"transaction.boundary.interval.ms": interval_ms}),
    )
    assert bool(found(commit_age, seen)) == said


def test_a_task_that_commits_does_not_hide_the_next_one_that_does_not() -> None:
    two = source(states={"connector": "RUNNING", "task 0": "RUNNING", "task 1": "RUNNING"})
    quiet = {TransactionalId("g-c-1"): QuietTask(8 * 60_000, since_start=False)}
    assert [each.subject for each in found(commit_age, replace(good(), connectors=two, quiet=quiet))] == ["c/1"]


def test_a_task_of_an_enabled_worker_that_was_idle_for_a_week_is_exactly_once() -> None:
    """Brokers forget its id, and its worker runs it with transactions all the same."""
    changes: dict[str, Any] = {**UNKNOWN, "looked_ms": 7 * DAY_MS}
    assert found(task_audit, replace(good(), workers=ENABLED, **changes)) == []
