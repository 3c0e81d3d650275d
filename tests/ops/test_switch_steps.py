"""Each step of `offsets switch` by itself: what it waits for, what it does not believe, and what ends it there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from eosctl.core.murmur2 import partition_for
from eosctl.errors import EosctlError, ExitCode
from eosctl.ops.app import App
from eosctl.ops.offset_switch import SwitchRequest, plan_switch
from eosctl.ops.switch_report import apply_switch
from eosctl.report import Report
from tests.fakes.faults import Call, KilledError
from tests.fakes.switching import GLOBAL, NAME, SwitchWorld

OWN = "own"


@pytest.fixture
def world() -> SwitchWorld:
    return SwitchWorld()


@pytest.fixture
def app(world: SwitchWorld, tmp_path: Path) -> App:
    return world.app(tmp_path)


def switch(app: App) -> Report:
    return apply_switch(app, plan_switch(app, SwitchRequest(NAME, OWN)))


def outcomes(report: Report) -> dict[object, object]:
    return {row["step"]: row["outcome"] for row in report.rows}


def once(happens: Callable[[], object]) -> Callable[[Call], None]:
    """What a fake calls, and does only the first time."""
    done: list[Call] = []

    def callback(call: Call) -> None:
        if not done:
            done.append(call)
            happens()

    return callback


def test_a_merge_that_failed_changes_no_config(app: App, world: SwitchWorld) -> None:
    """Its report tells of a failure and does not raise: the task would have begun anew."""
    world.topics.fail_next("record", EosctlError("the broker went away"))
    report = switch(app)
    assert (outcomes(report)["merge"], outcomes(report)["configure"]) == ("failed", "not_reached")
    assert report.problems[0].message == "the merge failed: the broker went away"
    assert str(report.problems[0].hint).startswith("Its backup: ")
    assert (world.store(), world.connector.state) == (GLOBAL, "STOPPED")
    assert switch(app).exit_code is ExitCode.OK
    assert world.delivered == world.lines


def test_what_others_change_in_the_config_meanwhile_stays(app: App, world: SwitchWorld) -> None:
    """The config is put whole: that of the plan would undo what was changed since."""

    def change() -> None:
        world.connector.config["topic"] = "another"
        world.keep_config(f"connector-{NAME}", {"properties": world.connector.config})

    world.connect.after("set_state", once(change))
    assert switch(app).exit_code is ExitCode.OK
    assert (world.connector.config["topic"], world.store()) == ("another", OWN)


@pytest.mark.parametrize("where", ["origin", "origin, shown by the target", "target"])
def test_offsets_that_an_open_transaction_hides_are_not_left_behind(app: App, world: SwitchWorld, where: str) -> None:
    """While the connector ran they did not count; now they are what its task committed last."""
    home, topic = partition_for(world.key, 5), OWN if where == "target" else GLOBAL
    world.topics.add_topic(OWN, 5)
    if where != "origin":
        world.topics.put(OWN, world.key, b'{"position":3}')
    if where == "origin, shown by the target":
        world.topics.state.add_topic(GLOBAL, 5)
    world.connect.after("set_state", once(lambda: world.topics.open_transaction(topic, home, key=world.key)))
    report = switch(app)
    assert outcomes(report)["merge"] == "failed"
    told = f"topic {topic}, partition {home}: an open transaction hides newer offsets of c"
    assert report.problems[0].message == told
    assert (world.store(), world.connector.state) == (GLOBAL, "STOPPED")
    world.topics.close_transaction(topic, home)
    assert switch(app).exit_code is ExitCode.OK


def test_what_only_the_target_hides_is_replaced(app: App, world: SwitchWorld) -> None:
    """A killed run may have left it there; the next one ends that transaction, and goes on."""
    world.topics.fail_next("record", KilledError(), done=True)
    with pytest.raises(KilledError):
        switch(app)
    assert world.topics.bounds(OWN)[partition_for(world.key, 5)].lso == 0
    assert switch(app).exit_code is ExitCode.OK
    assert world.delivered == world.lines


def test_each_step_has_the_whole_timeout(app: App, world: SwitchWorld) -> None:
    """Seven steps one after the other shared what was left of it."""

    def an_hour_passes(_event: object) -> None:
        world.time.now_s += 3600

    assert switch(replace(app, on_event=an_hour_passes)).exit_code is ExitCode.OK


@pytest.mark.parametrize("state", ["UNASSIGNED", "RESTARTING"])
def test_all_tasks_must_be_in_the_state_that_they_were_in(app: App, world: SwitchWorld, state: str) -> None:
    world.place("RUNNING", tasks_max="2")
    seen: list[float] = []

    def lags(call: Call) -> None:
        _name, number = call.what
        if number == 1:
            task = world.connector.tasks[1]
            task.state = state
            world.time.later(3, lambda: setattr(task, "state", "RUNNING"))
            world.time.later(3, lambda: seen.append(world.time.now_s))

    world.connect.after("start_task", lags)
    assert switch(app).exit_code is ExitCode.OK
    assert [task.state for task in world.connector.tasks.values()] == ["RUNNING", "RUNNING"]
    assert seen, "it was waited for"


def test_a_task_that_is_not_there_yet_is_waited_for(app: App, world: SwitchWorld) -> None:
    """All that REST shows may be RUNNING, and one of them not be shown yet."""
    world.place("RUNNING", tasks_max="2")

    def comes_later(call: Call) -> None:
        _name, number = call.what
        if number == 1:
            task = world.connector.tasks.pop(1)
            world.time.later(3, lambda: world.connector.tasks.update({1: task}))

    world.connect.after("start_task", comes_later)
    assert switch(app).exit_code is ExitCode.OK
    assert list(world.connector.tasks) == [0, 1]


def test_tasks_that_fail_when_they_are_restarted_are_told_of(app: App, world: SwitchWorld) -> None:
    """Below 3.9 this is the last step, which took what REST showed before the restart for what came after it."""
    world.connect.version = "3.8.1"
    world.connect.before("restart", once(lambda: world.connect.after("start_task", lambda _call: fail(world))))
    report = switch(app)
    assert (report.exit_code, outcomes(report)["watch"]) == (ExitCode.PARTIAL, "done")
    assert outcomes(report)["restart"] == "failed"
    assert "c FAILED after the switch" in report.problems[0].message


def fail(world: SwitchWorld) -> None:
    world.connector.fail(trace="org.apache.kafka.connect.errors.ConnectException: no such file")


def test_the_journal_tells_what_was_begun_and_what_was_done(app: App) -> None:
    """A person who comes after a kill reads it."""
    report = switch(app)
    lines = [json.loads(line) for line in Path(str(report.data["journal"])).read_text().splitlines()]
    steps = [(line["event"], line["step"]) for line in lines if "step" in line]
    assert steps == [(event, row["step"]) for row in report.rows for event in ("start", "done")]
