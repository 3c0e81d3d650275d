"""Records that never reach the producer, in transactions that are committed: what Connect does, and what is said of it.

A transformation of ours (tests/slow_source) fails at the eighth record of a source that numbers its records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from eosctl.core.workers.modes import Mode
from eosctl.sandbox.settings import GroupSpec
from eosctl.sandbox.stack import Stack
from tests.audit.proven import audited
from tests.conftest import Invoke, invoke_in
from tests.offsets.test_offset_moves_live import delivered
from tests.sandbox_fixtures import (
    PATIENCE_S,
    SLOW_SOURCE,
    added_group,
    group_flags,
    has_ended,
    rest,
    slow_config,
    wait_until,
)

pytestmark = pytest.mark.live
LOSES = "loses-records"
FAILS_AT = "0-7"
CASES: Mapping[str, Mapping[str, str]] = {
    "retriable": {},
    "for-ever": {"errors.retry.timeout": "-1"},
    "tolerated": {"errors.tolerance": "all", "transforms.f.how": "data"},
    "refused": {
        "errors.tolerance": "all", "transforms.f.how": "large", "producer.override.max.request.size": "50000",
    },
}  # fmt: skip
STACKS = [pytest.param(name, marks=pytest.mark.on(name)) for name in ("stack", "old_stack")]


@dataclass(frozen=True)
class Ended:
    """Stopped connectors, one of each case: the states that their tasks had, and what `connectors check` found then."""

    stack: Stack
    states: Mapping[str, str]
    found: Mapping[str, list[tuple[str, str]]]

    @property
    def drops(self) -> bool:
        """Whether its workers drop a record after a RetriableException (KAFKA-18073)."""
        return self.stack.state.kafka_version == "3.9.2"


@pytest.fixture(scope="module", params=STACKS)
def ended(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    """Connectors on a worker of 4.3.1, and of 3.9.2; they run side by side."""
    stack: Stack = request.getfixturevalue(request.param)
    group = GroupSpec(LOSES, (Mode.ENABLED,), worker_config={"plugin.path": str(SLOW_SOURCE)})
    with added_group(stack, group) as (url,):
        for name, more in CASES.items():
            failing = {"transforms": "f", "transforms.f.type": "eosctl.tests.Failing", "transforms.f.at": FAILS_AT}
            config = slow_config(_topic(name), tasks=1, poll_ms=500, **failing, **more)
            rest(f"{url}/connectors/{name}/config", "PUT", config)
            wait_until(lambda name=name: _state(url, name), what=f"{name} to start", timeout_s=3 * PATIENCE_S)  # type: ignore[misc]
        fails = {"refused"} | ({"retriable"} if stack.state.kafka_version != "3.9.2" else set())
        for name in CASES:
            delivered(stack, _topic(name), 5 if name in fails | {"for-ever"} else 20)
        for name in fails:  # 4.3.1 writes the status when the producer is closed, after 30 s
            wait_until(lambda name=name: _state(url, name) == "FAILED", what=f"{name} to fail")  # type: ignore[misc]
        states = {name: _state(url, name) for name in CASES}
        invoke = invoke_in(tmp_path_factory.mktemp("checked"))
        rows = invoke(*group_flags(stack, LOSES), "connectors", "check", "-o", "json").json()["data"]["rows"]
        for name in CASES:
            rest(f"{url}/connectors/{name}/stop", "PUT")
            wait_until(lambda name=name: has_ended(rest(f"{url}/connectors/{name}/status")), what=f"{name} to stop")  # type: ignore[misc]
        # its task was cancelled while Connect repeated the transformation, and left its transaction open
        fenced = invoke(*group_flags(stack, LOSES), "fence", "--connector", "for-ever", "--yes")
        assert fenced.exit_code == 0, fenced.stderr
        yield Ended(stack, states, {name: _of(name, rows) for name in CASES})


def _topic(name: str) -> str:
    return f"topic-{LOSES}-{name}"


def _state(url: str, name: str) -> str:
    return "".join(each["state"] for each in rest(f"{url}/connectors/{name}/status")["tasks"])


def _of(name: str, rows: list[Any]) -> list[tuple[str, str]]:
    return sorted((row["code"], row["severity"]) for row in rows if row["subject"] == name)


def _audit(ended: Ended, invoke: Invoke, name: str, *words: str) -> Any:
    """What the log says once the last transaction has ended: a task is FAILED before its producer has aborted.

    Without `words` an open transaction at the end is no more than an info; the values behind it are not read.
    """
    flags = group_flags(ended.stack, LOSES)
    look = ("audit", "--connector", name, "--since", "beginning", *words, "-o", "json")
    what = f"the transaction of {name} to end"
    wait_until(lambda: invoke(*flags, *look).exit_code in (0, 3), what=what, timeout_s=3 * PATIENCE_S)
    return audited(invoke, flags, name, *words)


def test_what_connect_does(ended: Ended) -> None:
    """The tasks that lose records are RUNNING, and an exactly-once task loses none that its producer refuses."""
    running = {"for-ever", "tolerated"} | ({"retriable"} if ended.drops else set())
    assert {name for name, state in ended.states.items() if state == "RUNNING"} == running
    assert {name for name, state in ended.states.items() if state == "FAILED"} == set(CASES) - running


@pytest.mark.parametrize("name", list(CASES))
def test_the_sequence_shows_what_the_transactions_do_not(ended: Ended, invoke: Invoke, name: str) -> None:
    values = delivered(ended.stack, _topic(name))
    goes_on = name == "for-ever" and ended.drops and b"0-8" in values  # it was stopped while it repeated
    lost = name == "tolerated" or (name == "retriable" and ended.drops) or goes_on
    plain, told = _audit(ended, invoke, name), _audit(ended, invoke, name, "--sequence", "value")
    assert plain.verdict == "exactly_once", plain.connector["why"]
    assert plain.connector["not_covered"]
    assert told.connector["not_covered"] == []
    assert [(row["code"], row["count"]) for row in told.rows if row["severity"] == "error"] == [("gap", 1)] * lost
    assert FAILS_AT.encode() not in values
    assert (b"0-8" in values) is lost


def test_what_is_said_before(ended: Ended) -> None:
    """Nothing stood against exactly-once."""
    filters, dropped = ("records_filtered", "info"), ("records_dropped", "warning")
    assert ended.found["for-ever"] == [filters]
    assert ended.found["tolerated"] == [dropped, filters]
    assert (("retriable_dropped", "info") in ended.found["retriable"]) is ended.drops
