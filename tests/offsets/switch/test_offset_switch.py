"""`offsets switch` on a connector in memory: every line once, wherever the process is killed."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from eosctl.app import App
from eosctl.core.offsets.names import GLOBAL as GLOBAL_STORE
from eosctl.errors import ConnectError, ExitCode, RefusedError, StalePlanError
from eosctl.offsets.switch.apply import apply_switch
from eosctl.offsets.switch.plan import SwitchRequest, plan_switch
from eosctl.offsets.switch.report import show_switch
from tests.fakes.connectors import FakeTask
from tests.fakes.faults import Call, KilledError, worth_a_kill
from tests.fakes.switching import GLOBAL, NAME, OWN, URL, SwitchWorld, outcomes, switch

FOLLOWER = "http://follower:8083"


def test_a_running_connector_moves_and_moves_back(app: App, world: SwitchWorld) -> None:
    there = switch(app, OWN)
    assert there.exit_code is ExitCode.OK
    assert set(outcomes(there).values()) == {"done"}
    assert list(outcomes(there)) == ["stop", "merge", "configure", "check", "resume", "watch"]
    assert (world.store(), world.connector.state) == (OWN, "RUNNING")
    world.lines.append("four")
    world.run_task()
    back = switch(app, GLOBAL_STORE)
    assert back.exit_code is ExitCode.OK
    assert "offsets.storage.topic" not in world.connector.config
    assert world.delivered == world.lines
    assert there.data.undo == "eosctl offsets switch --connector c --to global"


def test_only_one_property_changes(app: App, world: SwitchWorld) -> None:
    before = dict(world.connector.config)
    switch(app, OWN)
    assert world.connector.config == {**before, "offsets.storage.topic": OWN}


def test_a_topic_that_was_used_before_does_not_bring_back_old_offsets(app: App, world: SwitchWorld) -> None:
    """A dedicated topic wins whatever its age, and a merge that prefers it would deliver lines again."""
    switch(app, OWN)
    switch(app, "global")
    world.lines.append("four")
    world.run_task()
    assert world.stored(OWN, world.key) == 3
    switch(app, OWN)
    assert world.delivered == world.lines


def test_offsets_that_were_reset_in_a_topic_of_its_own_stay_reset_in_the_global_one(
    app: App, world: SwitchWorld
) -> None:
    """The old value of the global topic came back: the lines that were to be read again were not."""
    switch(app, OWN)
    world.place("STOPPED", offsets_storage_topic=OWN)
    world.topics.put(OWN, world.key, None)
    assert world.stored(GLOBAL, world.key) == 3
    assert switch(app, GLOBAL_STORE).exit_code is ExitCode.OK
    assert (world.stored(GLOBAL, world.key), world.store()) == (None, GLOBAL)


@pytest.mark.parametrize("after_kill", [OWN, "global"])
def test_killed_anywhere_a_second_run_ends_as_if_nothing_had_happened(tmp_path: Path, after_kill: str) -> None:
    """Whatever a kill can leave, before and after the effect of each call; then the next run goes on.

    `global` is the way back of a run that was killed.
    """
    world = SwitchWorld()
    app = world.app(tmp_path / "undisturbed")
    kills = worth_a_kill(world.kill, partial(switch, app, OWN), partial(world.left, app.state_dir))
    assert (len(kills) > 15, world.kill.ticks > 20) == (True, True), "fewer than that were never made"
    for kill_at in kills:
        world = SwitchWorld()
        app = world.app(tmp_path / str(kill_at))
        world.kill.ticks, world.kill.at = 0, kill_at
        with pytest.raises(KilledError):
            switch(app, OWN)
        world.kill.at = None
        world.lines.append("while it was down")
        began = any(path.read_bytes() for path in app.state_dir.rglob("*.ndjson"))
        if after_kill == OWN or began:  # else it was killed before anything was done
            again = switch(app, after_kill)
            assert again.exit_code is ExitCode.OK, again.problems
        assert world.store() == (OWN if after_kill == OWN else GLOBAL), f"killed at call {kill_at}"
        assert world.connector.state == "RUNNING", f"killed at call {kill_at}"
        world.run_task()
        assert world.delivered == world.lines, f"killed at call {kill_at}"
        assert plan_switch(app, SwitchRequest(NAME, after_kill)).steps == (), f"killed at call {kill_at}"


@pytest.mark.parametrize("to", [OWN, GLOBAL_STORE])
def test_a_task_that_still_commits_when_rest_shows_it_no_more_is_waited_for(tmp_path: Path, to: str) -> None:
    """A follower's task commits for the last time seconds later: its last lines came twice from the other topic."""
    world = SwitchWorld({URL: "enabled", FOLLOWER: "enabled"})
    if to == GLOBAL_STORE:
        world.place("RUNNING", offsets_storage_topic=OWN)
        world.run_task()
        world.delivered = list(world.lines)
    world.connect.own(FOLLOWER, (NAME, 0))
    world.connect.stops_slowly[NAME, 0] = 3.0
    world.lines.append("four")
    world.deliver()
    report = switch(world.app(tmp_path), to)
    assert (report.exit_code, world.delivered) == (ExitCode.OK, world.lines)


def test_a_task_that_rest_still_shows_after_its_end_is_not_waited_for(tmp_path: Path) -> None:
    """ "STOPPED, 1 task" stays until the next rebalance: the step ran into its timeout, though no worker had a task."""
    world = SwitchWorld({URL: "enabled", FOLLOWER: "enabled"})
    world.place("STOPPED").tasks[0] = FakeTask("UNASSIGNED", FOLLOWER)
    report = switch(world.app(tmp_path), OWN)
    assert (report.exit_code, outcomes(report)["stop"]) == (ExitCode.OK, "done")
    assert "stop" not in world.calls


def test_a_task_that_never_ends_is_told_of(tmp_path: Path) -> None:
    world = SwitchWorld({URL: "enabled", FOLLOWER: "enabled"})
    world.connect.own(FOLLOWER, (NAME, 0))
    world.connect.stops_slowly[NAME, 0] = 600.0
    report = switch(world.app(tmp_path), OWN)
    assert (report.exit_code, outcomes(report)["stop"], world.topics.writes) == (ExitCode.PARTIAL, "failed", 0)
    assert f"STOPPED, tasks none; {FOLLOWER} has not let go of task 0 yet" in report.problems[0].message


def test_the_next_run_says_what_was_done(app: App, world: SwitchWorld) -> None:
    world.connect.fail_next("put_connector_config", ConnectError("500: try again"))
    world.kill.at = None
    failed = switch(app, OWN)
    assert failed.exit_code is ExitCode.PARTIAL
    assert outcomes(failed) == {
        "stop": "done", "merge": "done", "configure": "failed", "check": "not_reached", "resume": "not_reached",
        "watch": "not_reached",
    }  # fmt: skip
    assert [problem.code for problem in failed.problems] == ["connect_error", "switch_unfinished"]
    assert world.connector.state == "STOPPED"
    plan = plan_switch(app, SwitchRequest(NAME, OWN))
    shown = show_switch(app, plan)
    assert "done then: stop, merge; the connector was RUNNING" in shown.problems[0].message
    assert apply_switch(app, plan).exit_code is ExitCode.OK
    assert (world.connector.state, world.delivered) == ("RUNNING", world.lines)


@pytest.mark.parametrize("looks", [True, False])
def test_after_ctrl_c_the_rows_so_far_are_reported(app: App, world: SwitchWorld, *, looks: bool) -> None:
    """Only the error was left, and not what was written until then, nor its backup.

    Who presses it once more, while eosctl looks how the connector was left, still gets the rows.
    """

    def interrupted(_call: Call) -> None:
        if not looks:
            world.connect.fail_always("connectors", KeyboardInterrupt())
        raise KeyboardInterrupt

    world.connect.before("put_connector_config", interrupted)
    report = switch(app, OWN)
    assert (report.exit_code, report.problems[0].code) == (ExitCode.INTERRUPTED, "interrupted")
    assert outcomes(report) == {
        "stop": "done", "merge": "done", "configure": "failed", "check": "not_reached", "resume": "not_reached",
        "watch": "not_reached",
    }  # fmt: skip
    assert str(report.data.backup).endswith(".ndjson")
    left = "the connector is STOPPED" if looks else "is unknown (interrupted)"
    assert left in report.problems[1].message
    assert "Run it again to go on: eosctl offsets switch" in str(report.problems[1].hint)


def test_a_null_is_not_resumed(app: App, world: SwitchWorld) -> None:
    """Someone deletes the merged offset before the check: resuming would read the source again."""
    world.connect.after("put_connector_config", lambda _call: world.topics.put(OWN, world.key, None))
    report = switch(app, OWN)
    assert report.exit_code is ExitCode.PARTIAL
    assert outcomes(report)["check"] == "failed"
    assert "no offset for 1 source partition of c" in report.problems[0].message
    assert (world.connector.state, "resume" in world.calls) == ("STOPPED", False)
    back = switch(app, "global")
    assert back.exit_code is ExitCode.OK
    assert world.delivered == world.lines


def test_a_null_for_a_key_that_only_rest_cannot_find_is_a_warning(tmp_path: Path) -> None:
    """REST asks for members in HashMap order; a connector with another order would never pass the check."""
    world = SwitchWorld(key=b'["c",{ "filename":"f"}]')
    report = switch(world.app(tmp_path), OWN)
    assert [problem.code for problem in report.problems] == ["rest_finds_other_keys"]
    assert (report.exit_code, world.delivered) == (ExitCode.OK, world.lines)


@pytest.mark.parametrize(("state", "calls"), [("STOPPED", []), ("PAUSED", ["stop", "pause"])])
def test_a_connector_that_did_not_run_is_left_as_it_was(
    app: App, world: SwitchWorld, state: str, calls: list[str]
) -> None:
    world.place(state)
    assert switch(app, OWN).exit_code is ExitCode.OK
    assert (world.connector.state, world.calls, world.store()) == (state, calls, OWN)


@pytest.mark.parametrize("version", ["4.3.1", "3.8.1"])
@pytest.mark.parametrize("cut_off", [False, True])
def test_a_connector_that_runs_without_tasks_is_not_waited_for(
    app: App, world: SwitchWorld, version: str, cut_off: bool
) -> None:
    """One that mirrors topics which are not there yet has none: a task was waited for until the timeout."""
    world.connect.version = version
    world.place("RUNNING", tasks_max="0")
    if cut_off:  # then only the journal knows that it had none
        world.connect.fail_next("put_connector_config", ConnectError("500: try again"))
        assert switch(app, OWN).exit_code is ExitCode.PARTIAL
    report = switch(app, OWN)
    assert (report.exit_code, world.connector.state, world.store()) == (ExitCode.OK, "RUNNING", OWN)
    assert next(row.detail for row in report.rows if row.step == "watch") == "RUNNING, without a task as before"


def test_below_3_9_the_tasks_are_restarted(app: App, world: SwitchWorld) -> None:
    world.connect.version = "3.8.1"
    assert switch(app, OWN).exit_code is ExitCode.OK
    assert world.calls == ["stop", "resume", "restart only_failed=False"]
    assert world.delivered == world.lines


def test_a_failed_task_ends_the_watch_and_the_next_run_only_watches(app: App, world: SwitchWorld) -> None:
    world.connect.before("start_task", lambda _call: world.connector.fail())
    failed = switch(app, OWN)
    assert (failed.exit_code, outcomes(failed)["watch"]) == (ExitCode.PARTIAL, "failed")
    assert "c FAILED after the switch" in failed.problems[0].message
    world.connector.heal()
    world.run_task()
    again = switch(app, OWN)
    assert (again.exit_code, outcomes(again)["watch"], outcomes(again)["merge"]) == (ExitCode.OK, "done", "done_before")
    assert world.delivered == world.lines


def test_a_plan_goes_stale(app: App, world: SwitchWorld) -> None:
    plan = plan_switch(app, SwitchRequest(NAME, OWN))
    world.place("RUNNING", file="other")
    with pytest.raises(StalePlanError):
        apply_switch(app, plan)
    assert world.calls == []


def test_other_connectors_are_left_alone(app: App, world: SwitchWorld) -> None:
    world.connect.add("other")
    world.topics.put(GLOBAL, b'["other",{}]', b"1")
    switch(app, OWN)
    assert list(world.topics.newest(OWN)) == [world.key]


def test_a_line_of_the_journal_that_was_cut_off_does_not_count(app: App, world: SwitchWorld) -> None:
    world.connect.fail_next("put_connector_config", ConnectError("500"))
    report = switch(app, OWN)
    journal = Path(str(report.data.journal))
    assert journal.stat().st_mode & 0o077 == 0
    journal.write_bytes(journal.read_bytes() + b'{"event": "en')
    plan = plan_switch(app, SwitchRequest(NAME, OWN))
    assert plan.begun is not None
    assert plan.begun.state == "RUNNING"
    assert apply_switch(app, plan).exit_code is ExitCode.OK
    events = [json.loads(line)["event"] for line in journal.read_text().splitlines() if line.endswith("}")]
    assert (events.count("begin"), events[-1]) == (2, "end")


def test_two_at_once_are_kept_apart(app: App, world: SwitchWorld) -> None:
    plan = plan_switch(app, SwitchRequest(NAME, OWN))
    with plan.journal.hold("it"), pytest.raises(RefusedError, match="another eosctl is at work on"):
        apply_switch(app, plan)
    assert world.store() == GLOBAL
    assert apply_switch(app, plan).exit_code is ExitCode.OK
