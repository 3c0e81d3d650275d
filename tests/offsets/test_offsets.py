"""`eosctl offsets` as typed: whole output against golden files, exit codes, and what ends up in the topics."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from eosctl.app import App
from eosctl.core.offsets.names import partition_for
from eosctl.deadline import Clock
from tests.conftest import Invoke, Outcome
from tests.fakes.offset_topics import WORKER, OffsetWorld
from tests.fakes.reddit import APACHE, CATS, CHEESE, GLOBAL, IN_OWN, OWN, offset, reddit_world
from tests.fakes.topics import FakeTopicStore

Run = Callable[..., Outcome]


@pytest.fixture
def world() -> OffsetWorld:
    return reddit_world()


def test_list(run: Run, world: OffsetWorld, golden: Callable[[str, str], None]) -> None:
    """A task that is RUNNING and commits nothing shows by the age of its offsets only."""
    world.time.sleep(485)  # records are a second apart
    done = run("list")
    assert (done.exit_code, done.stderr) == (0, "")
    golden("offsets-list.txt", done.stdout)


def test_list_as_json(run: Run, golden: Callable[[str, str], None]) -> None:
    golden("offsets-list.json", run("list", "--connector", "reddit", "-o", "json").stdout)


def test_offsets_of_a_connector_that_is_no_more_are_flagged(run: Run, world: OffsetWorld) -> None:
    """They looked like those of any other connector; whoever created one of that name read nothing from before."""
    world.topics.put(GLOBAL, b'["old",{"filename":"/tmp/y"}]', b'{"position":7}')
    world.topics.put(GLOBAL, b'["empty",{"filename":"/tmp/z"}]', None)
    done = run("list", "-o", "json").json()
    flags = {row["connector"]: row["flags"] for row in done["data"]["rows"]}
    assert flags["old"] == ["connector_gone"]
    assert flags["plain"] == []
    assert [(each["code"], each["message"]) for each in done["errors"]] == [
        ("connector_gone", "Connect has no connector old, and its offsets are still here")
    ], "a tombstone is no offset to go on from"
    assert "`eosctl offsets reset --connector old --all-partitions`" in done["errors"][0]["hint"]
    assert (done["exit_code"], run("get", "--connector", "plain").stderr) == (0, "")


def test_nothing_is_called_gone_where_connect_could_not_be_asked(run: Run, world: OffsetWorld) -> None:
    world.topics.put(GLOBAL, b'["old",{"filename":"/tmp/y"}]', b'{"position":7}')
    done = run("list", "-o", "json", url=False).json()
    assert {row["connector"]: row["flags"] for row in done["data"]["rows"]}["old"] == []
    assert "connector_gone" not in [each["code"] for each in done["errors"]]


def test_a_store_limits_the_list_to_what_it_has(run: Run) -> None:
    rows = run("list", "--store", "dedicated", "-o", "json").json()["data"]["rows"]
    assert [row["source_partition"]["subreddit"] for row in rows] == ["CatsStandingUp", "grilledcheese"]
    assert rows[0]["effective"]["documented"] == {"timestamp": "2169"}


def test_get_finds_a_source_partition_in_any_spelling(run: Run) -> None:
    found = run("get", "--connector", "reddit", "--partition", ' { "subreddit" : "apachek\\u0061fka" }', "-o", "json")
    assert [row["key"] for row in found.json()["data"]["rows"]] == [APACHE.decode()]
    missing = run("get", "--connector", "reddit", "--partition", '{"subreddit":"none"}')
    assert missing.exit_code == 1
    assert run("get", "--connector", "reddit", "--partition", "oops").exit_code == 2


def test_diff(run: Run, golden: Callable[[str, str], None]) -> None:
    done = run("diff", "--connector", "reddit")
    assert done.exit_code == 3
    golden("offsets-diff.txt", done.stdout)


def test_diff_of_equal_stores_is_no_finding(run: Run) -> None:
    assert run("diff", "--connector", "reddit", OWN, "dedicated").exit_code == 0


@pytest.mark.parametrize("form", ["rest", "strimzi"])
def test_what_was_exported_differs_from_nothing(run: Run, world: OffsetWorld, tmp_path: Path, form: str) -> None:
    """A body has neither the keys' bytes nor those of the values: equal offsets must not count as different."""
    world.topics.put(GLOBAL, b'["reddit", {"subreddit": "spaced"}]', b'{ "timestamp" : "1" }')
    file = tmp_path / "offsets.out"
    assert run("export", "--store", "global", "--connector", "reddit", "--format", form, str(file)).exit_code == 0
    done = run("diff", "--connector", "reddit", "global", str(file), "-o", "json").json()
    assert done["exit_code"] == 0, done["data"]["rows"]
    assert set(done["data"]["clusters"]) == {"global"}
    assert done["data"]["rows"]
    text = file.read_text()
    file.write_text(text.replace("apachekafka", "other"))
    changed = run("diff", "--connector", "reddit", "global", str(file), "-o", "json").json()
    assert changed["exit_code"] == 3
    assert {row["status"] for row in changed["data"]["rows"]} == {"same", "only_left", "only_right"}


def test_diff_with_what_another_tool_printed(run: Run, world: OffsetWorld, tmp_path: Path) -> None:
    world.topics.put(GLOBAL, b'["plain",{"filename":"/b"}]', b'{"position":7}')
    file = tmp_path / "printed.txt"
    file.write_text('["plain",{"filename":"/b"}]\t{"position":8}\n["plain",{"filename":"/b"}]\t{"position":7}\n')
    done = run("diff", "--connector", "plain", str(file), "global", "-o", "json")
    statuses = {row["source_partition"]["filename"]: row["status"] for row in done.json()["data"]["rows"]}
    assert statuses["/b"] == "same"  # the later line is the newer record
    assert "may_be_aborted" in [each["code"] for each in done.json()["errors"]]


def test_strimzis_config_map_is_imported(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "cm.yaml"
    body = {"offsets": [{"partition": {"filename": "/new"}, "offset": {"position": 3}}]}
    file.write_text(f"apiVersion: v1\nkind: ConfigMap\ndata:\n  offsets.json: |\n    {json.dumps(body)}\n")
    done = run("import", str(file), "--store", "global", "--connector", "plain", "--dry-run", "-o", "json").json()
    assert [(row["action"], row["after"]) for row in done["data"]["rows"]] == [("write", {"position": 3})]


def test_diff_needs_a_dedicated_topic(run: Run) -> None:
    done = run("diff", "--connector", "plain")
    assert done.exit_code == 2
    assert "plain has no offsets topic of its own" in done.stderr


def test_a_dry_run_shows_the_plan_and_writes_nothing(
    run: Run, world: OffsetWorld, golden: Callable[[str, str], None]
) -> None:
    done = run("merge", "--connector", "reddit", "--into", "dedicated", "--dry-run")
    assert (done.exit_code, world.topics.writes) == (0, 0)
    golden("offsets-merge-plan.txt", done.stdout)


def test_merge_makes_the_runtime_view_equal_to_the_documented_one(
    run: Run, world: OffsetWorld, golden: Callable[[str, str], None]
) -> None:
    done = run("merge", "--connector", "reddit", "--into", "dedicated", "--yes", "-o", "json")
    assert done.exit_code == 0
    assert world.topics.newest(OWN) == {APACHE: offset(4761), CATS: offset(2169), CHEESE: offset(489)}
    data = done.json()["data"]
    assert Path(data["backup"]).exists()
    golden("offsets-merge-result.json", done.stdout.replace(data["backup"], "BACKUP"))
    rows = run("list", "--connector", "reddit", "-o", "json").json()["data"]["rows"]
    assert all(row["effective"]["documented"] == row["effective"]["runtime"] for row in rows)
    again = run("merge", "--connector", "reddit", "--into", "dedicated")
    assert again.exit_code == 0, "nothing to do needs no question"
    assert world.topics.writes == 1


def test_merge_before_the_switch_creates_the_topic(run: Run, world: OffsetWorld) -> None:
    world.connect.add("plain", state="STOPPED")
    words = ["merge", "--connector", "plain", "--into", "dedicated", "--dedicated-topic", "offsets-{connector}"]
    shown = run(*words, "--dry-run")
    assert "creates topic offsets-plain: compacted, 5 partitions, replication factor 3" in shown.stdout
    assert run(*words, "--yes").exit_code == 0
    assert world.topics.newest("offsets-plain") == {b'["plain",{"filename":"/tmp/x"}]': b'{"position":20}'}
    there = run("diff", "--connector", "plain", "--dedicated-topic", "offsets-{connector}")
    assert there.exit_code == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--connector", "running", "--yes"], "not stopped: running (RUNNING, 1 task)"),
        (["--connector", "paused", "--yes"], "not stopped: paused (PAUSED, 1 task)"),
    ],
)
def test_merge_is_refused(run: Run, world: OffsetWorld, words: list[str], complaint: str) -> None:
    for connector, state in (("running", "RUNNING"), ("paused", "PAUSED")):
        world.connect.add(connector, IN_OWN, state=state)
        world.topics.put(GLOBAL, f'["{connector}",{{}}]'.encode(), b"{}")
    done = run("merge", *words, "--into", "dedicated")
    assert (done.exit_code, world.topics.writes) == (6, 0)
    assert complaint in done.stderr


def test_a_running_connector_can_be_forced_and_the_plan_says_so(run: Run, world: OffsetWorld) -> None:
    world.connect.add("reddit", IN_OWN)
    words = ["merge", "--connector", "reddit", "--into", "dedicated"]
    dry = run(*words, "--dry-run")
    assert dry.exit_code == 0
    assert "would be refused: not stopped: reddit" in dry.stderr
    forced = run(*words, "--force-running", "--yes", "-o", "json").json()
    assert (forced["exit_code"], forced["data"]["overrides"]) == (0, ["force-running"])


@pytest.mark.parametrize(("members", "exit_code"), [(0, 0), (2, 6)])
def test_workers_down_is_checked(run: Run, world: OffsetWorld, members: int, exit_code: int) -> None:
    world.topics.add_topic("connect-configs", 1)
    config = {"properties": {"name": "reddit", "offsets.storage.topic": OWN}}
    world.topics.put("connect-configs", b"connector-reddit", json.dumps(config).encode())
    world.connect.modes = {f"http://worker{n}:8083": "enabled" for n in range(members)}
    words = ["merge", "--connector", "reddit", "--into", "dedicated", "--yes"]
    assert run(*words, "--workers-down", url=False).exit_code == exit_code


@pytest.mark.parametrize("forgotten", [False, True])
def test_merge_is_refused_where_no_worker_can_be_asked(run: Run, world: OffsetWorld, forgotten: bool) -> None:
    """Be the group without members for a moment, or for so long that its coordinator has forgotten it."""
    world.connect.stop_worker(WORKER)
    world.connect.forgotten = forgotten
    words = ["merge", "--connector", "reddit", "--into", "dedicated", "--dedicated-topic", "{connector}-offsets"]
    done = run(*words, "--yes", url=False)
    assert (done.exit_code, world.topics.writes) == (6, 0)
    assert "--workers-down" in done.stderr


def test_a_worker_of_another_group_does_not_vouch_for_a_connector(run: Run, world: OffsetWorld) -> None:
    """A connector that a worker does not know used to count as stopped, even where the config topic has it."""
    world.topics.add_topic("connect-configs", 1)
    config = {"properties": {"name": "reddit", "offsets.storage.topic": OWN}}
    world.topics.put("connect-configs", b"connector-reddit", json.dumps(config).encode())
    del world.connect.connectors["reddit"]
    words = ["merge", "--connector", "reddit", "--into", "dedicated", "--dedicated-topic", "{connector}-offsets"]
    done = run(*words, "--yes")
    assert (done.exit_code, world.topics.writes) == (6, 0)
    assert "which the worker does not know" in done.stderr
    world.topics.put("connect-configs", b"connector-reddit", None)
    assert run(*words, "--yes").exit_code == 0, "a deleted connector has no tasks"


def test_a_connector_that_nobody_who_was_asked_knows_may_run(invoke: Invoke, run: Run, world: OffsetWorld) -> None:
    """No group was named and the config topic is not there: the worker may be of any group, and it counted as gone."""
    del world.connect.connectors["reddit"]
    words = [
        "merge",
        "--connector",
        "reddit",
        "--into",
        "dedicated",
        "--dedicated-topic",
        "{connector}-offsets",
        "--yes",
    ]
    done = invoke("-b", "memory:9092", "-u", WORKER, "offsets", *words, "--yes", **world.surroundings)
    assert (done.exit_code, world.topics.writes) == (6, 0)
    assert run(*words, "--yes").exit_code == 0, "the members of a group that was named hold no task of it"


def test_the_time_of_the_question_does_not_count(run: Run, world: OffsetWorld) -> None:
    """A plan that was read for longer than --timeout used to be refused by the clock when it was agreed to."""
    now_s = [0.0]
    clock = Clock(monotonic_s=lambda: now_s[0], sleep_s=lambda _wanted_s: None)
    deadlines: list[float] = []

    def topics(app: App) -> FakeTopicStore:
        deadlines.append(app.deadline.remaining_s())
        now_s[0] += 20.0
        return world.topics

    doors = {**world.doors(), "open_topics": topics}
    words = ["merge", "--connector", "reddit", "--into", "dedicated", "--yes", "--timeout", "60s"]
    assert run(*words, doors=doors, clock=clock).exit_code == 0
    assert min(deadlines[-2:]) > 0
    assert 60.0 in deadlines[1:]


def test_without_a_url_the_group_tells_where_the_workers_are(run: Run, world: OffsetWorld) -> None:
    """Dedicated topics come from the config topic then, so that workers need not be reachable for looking."""
    world.topics.add_topic("connect-configs", 1)
    config = {"properties": {"name": "reddit", "offsets.storage.topic": OWN}}
    world.topics.put("connect-configs", b"connector-reddit", json.dumps(config).encode())
    assert run("diff", "--connector", "reddit", url=False).exit_code == 3
    assert run("merge", "--connector", "reddit", "--into", "dedicated", "--yes", url=False).exit_code == 0
    world.connect.add("reddit", IN_OWN)
    world.topics.put(GLOBAL, b'["reddit",{"subreddit":"more"}]', offset(1))
    refused = run("merge", "--connector", "reddit", "--into", "dedicated", "--yes", url=False)
    assert (refused.exit_code, "not stopped: reddit" in refused.stderr) == (6, True)


def test_an_unknown_connector_a_missing_topic_and_a_missing_file(run: Run) -> None:
    assert run("list", "--connector", "nosuch").exit_code == 1
    assert run("list", "--store", "nosuch").exit_code == 1
    assert run("list", "--offset-topic", "nosuch").exit_code == 1
    assert run("restore", "/nosuch/file").exit_code == 2
    assert run("merge", "--into", "dedicated").exit_code == 2


def test_an_unreachable_worker_leaves_the_list_with_a_warning(run: Run, world: OffsetWorld) -> None:
    """Offsets can be looked at with the workers down; only where the dedicated topics are is then asked elsewhere."""
    world.connect.down.add(WORKER)
    done = run("list")
    assert done.exit_code == 0
    assert f"the Connect worker at {WORKER} can't be reached" in done.stderr
    merged = run("merge", "--connector", "reddit", "--into", "dedicated", "--yes")
    assert merged.exit_code == 2
    assert "reddit has no offsets topic" not in merged.stderr


def test_the_global_topic_has_two_names(run: Run) -> None:
    """By its own, `list` found nothing in it, and `merge` and `diff` ended with an unexpected error."""
    listed = run("list", "--store", GLOBAL, "-o", "json").json()["data"]["rows"]
    by_role = run("list", "--store", "global", "-o", "json").json()["data"]["rows"]
    assert [row["key"] for row in listed] == [row["key"] for row in by_role]
    assert all(row["stores"][GLOBAL] == row["stores"]["global"] for row in listed)
    reddit = ("--connector", "reddit")
    merged, by_role = (
        run("merge", *reddit, "--from", name, "--into", "dedicated", "--dry-run", "-o", "json").json()
        for name in (GLOBAL, "global")
    )
    assert merged["data"]["rows"] == by_role["data"]["rows"] != []
    compared = run("diff", GLOBAL, "dedicated", *reddit, "-o", "json").json()
    assert [row["status"] for row in compared["data"]["rows"]] == ["differs", "only_left", "only_right"]
    assert run("diff", GLOBAL, "global", *reddit).exit_code == 0
    itself = run("merge", "--from", GLOBAL, "--into", "global", *reddit, "--yes", "-o", "json").json()
    assert (itself["exit_code"], itself["data"]["summary"]["counts"]["write"]) == (0, 0)


def test_a_comparison_does_not_claim_what_an_open_transaction_hides(run: Run, world: OffsetWorld) -> None:
    """Equal records were called `same` while a newer one lay behind an open transaction, and a new key was not seen."""
    new = b'["fresh",{"table":"new"}]'
    world.connect.add("fresh", IN_OWN)
    world.topics.open_transaction(GLOBAL, partition_for(new, 5), key=new)
    words = ("diff", "--connector", "fresh", "--timeout", "1s", "-o", "json")
    done = run(*words).json()
    assert (done["exit_code"], [row["status"] for row in done["data"]["rows"]]) == (7, ["hidden"])
    assert (done["data"]["summary"]["differing"], done["data"]["summary"]["counts"]["hidden"]) == (0, 1)
    assert {error["code"] for error in done["errors"]} == {"open_transaction"}
    assert run(*words, "--strict").exit_code == 3


def test_an_open_transaction_is_seen_and_stops_a_merge(run: Run, world: OffsetWorld) -> None:
    world.topics.open_transaction(GLOBAL, partition_for(APACHE, 5))
    world.topics.put(GLOBAL, APACHE, offset(5000))
    listed = run("list", "--connector", "reddit", "--timeout", "1s", "-o", "json").json()
    flags = {row["source_partition"]["subreddit"]: row["flags"] for row in listed["data"]["rows"]}
    assert flags["apachekafka"] == ["hidden_behind_open_transaction"]
    assert listed["data"]["rows"][1]["effective"]["documented"] == {"timestamp": "4761"}
    assert [problem["code"] for problem in listed["errors"]] == ["open_transaction"]
    merged = run("merge", "--connector", "reddit", "--into", "dedicated", "--yes", "--timeout", "1s")
    assert (merged.exit_code, world.topics.writes) == (6, 0)


def test_export_is_lossless_and_replaces_the_file_whole(run: Run, world: OffsetWorld, tmp_path: Path) -> None:
    world.topics.put(GLOBAL, None, b"1")
    world.topics.put(GLOBAL, b"\xff", None)
    world.topics.put(GLOBAL, APACHE, None)
    path = tmp_path / "offsets.ndjson"
    done = run("export", "--store", "global", str(path), "-o", "json").json()
    assert done["data"]["summary"] == {"records": 5, "tombstones": 2, "records_read": 6}
    lines = path.read_text().splitlines()
    keys = [json.loads(line)["key"] for line in lines]
    assert {"base64": "/w=="} in keys
    assert None in keys
    assert run("export", "--store", "global").stdout.splitlines() == lines
    mine = run("export", "--store", "dedicated", "--connector", "reddit").stdout.splitlines()
    assert {json.loads(line)["topic"] for line in mine} == {OWN}


def test_export_makes_no_directories(run: Run, tmp_path: Path) -> None:
    """A mistyped path made its directories."""
    done = run("export", "--store", "global", str(tmp_path / "nosuch" / "offsets.ndjson"))
    assert (done.exit_code, "No such file or directory" in done.stderr) == (1, True)
    assert not (tmp_path / "nosuch").exists()


def test_ignored_keys_are_told(run: Run, world: OffsetWorld) -> None:
    world.topics.put(GLOBAL, b"junk", b"1")
    done = run("list")
    assert "ignored by Connect (not_json): junk at connect-offsets-" in done.stdout
