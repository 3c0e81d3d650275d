"""Deadlines: what they let pass, and what they say when they are over."""

from __future__ import annotations

import pytest

from eosctl.deadline import Deadline, Stopwatch
from eosctl.errors import DeadlineError
from tests.fakes.clock import FakeTime


@pytest.mark.parametrize(
    ("timeout_s", "least_s", "looks_at_s"),
    [(2.0, 0.0, [0.0, 1.5, 2.0]), (2.0, 0.5, [0.0, 1.5]), (0.0, 0.0, [0.0]), (0.5, 0.5, [0.0])],
)
def test_rounds_end_with_the_time(timeout_s: float, least_s: float, looks_at_s: list[float]) -> None:
    """A look that had no time failed, and with it what was known of the thing that was waited for."""
    time = FakeTime()
    deadline = Deadline.after(timeout_s, time.clock())
    assert [time.now_s for _ in deadline.rounds(1.5, least_s=least_s)] == looks_at_s
    assert str(deadline.passed("waiting")) == f"timed out after {timeout_s:g} s while waiting"


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


def test_what_passes_while_the_clock_is_stopped_does_not_count() -> None:
    time = FakeTime()
    watch = Stopwatch(time.clock())
    deadline = Deadline.after(2.0, watch.clock)
    deadline.sleep(0.5)
    with watch.stopped():
        time.sleep(3600)
    assert deadline.remaining_s() == 1.5
    assert watch.clock.now_s() == 3600.5, "the time of day goes on"
    deadline.sleep(9.0)
    assert deadline.expired()


def test_half_of_the_time_is_for_one_of_several_things() -> None:
    time = FakeTime()
    deadline = Deadline.after(60.0, time.clock())
    assert (deadline.half().remaining_s(), deadline.half(at_most_s=15).remaining_s()) == (30.0, 15.0)
    time.sleep(56.0)
    assert deadline.half(at_most_s=15).remaining_s() == 2.0
