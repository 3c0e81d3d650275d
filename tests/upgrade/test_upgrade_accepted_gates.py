"""Gates that can't be told stop `upgrade apply` where they guard data, unless they are accepted by name."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.errors import DeadlineError, ExitCode, UsageError
from eosctl.observation.gather import PARALLEL_VALIDATIONS
from eosctl.upgrade.apply_rows import ApplyData
from eosctl.upgrade.roll.prepare import RollRequest, prepare_roll
from eosctl.upgrade.roll.report import plan_report
from tests.fakes.clock import PLENTY_S
from tests.fakes.faults import Call
from tests.fakes.rolling import W1, FakeDriver, RollWorld, outcomes, roll, world
from tests.fakes.world import OFFSETS

TIMED_OUT = DeadlineError("timed out after 60 s while reading connect-offsets")
ABORTED = "no_aborted_offsets"


def blind_to_offsets(there: RollWorld) -> Callable[[], None]:
    """From now on no read of the offsets topic ends in time; returns what lets it."""
    blind = [True]

    def times_out(call: Call) -> None:
        if blind and call.what[0] == OFFSETS:
            raise TIMED_OUT

    there.topics.before("read", times_out)
    return blind.clear


def reading_takes(there: RollWorld, app: App, seconds: Callable[[], float]) -> App:
    """The App; the first read of each look takes so long, and fails where the look has not so much time."""
    looks: list[App] = []
    read: list[App] = []

    def open_topics(here: App) -> object:
        looks.append(here)
        return there.topics

    def slow(_call: Call) -> None:
        here = looks[-1]
        if not any(each is here for each in read):
            read.append(here)
            there.time.sleep(seconds())
            here.deadline.check("reading")

    there.topics.before("read", slow)
    return replace(app, open_topics=open_topics)


def test_what_guards_data_and_cannot_be_told_refuses_the_roll(tmp_path: Path) -> None:
    """It used to be exit code 0: workers became disabled over aborted offsets, and source records were skipped."""
    there = world(w1="enabled", w2="enabled")
    see = blind_to_offsets(there)
    request, driver = RollRequest(Mode.DISABLED), FakeDriver(there)
    refused = plan_report(there.app(tmp_path), prepare_roll(there.app(tmp_path), request, driver))
    assert (refused.exit_code, [each.code for each in refused.problems]) == (ExitCode.REFUSED, [ABORTED])
    (problem,) = refused.problems
    assert problem.message == f"gate {ABORTED} is unknown: {TIMED_OUT.message}; nothing was written"
    assert str(problem.hint).endswith(
        "--accept-gate no_aborted_offsets continues as it is. --timeout gives a look more time."
    )
    see()
    assert plan_report(there.app(tmp_path), prepare_roll(there.app(tmp_path), request, driver)).exit_code is ExitCode.OK


def test_no_pass_begins_while_what_guards_data_cannot_be_told(tmp_path: Path) -> None:
    there = world(w1="enabled", w2="enabled")
    undo: list[Callable[[], None]] = []
    there.after_start.append(lambda url: undo.append(blind_to_offsets(there)) if url == W1 else None)
    stopped = roll(there.app(tmp_path), FakeDriver(there), Mode.DISABLED)
    assert (stopped.exit_code, set(there.workers.values())) == (ExitCode.PARTIAL, {"preparing"})
    assert stopped.problems[0].message.startswith(
        f"no worker may become disabled now: gate {ABORTED} is unknown: timed out"
    )
    assert "--accept-gate no_aborted_offsets" in str(stopped.problems[0].hint)
    done = roll(there.app(tmp_path), FakeDriver(there), None, resume=True, accepted=frozenset({ABORTED}))
    assert (done.exit_code, set(there.workers.values())) == (ExitCode.OK, {"disabled"})
    (gate,) = done.data_of(ApplyData).gates
    assert (gate.id, gate.status, gate.accepted) == (ABORTED, "unknown", True)
    (journal,) = tmp_path.rglob("upgrade-*.ndjson")
    assert '"accepted_gates": ["no_aborted_offsets"]' in journal.read_text()


def test_what_was_unknown_and_is_known_is_not_said_again_at_the_end(tmp_path: Path) -> None:
    """The result repeated the gates of the plan: unknown modes, though each worker had been proven since."""
    there = world(w1="disabled", w2="disabled")
    see = blind_to_offsets(there)
    there.after_start.append(lambda url: see() if url == W1 else None)
    app, accepted = there.app(tmp_path), frozenset({ABORTED})
    plan = plan_report(app, prepare_roll(app, RollRequest(Mode.DISABLED, accepted=accepted), FakeDriver(there)))
    assert [row.id for row in plan.data_of(ApplyData).gates] == ["modes_proven", ABORTED]
    done = roll(app, FakeDriver(there), accepted=accepted)
    assert (done.exit_code, done.data.gates) == (ExitCode.OK, [])


@pytest.mark.parametrize("takes_s", [[45.0], [45.0, 45.0, 80.0]])
def test_a_look_has_the_time_that_timeout_and_the_look_before_say(tmp_path: Path, takes_s: list[float]) -> None:
    """It was cut off after 30 s, whatever --timeout said; then all that reads tell was unknown."""
    there = world(w1="enabled", w2="enabled")
    left = list(takes_s)
    app = reading_takes(there, there.app(tmp_path, timeout_s=60.0), lambda: left.pop(0) if left[1:] else left[0])
    done = roll(app, FakeDriver(there), Mode.DISABLED)
    assert (done.exit_code, set(there.workers.values())) == (ExitCode.OK, {"disabled"}), done.problems


def test_a_connector_that_failed_weeks_ago_is_left_as_it_is_where_that_is_accepted(tmp_path: Path) -> None:
    """A sink that nobody needs any more kept a group from exactly-once; what fails besides still stops the roll."""
    there = world(w1="disabled", w2="disabled")
    sink = there.connect.add("old-sink", {"topics": "t"})

    def fails_again(_call: Call) -> None:
        sink.fail(trace="java.io.IOException: disk")

    fails_again(Call("start_task"))
    there.connect.after("start_task", fails_again)
    app, driver, accepted = there.app(tmp_path), FakeDriver(there), frozenset({"connectors_healthy"})
    assert prepare_roll(app, RollRequest(Mode.ENABLED), driver).blocking
    there.after_start.append(lambda _url: there.connector.fail(trace="boom") if len(there.starts) == 2 else None)
    stopped = roll(app, driver, accepted=accepted)
    assert "gate connectors_healthy: a/0 is FAILED: boom" in stopped.problems[0].message
    there.after_start.clear()
    there.connector.heal()
    done = roll(there.app(tmp_path), driver, None, resume=True, accepted=accepted)
    assert (done.exit_code, set(there.workers.values())) == (ExitCode.OK, {"enabled"}), done.problems
    assert {outcome for *_who, outcome in outcomes(done)} == {"done", "done_before"}
    assert str(done.rows[-1].detail).endswith("old-sink/0 is FAILED, as it was before")


def test_a_gate_has_to_be_named_as_it_is(tmp_path: Path) -> None:
    there = world(w1="disabled")
    with pytest.raises(UsageError, match="there is no gate connector_health") as caught:
        prepare_roll(there.app(tmp_path), RollRequest(accepted=frozenset({"connector_health"})), FakeDriver(there))
    assert "connectors_healthy" in str(caught.value.hint)


def test_connectors_are_validated_side_by_side_and_after_what_guards_data(tmp_path: Path) -> None:
    """Twenty connectors of two seconds each took all the time that the look had, before anything else was looked at."""
    there = world(w1="disabled", w2="disabled")
    for number in range(PARALLEL_VALIDATIONS - 1):
        there.connect.add(f"c{number}")
    together, late = threading.Barrier(PARALLEL_VALIDATIONS), []

    def validates(call: Call) -> None:
        if cast(dict[str, str], call.what[2]).get("name") in there.connect.connectors:
            together.wait(timeout=PLENTY_S)
            late.append(call)

    def reads(_call: Call) -> None:
        assert not late, "a connector was validated first"

    there.connect.before("validate", validates)
    there.topics.before("read", reads)
    app = there.app(tmp_path)
    view = prepare_roll(app, RollRequest(Mode.ENABLED), FakeDriver(there)).view
    assert {each.support_errors for each in view.observation.sources()} != {None}
    assert len(late) == PARALLEL_VALIDATIONS
