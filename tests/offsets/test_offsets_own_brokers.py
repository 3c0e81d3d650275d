"""Connectors whose config names Kafka brokers of its own: their offsets are looked at there; both are in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eosctl.app import App
from eosctl.errors import UnauthorizedError, UnreachableError, UnsupportedError
from tests.conftest import Invoke, Outcome
from tests.fakes.acls import FakeAclStore
from tests.fakes.offset_topics import GLOBAL, OWN, A, OffsetWorld
from tests.fakes.topics import FakeTopicStore
from tests.fakes.world import CONFIGS

OF_FAR, SERVERS = b'["far",{"f":"a"}]', "own-brokers:9092"
ELSEWHERE = {"producer.override.bootstrap.servers": SERVERS}
Run = Callable[..., Outcome]


@pytest.fixture
def world() -> OffsetWorld:
    """Connector far keeps its offsets in topic own of its own brokers; a topic own that is here is somebody else's."""
    world = OffsetWorld()
    world.topics.add_topic(CONFIGS, 1)
    for topic in (GLOBAL, OWN):
        world.topics.add_topic(topic, 5)
    world.topics.put(GLOBAL, A, b'{"n":1}')
    world.topics.put(GLOBAL, OF_FAR, b'{"n":2}')
    world.topics.put(OWN, OF_FAR, b'{"n":-1}')
    world.connect.add("c", state="STOPPED")
    place(world, {**ELSEWHERE, "offsets.storage.topic": OWN})
    return world


def place(world: OffsetWorld, config: dict[str, str]) -> None:
    """Connector far, STOPPED, with this config."""
    made = world.connect.add("far", config, state="STOPPED")
    world.keep_config("connector-far", {"properties": made.config})


@pytest.fixture
def there() -> FakeTopicStore:
    """The cluster of the connector's own brokers."""
    topics = FakeTopicStore(cluster_id="own-cluster")
    topics.add_topic(OWN, 3)
    topics.put(OWN, OF_FAR, b'{"n":7}')
    return topics


@pytest.fixture
def run(world: OffsetWorld, there: FakeTopicStore, invoke: Invoke, tmp_path: Path) -> Run:
    config = tmp_path / "config.yaml"
    config.write_text(f'profiles:\n  there: {{bootstrap_server: "{SERVERS}"}}\n')
    flags = [*world.flags, "--config", str(config)]

    def open_topics(app: App) -> FakeTopicStore:
        return there if app.target.require_client().bootstrap_servers == (SERVERS,) else world.topics

    def open_acls(app: App) -> FakeAclStore:
        assert app.target.require_client().bootstrap_servers == (SERVERS,), "the rights that matter are there"
        return FakeAclStore(refuse=UnsupportedError("there is no authorizer"))

    doors: dict[str, Any] = {**world.doors(), "open_topics": open_topics, "open_acls": open_acls}
    return lambda *words, **more: invoke(*flags, "offsets", *words, doors=doors, clock=world.clock(), **more)


def test_list_shows_what_is_there(run: Run) -> None:
    """The topic of that name on this cluster was taken for it, and a task's offset was told wrong."""
    done = run("list", "--connector", "far", "-o", "json").json()
    [row] = done["data"]["rows"]
    assert (row["stores"]["dedicated"]["value"], row["stores"]["global"]["value"]) == ({"n": 7}, {"n": 2})
    assert row["effective"] == {"documented": {"n": 7}, "runtime": {"n": 7}}
    [problem] = [each for each in done["errors"] if each["code"] == "other_cluster"]
    assert (
        problem["message"]
        == f"far: its own offsets are in topic own on cluster own-cluster ({SERVERS}), and are read there"
    )


def test_diff_compares_with_what_is_there(run: Run) -> None:
    done = run("diff", "--connector", "far", "-o", "json").json()
    assert (done["exit_code"], done["data"]["rows"][0]["status"]) == (3, "differs")
    assert done["data"]["clusters"] == {"global": "memory-cluster", "dedicated": "own-cluster"}


def test_lint_looks_there(run: Run, there: FakeTopicStore) -> None:
    there.add_topic("plain", 3, {"cleanup.policy": "delete"})
    there.put(OWN, b"junk", b"1")
    done = run("lint", "-o", "json").json()
    assert (done["exit_code"], done["data"]["topics"]) == (3, [GLOBAL, OWN])
    assert [row["subject"] for row in done["data"]["rows"] if row["code"] == "key_not_json"] == [f"{OWN}-0"]


def test_a_topic_that_the_worker_makes_there_by_itself_is_found(
    run: Run, world: OffsetWorld, there: FakeTopicStore
) -> None:
    """With exactly-once support and without a name of its own it has the worker's."""
    world.connect.add("far", ELSEWHERE, state="STOPPED")
    [row] = run("list", "--connector", "far", "-o", "json").json()["data"]["rows"]
    assert row["effective"]["runtime"] == {"n": 2}, "there is none, so the global store counts"
    there.add_topic(GLOBAL, 3)
    there.put(GLOBAL, OF_FAR, b'{"n":8}')
    [row] = run("list", "--connector", "far", "-o", "json").json()["data"]["rows"]
    assert row["effective"]["runtime"] == {"n": 8}


@pytest.mark.parametrize("error", [UnreachableError("no broker answers"), UnauthorizedError("not authorized")])
@pytest.mark.parametrize("call", ["describe", "read"])
def test_brokers_that_can_not_be_asked_are_told_of_and_the_rest_is_listed(
    run: Run, world: OffsetWorld, there: FakeTopicStore, error: Exception, call: str
) -> None:
    world.connect.add("farther", {**ELSEWHERE, "offsets.storage.topic": "more"}, state="STOPPED")
    there.fail_always(call, error)
    done = run("list", "-o", "json").json()
    assert (done["exit_code"], len(done["data"]["rows"])) == (0, 2)
    told = [each for each in done["errors"] if "are not looked at" in each["message"]]
    assert told[0]["message"].startswith(f"far: its config names other Kafka brokers ({SERVERS}), and {error}")
    assert "own@PROFILE" in told[0]["hint"]


def test_brokers_that_do_not_answer_are_asked_once(run: Run, world: OffsetWorld, there: FakeTopicStore) -> None:
    """Each of hundreds of connectors would wait for them anew."""
    for number in range(5):
        world.connect.add(f"far-{number}", {**ELSEWHERE, "offsets.storage.topic": OWN}, state="STOPPED")
    asked: list[object] = []
    there.before("cluster_id", asked.append)
    there.fail_always("cluster_id", UnreachableError("no broker answers"))
    done = run("list", "-o", "json").json()
    assert (done["exit_code"], len(asked), len(done["errors"])) == (0, 1, 6)


def test_references_are_named(run: Run, world: OffsetWorld) -> None:
    secret = {**ELSEWHERE, "offsets.storage.topic": OWN, "producer.override.sasl.jaas.config": "x ${file:/p:q};"}
    world.connect.add("far", secret, state="STOPPED")
    done = run("list", "--connector", "far", "-o", "json").json()
    assert (done["exit_code"], done["data"]["rows"][0]["stores"]["dedicated"]) == (0, None)
    [problem] = done["errors"]
    assert "only its worker can resolve producer.override.sasl.jaas.config" in problem["message"]
    refused = run("diff", "--connector", "far")
    assert (refused.exit_code, "name the store: TOPIC@PROFILE" in refused.stderr) == (6, True)


def test_its_dedicated_store_is_no_topic_of_that_name_here(run: Run, world: OffsetWorld) -> None:
    """An import into it, and an export of it, took the topic of this cluster."""
    line = json.dumps({"topic": OWN, "partition": 0, "key": OF_FAR.decode(), "value": "{}"})
    words = ("--store", "dedicated", "--connector", "far")
    for done in (run("import", "-", *words, "--yes", input=line), run("export", *words)):
        assert (done.exit_code, "name the store: TOPIC@PROFILE" in done.stderr) == (6, True)
    assert world.topics.writes == 0


@pytest.mark.parametrize(
    "words", [("set", "--partition", '{"f":"a"}', "--offset", "{}"), ("reset", "--all-partitions")]
)
def test_nothing_is_written_there(run: Run, world: OffsetWorld, there: FakeTopicStore, words: tuple[str, ...]) -> None:
    refused = run(words[0], "--connector", "far", *words[1:], "--yes")
    assert (refused.exit_code, "names Kafka brokers of its own" in refused.stderr) == (6, True)
    assert (world.topics.writes, there.writes) == (0, 0)


OTHER = b'["far",{"f":"b"}]'


def test_switch_moves_offsets_there(run: Run, world: OffsetWorld, there: FakeTopicStore) -> None:
    """It was refused; done by hand, the new topic was to be filled by hand too."""
    world.topics.put(GLOBAL, OTHER, b'{"n":5}')
    done = run("switch", "--connector", "far", "--to", "next", "--yes", "-o", "json").json()
    assert done["exit_code"] == 0, done["errors"]
    assert there.newest("next") == {OF_FAR: b'{"n":7}', OTHER: b'{"n":5}'}, "what only the global store has, too"
    assert len(there.topics["next"].partitions) == 5, "as the global topic is made"
    assert world.connect.connectors["far"].config["offsets.storage.topic"] == "next"
    assert (world.topics.writes, "next" in world.topics.topics) == (0, False)
    assert done["data"]["undo"] == "eosctl offsets switch --connector far --to own"
    there.put("next", OF_FAR, b'{"n":8}')
    assert run("switch", "--connector", "far", "--to", "own", "--yes").exit_code == 0
    assert there.newest(OWN) == {OF_FAR: b'{"n":8}', OTHER: b'{"n":5}'}


@pytest.mark.parametrize("implicit", [True, False])
def test_switch_from_what_the_worker_named(run: Run, world: OffsetWorld, there: FakeTopicStore, implicit: bool) -> None:
    """An exactly-once task has a topic of the worker's name there; another one only what is in the global topic."""
    place(world, ELSEWHERE)
    if implicit:
        there.add_topic(GLOBAL, 3)
        there.put(GLOBAL, OF_FAR, b'{"n":8}')
    done = run("switch", "--connector", "far", "--to", "next", "--yes", "-o", "json").json()
    assert (done["exit_code"], done["data"]["undo"]) == (0, None), done["errors"]
    assert there.newest("next") == {OF_FAR: b'{"n":8}' if implicit else b'{"n":2}'}


@pytest.mark.parametrize(
    ("to", "exit_code", "complaint"),
    [
        ("global", 6, "by the worker's mode, in a topic there or in the global one"),
        ("data", 6, "topic data holds records that are not offsets"),
        ("connect-configs", 6, "is the config topic of the group"),
        ("next@nosuch", 2, "no profile nosuch"),
    ],
)
def test_where_it_does_not_go(
    run: Run, world: OffsetWorld, there: FakeTopicStore, to: str, exit_code: int, complaint: str
) -> None:
    there.add_topic("data", 3)
    there.put("data", b"user-1", b"{}")
    refused = run("switch", "--connector", "far", "--to", to, "--yes")
    assert (refused.exit_code, complaint in refused.stderr) == (exit_code, True), refused.stderr
    assert (world.topics.writes, there.writes) == (0, 0)


def test_a_profile_leads_there_where_references_do_not(run: Run, world: OffsetWorld, there: FakeTopicStore) -> None:
    secret = {"producer.override.sasl.jaas.config": "${file:/p:q}"}
    place(world, {**ELSEWHERE, "offsets.storage.topic": OWN, **secret})
    refused = run("switch", "--connector", "far", "--to", "next", "--yes")
    assert (refused.exit_code, "--to TOPIC@PROFILE" in refused.stderr) == (6, True)
    done = run("switch", "--connector", "far", "--to", "next@there", "--yes", "-o", "json").json()
    assert (done["exit_code"], there.newest("next")) == (0, {OF_FAR: b'{"n":7}'}), done["errors"]
    assert world.connect.connectors["far"].config["offsets.storage.topic"] == "next"
    assert done["data"]["undo"] == "eosctl offsets switch --connector far --to own@there"
    again = run("switch", "--connector", "far", "--to", "next@there", "--yes", "-o", "json").json()
    assert (again["exit_code"], again["data"]["rows"]) == (0, [])


def test_a_connector_of_this_cluster_needs_no_profile(run: Run, world: OffsetWorld) -> None:
    world.keep_config("connector-c", {"properties": world.connect.connectors["c"].config})
    refused = run("switch", "--connector", "c", "--to", "next@there", "--yes")
    assert (refused.exit_code, "its config names no other brokers" in refused.stderr) == (2, True)
