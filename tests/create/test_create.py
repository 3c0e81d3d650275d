"""`connectors create` as typed: where the connector starts, what is refused, and what is left after each failure."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks.plan import examine
from eosctl.connectors.definition import read_definition
from eosctl.create.create import CreateRequest, prepare_create
from eosctl.create.given import gather_given
from eosctl.errors import ConnectError, EosctlError, ExitCode, NotFoundError, RefusedError, UnreachableError
from eosctl.move.sides import prepare_resume
from eosctl.report import Report
from tests.conftest import Invoke, Outcome
from tests.create.conftest import Run
from tests.fakes.connectors import FILE_SINK, FILE_SOURCE
from tests.fakes.faults import KilledError, worth_a_kill
from tests.fakes.placing import LINES, PlaceWorld, calls_of, key_of, position
from tests.fakes.world import CONFIGS, OFFSETS


def outcomes(done: Outcome) -> dict[str, str]:
    return {row["step"]: row["outcome"] for row in done.json()["data"]["rows"]}


def codes(done: Outcome) -> set[str]:
    return {each["code"] for each in done.json()["errors"]}


def records(path: Path, offsets: Mapping[bytes, bytes | None]) -> str:
    lines = [
        {"topic": OFFSETS, "partition": 0, "key": key.decode(), "value": None if value is None else value.decode()}
        for key, value in offsets.items()
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return str(path)


def test_it_starts_behind_the_given_offset(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    asked = calls_of(world, "create_connector", "set_state", "put_connector_config")
    done = create(definition(), "--offsets", offsets(2), "--yes")
    assert (done.exit_code, world.delivered) == (0, {"c": LINES[2:]})
    assert outcomes(done) == dict.fromkeys(["create", "write", "check", "resume", "watch"], "done")
    assert [(each.method, *each.what[-1:]) for each in asked] == [
        ("create_connector", "STOPPED"),
        ("set_state", "resume"),
    ]
    data = done.json()["data"]
    assert (data["starts"], data["store"], data["summary"]["offsets"]) == ("given", "global", 1)
    assert [(row["after"], row["outcome"]) for row in data["writes"]] == [({"position": 2}, "written")]


def test_the_plan_in_words(
    invoke: Invoke,
    world: PlaceWorld,
    definition: Callable[..., str],
    offsets: Callable[..., str],
    golden: Callable[[str, str], None],
) -> None:
    args = [definition(database_password="hunter22"), "--offsets", offsets(2), "--dry-run", *world.flags]
    done = invoke("connectors", "create", *args, **world.surroundings)
    lines = [line for line in done.stdout.splitlines(keepends=True) if not line.startswith(("journal: ", "offsets: "))]
    golden("connectors-create-plan.txt", "".join(lines))


@pytest.mark.parametrize(("count", "counted"), [(150, False), (8, True)])
def test_the_text_does_not_count_what_the_document_leaves_out(
    invoke: Invoke, world: PlaceWorld, definition: Callable[..., str], tmp_path: Path, count: int, counted: bool
) -> None:
    """Of 150 offsets, 100 are in the document: "and 95 more" was said below the first five."""
    given = records(tmp_path / "o.ndjson", {key_of("c", f"f{number}"): position(1) for number in range(count)})
    args = [definition(file="f0"), "--offsets", given, "--dry-run", *world.flags]
    done = invoke("connectors", "create", *args, **world.surroundings)
    assert (done.exit_code, bool(re.search(r"\d+ more", done.stdout))) == (0, counted)


def test_a_dry_run_changes_nothing(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    asked = calls_of(world, "create_connector", "set_state")
    done = create(definition(), "--offsets", offsets(2), "--dry-run")
    assert (done.exit_code, asked, world.connect.connectors) == (0, [], {})
    assert set(outcomes(done).values()) == {"planned"}


def test_without_offsets_the_plan_says_where_it_starts(
    create: Run, world: PlaceWorld, definition: Callable[..., str]
) -> None:
    done = create(definition(), "--yes")
    assert (done.exit_code, done.json()["data"]["starts"], world.delivered) == (0, "beginning", {"c": LINES})
    assert "starts_at_beginning" in codes(done)
    world.connect.delete("c")
    world.lines["f"].append("four")
    done = create(definition(), "--yes")
    assert (done.exit_code, done.json()["data"]["starts"]) == (0, "left")
    assert ("goes_on_from_left" in codes(done), world.delivered["c"]) == (True, [*LINES, "four"])


def test_stopped_leaves_it_with_its_offsets(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    done = create(definition(), "--offsets", offsets(1), "--stopped", "--yes")
    assert (done.exit_code, list(outcomes(done))) == (0, ["create", "write", "check"])
    assert (world.connect.connectors["c"].state, world.stored("c"), world.delivered) == ("STOPPED", 1, {})


def test_offsets_of_another_name_keep_the_rest_of_their_keys(
    create: Run, world: PlaceWorld, definition: Callable[..., str], tmp_path: Path
) -> None:
    """A key is found by its bytes: an encoder would change this spelling, and a task would not find it."""
    odd = b'["old", {"filename":"f" }]'
    file = records(tmp_path / "old.ndjson", {odd: position(1)})
    done = create(definition(), "--offsets", file, "--stopped", "--yes")
    assert done.exit_code == 0
    assert world.topics.newest(OFFSETS)[b'["c", {"filename":"f" }]'] == position(1)
    assert "rest_finds_other_keys" in codes(done)


def test_the_offsets_of_a_stopped_connector_are_taken_over(
    create: Run, world: PlaceWorld, definition: Callable[..., str]
) -> None:
    """Its own topic counts, then the global one."""
    world.place("old", state="STOPPED", offsets_storage_topic="own")
    world.topics.put("own", key_of("old", "f"), position(2))
    world.topics.put(OFFSETS, key_of("old", "f"), position(1))
    world.topics.put(OFFSETS, key_of("old", "g"), position(7))
    done = create(definition(), "--offsets", "old", "--yes")
    assert (done.exit_code, world.delivered["c"]) == (0, LINES[2:])
    assert (world.stored("c"), world.stored("c", "g")) == (3, 7)


def test_a_topic_of_its_own_is_created_compacted(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    made = definition(offsets_storage_topic="own")
    done = create(made, "--offsets", offsets(1), "--yes")
    assert (done.exit_code, world.delivered) == (0, {"c": LINES[1:]})
    assert world.topics.topics["own"].config["cleanup.policy"] == "compact"
    assert [each["topic"] for each in done.json()["data"]["creates"]] == ["own"]


@pytest.mark.parametrize("state", ["RUNNING", "STOPPED"])
def test_a_name_that_exists_is_refused(
    create: Run, world: PlaceWorld, definition: Callable[..., str], state: str
) -> None:
    world.place("c", state=state)
    done = create(definition(), "--yes")
    assert (done.exit_code, codes(done)) == (6, {"refused"})


def test_other_offsets_of_that_name_are_replaced_only_if_asked(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    world.topics.put(OFFSETS, key_of("c", "f"), position(3))
    world.topics.put(OFFSETS, key_of("c", "g"), position(9))
    done = create(definition(), "--offsets", offsets(1), "--yes")
    assert (done.exit_code, world.connect.connectors) == (6, {})
    done = create(definition(), "--offsets", offsets(1), "--overwrite-offsets", "--yes")
    assert (done.exit_code, world.delivered) == (0, {"c": LINES[1:]})
    assert world.topics.newest(OFFSETS)[key_of("c", "g")] is None
    assert done.json()["data"]["overrides"] == ["overwrite-offsets"]
    assert "position" in Path(done.json()["data"]["backup"]).read_text(encoding="utf-8")


def test_the_same_offsets_are_no_others(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    world.topics.put(OFFSETS, key_of("c", "f"), position(2))
    done = create(definition(), "--offsets", offsets(2), "--yes")
    assert (done.exit_code, world.delivered) == (0, {"c": LINES[2:]})


def test_a_running_connector_on_the_same_source_is_refused(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    """Each line would be delivered twice. It is known by its offsets, and by its config before it has any."""
    world.place("other")
    for given in (["--offsets", offsets(1)], [], ["--set", "connector.class=FileStreamSource"]):
        assert create(definition(), *given, "--yes").exit_code == 6
    world.topics.put(OFFSETS, key_of("other", "f"), None)
    assert create(definition(), "--yes").exit_code == 6
    assert create(definition(), "--offsets", "other", "--yes").exit_code == 1
    assert create(definition(), "--read-twice", "--yes").exit_code == 0


def test_the_offsets_of_a_running_connector_are_refused(
    create: Run, world: PlaceWorld, definition: Callable[..., str]
) -> None:
    world.place("other", file="g")
    done = create(definition(file="g"), "--offsets", "other", "--yes")
    assert (done.exit_code, list(world.connect.connectors)) == (6, ["other"])


def test_a_source_that_was_resumed_since_the_plan_is_noticed(
    app: App, world: PlaceWorld, definition: Callable[..., str]
) -> None:
    """Its offsets move on from those that were read."""
    world.place("old", file="g", state="STOPPED")
    found = read_definition(definition(file="g"), stdin=io.BytesIO())
    plan = prepare_create(app, CreateRequest(found, gather_given(app, "old", connector="c", stdin=io.BytesIO())))
    assert plan.apply is not None
    world.connect.set_target("old", "STARTED")
    world.time.pass_until(world.time.now_s + 10)
    with pytest.raises(RefusedError):
        plan.apply()
    assert list(world.connect.connectors) == ["old"]


def test_offsets_of_another_source_are_refused(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    """It would start over in spite of them."""
    done = create(definition(), "--offsets", offsets(2, "g"), "--yes")
    assert (done.exit_code, world.connect.connectors) == (6, {})
    done = create(definition(), "--offsets", offsets(2, "g"), "--read-again", "--yes")
    assert (done.exit_code, world.delivered) == (0, {"c": LINES})


def test_a_config_that_connect_would_reject_is_refused(
    create: Run, world: PlaceWorld, definition: Callable[..., str]
) -> None:
    world.connect.objections["file"] = "no such file: hunter22"
    done = create(definition(database_password="hunter22"), "--yes")
    assert (done.exit_code, world.connect.connectors) == (6, {})
    assert "hunter22" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("config", "exit_code"),
    [
        ({"connector_class": "org.example.NoneSuch"}, 6),
        ({"connector_class": FILE_SINK, "topics": "t"}, 6),
        ({"offsets_storage_topic": "${file:/x:y}"}, 6),
    ],
)
def test_what_can_be_no_source_connector_here_is_refused(
    create: Run, world: PlaceWorld, definition: Callable[..., str], config: Mapping[str, str], exit_code: int
) -> None:
    world.connect.plugins = [*world.connect.plugins, {"class": FILE_SINK, "type": "sink", "version": "4.3.1"}]
    assert (create(definition(**config), "--yes").exit_code, world.connect.connectors) == (exit_code, {})


def test_workers_that_are_too_old_are_refused(create: Run, world: PlaceWorld, definition: Callable[..., str]) -> None:
    world.connect.version = "3.6.2"
    done = create(definition(), "--yes")
    assert (done.exit_code, codes(done), world.connect.connectors) == (1, {"unsupported"}, {})


def test_another_groups_topics_are_refused(create: Run, world: PlaceWorld, definition: Callable[..., str]) -> None:
    world.connect.add("unknown-to-the-topic")
    assert create(definition(), "--yes").exit_code == 6


def test_a_worker_that_starts_it_at_once_is_found_out(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    """It is stopped before anything else is done; what it has read by then is said, not hidden."""
    world.connect.ignores_initial_state = True
    done = create(definition(), "--offsets", offsets(2), "--yes")
    assert (done.exit_code, outcomes(done)["create"], outcomes(done)["write"]) == (7, "failed", "not_reached")
    assert {"not_created_stopped", "create_unfinished"} <= codes(done)
    assert world.connect.connectors["c"].state == "STOPPED"


def test_offsets_that_the_worker_does_not_find_keep_it_stopped(
    run: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    """The workers use another offsets topic than the one that was written; `connectors resume` started it."""
    world.offsets_topic = "others-offsets"
    done = run("create", definition(), "--offsets", offsets(2), "--yes")
    assert (done.exit_code, outcomes(done)["check"], outcomes(done)["resume"]) == (7, "failed", "not_reached")
    assert run("resume", "c", "--yes").exit_code == 6
    assert (world.connect.connectors["c"].state, world.delivered) == ("STOPPED", {})


def test_running_is_no_proof_of_reading(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    world.stuck.add("c")
    done = create(definition(), "--offsets", offsets(2), "--yes")
    assert (done.exit_code, "nothing_committed_yet" in codes(done)) == (0, True)


def test_a_failed_step_is_continued(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    world.topics.fail_next("record", EosctlError("the broker went away"))
    done = create(definition(), "--offsets", offsets(2), "--yes")
    assert (done.exit_code, outcomes(done)["write"]) == (7, "failed")
    assert world.connect.connectors["c"].state == "STOPPED"
    again = create(definition(), "--offsets", offsets(2), "--yes")
    assert (again.exit_code, world.delivered) == (0, {"c": LINES[2:]})
    assert create(definition(), "--offsets", offsets(2), "--yes").exit_code == 6


def test_an_answer_that_was_lost_is_no_second_connector(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    world.connect.fail_next("create_connector", ConnectError("cut off"), done=True)
    assert create(definition(), "--offsets", offsets(2), "--yes").exit_code == 7
    assert create(definition(), "--offsets", offsets(2), "--yes").exit_code == 0
    assert world.delivered == {"c": LINES[2:]}


def test_one_that_was_started_in_between_is_not_written_to(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    world.topics.fail_next("record", EosctlError("the broker went away"))
    assert create(definition(), "--offsets", offsets(2), "--yes").exit_code == 7
    world.connect.worker().set_state("c", "resume")
    world.time.pass_until(world.time.now_s + 10)
    done = create(definition(), "--offsets", offsets(2), "--yes")
    assert (done.exit_code, codes(done)) == (6, {"refused"})


def made(app: App, definition: str, offsets: str) -> Report:
    """What `connectors create` does."""
    found = read_definition(definition, stdin=io.BytesIO())
    given = gather_given(app, offsets, connector=found.name, stdin=io.BytesIO())
    plan = prepare_create(app, CreateRequest(found, given))
    assert plan.apply is not None
    return plan.apply()


LOST = partial(UnreachableError, "cut off")


def started(app: App) -> bool:
    """Whether `connectors resume` is not refused, and starts it."""
    try:
        plan = prepare_resume(app.with_whole_timeout(), "c")
    except (RefusedError, NotFoundError):
        return False
    return plan.apply is not None and plan.apply().exit_code is ExitCode.OK


@pytest.mark.parametrize(
    ("ends", "resumes"), [(KilledError, False), (KilledError, True), (KeyboardInterrupt, True), (LOST, True)]
)
def test_cut_off_anywhere_it_starts_with_its_offsets_or_not_at_all(
    definition: Callable[..., str],
    offsets: Callable[..., str],
    tmp_path: Path,
    ends: Callable[[], BaseException],
    resumes: bool,
) -> None:
    """Whatever call was the last one: no line is lost, and none is delivered twice; what may be there is said."""
    file, given = definition(), offsets(2)
    world = PlaceWorld()
    app = world.app(tmp_path / "undisturbed")
    kills = worth_a_kill(world.kill, partial(made, app, file, given), partial(world.left, app.state_dir))
    assert len(kills) > 10
    for kill_at in kills:
        world = PlaceWorld()
        app = world.app(tmp_path / str(kill_at))
        world.kill.ticks, world.kill.at, world.kill.error = 0, kill_at, ends
        code = None
        try:
            report = made(app, file, given)
            code = report.exit_code
            found = {str(each.code) for each in report.problems}
            assert code is ExitCode.OK or "create_unfinished" in found, kill_at
            assert code in (ExitCode.OK, ExitCode.PARTIAL, ExitCode.INTERRUPTED), kill_at
        except KilledError:
            assert ends is KilledError
        except (EosctlError, KeyboardInterrupt):
            assert world.connect.connectors == {}, kill_at
        world.kill.at = None
        world.time.pass_until(world.time.now_s + 30)
        if resumes:
            started(app)
        if code is not ExitCode.OK:
            again = made(app.with_whole_timeout(), file, given)
            assert again.exit_code is ExitCode.OK, (kill_at, again.problems)
        assert world.connect.connectors["c"].state == "RUNNING", kill_at
        assert world.delivered == {"c": LINES[2:]}, kill_at


def test_offsets_that_are_being_replaced_are_no_offsets_to_start_with(
    run: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    """Those of the run before were written and seen: `connectors resume` was not refused in the midst of the next."""
    world.connect.fail_next("set_state", EosctlError("cut off"))
    assert run("create", definition(), "--offsets", offsets(1), "--yes").exit_code == 7
    world.topics.fail_next("record", EosctlError("the broker went away"))
    again = ["create", definition(), "--offsets", offsets(2), "--overwrite-offsets", "--yes"]
    assert run(*again).exit_code == 7
    assert run("resume", "c", "--yes").exit_code == 6
    assert run("create", definition(), "--yes").exit_code == 6, "without --offsets it would start with a part of them"
    assert (run(*again).exit_code, world.delivered) == (0, {"c": LINES[2:]})


def test_another_connector_of_its_name_may_be_resumed_by_the_way_that_is_named(
    app: App, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    """It was refused for ever, and doctor's error stayed."""
    world.topics.fail_next("record", EosctlError("the broker went away"))
    assert made(app, definition(), offsets(2)).exit_code is ExitCode.PARTIAL
    world.connect.delete("c")
    world.connect.create("c", {"connector.class": FILE_SOURCE, "tasks.max": "1", "file": "g"}, "STOPPED")
    world.time.pass_until(world.time.now_s + 30)
    with pytest.raises(RefusedError) as refused:
        prepare_resume(app.with_whole_timeout(), "c")
    rows = {row.code: row for row in examine(app.with_whole_timeout()).rows if row.subject == "c"}
    assert str(rows["create_unfinished"].fix) in str(refused.value.hint)
    command = shlex.split(str(refused.value.hint).rpartition("`rm")[2].partition("`")[0])
    Path(command[-1]).unlink()
    assert started(app)
    assert "create_unfinished" not in [row.code for row in examine(app.with_whole_timeout()).rows]


def test_a_file_of_several_connectors_has_to_have_those_of_this_one(
    create: Run, world: PlaceWorld, definition: Callable[..., str], tmp_path: Path
) -> None:
    others = {key_of("a", "f"): position(1), key_of("b", "f"): position(2)}
    file = records(tmp_path / "offsets.ndjson", others)
    assert create(definition(), "--offsets", file, "--yes").exit_code == 2
    file = records(tmp_path / "offsets.ndjson", {**others, key_of("c", "f"): position(2)})
    done = create(definition(), "--offsets", file, "--yes")
    assert (done.exit_code, world.delivered, world.stored("a")) == (0, {"c": LINES[2:]}, None)


def test_offsets_and_definition_may_come_by_stdin(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    text = Path(definition()).read_bytes()
    done = create("-", "--offsets", offsets(2), "--yes", input=io.BytesIO(text))
    assert (done.exit_code, world.delivered) == (0, {"c": LINES[2:]})


def test_a_group_whose_tasks_have_the_same_ids_is_named(
    create: Run, world: PlaceWorld, definition: Callable[..., str]
) -> None:
    """Group g with connector a-c has the ids of group g-a with connector c."""
    world.other_group("g-a", "http://v0:8083").add("c")
    done = create(definition("a-c"), "--dry-run")
    assert (done.exit_code, "ids_clash" in codes(done)) == (0, True)


def test_a_worker_without_the_plugin_is_named(create: Run, world: PlaceWorld, definition: Callable[..., str]) -> None:
    world.connect.modes["http://w1:8083"] = "enabled"
    world.connect.lacking["http://w1:8083"] = {FILE_SOURCE}
    world.connect.rebalance()
    world.time.pass_until(world.time.now_s + 10)
    done = create(definition(), "--dry-run")
    assert (done.exit_code, "worker_lacks_plugin" in codes(done)) == (0, True)


def test_secrets_are_nowhere(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str], tmp_path: Path
) -> None:
    made = definition(database_password="hunter22", database_user="${file:/s:u}")
    secret = Path(made)
    refused = create(made, "--offsets", offsets(2), "--set", "api.token=hunter23", "--yes")
    assert (refused.exit_code, world.connect.connectors) == (2, {})
    done = create(made, "--offsets", offsets(2), "--set", "api.token=${file:/s:t}", "--yes")
    assert done.exit_code == 0
    assert done.json()["data"]["config"]["database.password"] == "***"
    assert done.json()["data"]["config"]["database.user"] == "${file:/s:u}"
    assert world.connect.connectors["c"].config["api.token"] == "${file:/s:t}"
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
    shown = [
        done.stdout,
        done.stderr,
        refused.stdout,
        refused.stderr,
        *(text for text in texts if text != secret.read_text(encoding="utf-8")),
    ]
    assert not [text for text in shown if "hunter2" in text]


def test_it_is_in_the_groups_config_topic(
    create: Run, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    """A worker of another group on the same cluster has created it elsewhere."""
    world.connect.keep_config = lambda _key, _value: None
    done = create(definition(), "--offsets", offsets(2), "--yes")
    assert (done.exit_code, outcomes(done)["create"]) == (7, "failed")
    assert CONFIGS in done.stdout
    assert world.connect.connectors["c"].state == "STOPPED"


def test_offsets_on_brokers_of_its_own_are_not_called_none(
    create: Run, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    """What is there was not looked at: the plan said that it starts at the beginning."""
    own = {f"{each}_override_bootstrap_servers": "own:9092" for each in ("producer", "consumer", "admin")}
    made = definition(offsets_storage_topic="own-offsets", **own)
    assert create(made, "--offsets", offsets(1), "--yes").exit_code == 6
    done = create(made, "--stopped", "--dry-run")
    assert (done.exit_code, done.json()["data"]["starts"]) == (0, "unknown")
    assert ("start_not_known" in codes(done), "starts_at_beginning" in codes(done)) == (True, False)


def test_one_without_its_offsets_yet_is_not_resumed(
    app: App, world: PlaceWorld, definition: Callable[..., str], offsets: Callable[..., str]
) -> None:
    """`connectors resume` started it at the beginning of its source, and doctor named that as what starts it."""
    file, given = definition(), offsets(2)
    world.topics.fail_next("record", EosctlError("the broker went away"))
    assert made(app, file, given).exit_code is ExitCode.PARTIAL
    unnamed = replace(app.target, group_id=None), replace(app.target, group_id=None, client=None)
    for target in (app.target, *unnamed):
        with pytest.raises(RefusedError):
            prepare_resume(replace(app, target=target), "c")
    rows = {row.code: row for row in examine(app).rows if row.subject == "c"}
    assert (rows["create_unfinished"].severity, "connectors resume" in str(rows["at_rest"].fix)) == ("error", False)
    assert made(app, file, given).exit_code is ExitCode.OK
    assert world.delivered == {"c": LINES[2:]}
    assert "create_unfinished" not in [row.code for row in examine(app).rows]
    assert prepare_resume(app, "c").apply is None, "it runs"
