"""The one way through steps: what is in the journal when, and how far a work came that was cut off."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from eosctl.errors import EosctlError, ExitCode, RefusedError, StalePlanError
from eosctl.state.journal import Journal, Note, Progress, Step, Work, carry_out
from tests.fakes.clock import FakeTime
from tests.fakes.faults import KilledError


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "it.ndjson", FakeTime().clock())


def raises(error: BaseException | None) -> None:
    if error is not None:
        raise error


def work(
    journal: Journal, *, stale: BaseException | None = None, second: BaseException | None = None,
    between: BaseException | None = None, locks: tuple[tuple[Journal, str], ...] = (),
) -> Work[str]:  # fmt: skip
    """Two steps, `one` and `two`; each may fail, or what is between them."""

    def run(name: str, error: BaseException | None) -> str:
        raises(error)
        return name.upper()

    def step(name: str, error: BaseException | None = None) -> Step[str]:
        return Step(
            name,
            partial(run, name, error),
            before=lambda: Note("start", {"step": name}),
            after=lambda said: Note("done", {"said": said}),
        )

    def steps() -> Iterator[Step[str]]:
        yield step("one")
        raises(between)
        yield step("two", second)

    return Work(steps, lambda: raises(stale), journal, "it", begin=lambda: Note("begin", {"of": "it"}), locks=locks)


def events(journal: Journal) -> list[object]:
    return [entry.get("step") or entry.get("said") or entry["event"] for entry in journal.entries()]


def test_each_step_is_in_the_journal_before_and_after(journal: Journal) -> None:
    assert carry_out(work(journal)) == Progress({"one": "ONE", "two": "TWO"})
    assert events(journal) == ["begin", "one", "ONE", "two", "TWO", "end"]


@pytest.mark.parametrize(
    ("error", "exit_code"), [(EosctlError("full"), ExitCode.PARTIAL), (KeyboardInterrupt(), ExitCode.INTERRUPTED)]
)
def test_a_step_that_fails_ends_it_with_what_was_done(
    journal: Journal, error: BaseException, exit_code: ExitCode
) -> None:
    """After Ctrl-C only the error was left, and not what the steps before it had done."""
    progress = carry_out(work(journal, second=error))
    assert (dict(progress.done), progress.failed) == ({"one": "ONE"}, "two")
    assert progress.exit_code(touched=True) is exit_code
    assert events(journal) == ["begin", "one", "ONE", "two"], "it stays open, and the next run goes on"


def test_what_fails_between_two_steps_is_no_step_that_failed(journal: Journal) -> None:
    progress = carry_out(work(journal, between=KeyboardInterrupt()))
    assert (dict(progress.done), progress.failed, progress.interrupted) == ({"one": "ONE"}, None, True)


def test_a_kill_passes_through(journal: Journal) -> None:
    with pytest.raises(KilledError):
        carry_out(work(journal, second=KilledError()))
    assert events(journal) == ["begin", "one", "ONE", "two"]


@pytest.mark.parametrize("error", [StalePlanError("changed"), KeyboardInterrupt()])
def test_nothing_begins_where_the_plan_does_not_hold_any_more(journal: Journal, error: BaseException) -> None:
    with pytest.raises(type(error)):
        carry_out(work(journal, stale=error))
    assert events(journal) == []


@pytest.mark.parametrize("held", ["it.ndjson", "other.ndjson"])
def test_nothing_begins_while_another_one_has_a_lock(journal: Journal, held: str) -> None:
    locks = [Journal(journal.path.with_name(name), journal.clock) for name in ("it.ndjson", "other.ndjson")]
    there = next(each for each in locks if each.path.name == held)
    with there.hold("it"), pytest.raises(RefusedError, match="another eosctl is at work"):
        carry_out(work(journal, locks=((locks[1], "others"),)))
    assert events(journal) == []


def test_a_feature_may_close_in_its_own_way(journal: Journal) -> None:
    none: list[Step[str]] = []
    closing = Work(lambda: none, lambda: None, journal, "it", close=lambda _all: journal.close("stopped"))
    assert carry_out(closing) == Progress({})
    assert events(journal) == ["stopped"]
