"""`eosctl connectors move` as typed: output, exit codes, what the audit log keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Invoke, Outcome
from tests.fakes.connectors import FILE_SOURCE
from tests.fakes.faults import Call
from tests.fakes.moving import HERE, NAME, OUT, THERE, MovingWorld

Run = Callable[..., Outcome]
_PROFILE = f"""\
profiles:
  far:
    bootstrap_server: far:9092
    group_id: h
    connect_url: {THERE}
    config_topic: CONFIGS
    offset_topic: OFFSETS
"""


@pytest.fixture
def world() -> MovingWorld:
    return MovingWorld(clusters=2)


@pytest.fixture
def run(invoke: Invoke, world: MovingWorld, tmp_path: Path) -> Run:
    config = tmp_path / "config" / "eosctl"
    config.mkdir(parents=True)
    text = _PROFILE.replace("CONFIGS", world.there.configs).replace("OFFSETS", world.there.offsets)
    (config / "config.yaml").write_text(text)
    flags = ["-b", "memory:9092", "-g", "g", "-u", HERE]

    def moved(*args: str) -> Outcome:
        surroundings = {"doors": world.doors(), "clock": world.here.world.clock()}
        return invoke("connectors", "move", *args, *flags, **surroundings)

    return moved


def lines_when_asked(world: MovingWorld) -> None:
    world.here.connect.after("set_state", lambda _call: world.lines.append("more"))


def test_a_dry_run_shows_every_step_and_does_none(
    run: Run, world: MovingWorld, golden: Callable[[str, str], None]
) -> None:
    done = run("--connector", NAME, "--to", "far", "--set", "batch.size=7", "--set", "odd=hidden one", "--dry-run")
    assert (done.exit_code, done.stderr, world.here.is_running(NAME)) == (0, "", True)
    text = "".join(line for line in done.stdout.splitlines(keepends=True) if not line.startswith("  journal: "))
    golden("connectors-move-plan.txt", text)


def test_the_result_as_json_and_its_line_in_the_audit_log(run: Run, world: MovingWorld, tmp_path: Path) -> None:
    lines_when_asked(world)
    done = run("--connector", NAME, "--to", "far", "--set", "odd=s3cr3t", "--yes", "-o", "json").json()
    assert (done["kind"], done["status"], done["exit_code"]) == ("connectors-move-result", "ok", 0)
    assert set(done["data"]["rows"][0]) == {
        *("connector", "step", "side", "outcome", "action", "before", "after", "detail"),
    }
    [move] = done["data"]["moves"]
    assert move["there"] == {
        "profile": "far",
        "kafka_cluster_id": "two",
        "group_id": "h",
        "connector": NAME,
        "state": None,
        "version": "4.3.1",
        "plugin_version": "4.3.1",
        "offsets_topic": "connect-offsets",
    }
    assert move["offsets"] == {"write": 1, "delete": 0, "keep": 0, "conflict": 0}
    assert (move["verdict"], move["settings"]) == ("exactly_once", [{"name": "odd", "before": None, "after": "***"}])
    [entry] = [json.loads(line) for line in (tmp_path / "state" / "eosctl" / "audit.jsonl").read_text().splitlines()]
    assert entry["undo"] == "eosctl connectors move --connector c --back"
    assert entry["arguments"]["settings"] == ["odd=***"]
    assert "s3cr3t" not in "".join(path.read_text() for path in (tmp_path / "state").rglob("*") if path.is_file()), (
        "no value that may be a secret is in a file"
    )


def test_rows_come_one_a_line(run: Run, world: MovingWorld) -> None:
    lines_when_asked(world)
    done = run("--connector", NAME, "--to", "far", "--yes", "-o", "ndjson")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["step"] for row in rows][-1] == "audit"
    assert {row["outcome"] for row in rows} == {"done"}


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("--connector", NAME, "--all", "--to", "far"),
        ("--connector", NAME),
        ("--connector", NAME, "--back", "--delete"),
        ("--connector", NAME, "--back", "--set", "a=b"),
        ("--all", "--to", "far", "--rename", "other"),
        ("--connector", NAME, "--to", "far", "--rename", ""),
        ("--connector", NAME, "--to", "far", "--rename", " x"),
        ("--connector", NAME, "--to", "far", "--rename", "a\nb"),
        ("--connector", NAME, "--to", "far", "--set", "password=x"),
        ("--connector", NAME, "--to", "nobody"),
    ],
)
def test_options_that_contradict_each_other_are_exit_2(run: Run, args: tuple[str, ...]) -> None:
    assert run(*args, "--yes").exit_code == 2


def test_there_and_back_and_deleted(run: Run, world: MovingWorld) -> None:
    lines_when_asked(world)
    assert run("--connector", NAME, "--to", "far", "--yes").exit_code == 0
    world.lines.append("there")
    world.run(world.there)
    assert run("--connector", NAME, "--back", "--yes").exit_code == 0
    assert run("--match", "re:.", "--to", "far", "--yes").exit_code == 0
    world.lines.append("there again")
    world.run(world.there)
    assert run("--connector", NAME, "--delete", "--yes").exit_code == 0
    assert (world.delivered, NAME in world.here.connect.connectors) == (world.lines, False)


def test_what_is_there_and_not_as_here_is_warned_of(run: Run, world: MovingWorld) -> None:
    world.there.connect.plugins[0] = {"class": FILE_SOURCE, "type": "source", "version": "3.7.0"}
    del world.there.world.topics.topics[OUT]
    done = run("--connector", NAME, "--to", "far", "--dry-run", "-o", "json").json()
    assert [error["code"] for error in done["errors"]] == ["plugin_differs", "topics_not_there"]
    assert {error["severity"] for error in done["errors"]} == {"warning"}
    sides = (done["data"]["moves"][0][side]["plugin_version"] for side in ("here", "there"))
    assert list(sides) == ["4.3.1", "3.7.0"]


def test_without_an_answer_nothing_is_done(run: Run, world: MovingWorld) -> None:
    done = run("--connector", NAME, "--to", "far")
    assert (done.exit_code, world.here.is_running(NAME)) == (6, True)


def test_the_plan_of_many_looks_at_each_group_once(run: Run, world: MovingWorld) -> None:
    """Each connector had looks of its own at all connectors of both; a step looks anew before it changes one."""
    for name in ("d", "e", "f"):
        made = world.here.connect.add(name, {"topic": f"out-{name}", "file": name, "tasks.max": "1"})
        world.here.keep_config(f"connector-{name}", {"properties": made.config})
        world.here.keep_config(f"target-state-{name}", {"state": "STARTED", "state.v2": "STARTED"})
    world.here.world.time.pass_until(world.here.world.time.now_s + 30)
    asked: list[Call] = []
    for side in world.sides:
        side.connect.before("connectors", asked.append)
    assert run("--connector", NAME, "--to", "far", "--dry-run").exit_code == 0
    of_one = len(asked)
    assert run("--all", "--to", "far", "--dry-run").exit_code == 0
    assert len(asked) == of_one * 2 + 1 + 3, "which there are, and of each of the others the rights"
