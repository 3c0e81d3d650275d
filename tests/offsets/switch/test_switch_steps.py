"""Each step of `offsets switch` by itself: what it waits for, what it does not believe, and what ends it there."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.offsets.names import partition_for
from eosctl.core.records import OutRecord
from eosctl.errors import ConnectError, EosctlError, ExitCode
from eosctl.offsets.apply import apply_plan
from eosctl.offsets.files.restore import RestoreRequest, plan_restore
from eosctl.offsets.rows import MOST_ROWS
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.faults import Call, KilledError, once
from tests.fakes.switching import GLOBAL, NAME, OWN, URL, SwitchWorld, outcomes, switch


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


def late_line(world: SwitchWorld) -> Callable[[], None]:
    """Adds a line, and gives what a task of before does with it later: deliver it and commit, unless it is fenced."""
    world.lines.append("four")
    holder = world.brokers.state.transactions.get("g-c-0")
    epoch = holder.producer_epoch if holder else None

    def commit() -> None:
        if holder is None or holder.producer_epoch == epoch:
            world.delivered.append("four")
            world.topics.put(GLOBAL, world.key, b'{"position":4}')

    return commit


def test_a_former_task_that_its_worker_gave_up_on_commits_no_more(app: App, world: SwitchWorld) -> None:
    """Its commit came after the merge had read: the next task delivered those lines again."""
    world.brokers.state.transactions["g-c-0"] = FakeTransaction(7, 3)
    commit = late_line(world)
    world.connect.before("put_connector_config", once(commit))
    report = switch(app)
    assert (report.exit_code, world.delivered) == (ExitCode.OK, world.lines)
    assert report.rows[0].detail == "STOPPED, no task left, 1 id of its tasks fenced"


def test_offsets_that_come_while_the_merge_writes_are_taken_too(tmp_path: Path) -> None:
    """Without exactly-once support nobody can be fenced; nothing looked at the origin again, and exit was 0."""
    world = SwitchWorld({URL: "disabled"})
    world.topics.after("record", once(late_line(world)))
    report = switch(world.app(tmp_path))
    assert (report.exit_code, world.delivered, world.stored(OWN, world.key)) == (ExitCode.OK, world.lines, 4)
    detail = next(row.detail for row in report.rows if row.step == "merge")
    assert detail == "2 offsets written and read back, 1 of them committed meanwhile"


def test_of_a_merge_all_offsets_are_counted_and_all_rounds_can_be_taken_back(tmp_path: Path) -> None:
    """Those that are shown were counted, and only the first round's backup was told."""
    world = SwitchWorld({URL: "disabled"})
    for number in range(2 * MOST_ROWS):
        world.topics.put(GLOBAL, b'["c",{"filename":"g%d"}]' % number, b'{"position":1}')
    world.topics.after("record", once(late_line(world)))
    report = switch(world.app(tmp_path))
    detail = next(row.detail for row in report.rows if row.step == "merge")
    assert detail.startswith(f"{2 * MOST_ROWS + 2} offsets written and read back, 1 of them")
    assert len(world.topics.newest(OWN)) == 2 * MOST_ROWS + 1
    assert (len(report.data.backups), report.data.backup) == (2, report.data.backups[0])
    world.place("STOPPED")
    for backup in reversed(report.data.backups):
        plan = plan_restore(world.app(tmp_path), RestoreRequest(backup))
        assert not plan.writes.conflicts
        assert apply_plan(world.app(tmp_path), plan, lambda plan=plan: plan).exit_code is ExitCode.OK  # type: ignore[misc]
    assert set(world.topics.newest(OWN).values()) == {None}
    assert "g-c-0" not in world.brokers.state.transactions, "no id is made"


def test_offsets_that_never_stop_coming_are_told_of(app: App, world: SwitchWorld) -> None:
    position = iter(range(4, 1000))

    def another(call: Call) -> None:
        [record] = call.what
        if isinstance(record, OutRecord) and record.topic == OWN:
            world.topics.put(GLOBAL, world.key, json.dumps({"position": next(position)}).encode())

    world.topics.after("record", another)
    report = switch(app)
    assert (outcomes(report)["merge"], outcomes(report)["configure"]) == ("failed", "not_reached")
    assert "got offsets of c again and again, though it is STOPPED" in report.problems[0].message


def test_without_rights_on_the_ids_the_leader_fences_them(app: App, world: SwitchWorld) -> None:
    world.brokers.state.transactions["g-c-0"] = FakeTransaction(7, 3)
    world.brokers.deny_describe.add("g-c-0")
    world.keep_config("session-key", {"key": base64.b64encode(world.connect.session_key).decode()})
    report = switch(app)
    assert (report.exit_code, world.connect.fenced) == (ExitCode.OK, ["c"])
    assert report.rows[0].detail == "STOPPED, no task left, the leader was asked to fence its tasks"


def test_former_tasks_that_nobody_can_fence_end_it_before_offsets_are_read(app: App, world: SwitchWorld) -> None:
    world.brokers.state.transactions["g-c-0"] = FakeTransaction(7, 3)
    world.brokers.deny_describe.add("g-c-0")
    world.connect.fail_always("fence", ConnectError("500: Failed to perform zombie fencing"))
    report = switch(app)
    assert (outcomes(report)["stop"], world.topics.writes) == ("failed", 0)
    assert "nor by the leader: 500" in report.problems[0].message
    assert "transactional ids g-c-*" in str(report.problems[0].hint)


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
    lines = [json.loads(line) for line in Path(str(report.data.journal)).read_text().splitlines()]
    steps = [(line["event"], line["step"]) for line in lines if "step" in line]
    assert steps == [(event, row.step) for row in report.rows for event in ("start", "done")]


def test_tasks_that_run_and_commit_nothing_are_told_of(app: App, world: SwitchWorld) -> None:
    """With its replication slot held by somebody else a task is RUNNING, and all seemed well."""
    world.connect.before("start_task", lambda _call: setattr(world.connector.tasks[0], "state", "PAUSED"))
    world.connect.after("start_task", lambda _call: setattr(world.connector.tasks[0], "state", "RUNNING"))
    report = switch(app)
    assert (report.exit_code, report.rows[-1].detail) == (
        ExitCode.OK,
        "RUNNING, 1 task; nothing committed yet (2 s)",
    )
    assert [problem.code for problem in report.problems] == ["nothing_committed_yet"]


def test_tasks_that_have_moved_their_offsets_are_believed(app: App) -> None:
    report = switch(app)
    assert (report.rows[-1].detail, report.problems) == ("RUNNING, 1 task; offsets are committed", [])


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (("CompleteCommit", "CompleteCommit"), "RUNNING, 2 tasks; offsets are committed"),
        (("CompleteCommit", "Empty"), "RUNNING, 2 tasks; 1 of 2 tasks committed offsets so far (2 s)"),
        (("Empty", "Ongoing"), "RUNNING, 2 tasks; nothing committed yet (2 s)"),
    ],
)
def test_a_tasks_own_id_tells_whether_it_has_committed(
    app: App, world: SwitchWorld, states: tuple[str, str], said: str
) -> None:
    """Offsets that moved may be another task's. Half of --timeout is waited for the commits."""
    world.place("RUNNING", tasks_max="2")
    ids = world.brokers.state.transactions
    ids |= {f"g-c-{task}": FakeTransaction(7 + task, 3, "CompleteCommit") for task in range(2)}

    def begins(call: Call) -> None:
        _name, number = call.what
        ids[f"g-c-{number}"].producer_epoch += 1
        ids[f"g-c-{number}"].state = states[int(str(number))]

    world.connect.after("start_task", begins)
    assert switch(app).rows[-1].detail == said


def test_a_start_that_is_asked_for_and_not_shown_yet_is_stopped_before_the_way_back(
    app: App, world: SwitchWorld
) -> None:
    """REST shows STOPPED for a while after a resume: the task started in the middle of the merge back, or after it."""

    def asked_for() -> None:
        world.keep_config(f"target-state-{NAME}", {"state": "STARTED", "state.v2": "STARTED"})
        world.time.later(2.0, start)
        raise KilledError

    def start() -> None:
        if "stop" not in world.calls:
            world.connect.set_target(NAME, "STARTED")

    resumed = once(asked_for)
    world.connect.before("set_state", lambda call: resumed(call) if call.what[-1] == "resume" else None)
    with pytest.raises(KilledError):
        switch(app)
    world.lines.append("more")
    world.calls.clear()
    assert switch(app, GLOBAL).exit_code is ExitCode.OK
    assert world.calls == ["stop", "resume"]
    assert world.delivered == world.lines
