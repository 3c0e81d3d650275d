"""`upgrade apply` while somebody else changes the group, and workers and tasks that come back in another way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import TransactionalId
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Event
from eosctl.errors import ExitCode, RefusedError, StalePlanError, UnauthorizedError
from eosctl.upgrade.drivers import DriverResult
from eosctl.upgrade.roll.prepare import RollRequest, prepare_roll
from eosctl.upgrade.roll.roll import apply_roll
from eosctl.upgrade.roll.states import describe_ids, ids_of_tasks, without_ids
from eosctl.upgrade.status import verify_upgrade
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.faults import KilledError
from tests.fakes.rolling import W1, W2, W3, FakeDriver, RollWorld, outcomes, roll, world

RENAMED = "http://w2-new:8083"


def restart(there: RollWorld, url: str) -> None:
    """What another operator does."""
    there.stop(url)
    there.start(url)
    there.settle()


def after(there: RollWorld, app: App, message: str, happens: Callable[[], object]) -> App:
    """The App, and something that happens when it tells `message`."""

    def listen(event: Event) -> None:
        there.events.append(event)
        if event.message == message:
            happens()

    return replace(app, on_event=listen)


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (lambda there: restart(there, W3), f"{W3} joined again"),
        (lambda there: (there.stop(W3), there.settle()), f"{W3} left"),
        (lambda there: (there.files.update({"http://w4:8083": "disabled"}), there.start("http://w4:8083"),
                        there.settle()), "http://w4:8083 joined"),
    ],
)  # fmt: skip
def test_no_further_worker_is_restarted_when_the_group_is_not_as_the_roll_left_it(
    tmp_path: Path, happens: Callable[[RollWorld], object], said: str
) -> None:
    """Two operators on two machines restarted workers side by side: neither sees the lock of the other."""
    there = world(w1="disabled", w2="disabled", w3="disabled")
    app = after(there, there.app(tmp_path), f"{W2}: preparing, everything as before", lambda: happens(there))
    stopped = roll(app, FakeDriver(there))
    assert (stopped.exit_code, outcomes(stopped)[0][2]) == (ExitCode.PARTIAL, "done")
    message = f"the group changes under this upgrade: {said}, which it had not restarted"
    assert stopped.problems[0].message == message
    assert "--resume then continues" in str(stopped.problems[0].hint)
    assert [mode for url, mode in there.starts if mode == "preparing"] == ["preparing"]


def test_a_worker_that_somebody_else_restarts_during_a_step_ends_it(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled", w3="disabled")

    def by_somebody_else(url: str) -> None:
        if url == W2:
            there.stop(W3)
            there.start(W3)

    there.after_start.append(by_somebody_else)
    stopped = roll(there.app(tmp_path), FakeDriver(there))
    assert outcomes(stopped)[0] == ("preparing", W2, "failed")
    assert f"{W3} joined again" in stopped.problems[0].message
    there.after_start.clear()
    assert roll(there.app(tmp_path), FakeDriver(there), None, resume=True).exit_code is ExitCode.OK
    assert set(there.workers.values()) == {"enabled"}


def test_a_group_whose_workers_were_restarted_since_the_plan_was_shown_is_not_changed(tmp_path: Path) -> None:
    """Each worker is in the mode that the plan saw, and another upgrade may be under way."""
    there = world(w1="disabled", w2="disabled")
    app, driver = there.app(tmp_path), FakeDriver(there)
    prepared = prepare_roll(app, RollRequest(Mode.ENABLED), driver)
    restart(there, W2)
    with pytest.raises(StalePlanError, match="restarted, joined or left since the plan was shown"):
        apply_roll(app, prepared)


@pytest.mark.parametrize(("id_after_s", "exit_code"), [(20.0, ExitCode.OK), (10_000.0, ExitCode.PARTIAL)])
def test_a_task_counts_as_back_when_it_has_its_transactional_id(
    tmp_path: Path, id_after_s: float, exit_code: ExitCode
) -> None:
    """REST says RUNNING while the task still waits for a fencing round: the next worker went down meanwhile."""
    there = world(w1="disabled", w2="disabled")
    there.id_after_s = id_after_s
    done = roll(there.app(tmp_path), FakeDriver(there))
    waited = [event.message for event in there.events if "has not taken its transactional id" in event.message]
    assert waited
    assert all("waiting: a/0 has not taken its transactional id" in message for message in waited)
    assert done.exit_code is exit_code


@pytest.mark.parametrize(
    ("before", "now", "idle"),
    [
        (None, None, True),
        (None, FakeTransaction(7, 0), False),
        (None, FakeTransaction(7, 0, timeout_ms=1), True),
        (FakeTransaction(7, 3), FakeTransaction(7, 3), True),
        (FakeTransaction(7, 3), FakeTransaction(7, 4), False),
        (FakeTransaction(7, 3), FakeTransaction(8, 0), False),
        (FakeTransaction(7, 3), FakeTransaction(7, 4, timeout_ms=90_000), True),
        (FakeTransaction(7, 3, timeout_ms=90_000), FakeTransaction(7, 4, timeout_ms=90_000), False),
    ],
)
def test_an_id_that_only_a_fencing_round_touched_is_not_the_tasks_yet(
    tmp_path: Path, before: FakeTransaction | None, now: FakeTransaction | None, idle: bool
) -> None:
    there, ids = world(w1="enabled"), {("a", 0): TransactionalId("g-a-0")}
    known, app = there.topics.state.transactions, there.app(tmp_path)
    known.clear()
    known |= {} if before is None else {"g-a-0": before}
    then = describe_ids(app, ids)
    known.clear()
    known |= {} if now is None else {"g-a-0": now}
    assert without_ids(app, ids, then) == ([("a", 0)] if idle else [])


def test_ids_in_another_kafka_cluster_are_not_looked_for_in_this_one(tmp_path: Path) -> None:
    there = world(w1="enabled")
    there.connect.add("mirror", {"producer.override.bootstrap.servers": "elsewhere:9092"})
    assert ids_of_tasks(there.app(tmp_path), there.connect.worker().connectors()) == {("a", 0): "g-a-0"}


class Renaming(FakeDriver):
    """W2 comes back under another URL, as a pod or a machine with another address does."""

    def bring(self, app: App, workers: Sequence[str], mode: Mode) -> DriverResult:
        (url,) = workers
        if url != W2:
            return super().bring(app, workers, mode)
        self.world.stop(W2)
        self.world.files[RENAMED] = mode.value
        self.world.start(RENAMED)
        return DriverResult("restarted")


def test_a_worker_that_returns_under_another_url_is_known_again(tmp_path: Path) -> None:
    """It was waited for under the old one until the time was over, and was a stranger in the next pass."""
    there = world(w1="disabled", w2="disabled", w3="disabled")
    done = roll(there.app(tmp_path), Renaming(there))
    assert done.exit_code is ExitCode.OK, done.problems
    assert there.workers == {RENAMED: "enabled", W1: "enabled", W3: "enabled"}
    rows = {(row.mode, row.worker): row for row in done.rows}
    assert {row.outcome for row in rows.values()} == {"done"}
    assert f"{W2} came back as {RENAMED}" in str(rows["preparing", W2].detail)
    assert verify_upgrade(there.app(tmp_path), Mode.ENABLED).exit_code is ExitCode.OK, "the old URL is not missed"


def test_a_run_that_is_resumed_knows_it_under_its_new_url(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled", w3="disabled")
    there.after_start.append(lambda url: there.crashes.add(W3) if url == RENAMED else None)
    assert outcomes(roll(there.app(tmp_path), Renaming(there)))[1] == ("preparing", W3, "failed")
    there.after_start.clear()
    done = roll(there.app(tmp_path), Renaming(there), None, resume=True)
    assert (done.exit_code, set(there.workers)) == (ExitCode.OK, {RENAMED, W1, W3}), done.problems


class Killed(FakeDriver):
    """The process dies before it restarts anything."""

    def bring(self, app: App, workers: Sequence[str], mode: Mode) -> DriverResult:
        raise KilledError


def another_begins(there: RollWorld, tmp_path: Path) -> None:
    """On another machine, whose journals are its own; it is killed before it restarts anything."""
    elsewhere = there.app(tmp_path / "elsewhere")
    with pytest.raises(KilledError):
        roll(elsewhere, Killed(there), Mode.PREPARING)


def test_an_upgrade_that_is_begun_elsewhere_ends_this_one_before_its_next_restart(tmp_path: Path) -> None:
    """They met at the first change only: each restarted a worker, at the same time."""
    there = world(w1="disabled", w2="disabled", w3="disabled")
    done_one = f"{W2}: preparing, everything as before"
    app = after(there, there.app(tmp_path / "here"), done_one, lambda: another_begins(there, tmp_path))
    stopped = roll(app, FakeDriver(there))
    assert [mode for _url, mode in there.starts] == ["preparing"], "no worker is restarted by either"
    assert (stopped.exit_code, outcomes(stopped)[1][2]) == (ExitCode.PARTIAL, "failed")
    assert "another eosctl began to work at group g: eosctl-config-g" in stopped.problems[0].message
    assert "--resume continues when that is over" in str(stopped.problems[0].hint)
    again = roll(there.app(tmp_path / "here"), FakeDriver(there), None, resume=True)
    assert (again.exit_code, set(there.workers.values())) == (ExitCode.OK, {"enabled"}), again.problems


def test_an_upgrade_does_not_cut_off_another_eosctl_that_writes_now(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")
    there.topics.state.transactions["eosctl-config-g"] = FakeTransaction(9, 0, state="Ongoing")
    with pytest.raises(RefusedError, match="another eosctl writes to the config topic of group g now"):
        roll(there.app(tmp_path), FakeDriver(there))
    assert there.starts == []


def test_without_the_right_to_tell_others_it_goes_on_and_says_so(tmp_path: Path) -> None:
    there = world(w1="disabled")
    there.brokers.calls.fail_always("fence", UnauthorizedError("not authorized"))
    assert roll(there.app(tmp_path), FakeDriver(there)).exit_code is ExitCode.OK
    said = [event.message for event in there.events if "eosctl-config-g" in event.message]
    assert said == ["an upgrade that is begun elsewhere would not be noticed at once: eosctl-config-g: not authorized"]
