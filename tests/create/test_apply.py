"""`connectors apply` as typed: what it creates and changes, what it refuses, and what it says of the tasks then."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from eosctl.app import App
from eosctl.connectors.definition import read_definition
from eosctl.create.change import prepare_apply
from eosctl.create.create import CreateRequest
from eosctl.errors import EosctlError, ExitCode, StalePlanError, UnreachableError
from tests.conftest import Invoke, Outcome
from tests.create.conftest import Run
from tests.create.test_create import codes, outcomes
from tests.fakes.connectors import FILE_SOURCE
from tests.fakes.faults import KilledError, worth_a_kill
from tests.fakes.placing import LINES, PlaceWorld, calls_of, key_of, position
from tests.fakes.world import OFFSETS

UNKNOWN = "org.example.UnknownSource"


@pytest.fixture
def apply(run: Run) -> Run:
    return partial(run, "apply")


@pytest.fixture
def live(world: PlaceWorld) -> PlaceWorld:
    """The connector `c` runs, and has read its file."""
    world.place("c", topic="t-c")
    return world


def of_unknown_class(world: PlaceWorld, **config: str) -> None:
    """A connector `c` of a class that nobody knows runs, and has an offset."""
    world.connect.plugins = [*world.connect.plugins, {"class": UNKNOWN, "type": "source", "version": "1"}]
    world.place("c", connector_class=UNKNOWN, topic="t-c", **config)
    world.topics.put(OFFSETS, key_of("c", "f"), position(3))


MONGODB = "com.mongodb.kafka.connect.MongoSourceConnector"


def test_only_what_may_skip_needs_the_waiver(apply: Run, world: PlaceWorld, definition: Callable[..., str]) -> None:
    """A setting that counts without an offset only, as startup.mode, needed --may-skip, too."""
    world.connect.plugins = [*world.connect.plugins, {"class": MONGODB, "type": "source", "version": "3.0.1"}]
    config = {"connector.class": MONGODB, "offset.partition.name": "orders", "pipeline": "[]"}
    world.place("c", **{name.replace(".", "_"): value for name, value in config.items()}, topic="t-c")
    world.topics.put(OFFSETS, b'["c",{"ns":"orders"}]', b'{"_id":"{\\"_data\\": \\"82\\"}"}')
    live = dict(world.connect.connectors["c"].config)
    changed = {name.replace(".", "_"): value for name, value in live.items()}
    assert apply(definition(**{**changed, "pipeline": "[1]"}), "--yes").exit_code == 6
    assert world.connect.connectors["c"].config == live
    done = apply(definition(**{**changed, "startup_mode": "latest"}), "--yes")
    assert (done.exit_code, world.connect.connectors["c"].config["startup.mode"]) == (0, "latest")


def commits(world: PlaceWorld, file: str) -> None:
    """As soon as a task of `c` runs with another config it commits an offset of this file, a moment later."""

    def begin(_call: object) -> None:
        world.time.later(2.0, partial(world.topics.put, OFFSETS, key_of("c", file), position(9)))
        world.time.later(5.0, partial(world.topics.put, OFFSETS, key_of("c", file), position(10)))

    world.connect.after("start_task", begin)


def test_what_is_not_there_is_created(
    apply: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    done = apply(definition(), "--offsets", offsets(2), "--yes")
    assert (done.exit_code, done.json()["kind"], world.delivered) == (0, "connectors-create-result", {"c": LINES[2:]})


def test_the_same_config_is_no_change(apply: Run, live: PlaceWorld, definition: Callable[..., str]) -> None:
    """Neither a question nor --yes: a job may say it each time."""
    asked = calls_of(live, "put_connector_config", "create_connector", "set_state")
    done = apply(definition())
    assert (done.exit_code, asked, done.json()["data"]["rows"]) == (0, [], [])
    assert done.json()["kind"] == "connectors-apply-plan"


def test_a_harmless_setting_is_changed(apply: Run, live: PlaceWorld, definition: Callable[..., str]) -> None:
    live.lines["f"].append("four")
    done = apply(definition(tasks_max="1", errors_log_enable="true"), "--yes")
    assert (done.exit_code, outcomes(done)) == (0, dict.fromkeys(["configure", "watch", "compare"], "done"))
    assert live.connect.connectors["c"].config["errors.log.enable"] == "true"
    assert live.delivered["c"] == [*LINES, "four"]
    [changed] = done.json()["data"]["properties"]
    assert (changed["name"], changed["change"], changed["after"]) == ("errors.log.enable", "added", "true")


def test_the_plan_in_words(
    invoke: Invoke, live: PlaceWorld, definition: Callable[..., str], golden: Callable[[str, str], None]
) -> None:
    args = [definition(file="g", database_password="hunter22"), "--dry-run", *live.flags]
    done = invoke("connectors", "apply", *args, **live.surroundings)
    golden("connectors-apply-plan.txt", done.stdout)


def test_a_change_that_starts_over_is_refused(apply: Run, live: PlaceWorld, definition: Callable[..., str]) -> None:
    live.lines["g"] = ["uno", "dos"]
    done = apply(definition(file="g"), "--yes")
    assert (done.exit_code, live.connect.connectors["c"].config["file"]) == (6, "f")
    done = apply(definition(file="g"), "--read-again", "--yes")
    assert live.delivered["c"] == [*LINES, "uno", "dos"]
    assert (done.exit_code, "all_partitions_new" in codes(done)) == (3, True)
    assert done.json()["data"]["overrides"] == ["read-again"]


def test_another_offsets_topic_is_a_start_over(apply: Run, live: PlaceWorld, definition: Callable[..., str]) -> None:
    """Connect copies nothing from the former topic; `offsets switch` does."""
    done = apply(definition(offsets_storage_topic="own"), "--yes")
    assert (done.exit_code, live.connect.connectors["c"].config.get("offsets.storage.topic")) == (6, None)
    assert "eosctl offsets switch --connector c --to own" in str(done.json()["errors"][0]["hint"])


def test_an_unknown_effect_is_refused(apply: Run, world: PlaceWorld, definition: Callable[..., str]) -> None:
    of_unknown_class(world)
    made = definition(connector_class=UNKNOWN, batch_size="7")
    assert apply(made, "--yes").exit_code == 6
    commits(world, "f")
    done = apply(made, "--unknown-partitions", "--yes")
    assert (done.exit_code, codes(done)) == (0, set())


def test_what_it_commits_shows_that_it_started_over(
    apply: Run, world: PlaceWorld, definition: Callable[..., str]
) -> None:
    of_unknown_class(world)
    commits(world, "elsewhere")
    done = apply(definition(connector_class=UNKNOWN, batch_size="7"), "--unknown-partitions", "--yes")
    assert (done.exit_code, codes(done)) == (3, {"all_partitions_new"})


def test_an_unknown_effect_that_nobody_saw_is_partial(
    apply: Run, world: PlaceWorld, definition: Callable[..., str]
) -> None:
    of_unknown_class(world)
    done = apply(definition(connector_class=UNKNOWN, batch_size="7"), "--unknown-partitions", "--yes")
    assert (done.exit_code, codes(done)) == (7, {"partitions_not_seen"})


def test_the_last_commit_of_the_former_tasks_is_none_of_the_new(
    apply: Run, world: PlaceWorld, definition: Callable[..., str]
) -> None:
    """It comes between the change and the start of the tasks."""
    of_unknown_class(world)
    world.connect.after("put_connector_config", lambda _call: world.topics.put(OFFSETS, key_of("c", "f"), position(4)))
    done = apply(definition(connector_class=UNKNOWN, batch_size="7"), "--unknown-partitions", "--yes")
    assert (done.exit_code, codes(done)) == (7, {"partitions_not_seen"})


def test_a_stopped_connector_gets_its_config_and_stays_stopped(
    apply: Run, world: PlaceWorld, definition: Callable[..., str]
) -> None:
    world.place("c", state="STOPPED", topic="t-c")
    done = apply(definition(errors_log_enable="true"), "--yes")
    assert (done.exit_code, list(outcomes(done)), codes(done)) == (0, ["configure"], {"not_watched"})
    assert world.connect.connectors["c"].state == "STOPPED"


def test_before_39_the_tasks_are_restarted(apply: Run, live: PlaceWorld, definition: Callable[..., str]) -> None:
    """A task whose own config is the same may keep the converters of before (KAFKA-9228)."""
    live.connect.version = "3.8.1"
    asked = calls_of(live, "restart")
    done = apply(definition(errors_log_enable="true"), "--yes")
    assert (done.exit_code, len(asked), outcomes(done)["restart"]) == (0, 1, "done")


def test_before_39_a_run_that_was_cut_off_still_restarts_the_tasks(
    apply: Run, live: PlaceWorld, definition: Callable[..., str]
) -> None:
    """The next run saw an equal config, and did nothing."""
    live.connect.version = "3.8.1"
    live.connect.fail_next("restart", KeyboardInterrupt())
    assert apply(definition(errors_log_enable="true"), "--yes").exit_code == 130
    asked = calls_of(live, "restart")
    done = apply(definition(errors_log_enable="true"), "--yes")
    assert (done.exit_code, len(asked), list(outcomes(done))) == (0, 1, ["restart", "watch"])
    assert apply(definition(errors_log_enable="true")).json()["data"]["rows"] == []


def test_what_a_run_that_was_cut_off_would_have_seen_is_not_seen(
    apply: Run, world: PlaceWorld, definition: Callable[..., str]
) -> None:
    of_unknown_class(world)
    world.connect.fail_next("put_connector_config", KeyboardInterrupt(), done=True)
    made = definition(connector_class=UNKNOWN, batch_size="7")
    assert apply(made, "--unknown-partitions", "--yes").exit_code == 130
    done = apply(made, "--yes")
    assert (done.exit_code, codes(done)) == (7, {"partitions_not_seen", "create_unfinished"})


@pytest.mark.usefixtures("live")
def test_a_resource_that_an_operator_may_keep_is_named(apply: Run, tmp_path: Path) -> None:
    """The operator changes the config back."""
    config: dict[str, object] = {"file": "f", "topic": "t-c", "errors.log.enable": True}
    resource = {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaConnector",
        "metadata": {"name": "c", "labels": {"strimzi.io/cluster": "main"}},
        "spec": {"class": FILE_SOURCE, "tasksMax": 1, "config": config},
    }
    (tmp_path / "k.json").write_text(json.dumps(resource), encoding="utf-8")
    done = apply(str(tmp_path / "k.json"), "--yes")
    assert (done.exit_code, "kept_by_operator" in codes(done)) == (0, True)


def test_a_task_that_fails_with_it_is_exit_7(apply: Run, live: PlaceWorld, definition: Callable[..., str]) -> None:
    live.connect.after("start_task", lambda _call: live.connect.connectors["c"].fail(0))
    done = apply(definition(errors_log_enable="true"), "--yes")
    assert (done.exit_code, outcomes(done)["watch"], "create_unfinished" in codes(done)) == (7, "failed", True)
    assert live.connect.connectors["c"].config["errors.log.enable"] == "true"


def test_ctrl_c_says_which_config_it_has(apply: Run, live: PlaceWorld, definition: Callable[..., str]) -> None:
    live.connect.fail_next("put_connector_config", KeyboardInterrupt(), done=True)
    done = apply(definition(errors_log_enable="true"), "--yes")
    assert (done.exit_code, codes(done)) == (130, {"interrupted", "create_unfinished"})
    again = apply(definition(errors_log_enable="true"), "--yes")
    assert (again.exit_code, outcomes(again), codes(again)) == (0, {"watch": "done"}, {"create_unfinished"})
    assert apply(definition(errors_log_enable="true")).json()["data"]["rows"] == []


@pytest.mark.parametrize("done", [True, False])
def test_a_lost_answer_is_no_config_that_stayed(
    apply: Run, live: PlaceWorld, definition: Callable[..., str], done: bool
) -> None:
    """It was exit 4, as if nothing was changed; a worker that shows the former config may change it a moment later."""
    live.connect.fail_next("put_connector_config", UnreachableError("cut off"), done=done)
    lost = apply(definition(errors_log_enable="true"), "--yes")
    assert ("errors.log.enable" in live.connect.connectors["c"].config) is done
    assert (lost.exit_code, "create_unfinished" in codes(lost)) == (7, True)
    assert apply(definition(errors_log_enable="true"), "--yes").exit_code == 0


def test_a_config_that_was_changed_since_the_plan_is_left_alone(
    live: PlaceWorld, app: App, definition: Callable[..., str]
) -> None:
    found = read_definition(definition(errors_log_enable="true"), stdin=io.BytesIO())
    plan = prepare_apply(app, CreateRequest(found))
    live.connect.put("c", {**live.connect.connectors["c"].config, "batch.size": "7"})
    live.time.pass_until(live.time.now_s + 10)
    assert plan.apply is not None
    with pytest.raises(StalePlanError):
        plan.apply()
    assert "errors.log.enable" not in live.connect.connectors["c"].config


def test_an_invalid_config_is_refused(apply: Run, live: PlaceWorld, definition: Callable[..., str]) -> None:
    assert apply(definition(tasks_max="many"), "--yes").exit_code == 6
    assert live.connect.connectors["c"].config["tasks.max"] == "1"


def test_offsets_for_a_connector_that_exists_are_refused(
    apply: Run, live: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    done = apply(definition(errors_log_enable="true"), "--offsets", offsets(1), "--yes")
    assert (done.exit_code, live.stored("c")) == (6, 3)


def test_a_create_that_was_cut_off_is_continued(
    apply: Run, run: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    world.topics.fail_next("record", EosctlError("the broker went away"))
    assert run("create", definition(), "--offsets", offsets(2), "--yes").exit_code == 7
    done = apply(definition(), "--offsets", offsets(2), "--yes")
    assert (done.exit_code, world.delivered) == (0, {"c": LINES[2:]})


def test_secrets_are_hidden_in_the_diff(apply: Run, live: PlaceWorld, definition: Callable[..., str]) -> None:
    done: Outcome = apply(definition(producer_override_sasl_password="hunter22"), "--read-again", "--yes")
    assert "hunter22" not in done.stdout + done.stderr
    assert live.connect.connectors["c"].config["connector.class"] == FILE_SOURCE


@pytest.mark.parametrize("ends", [KilledError, KeyboardInterrupt, partial(UnreachableError, "cut off")])
def test_cut_off_anywhere_it_says_so_and_is_continued(
    definition: Callable[..., str], tmp_path: Path, ends: Callable[[], BaseException]
) -> None:
    """What raises has changed nothing; what may have changed something is exit 7 or 130."""
    found = read_definition(definition(errors_log_enable="true"), stdin=io.BytesIO())

    def changed(app: App) -> ExitCode:
        plan = prepare_apply(app.with_whole_timeout(), CreateRequest(found))
        return ExitCode.OK if plan.apply is None else plan.apply().exit_code

    def running() -> PlaceWorld:
        world = PlaceWorld()
        world.place("c", topic="t-c")
        world.lines["f"].append("four")  # with the new config it commits at once
        return world

    world = running()
    app = world.app(tmp_path / "undisturbed")
    kills = worth_a_kill(world.kill, partial(changed, app), partial(world.left, app.state_dir))
    assert len(kills) > 10
    for kill_at in kills:
        world = running()
        app = world.app(tmp_path / str(kill_at))
        world.kill.ticks, world.kill.at, world.kill.error = 0, kill_at, ends
        try:
            assert changed(app) in (ExitCode.OK, ExitCode.PARTIAL, ExitCode.INTERRUPTED), kill_at
        except KilledError:
            assert ends is KilledError
        except (EosctlError, KeyboardInterrupt):
            assert "errors.log.enable" not in world.connect.connectors["c"].config, kill_at
        world.kill.at = None
        world.time.pass_until(world.time.now_s + 30)
        assert changed(app) is ExitCode.OK, kill_at
        assert world.connect.connectors["c"].config["errors.log.enable"] == "true", kill_at
        assert world.delivered == {"c": [*LINES, "four"]}, kill_at
