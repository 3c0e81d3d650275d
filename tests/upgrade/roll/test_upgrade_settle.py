"""What stands after each step of `upgrade apply`: who must be back, in which mode, and how that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.transactions import KafkaFault
from eosctl.core.workers.modes import Mode
from eosctl.errors import ConnectError, ExitCode
from eosctl.ports import TransactionAdmin
from eosctl.upgrade.drivers import DriverResult
from eosctl.upgrade.drivers.commands import PrintDriver
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.faults import Call
from tests.fakes.rolling import LEADER_ID, W1, W2, W3, FakeDriver, RollWorld, outcomes, roll, world


def messages(there: RollWorld) -> list[str]:
    return [event.message for event in there.events]


class Slow(FakeDriver):
    """A worker that was restarted joins its group after some seconds."""

    def bring(self, _app: App, workers: Sequence[str], mode: Mode) -> DriverResult:
        (url,) = workers
        self.world.stop(url)
        self.world.files[url] = mode.value
        self.world.time.later(7, lambda: self.world.start(url))
        return DriverResult("restarted")


def test_a_worker_that_takes_its_time_is_waited_for(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")
    assert roll(there.app(tmp_path), Slow(there)).exit_code is ExitCode.OK
    assert f"{W2}: waiting: not in the group: {W2}" in messages(there)


def test_a_worker_that_leaves_during_the_step_of_another_is_missed(tmp_path: Path) -> None:
    """The step did its own part, and the group is one worker short all the same."""
    there = world(w1="disabled", w2="disabled", w3="disabled")
    there.after_start.append(lambda _url: there.stop(W3))
    report = roll(there.app(tmp_path), FakeDriver(there))
    assert outcomes(report)[0] == ("preparing", W2, "failed")
    assert report.problems[0].message == f"{W2}: not settled after 60 s; still waiting: not in the group: {W3}"


def test_a_worker_that_joins_anew_while_it_is_looked_at_is_looked_at_again(tmp_path: Path) -> None:
    """What the new member did counted for the former one, and `verify` then knew nothing of the new one."""
    there = world(w1="disabled", w2="disabled")
    to_join_anew: list[str] = []
    there.after_start.append(lambda url: to_join_anew.append(url) if len(there.starts) == 1 else None)

    def join_anew(_call: Call) -> None:
        if to_join_anew:
            there.stop(to_join_anew[0])
            there.start(to_join_anew.pop())

    there.connect.after("connectors", join_anew)
    report = roll(there.app(tmp_path), FakeDriver(there), Mode.PREPARING)
    assert (report.exit_code, {outcome for *_who, outcome in outcomes(report)}) == (ExitCode.OK, {"done"})
    assert f"{W2}: waiting: the group has other members than a moment ago" in messages(there)


def test_a_mode_that_nothing_tells_is_waited_for(tmp_path: Path) -> None:
    """That a worker was restarted says what its mode is only where the worker itself says that it is not enabled."""
    there = world(w1="disabled", w2="disabled")

    def no_longer_tells(_url: str) -> None:
        there.time.later(20, there.connect.fail_always("validate", ConnectError("500: plugin not found")))

    there.after_start.append(no_longer_tells)
    assert roll(there.app(tmp_path), FakeDriver(there), Mode.PREPARING).exit_code is ExitCode.OK
    (waited,) = {message for message in messages(there) if message.startswith(f"{W2}: waiting")}
    assert waited.startswith(f"{W2}: waiting: the mode of {W2} is not known yet: validating")


def test_what_rest_tells_for_a_moment_after_a_restart_is_no_second_failure(tmp_path: Path) -> None:
    """The former FAILED state is told until the restarted task has said something of its own."""
    there = world(w1="disabled", w2="disabled")
    fencing = "org.apache.kafka.connect.errors.ConnectException: Failed to perform zombie fencing"

    def still_told(_call: Call) -> None:
        for tenths in range(100):
            there.time.later(tenths / 10, lambda: there.connector.fail(trace=fencing))
        there.time.later(10, there.connector.heal)

    there.connect.after("restart", still_told)
    there.after_start.append(lambda url: there.connector.fail(trace=fencing) if url == W2 else None)
    assert roll(there.app(tmp_path), FakeDriver(there), Mode.PREPARING).exit_code is ExitCode.OK
    assert there.restarts == ["a"]


def test_a_disabled_worker_that_leads_claims_nothing_and_is_not_waited_for(tmp_path: Path) -> None:
    there = world(w1="preparing", w2="preparing")

    def lead(url: str) -> None:
        there.connect.modes = {url: there.workers[url], **there.workers}

    there.after_start.append(lead)
    report = roll(there.app(tmp_path), FakeDriver(there), Mode.DISABLED)
    assert (report.exit_code, {outcome for *_who, outcome in outcomes(report)}) == (ExitCode.OK, {"done"})


def test_who_leads_on_has_its_transactional_id_already(tmp_path: Path) -> None:
    there = world(w1="preparing", w2="disabled")
    claimed = there.topics.state.transactions[LEADER_ID] = FakeTransaction(1, 4)

    def nobody_claims(_call: Call) -> None:
        claimed.producer_epoch = 4 if there.connect.leader == W1 else claimed.producer_epoch

    there.connect.after("rebalance", nobody_claims)
    report = roll(there.app(tmp_path), FakeDriver(there), Mode.PREPARING)
    assert (report.exit_code, {outcome for *_who, outcome in outcomes(report)}) == (ExitCode.OK, {"done"})


def test_where_coordinators_do_not_tell_who_claimed_it_nothing_follows_from_that(tmp_path: Path) -> None:
    """Without DESCRIBE on the leader's id the roll would wait until its time is over."""
    there = world(w1="disabled", w2="disabled")
    app = there.app(tmp_path)
    admin = app.open_transactions(app)
    app = replace(app, open_transactions=lambda _app: cast(TransactionAdmin, Unauthorized(admin)))
    assert roll(app, FakeDriver(there), Mode.PREPARING).exit_code is ExitCode.OK


class Unauthorized:
    """TransactionAdmin that may describe no transactional id."""

    def __init__(self, admin: TransactionAdmin) -> None:
        self._admin = admin

    def __enter__(self) -> Unauthorized:
        return self

    def __exit__(self, *_exc: object) -> None: ...

    def __getattr__(self, name: str) -> object:
        return getattr(self._admin, name)

    def describe_transactions(self, ids: Sequence[str]) -> dict[str, KafkaFault]:
        return {each: KafkaFault(53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED") for each in ids}


def test_who_is_back_has_no_more_time_than_any_other(tmp_path: Path) -> None:
    """A person may take hours to restart a worker; once that is done, its tasks may not."""
    there = world(w1="enabled", w2="enabled")

    class Person(PrintDriver, frozen=True):
        def bring(self, app: App, workers: Sequence[str], mode: Mode) -> DriverResult:
            there.time.later(200, lambda: self.restart(workers[0], mode))
            return super().bring(app, workers, mode)

        def restart(self, url: str, mode: Mode) -> None:
            there.files[url] = mode.value
            there.hold_task("UNASSIGNED")
            there.stop(url)
            there.start(url)
            there.time.later(1000, give_up)

    def give_up() -> None:
        raise AssertionError("it waits without end")

    report = roll(there.app(tmp_path), Person(), Mode.PREPARING)
    assert report.exit_code is ExitCode.PARTIAL
    assert report.problems[0].message == f"{W2}: not settled after 60 s; still waiting: a/0 is UNASSIGNED"
    assert 200 < there.time.now_s < 300


@dataclass
class TwoFiles(FakeDriver):
    """A driver that knows two properties files of w2, and changes as many of them as `changes` says."""

    folder: Path = Path()
    changes: int = 2

    def files(self, _workers: Sequence[str]) -> Sequence[Path]:
        return [self.folder / "0.properties", self.folder / "1.properties"]

    def say(self, mode: str, files: Sequence[Path]) -> None:
        for path in files:
            path.write_text(f"group.id=g\nlisteners=http://w2:8083\nexactly.once.source.support={mode}\n")

    def bring(self, app: App, workers: Sequence[str], mode: Mode) -> DriverResult:
        self.say(mode.value, self.files(workers)[: self.changes])
        return super().bring(app, workers, mode)


@pytest.mark.parametrize(
    ("changes", "outcome", "words"),
    [(2, "done", "1.properties says preparing, which nothing confirms"), (1, "failed", "is not known yet")],
)
def test_files_prove_a_mode_that_nothing_tells_only_where_all_of_them_agree(
    tmp_path: Path, changes: int, outcome: str, words: str
) -> None:
    there = world(w1="disabled", w2="disabled")
    there.after_start.append(lambda _url: there.connect.fail_always("validate", ConnectError("500")))
    driver = TwoFiles(there, folder=tmp_path, changes=changes)
    driver.say("disabled", driver.files([]))
    report = roll(there.app(tmp_path), driver, Mode.PREPARING)
    assert outcomes(report)[0] == ("preparing", W2, outcome)
    assert words in str(report.rows[0].detail)
