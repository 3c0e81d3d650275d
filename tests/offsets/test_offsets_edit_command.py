"""`eosctl offsets set` and `reset` as typed: which bytes end up where, by which way, and what is refused."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from eosctl.core.offsets.names import partition_for
from eosctl.errors import ConnectError, EosctlError, UnreachableError
from tests.conftest import Invoke, Outcome
from tests.fakes.offset_topics import OffsetWorld
from tests.fakes.switching import GLOBAL, KEY, URL, SwitchWorld
from tests.fakes.world import CONFIGS, OFFSETS

OWN = "own"
OTHER = b'["c",{"filename":"g"}]'
Run = Callable[..., Outcome]
AT_ONE = ("--partition", ' { "filename": "f" }', "--offset", '{"position": 1}')


@pytest.fixture
def world() -> SwitchWorld:
    """A stopped connector at position 3, with exactly-once support and a topic of its own."""
    world = SwitchWorld()
    world.place("RUNNING", offsets_storage_topic=OWN)
    world.run_task()
    world.place("STOPPED")
    return world


def written(world: SwitchWorld) -> list[tuple[str, bytes | None, bytes | None]]:
    return [(record.topic, record.key, record.value) for _id, records in world.topics.written for record in records]


def test_set_by_rest_is_chosen_where_it_works_and_read_back(run: Run, world: SwitchWorld) -> None:
    done = run("set", "--connector", "c", *AT_ONE, "--yes", "-o", "json").json()
    assert (done["kind"], done["exit_code"], done["data"]["via"]) == ("offsets-set-result", 0, "rest")
    assert [row["outcome"] for row in done["data"]["rows"]] == ["written", "written"]
    assert (world.calls, written(world)) == (["alter_offsets"], [])
    assert (world.stored(OWN, KEY), world.stored(GLOBAL, KEY)) == (1, 1)


@pytest.mark.parametrize("via", ["auto", "topic", "rest"])
@pytest.mark.parametrize("words", [("set", *AT_ONE), ("reset", "--partition", '{"filename":"f"}')])
def test_what_is_there_already_is_nothing_to_do_while_tasks_run(
    run: Run, world: SwitchWorld, words: tuple[str, ...], via: str
) -> None:
    """`--via rest` was refused then, so that a job that runs twice failed the second time."""
    command = (*words, "--connector", "c")
    assert run(*command, "--via", "topic", "--yes").exit_code == 0
    world.place("RUNNING")
    before = written(world)
    again = run(*command, "--via", via)
    assert (again.exit_code, again.stderr) == (0, "")
    assert "\nkeep: 2\n" in again.stdout
    assert (world.calls, written(world)) == ([], before)


def test_what_a_worker_writes_after_its_answer_is_waited_for(run: Run, world: SwitchWorld) -> None:
    """The global topic was read at once after PATCH, and what had not come yet was called not as planned (exit 7)."""
    world.late_s = 0.5
    done = run("set", "--connector", "c", *AT_ONE, "--yes", "-o", "json").json()
    assert (done["exit_code"], done["data"]["via"]) == (0, "rest"), done["errors"]
    assert [row["outcome"] for row in done["data"]["rows"]] == ["written", "written"]


def test_rest_goes_to_the_leader(invoke: Invoke, world: SwitchWorld) -> None:
    """It went to the first worker that was given, which forwards it and gives up after 30 s."""
    world.connect.modes["http://follower:8083"] = "enabled"
    where = ["-b", "memory:9092", "-g", "g", "-u", "http://follower:8083", "-u", URL]
    words = ["offsets", "set", "--connector", "c", *AT_ONE, "--yes", "-o", "json"]
    done = invoke(*where, *words, **world.surroundings).json()
    assert (done["exit_code"], done["data"]["via"], world.calls) == (0, "rest", ["alter_offsets"])
    assert world.connect.opened[-1] == URL


def test_without_a_leader_to_ask_it_goes_to_the_topics(run: Run, world: SwitchWorld) -> None:
    world.connect.fail_next("root", UnreachableError("no answer"), skip=1)  # the first one is for the worker's cluster
    done = run("set", "--connector", "c", *AT_ONE, "--yes", "-o", "json").json()
    assert (done["exit_code"], done["data"]["via"]) == (0, "topic")
    assert "the leader can't be asked" in done["data"]["via_reason"]


def test_what_a_deleted_connector_left_is_changed_in_the_topic(run: Run, world: SwitchWorld) -> None:
    """REST knows the offsets of connectors that are there, and answers 404 for all others."""
    del world.connect.connectors["c"]
    world.topics.put(CONFIGS, b"connector-c", None)
    refused = run("reset", "--connector", "c", "--all-partitions", "--via", "rest", "--yes")
    assert (refused.exit_code, "the leader does not know c" in refused.stderr) == (6, True)
    done = run("reset", "--connector", "c", "--all-partitions", "--yes", "-o", "json").json()
    assert (done["exit_code"], done["data"]["via"]) == (0, "topic")
    assert (world.stored(GLOBAL, KEY), world.calls) == (None, [])


def test_set_via_topic_keeps_the_bytes_of_the_key(invoke: Invoke) -> None:
    """REST answers 200 for a key in another spelling, and writes one that the task never looks up."""
    world = SwitchWorld(key=b'["c",{ "filename":"f"}]')
    world.place("STOPPED")
    where = ["-b", "memory:9092", "-g", "g", "-u", URL, "offsets", "set", "--connector", "c", *AT_ONE]
    refused = invoke(*where, "--via", "rest", "--yes", **world.surroundings)
    assert (refused.exit_code, "--via rest does not work here" in refused.stderr) == (6, True)
    done = invoke(*where, "--yes", "-o", "json", **world.surroundings).json()
    assert (done["exit_code"], done["data"]["via"]) == (0, "topic")
    assert "writes another one" in done["data"]["via_reason"]
    assert written(world) == [(GLOBAL, world.key, b'{"position":1}')]


def test_a_name_with_a_slash_goes_to_the_topics(invoke: Invoke) -> None:
    """REST of Kafka 4 can't have it in a path: the request was refused after the plan had been agreed to."""
    world = OffsetWorld(group_id="g")
    world.topics.add_topic(OFFSETS, 5)
    world.topics.put(OFFSETS, b'["a/b",{"f":"a"}]', b'{"position":1}')
    world.connect.add("a/b", state="STOPPED")
    words = ["offsets", "set", "--connector", "a/b", "--partition", '{"f":"a"}', "--offset", '{"position":2}', "--yes"]
    refused = invoke(*world.flags, *words, "--via", "rest", **world.surroundings)
    assert (refused.exit_code, "takes no slash, backslash" in refused.stderr) == (6, True)
    done = invoke(*world.flags, *words, "-o", "json", **world.surroundings).json()
    assert (done["exit_code"], done["data"]["via"]) == (0, "topic"), done["errors"]


def test_a_record_on_the_wrong_partition_is_never_left_to_rest(run: Run, world: SwitchWorld) -> None:
    """REST writes where its producer puts the key: the offset elsewhere stays, and the task may go on from there."""
    world.connect.modes[URL] = "disabled"  # else it is refused for another reason
    wrong = (partition_for(KEY, 5) + 1) % 5
    for topic in (GLOBAL, OWN):
        world.topics.put(topic, KEY, b'{"position":2}', partition=wrong)
    refused = run("reset", "--connector", "c", "--all-partitions", "--via", "rest", "--yes")
    assert (refused.exit_code, world.calls, written(world)) == (6, [], [])
    assert f"REST does not reach partition {wrong} of topic {GLOBAL} with that key" in refused.stderr
    done = run("reset", "--connector", "c", "--all-partitions", "--yes", "-o", "json").json()
    assert (done["exit_code"], done["data"]["via"], world.calls) == (0, "topic", [])
    assert f"REST does not reach partition {wrong}" in done["data"]["via_reason"]
    [(_id, records)] = world.topics.written
    there = {(topic, partition) for topic in (GLOBAL, OWN) for partition in (wrong, partition_for(KEY, 5))}
    assert {(record.topic, record.partition) for record in records if record.value is None} == there


def test_an_offset_on_another_partition_is_deleted_there_and_said(run: Run, world: SwitchWorld) -> None:
    """It stayed there, for a worker to read last after a restart; the backup has each where it lay."""
    home = partition_for(OTHER, 5)
    away = (home + 1) % 5
    for topic in (GLOBAL, OWN):
        world.topics.put(topic, OTHER, b'{"position":2}', partition=away)
    words = ["--partition", '{"filename":"g"}', "--offset", '{"position":1}', "--via", "topic", "--yes", "-o", "json"]
    done = run("set", "--connector", "c", *words).json()
    kept = [json.loads(line) for line in Path(done["data"]["backup"]).read_text().splitlines()]
    assert {(each["topic"], each["partition"]): (each["value"], "offset" in each) for each in kept} == {
        (topic, partition): ('{"position":2}', True) if partition == away else (None, False)
        for topic in (GLOBAL, OWN)
        for partition in (home, away)
    }
    [problem] = [each for each in done["errors"] if each["code"] == "stale_copies"]
    assert "2 older copies of keys that are written lie on other partitions" in problem["message"]
    for topic in (GLOBAL, OWN):
        mine = [record for record in world.topics.records(topic) if record.key == OTHER]
        assert {record.partition: record.value for record in mine} == {away: None, home: b'{"position":1}'}
        assert mine[-1].partition == home, "workers that read what is not committed never fall back"


def test_a_deleted_copy_does_not_hide_the_value_that_was_there_already(run: Run, world: SwitchWorld) -> None:
    """Its tombstone is younger than the value, and across partitions the time decides."""
    home = partition_for(OTHER, 5)
    for topic in (GLOBAL, OWN):
        world.topics.put(topic, OTHER, b'{"position":2}', partition=(home + 1) % 5)
        world.topics.put(topic, OTHER, b'{"position":1}', partition=home)
    words = ["--partition", '{"filename":"g"}', "--offset", '{"position":1}', "--via", "topic", "--yes"]
    assert run("set", "--connector", "c", *words).exit_code == 0
    rows = run("list", "--connector", "c", "-o", "json").json()["data"]["rows"]
    [row] = [row for row in rows if row["key"] == OTHER.decode()]
    assert row["effective"] == {"documented": {"position": 1}, "runtime": {"position": 1}}


def test_reset_with_exactly_once_and_a_dedicated_topic_never_goes_by_rest(run: Run, world: SwitchWorld) -> None:
    """From 3.8 on REST deletes in the global topic only and answers 500; the task would go on where it was."""
    assert run("reset", "--connector", "c", "--all-partitions", "--via", "rest", "--yes").exit_code == 6
    done = run("reset", "--connector", "c", "--all-partitions", "--yes", "-o", "json").json()
    assert (done["kind"], done["exit_code"], done["data"]["via"]) == ("offsets-reset-result", 0, "topic")
    assert written(world) == [(GLOBAL, KEY, None), (OWN, KEY, None)]
    assert [name for name, _records in world.topics.written] == ["eosctl-offsets-g-writer"], "all of it or nothing"


@pytest.mark.parametrize(
    ("mode", "version", "via"),
    [
        ("enabled", "3.5.1", "topic"),
        ("enabled", "3.6.0", "rest"),
        ("enabled", "3.7.2", "rest"),
        ("enabled", "3.8.0", "topic"),
        ("disabled", "4.3.1", "rest"),
    ],
)
def test_the_way_of_a_reset_follows_mode_and_version(
    run: Run, world: SwitchWorld, mode: str, version: str, via: str
) -> None:
    world.connect.modes[URL], world.connect.version = mode, version
    done = run("reset", "--connector", "c", "--all-partitions", "--dry-run", "-o", "json").json()
    assert (done["kind"], done["data"]["via"], world.calls) == ("offsets-reset-plan", via, [])


def test_a_reset_of_a_worker_whose_mode_nobody_knows_goes_to_the_topics(run: Run, world: SwitchWorld) -> None:
    world.connect.plugins.clear()  # nothing to ask with
    done = run("reset", "--connector", "c", "--all-partitions", "--dry-run", "-o", "json").json()
    assert done["data"]["via"] == "topic"


def test_without_a_topic_of_its_own_a_reset_goes_by_rest(run: Run, world: SwitchWorld) -> None:
    del world.connector.config["offsets.storage.topic"]
    world.place("STOPPED")
    done = run("reset", "--connector", "c", "--all-partitions", "--yes", "-o", "json").json()
    assert (done["exit_code"], done["data"]["via"], world.calls) == (0, "rest", ["alter_offsets"])


def test_a_sink_is_recognised_by_the_first_worker_that_answers(invoke: Invoke, world: SwitchWorld) -> None:
    world.connector.config["connector.class"] = "FileStreamSink"
    where = ["-b", "memory:9092", "-g", "g", "-u", "http://other:8083", "-u", URL]
    refused = invoke(*where, "offsets", "reset", "--connector", "c", "--all-partitions", "--yes", doors=world.doors())
    assert (refused.exit_code, "is a sink connector" in refused.stderr) == (6, True)


def test_rest_on_a_worker_that_is_too_old_names_the_version_that_can(run: Run, world: SwitchWorld) -> None:
    world.connect.version = "3.5.1"
    refused = run("set", "--connector", "c", *AT_ONE, "--via", "rest", "--yes")
    assert (refused.exit_code, world.calls, written(world)) == (1, [], [])
    assert "changing offsets by REST needs Kafka 3.6 (KIP-875); the worker runs 3.5.1" in refused.stderr


def test_one_of_two_partitions_is_reset_and_taken_back(run: Run, world: SwitchWorld) -> None:
    for topic in (GLOBAL, OWN):
        world.topics.put(topic, OTHER, b'{"position":7}')
    before = {topic: world.topics.newest(topic) for topic in (GLOBAL, OWN)}
    done = run("reset", "--connector", "c", "--partition", '{"filename":"g"}', "--yes", "-o", "json").json()
    assert [(row["action"], row["before"], row["after"]) for row in done["data"]["rows"]] == [
        ("delete", {"position": 7}, None)
    ] * 2
    assert (world.stored(OWN, KEY), world.stored(OWN, OTHER)) == (3, None)
    assert Path(done["data"]["backup"]).exists()
    assert run(*shlex.split(done["data"]["undo"])[2:], "--yes").exit_code == 0
    assert {topic: world.topics.newest(topic) for topic in (GLOBAL, OWN)} == before


@pytest.mark.parametrize(
    ("error", "outcome", "exit_code"),
    [
        (ConnectError("500: the connector doesn't support external modification of offsets"), "failed", 1),
        (ConnectError("500: Request timed out. The last operation the worker completed was …"), "unconfirmed", 7),
        (ConnectError("500: java.util.concurrent.TimeoutException: Idle timeout expired"), "unconfirmed", 7),
        (UnreachableError("the worker took the request and did not answer"), "unconfirmed", 7),
    ],
)
def test_what_rest_did_not_do_is_found_out_by_reading(
    run: Run, world: SwitchWorld, error: EosctlError, outcome: str, exit_code: int
) -> None:
    """A request that was not answered may still be carried out, so it has not failed either."""
    world.connect.fail_next("alter_offsets", error)
    done = run("set", "--connector", "c", *AT_ONE, "--yes", "-o", "json").json()
    assert done["exit_code"] == exit_code
    assert [row["outcome"] for row in done["data"]["rows"]] == [outcome, outcome]
    assert error.message in [each["message"] for each in done["errors"]]


def test_a_200_of_rest_proves_nothing(run: Run, world: SwitchWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.topics, "put", lambda *_record: None)
    done = run("set", "--connector", "c", *AT_ONE, "--yes", "--timeout", "1s", "-o", "json").json()
    assert (done["exit_code"], [row["outcome"] for row in done["data"]["rows"]]) == (7, ["differs", "differs"])


def test_a_new_key_is_spelled_as_connect_does_and_said_to_be_new(run: Run, world: SwitchWorld) -> None:
    words = ["--partition", '{"topic":"t","partition":3,"cluster":"Ä"}', "--offset", '{"offset":1}', "--via", "topic"]
    done = run("set", "--connector", "c", *words, "--yes")
    assert (done.exit_code, "1 key is new" in done.stderr) == (0, True)
    key = '["c",{"cluster":"Ä","partition":3,"topic":"t"}]'.encode()
    assert written(world) == [(OWN, key, b'{"offset":1}'), (GLOBAL, key, b'{"offset":1}')]
    assert world.topics.topics[OWN].partitions[partition_for(key, 5)].records[-1].key == key


def test_nothing_to_do_needs_no_question(run: Run, world: SwitchWorld) -> None:
    done = run("set", "--connector", "c", "--partition", '{"filename":"f"}', "--offset", '{"position":3}')
    assert (done.exit_code, written(world), world.calls) == (0, [], [])


@pytest.mark.parametrize("state", ["RUNNING", "PAUSED"])
def test_a_connector_that_is_not_stopped_is_refused_or_forced(run: Run, world: SwitchWorld, state: str) -> None:
    world.place(state)
    refused = run("set", "--connector", "c", *AT_ONE, "--yes")
    assert (refused.exit_code, written(world)) == (6, [])
    assert "not stopped: c" in refused.stderr
    forced = run("set", "--connector", "c", *AT_ONE, "--force-running", "--yes", "-o", "json").json()
    assert (forced["data"]["overrides"], forced["data"]["via"]) == (["force-running"], "topic")
    assert world.stored(OWN, KEY) == 1


@pytest.mark.parametrize(
    ("words", "exit_code"),
    [
        (["set", *AT_ONE], 6),
        (["set", "--partition", "oops", "--offset", "{}", "--yes"], 2),
        (["set", "--partition", "{}", "--offset", "null", "--yes"], 2),
        (["set", "--partition", "{}", "--offset", '{"a":[1]}', "--yes"], 2),
        (["set", "--partition", '{"filename":"f"}', "--offset", '{"position":1}0', "--yes"], 2),
        (["reset", "--partition", '{"filename":"f"}]0', "--yes"], 2),
        (["set", "--partition", "{}", "--offset", "{}", "--partition", "{}", "--yes"], 2),
        (["set", *AT_ONE, *AT_ONE, "--yes"], 2),
        (["reset", "--yes"], 2),
        (["reset", "--all-partitions", "--partition", "{}", "--yes"], 2),
        (["reset", "--partition", '{"filename":"nosuch"}', "--yes"], 1),
    ],
)
def test_exit_codes(run: Run, world: SwitchWorld, words: list[str], exit_code: int) -> None:
    done = run(words[0], "--connector", "c", *words[1:])
    assert (done.exit_code, written(world), world.calls) == (exit_code, [], [])


def test_a_sink_an_unknown_connector_and_an_open_transaction(run: Run, world: SwitchWorld) -> None:
    assert run("reset", "--connector", "nosuch", "--all-partitions", "--yes").exit_code == 1
    world.topics.open_transaction(GLOBAL, partition_for(KEY, 5))
    world.topics.put(GLOBAL, KEY, b'{"position":8}')
    assert run("set", "--connector", "c", *AT_ONE, "--yes", "--timeout", "1s").exit_code == 6
    world.connector.config["connector.class"] = "FileStreamSink"
    sink = run("set", "--connector", "c", *AT_ONE, "--yes")
    assert (sink.exit_code, "is a sink connector" in sink.stderr) == (6, True)


def test_the_plan_as_text(run: Run, golden: Callable[[str, str], None]) -> None:
    golden("offsets-reset-plan.txt", run("reset", "--connector", "c", "--all-partitions", "--dry-run").stdout)
