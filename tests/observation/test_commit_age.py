"""Tasks that run and commit nothing, where no transactional id tells, and where it is their worker that hangs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.findings import Finding
from eosctl.core.ids import TransactionalId
from eosctl.core.offsets.records import newest_commits
from eosctl.core.records import Record
from eosctl.group.observation.rules import Observation, ObservedConnector, QuietTask, WorkerFile
from eosctl.observation.connectors.commit_age import by_worker, commit_age, offset_age
from tests.group.observations import FLUSHED, good, source

NOW_MS = 10_000_000
MINUTE_MS = 60_000


def of_offsets(**changes: Any) -> list[Finding]:
    """What is said of a connector whose newest offset is eight minutes old."""
    values = {"looked_ms": NOW_MS, "committed_ms": {"c": NOW_MS - 8 * MINUTE_MS}, **changes}
    seen = replace(good(), **values)
    return [finding for each in seen.connectors or () for finding in offset_age(each, seen)]


def test_a_connector_without_transactions_that_commits_no_offset_is_information() -> None:
    """Only transactional ids were asked: of a group that is not enabled nothing was said."""
    [finding] = of_offsets()
    assert (finding.code, finding.severity, finding.certain) == ("nothing_committed", "info", True)
    assert (finding.subject, finding.evidence) == ("c", {"quiet_ms": 8 * MINUTE_MS})
    assert finding.message == "1 task of c RUNNING, and no offset was committed for 8 m"
    assert finding.fix.startswith("An idle source commits nothing.")


FIVE = 5 * MINUTE_MS
SLOW = WorkerFile("w.properties", {"offset.flush.interval.ms": "300000"})


@pytest.mark.parametrize(
    "changes",
    [
        {"committed_ms": {"c": NOW_MS - FIVE + 1}},
        {"committed_ms": {}},
        {"looked_ms": None},
        {"task_sets_ms": {"c": NOW_MS - FIVE + 1}},
        {"quiet": {"g-c-0": QuietTask(0, since_start=False)}},
        {"connectors": source(states={"connector": "RUNNING", "task 0": "PAUSED"})},
        {"files": (SLOW,)},
    ],
)
def test_what_is_young_is_known_better_or_does_not_run_is_no_finding(changes: dict[str, Any]) -> None:
    assert of_offsets(**changes) == []


def test_at_five_minutes_it_is_said() -> None:
    assert len(of_offsets(committed_ms={"c": NOW_MS - FIVE}, files=(FLUSHED,))) == 1


def test_deletions_and_foreign_keys_are_no_commits() -> None:
    def record(offset: int, key: bytes, value: bytes | None, at_ms: int) -> Record:
        return Record("offsets", 0, offset, at_ms, key, value)

    records = [
        record(0, b'["c",{"f":1}]', b'{"n":1}', 7), record(1, b'["c",{"f":2}]', b'{"n":1}', 5),
        record(2, b'["c",{"f":3}]', None, 9), record(3, b"junk", b"{}", 9), record(4, b'["d",{}]', b"null", 9),
    ]  # fmt: skip
    assert newest_commits(records) == {"c": 7}


def on_workers(quiet_minutes: dict[str, int]) -> tuple[Observation, list[Finding]]:
    """A connector with two tasks on w1 and two on w2, each task so long without a commit."""
    parts = [f"task {task}" for task in range(4)]
    workers = dict(zip(parts, ("w1:8083", "w1:8083", "w2:8083", "w2:8083"), strict=True))
    connector = ObservedConnector(
        "c", "source", {}, dict.fromkeys(["connector", *parts], "RUNNING"), (), workers=workers
    )
    quiet = {
        TransactionalId(f"g-c-{task}"): QuietTask(minutes * MINUTE_MS, since_start=False)
        for task, minutes in quiet_minutes.items()
    }
    seen = replace(good(), connectors=(connector,), quiet=quiet)
    return seen, list(commit_age(connector, seen))


def test_tasks_of_a_worker_that_commits_nothing_are_one_finding() -> None:
    """They were a finding each, and nobody said that it was the worker."""
    seen, found = on_workers({"0": 1, "1": 8, "2": 9, "3": 8})
    assert [each.subject for each in found] == ["c/1", "c/2", "c/3"]
    hung, other = by_worker(found, seen)
    assert (hung.code, hung.severity, hung.subject) == ("worker_commits_nothing", "warning", "w2:8083")
    follows = hung.evidence["follows"]
    assert isinstance(follows, list)
    assert [each["subject"] for each in follows] == ["c/2", "c/3"]
    assert other == found[0]


@pytest.mark.parametrize(
    "minutes",
    [
        {"0": 8, "1": 8, "2": 8, "3": 8},  # all of them: their source is idle
        {"0": 8, "1": 1, "2": 8, "3": 1},
        {"0": 1, "2": 8},  # of one task on w2 nobody can say so
        {"2": 8, "3": 8},
        {"0": 1, "1": 1, "2": 8, "3": 95},  # what they read is quiet, each since its own time: a hang has one
    ],
)
def test_where_no_worker_stands_out_each_task_stays_a_finding(minutes: dict[str, int]) -> None:
    seen, found = on_workers(minutes)
    assert len(found) > 0
    assert by_worker(found, seen) == found


def test_tasks_that_were_started_together_and_have_had_nothing_to_do_since_are_no_worker_that_hangs() -> None:
    seen, _found = on_workers({"0": 1, "1": 1, "2": 90, "3": 90})
    quiet = {
        each: replace(known, since_start=known.quiet_ms > 90 * MINUTE_MS - 1) for each, known in seen.quiet.items()
    }
    seen = replace(seen, quiet=quiet)
    found = list(commit_age(seen.sources()[0], seen))
    assert by_worker(found, seen) == found
