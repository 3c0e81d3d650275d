"""Whether a task is exactly-once: by the mode of the worker that runs it, then by its transactional id."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eosctl.checks.group.state import group_state
from eosctl.core.ids import TransactionalId
from eosctl.core.workers.modes import Mode
from eosctl.group.observation.rules import Observation
from eosctl.observation.connectors.exactly_once import task_audit, task_verdict
from tests.group.observations import good, source, worker
from tests.observation.rule_cases import DAY_MS, found

ENABLED, NOT_ENABLED, UNKNOWN = Mode.ENABLED, Mode.NOT_ENABLED, Mode.UNKNOWN


def group(*modes: Mode, at: str | None, known: bool = True, **changes: object) -> Observation:
    """Workers w0, w1 … in these modes; task 0 of c is RUNNING at `at`, its task set is a day old."""
    workers = tuple(
        replace(worker(mode=mode, leader=number == 0), name=f"http://w{number}:8083")
        for number, mode in enumerate(modes)
    )
    connectors = source(workers={} if at is None else {"task 0": f"{at}:8083"})
    unknown = frozenset() if known else frozenset({TransactionalId("g-c-0")})
    seen = replace(good(), workers=workers, connectors=connectors, unknown_ids=unknown)
    return replace(seen, **{"task_sets_ms": {"c": 0}, "looked_ms": DAY_MS, **changes})


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (group(ENABLED, at="w0"), True),
        (group(ENABLED, at=None), True),
        # who is no member may run in any mode
        (group(ENABLED, ENABLED, at="w9"), None),
        # the id is known from before: brokers keep it for seven days
        (group(ENABLED, NOT_ENABLED, at="w1"), False),
        (group(ENABLED, NOT_ENABLED, at="w1", looked_ms=30 * DAY_MS, known=False), False),
        (group(NOT_ENABLED, Mode.OLD_VERSION, at=None), False),
        (group(ENABLED, NOT_ENABLED, at="w0"), True),
        (group(ENABLED, NOT_ENABLED, at=None), None),
        (group(ENABLED, UNKNOWN, at="w1"), None),
        (group(ENABLED, Mode.UNREACHABLE, at="w1"), None),
        (group(ENABLED, UNKNOWN, at="w0"), True),
        (group(ENABLED, Mode.ABSENT, at=None), True),
        (group(ENABLED, at="w0", known=False), False),
        (group(ENABLED, at="w0", known=False, looked_ms=7 * DAY_MS), True),
        (group(ENABLED, at="w0", known=False, looked_ms=None), None),
        (group(ENABLED, at="w0", unknown_ids=None), None),
        (group(NOT_ENABLED, at="w0", unknown_ids=None), False),
        (group(UNKNOWN, at="w0", mirror_maker=True), True),
        (group(UNKNOWN, at="w0", mirror_maker=True, known=False), False),
        (group(UNKNOWN, at="w0", mirror_maker=True, known=False, looked_ms=7 * DAY_MS), None),
    ],
)
def test_whether_a_task_is_exactly_once(seen: Observation, verdict: bool | None) -> None:
    [connector] = seen.sources()
    judged = task_verdict(connector, 0, seen)
    assert judged.exactly_once is verdict
    assert bool(judged.why) == bool(judged.fix) == (verdict is not True)


def test_a_file_that_nothing_confirms_proves_no_mode() -> None:
    seen = group(ENABLED, at="w0")
    seen = replace(seen, workers=(replace(seen.workers[0], confirmed=False),))
    assert task_verdict(seen.sources()[0], 0, seen).exactly_once is None


@pytest.mark.parametrize(
    ("seen", "findings", "sentence"),
    [
        (
            group(ENABLED, NOT_ENABLED, at="w1"),
            [("task_not_exactly_once", "error", "c/0", True)],
            "1 source task, 1 of them not exactly-once",
        ),
        (
            group(NOT_ENABLED, at="w0"),
            [("task_not_exactly_once", "info", "c/0", True)],
            "1 source task, 1 of them not exactly-once",
        ),
        (
            group(ENABLED, UNKNOWN, at="w1"),
            [("task_audit_unknown", "warning", "c", False)],
            "1 source task, and whether they are exactly-once is not known",
        ),
        (group(ENABLED, at="w0"), [], "1 source task, exactly-once"),
    ],
)
def test_the_headline_says_what_the_findings_say(
    seen: Observation, findings: list[tuple[str, str, str, bool]], sentence: str
) -> None:
    """The headline counted a task on a worker that was proven not enabled, and no finding did."""
    said = [(each.code, each.severity, each.subject, each.certain) for each in found(task_audit, seen)]
    assert said == findings
    assert group_state(seen).sentence().endswith(sentence)


def test_tasks_that_no_worker_has_are_not_judged() -> None:
    """They do not run; another finding says so."""
    seen = group(ENABLED, NOT_ENABLED, at=None)
    seen = replace(seen, connectors=source(states={"connector": "RUNNING", "task 0": "UNASSIGNED"}))
    assert found(task_audit, seen) == []


@pytest.mark.parametrize(
    ("states", "sentence"),
    [
        (["RUNNING", "FAILED"], "; 2 source tasks (1 FAILED), exactly-once"),
        (["FAILED"], "; 1 source task (1 FAILED)"),
    ],
)
def test_the_headline_has_the_failed_tasks(states: list[str], sentence: str) -> None:
    """Three tasks were called exactly-once, and one of them was FAILED."""
    seen = group(ENABLED, at="w0")
    parts = {f"task {task}": state for task, state in enumerate(states)}
    seen = replace(seen, connectors=source(states={"connector": "RUNNING", **parts}))
    assert group_state(seen).sentence().endswith(sentence)
    assert group_state(seen).failed_tasks == states.count("FAILED")
