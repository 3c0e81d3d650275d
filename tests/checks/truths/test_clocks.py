"""The clocks of workers beside ours: who is named, and who is not, as our own clock may be the wrong one."""

from __future__ import annotations

import pytest

from tests.checks.truths.test_statuses import row_of, told, two_workers, written
from tests.conftest import Invoke
from tests.fakes.config_world import ConfigWorld
from tests.fakes.doctor_scene import W1, W2, cluster, doctor

W3 = "http://w3:8083"
HOUR_S = 3600.0


def scene(workers: int, **ahead_s: float) -> ConfigWorld:
    """So many workers, w1 and w2 and w3, some with clocks that are ahead."""
    there = cluster(modes=dict.fromkeys((W1, W2, W3)[:workers], "enabled"))
    there.connect.clocks_ahead_s.update({f"http://{name}:8083": seconds for name, seconds in ahead_s.items()})
    return there


def test_a_worker_whose_clock_is_far_ahead_is_named(invoke: Invoke) -> None:
    """Brokers refused all that it wrote, and nothing named it: not its clock, and not even the worker."""
    there = scene(3, w3=65 * 60)
    assert told(invoke, there, 3) == [("clock_differs", W3, "error")]
    row = row_of(invoke, there, "clock_differs")
    assert row["evidence"]["ahead_ms"] == pytest.approx(3_900_000, abs=1000)
    assert "InvalidTimestampException" in row["message"]


@pytest.mark.parametrize("ahead_s", [-59, 0, 59])
def test_a_minute_is_nothing(invoke: Invoke, ahead_s: int) -> None:
    assert told(invoke, scene(2, w2=ahead_s), 0) == []


@pytest.mark.parametrize("ahead_s", [-70, 70])
def test_two_minutes_are_a_warning(invoke: Invoke, ahead_s: int) -> None:
    assert told(invoke, scene(2, w2=ahead_s), 0) == [("clock_differs", W2, "warning")]


def test_our_own_clock_is_the_wrong_one_where_all_workers_agree_against_it(invoke: Invoke) -> None:
    """No worker is named, whose brokers take all that it writes."""
    there = scene(3, w1=2 * HOUR_S, w2=2 * HOUR_S, w3=2 * HOUR_S + 5)
    assert told(invoke, there, 0) == [("clock_differs", "this machine", "warning")]


def test_of_two_clocks_nobody_knows_which_is_right(invoke: Invoke) -> None:
    there = scene(1, w1=2 * HOUR_S)
    assert told(invoke, there, 0) == [("clock_differs", W1, "warning")]
    row = row_of(invoke, there, "clock_differs")
    assert (row["evidence"]["blamed"], "no third one" in row["message"]) == (False, True)


def test_two_workers_of_one_host_have_one_clock(invoke: Invoke) -> None:
    same = "http://w2:8084"
    there = cluster(modes=dict.fromkeys((W2, same), "enabled"))
    there.connect.clocks_ahead_s.update({W2: 2 * HOUR_S, same: 2 * HOUR_S})
    rows = doctor(invoke, there, "-o", "json").json()["data"]["rows"]
    assert [row["evidence"]["blamed"] for row in rows if row["code"] == "clock_differs"] == [False, False]


def test_a_coordinator_that_is_further_on_tells_that_it_is_ours(invoke: Invoke) -> None:
    there = scene(1, w1=300)
    known = there.brokers.state.transactions["g-orders-0"]
    known.state, known.started_ms = "CompleteCommit", there.clock().now_ms() + 299_000
    assert [each for each in told(invoke, there, 0) if each[0] == "clock_differs"] == [
        ("clock_differs", "this machine", "warning")
    ]


def test_an_answer_without_a_date_tells_nothing(invoke: Invoke) -> None:
    there = scene(2)
    there.connect.clocks_ahead_s[W2] = None
    assert told(invoke, there, 0) == []


def test_what_such_a_worker_does_not_write_is_named_beside_it(invoke: Invoke) -> None:
    """Its connectors had no worker, and the log of another one was to be read."""
    there = two_workers()
    payments = there.connect.connectors["payments"]
    payments.state = payments.tasks[0].state = "UNASSIGNED"
    written(there, 400)
    there.connect.clocks_ahead_s[W2] = 65 * 60
    assert told(invoke, there, 3) == [("clock_differs", W2, "error"), ("status_not_written", "w2:8083", "error")]
