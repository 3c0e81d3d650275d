"""`task-counts clean`: what goes, what it takes meanwhile, and that the settings are back whatever happens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks.unfinished import unfinished_work
from eosctl.deadline import Event
from eosctl.errors import (
    BrokerError,
    EosctlError,
    ExitCode,
    NotFoundError,
    RefusedError,
    StalePlanError,
    UnreachableError,
)
from eosctl.report import Report
from eosctl.task_counts.clean import apply_clean, plan_clean, show_clean
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.config_topic import created
from tests.fakes.faults import EVERY, Call, Kill, KilledError
from tests.fakes.world import CONFIGS, World

KEY = b"tasks-fencing-c"
BAD, GOOD = {"tasks": 3}, {"task-count": 3}
BEFORE = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.7"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Connector c of three tasks, whose record is in order."""
    made = World(state_dir=tmp_path)
    made.topics.add_topic(CONFIGS, config=BEFORE)
    for key, value in created("c", 3, record=3):
        made.keep_config(key, value)
    return made


def puts(world: World, *values: object, key: bytes = KEY) -> list[int]:
    """Records of the key; their offsets."""
    return [
        world.topics.put(CONFIGS, key, None if each is None else json.dumps(each).encode()).offset for each in values
    ]


def clean(app: App) -> Report:
    return apply_clean(app, plan_clean(app))


def settings(world: World) -> dict[str, str]:
    return dict(world.topics.topics[CONFIGS].given)


def there(world: World) -> set[int]:
    return {record.offset for record in world.topics.records(CONFIGS)}


def outcomes(report: Report) -> list[object]:
    return [row.outcome for row in report.rows]


def unfinished(world: World) -> list[str]:
    return [each.code for each in unfinished_work(world.app(), world.cluster_id, connectors=())]


def test_a_record_that_was_overwritten_is_compacted_away(world: World) -> None:
    """Seven commands had to be pasted for it, and who forgot the last one left the topic with other settings."""
    bad, _good = puts(world, BAD, GOOD)
    seen: list[dict[str, str]] = []
    world.topics.after("change_settings", lambda _call: seen.append(settings(world)))
    plan = plan_clean(world.app())
    shown = show_clean(world.app(), plan)
    assert (outcomes(shown), shown.problems[0].code) == (["would_remove"], "restart_no_worker")
    assert there(world) >= {bad}, "a plan writes nothing"
    report = apply_clean(world.app(), plan)
    assert (outcomes(report), report.exit_code) == (["removed"], ExitCode.OK)
    assert (report.rows[0].offset, report.rows[0].key, report.rows[0].overwrite) == (bad, KEY.decode(), None)
    assert bad not in there(world)
    assert json.loads(world.topics.newest(CONFIGS)[KEY] or b"") == GOOD
    meanwhile = {"segment.ms": "1000", "min.cleanable.dirty.ratio": "0", "min.compaction.lag.ms": "0"}
    assert seen == [{"cleanup.policy": "compact", **meanwhile}, BEFORE]
    assert "do not restart a worker until this has ended" in [event.message for event in world.events]
    kept = json.loads(Path(str(report.data.backup)).read_text())
    assert (kept["offset"], kept["value"]) == (bad, json.dumps(BAD))
    assert unfinished(world) == []
    again = plan_clean(world.app())
    assert (again.changes_something, show_clean(world.app(), again).problems) == (False, [])


@pytest.mark.parametrize(("members", "wrote_as"), [(True, "eosctl-config-g"), (False, "connect-cluster-g")])
def test_the_newest_of_its_key_is_overwritten_with_what_workers_hold(
    world: World, members: bool, wrote_as: str
) -> None:
    """Compaction keeps the newest record of each key, however bad."""
    (bad,) = puts(world, BAD)
    if not members:
        world.connect.stop_worker(world.connect.leader)
    report = clean(world.app())
    assert (outcomes(report), report.rows[0].overwrite, report.exit_code) == (["removed"], 3, ExitCode.OK)
    assert bad not in there(world)
    assert json.loads(world.topics.newest(CONFIGS)[KEY] or b"") == GOOD
    [first, *_rolling] = world.topics.written
    assert (first[0], [record.key for record in first[1]]) == (wrote_as, [KEY])


def test_what_workers_pass_over_goes_along_once_it_is_written_anew(world: World) -> None:
    bad = puts(world, None, [1], GOOD)[:2]
    (kept,) = puts(world, {"tasks": 3}, key=b"task-count-c")
    report = clean(world.app())
    assert ([row.offset for row in report.rows], report.exit_code) == (bad, ExitCode.OK)
    assert [problem.code for problem in report.problems] == [], "no worker is in danger"
    assert not there(world) & set(bad)
    assert kept in there(world), "nothing stands over it"


@pytest.mark.parametrize(
    ("key", "values", "said"),
    [
        (b"commit-c", ({"tasks": "3"},), "record commit-c at offset 6 is the newest of its key: compaction would keep"),
        (KEY, (BAD,), "record tasks-fencing-c at offset 7 is the newest of its key"),
    ],
)
def test_a_record_that_only_the_leader_can_write_anew_is_refused(
    world: World, key: bytes, values: tuple[object, ...], said: str
) -> None:
    """While fencing is due, a count in its place would tell the leader that nobody is left to fence."""
    if key == KEY:
        world.keep_config("commit-c", {"tasks": 3})
    puts(world, *values, key=key)
    before = len(world.topics.written)
    with pytest.raises(RefusedError, match=said) as caught:
        plan_clean(world.app())
    assert "`eosctl connectors stop c` (Kafka 3.5 or newer), then `eosctl connectors resume c`" in str(
        caught.value.hint
    )
    assert len(world.topics.written) == before


def is_open(world: World) -> None:
    world.topics.open_transaction(CONFIGS, 0)


def is_deleted(world: World) -> None:
    world.topics.topics[CONFIGS].given = {"cleanup.policy": "delete"}


def is_mistyped(world: World) -> None:
    """The topic is that of g."""
    world.brokers.state.transactions["g-c-0"] = FakeTransaction(1, 0)


@pytest.mark.parametrize(
    ("trouble", "error", "said"),
    [
        (is_open, RefusedError, "an open transaction hides newer records; nothing was written"),
        (is_deleted, RefusedError, "has cleanup.policy=delete: no cleaner ever looks at it; nothing was written"),
        (is_mistyped, NotFoundError, "the Connect group 'wrong' does not exist on this Kafka cluster"),
    ],
)
def test_what_would_never_be_compacted_is_refused(
    world: World, trouble: Any, error: type[EosctlError], said: str
) -> None:
    puts(world, BAD, GOOD)
    trouble(world)
    with pytest.raises(error, match=said):
        plan_clean(world.app(group_id="wrong" if trouble is is_mistyped else "g"))
    assert world.topics.written == []


def test_a_cleaner_that_does_not_come_in_time_is_exit_code_4(world: World) -> None:
    (bad, _good) = puts(world, BAD, GOOD)
    report = clean(world.app(timeout_s=9.0))
    assert (outcomes(report), report.exit_code) == (["still_there"], ExitCode.UNREACHABLE)
    [problem] = [each for each in report.problems if each.severity == "error"]
    assert problem.message == "the log cleaner has not taken 1 record of topic connect-configs yet"
    assert "give it more with --timeout" in str(problem.hint)
    assert (settings(world), bad in there(world), unfinished(world)) == (BEFORE, True, [])
    assert clean(world.app()).exit_code is ExitCode.OK


def test_ctrl_c_sets_the_settings_back(world: World) -> None:
    puts(world, BAD, GOOD)

    def interrupt(event: Event) -> None:
        if event.message == "waiting for the log cleaner":
            raise KeyboardInterrupt

    report = clean(replace(world.app(), on_event=interrupt))
    assert (outcomes(report), report.exit_code) == (["still_there"], ExitCode.INTERRUPTED)
    assert "do not restart a worker" in str(report.problems[-1].hint)
    assert (settings(world), unfinished(world)) == (BEFORE, [])


def test_who_presses_ctrl_c_twice_gets_the_rows_as_well(world: World) -> None:
    """Whether the records are gone was looked at then, and the second one took the report away."""
    puts(world, BAD, GOOD)

    def interrupt(event: Event) -> None:
        if event.message == "waiting for the log cleaner":
            raise KeyboardInterrupt
        if event.message.endswith("are as before"):
            world.topics.fail_next("read", KeyboardInterrupt())

    report = clean(replace(world.app(), on_event=interrupt))
    assert (outcomes(report), report.exit_code) == (["unknown"], ExitCode.INTERRUPTED)


def test_an_error_sets_the_settings_back(world: World) -> None:
    puts(world, BAD, GOOD)
    world.topics.fail_next("write", BrokerError("no room"))
    report = clean(world.app())
    assert (outcomes(report), report.exit_code) == (["still_there"], ExitCode.FAILED)
    assert (settings(world), unfinished(world)) == (BEFORE, [])


def test_settings_that_could_not_be_set_back_are_by_the_next_run(world: World) -> None:
    (bad, _good) = puts(world, BAD, GOOD)
    world.topics.fail_next("change_settings", UnreachableError("gone"), skip=1)
    report = clean(world.app())
    assert (outcomes(report), report.exit_code) == (["removed"], ExitCode.PARTIAL)
    [problem] = [each for each in report.problems if each.severity == "error"]
    assert problem.code == "settings_not_set_back"
    assert "segment.ms=the default, min.cleanable.dirty.ratio=0.7" in problem.message
    assert settings(world) != BEFORE
    assert (bad in there(world), unfinished(world)) == (False, ["clean_unfinished"])
    plan = plan_clean(world.app())
    assert (plan.changes_something, plan.records) == (True, ())
    assert [each.code for each in show_clean(world.app(), plan).problems] == ["clean_unfinished"]
    assert apply_clean(world.app(), plan).exit_code is ExitCode.OK
    assert (settings(world), unfinished(world)) == (BEFORE, [])


@pytest.mark.parametrize("values", [(BAD, GOOD), (BAD,)], ids=["superseded", "newest"])
def test_after_a_kill_at_any_call_the_next_run_ends_it(tmp_path: Path, values: tuple[object, ...]) -> None:
    kill_at, killed = 0, True
    while killed:
        kill_at += 1
        made = World(state_dir=tmp_path / str(kill_at))
        made.topics.add_topic(CONFIGS, config=BEFORE)
        for key, value in created("c", 3, record=3):
            made.keep_config(key, value)
        bad = puts(made, *values)[0]
        kill = Kill()
        made.topics.before(EVERY, kill.tick)
        made.topics.after("change_settings", kill.tick)
        made.topics.after("write", kill.tick)
        plan = plan_clean(made.app())
        kill.ticks, kill.at = 0, kill_at
        try:
            apply_clean(made.app(), plan)
            killed = False
        except KilledError:
            kill.at = None
            changed = settings(made) != BEFORE
            assert unfinished(made) == ["clean_unfinished"] or not changed, f"killed at call {kill_at}"
            assert clean(made.app()).exit_code is ExitCode.OK, f"killed at call {kill_at}"
        assert (settings(made), bad in there(made), unfinished(made)) == (BEFORE, False, [])
        assert json.loads(made.topics.newest(CONFIGS)[KEY] or b"") == GOOD
    assert kill_at > 15, "fewer calls than that were never made"


def test_tasks_that_come_while_a_record_is_overwritten_are_said(world: World) -> None:
    """The count would tell the leader that nobody is left to fence."""
    puts(world, BAD)
    plan = plan_clean(world.app())

    def reconfigure(_call: Call) -> None:
        world.keep_config("commit-c", {"tasks": 3})

    def once(call: Call) -> None:
        world.topics._before["write"].remove(once)
        reconfigure(call)

    world.topics.before("write", once)
    report = apply_clean(world.app(), plan)
    assert report.exit_code is ExitCode.FAILED
    assert "so that its old ones may not be fenced" in report.problems[-1].message
    assert settings(world) == BEFORE


def test_whose_tasks_compaction_makes_workers_forget_is_said_before(world: World) -> None:
    """Compaction comes sooner or later anyhow; who brings it about should know."""
    puts(world, BAD, GOOD)
    [config] = [value for key, value in created("c", 3) if key == "connector-c"]
    world.keep_config("connector-c", config)
    said = [
        each for each in show_clean(world.app(), plan_clean(world.app())).problems if each.code == "tasks_forgotten"
    ]
    assert [each.severity for each in said] == ["warning"]
    assert str(said[0].hint).startswith(
        "`eosctl connectors stop c` (Kafka 3.5 or newer), then `eosctl connectors resume c`, before a worker"
    )


def test_a_plan_of_something_else_is_stale(world: World) -> None:
    puts(world, BAD, GOOD)
    plan = plan_clean(world.app())
    puts(world, BAD, GOOD)
    with pytest.raises(StalePlanError, match="its settings changed since the plan was made; nothing was written"):
        apply_clean(world.app(), plan)
    assert (settings(world), world.topics.written) == (BEFORE, [])
