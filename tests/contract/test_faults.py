"""The knobs that all fakes share: what a test asks for happens at that call, once, and nowhere else."""

from __future__ import annotations

import pytest

from eosctl.errors import EosctlError
from tests.fakes.faults import Call, Faults, Kill, KilledError


class Fake(Faults):
    """A fake with one method."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    def write(self, what: str) -> None:
        with self.call("write", what):
            self.done.append(what)


def _write(fake: Fake, what: str) -> str | None:
    """What went wrong."""
    try:
        fake.write(what)
    except EosctlError as exc:
        return exc.message
    return None


def test_one_call_fails_and_does_nothing() -> None:
    fake = Fake()
    fake.fail_next("write", EosctlError("no"))
    fake.fail_next("read", EosctlError("of another method"))
    assert [_write(fake, what) for what in ("a", "b")] == ["no", None]
    assert fake.done == ["b"]


def test_a_later_call_fails_and_the_ones_after_it_in_their_turn() -> None:
    fake = Fake()
    fake.fail_next("write", EosctlError("first"), skip=1)
    fake.fail_next("write", EosctlError("second"))
    assert [_write(fake, what) for what in "abcd"] == [None, "first", "second", None]
    assert fake.done == ["a", "d"]


def test_every_call_may_fail() -> None:
    fake = Fake()
    fake.fail_always("write", EosctlError("no right"))
    assert [_write(fake, what) for what in "ab"] == ["no right"] * 2
    assert fake.done == []


def test_the_answer_may_be_lost_although_the_work_was_done() -> None:
    fake = Fake()
    fake.fail_next("write", EosctlError("lost"), done=True)
    assert _write(fake, "a") == "lost"
    assert fake.done == ["a"]


def test_callbacks_run_before_and_after_with_the_call_that_was_made() -> None:
    fake, seen = Fake(), list[tuple[object, ...]]()
    fake.before("*", lambda call: seen.append((call.method, call.what, list(fake.done))))
    fake.after("write", lambda call: seen.append((call.method, call.what, list(fake.done))))
    fake.after("read", lambda call: seen.append(call))
    fake.write("a")
    assert seen == [("write", ("a",), []), ("write", ("a",), ["a"])]


def test_nothing_runs_after_a_call_that_was_refused() -> None:
    fake, seen = Fake(), list[Call]()
    fake.fail_next("write", EosctlError("no"))
    fake.after("*", seen.append)
    assert (_write(fake, "a"), seen) == ("no", [])


@pytest.mark.parametrize(("at", "done"), [(1, []), (2, ["a"]), (3, ["a"]), (4, ["a", "b"]), (5, ["a", "b"])])
def test_a_process_may_die_before_and_after_each_call(at: int, done: list[str]) -> None:
    fake, kill = Fake(), Kill(at)
    fake.before("*", kill.tick)
    fake.after("*", kill.tick)
    try:
        fake.write("a")
        fake.write("b")
        died = False
    except KilledError:
        died = True
    assert died == (at < 5)
    assert (fake.done, kill.ticks) == (done, min(at, 4))
