"""What is said of a RUNNING task whose transaction its coordinator has aborted at the timeout."""

from __future__ import annotations

from typing import Any

import pytest

from eosctl.core.transaction_log import TOPIC
from eosctl.errors import UnauthorizedError
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.fakes.config_topic import config_records, created
from tests.fakes.config_world import ConfigWorld
from tests.fakes.doctor_scene import WHERE, cluster, doctor, found, row_of
from tests.fakes.partitions import FakePartition

ID = "g-orders-0"
CODE = "aborted_at_timeout"


def scene(boundary: str = "connector", **changes: Any) -> ConfigWorld:
    """orders/0 begins a transaction at its first record."""
    config = {"transaction.boundary": boundary}
    there = cluster(records=config_records(*created("orders", 1, record=1, config=config)), **changes)
    there.connect.connectors["orders"].config |= config
    there.topics.add_topic("lines", 1, {})
    state = there.brokers.state
    state.keeps_log = True
    state.open_transaction(ID, ("lines", 0))
    return there


def timeout(there: ConfigWorld, seconds: float = 63) -> None:
    there.time.now_s += seconds
    there.brokers.state.expire(ID)


def codes(invoke: Invoke, there: ConfigWorld, exit_code: int) -> dict[str, str]:
    return {code: severity for _check, code, severity in found(invoke, there, exit_code)}


@pytest.mark.parametrize(
    ("boundary", "said"), [("connector", "transaction.boundary=poll"), ("interval", "log of w1:8083")]
)
def test_the_task_is_named_and_started_again_by_hand(invoke: Invoke, boundary: str, said: str) -> None:
    """doctor exited with 0, and said exactly-once; five minutes later there was a warning that the source is idle."""
    there = scene(boundary)
    timeout(there)
    row = row_of(invoke, there, CODE)
    assert (row["severity"], row["subject"], row["check"]) == ("error", "orders/0", "connectors")
    assert (row["evidence"]["open_ms"], row["evidence"]["transaction_timeout_ms"]) == (63_000, 60_000)
    assert row["fix"].startswith("`eosctl connectors restart orders`")
    assert said in row["fix"]
    assert doctor(invoke, there).exit_code == 3


def test_it_is_the_same_for_connectors_check_and_upgrade_verify(invoke: Invoke) -> None:
    there = scene()
    timeout(there)
    checked = invoke("connectors", "check", *WHERE, "-o", "json", **there.surroundings)
    assert CODE in {row["code"] for row in envelope_of(checked, "connectors-check", 3)["data"]["rows"]}
    verified = invoke("upgrade", "verify", "--to", "enabled", *WHERE, "-o", "json", **there.surroundings)
    rows = envelope_of(verified, "upgrade-verify", 3)["data"]["rows"]
    assert "connectors_healthy" in {row["code"] for row in rows}


def test_it_is_not_also_called_idle(invoke: Invoke) -> None:
    there = scene()
    timeout(there)
    there.time.now_s += 3600
    assert {CODE: "error"}.items() <= codes(invoke, there, 3).items()
    assert "nothing_committed" not in codes(invoke, there, 3)


def test_after_a_restart_nothing_is_said(invoke: Invoke) -> None:
    """The new producer asks for its id."""
    there = scene()
    timeout(there)
    there.brokers.state.init_producer_id(ID, 60_000)
    assert CODE not in codes(invoke, there, 0)


def test_an_abort_of_the_connectors_own_is_none(invoke: Invoke) -> None:
    """One that says itself when to commit may also abort, and go on."""
    there = scene()
    known = there.brokers.state.transactions[ID]
    there.time.now_s += 5
    there.brokers.state.end_transaction(ID, (known.producer_id, known.producer_epoch), commit=False)
    there.time.now_s += 100
    assert CODE not in codes(invoke, there, 0)


@pytest.mark.parametrize("state", ["FAILED", "PAUSED", "UNASSIGNED"])
def test_a_task_that_does_not_run_is_none(invoke: Invoke, state: str) -> None:
    there = scene()
    timeout(there)
    there.connect.connectors["orders"].tasks[0].state = state
    rows = doctor(invoke, there, "-o", "json").json()["data"]["rows"]
    assert CODE not in {row["code"] for row in rows}


def test_how_it_ended_may_not_be_known(invoke: Invoke) -> None:
    there = scene(faults={TOPIC: UnauthorizedError("not allowed")})
    timeout(there)
    row = row_of(invoke, there, CODE)
    assert (row["severity"], row["subject"]) == ("warning", "orders/0")
    assert "not allowed" in row["message"]


def test_the_log_may_no_longer_tell(invoke: Invoke) -> None:
    """A partition of the log may be large, and only its end is read."""
    there = scene()
    timeout(there)
    there.topics.named(TOPIC).partitions.clear()
    there.topics.named(TOPIC).partitions += [FakePartition() for _ in range(50)]
    assert row_of(invoke, there, CODE)["severity"] == "warning"
