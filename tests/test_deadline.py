"""Deadlines: what they let pass, and what they say when they are over."""

from __future__ import annotations

import pytest

from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError
from tests.fakes.clock import FakeTime


def test_a_look_that_would_have_no_time_is_not_waited_for() -> None:
    """The look itself failed then, and with it what was known of the thing that was waited for."""
    time = FakeTime()
    deadline = Deadline.after(2.0, time.clock())
    deadline.pause(1.5, "waiting for nothing")
    with pytest.raises(DeadlineError, match="timed out after 2 s while waiting for nothing"):
        deadline.pause(0.5, "waiting for nothing")
    assert (time.now_s, deadline.expired()) == (1.5, False)


def test_a_check_passes_until_the_time_is_over() -> None:
    time = FakeTime()
    deadline = Deadline.after(2.0, time.clock())
    deadline.check("waiting")
    deadline.sleep(5.0)
    assert time.slept == [2.0]
    with pytest.raises(DeadlineError, match="timed out after 2 s while waiting"):
        deadline.check("waiting")


def test_what_others_do_happens_in_the_order_of_time() -> None:
    time, done = FakeTime(), list[tuple[str, float]]()
    time.later(2.0, lambda: done.append(("second", time.now_s)))
    time.later(1.0, lambda: time.later(0.5, lambda: done.append(("first", time.now_s))))
    time.later(9.0, lambda: done.append(("never", time.now_s)))
    time.sleep(3.0)
    assert (done, time.now_s) == ([("first", 1.5), ("second", 2.0)], 3.0)
