"""Topics that are no offsets topics: every command that would write offsets to one, or read them there, refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping

import pytest
from msgspec.structs import replace

from eosctl.core.records import TopicDescription
from tests.conftest import Outcome
from tests.fakes.connectors import FILE_SOURCE
from tests.fakes.offset_topics import GLOBAL, A, OffsetWorld
from tests.fakes.world import CONFIGS

Run = Callable[..., Outcome]
LINE = json.dumps({"topic": "x", "partition": 0, "key": A.decode(), "value": '{"n":5}'})
UNFIT = [
    ("data", "is where connector c writes its records (topic), not an offsets topic"),
    ("compacted-data", "holds records that are not offsets: 3 of the newest 3"),
    ("plain", "is not compacted (cleanup.policy=delete): offsets vanish after retention.ms"),
    ("both", "also deletes (cleanup.policy=compact,delete)"),
    (CONFIGS, "is the config topic of the group"),
    ("connect-status", "is the status topic of the group"),
    ("__consumer_offsets", "is a topic of Kafka itself"),
    ("not-there-yet", "is where connector d writes its records (topic)"),
]


@pytest.fixture
def world() -> OffsetWorld:
    """Connector c, STOPPED, with an offset; `data` is its own topic, with an offset key that a former eosctl left."""
    world = OffsetWorld()
    for topic in (GLOBAL, CONFIGS, "connect-status", "__consumer_offsets", "data", "compacted-data"):
        world.topics.add_topic(topic, 5)
    world.topics.add_topic("plain", 5, {"cleanup.policy": "delete"})
    world.topics.add_topic("both", 5, {"cleanup.policy": "compact,delete"})
    world.topics.put("data", A, b'{"n":0}')
    for number in range(3):
        world.topics.put("compacted-data", b"user-%d" % number, b"{}")
    world.topics.put(GLOBAL, A, b'{"n":1}')
    made = {"c": "data", "d": "not-there-yet"}
    for name, topic in made.items():
        found = world.connect.add(name, {"connector.class": FILE_SOURCE, "topic": topic}, state="STOPPED")
        world.keep_config(f"connector-{name}", {"properties": found.config})
    return world


def written(world: OffsetWorld) -> list[object]:
    """What eosctl wrote; the workers themselves may write of their work at any time."""
    return list(world.topics.written)


@pytest.mark.parametrize(("topic", "complaint"), UNFIT)
def test_a_switch_to_such_a_topic_is_refused(run: Run, world: OffsetWorld, topic: str, complaint: str) -> None:
    """`--to` the connector's own data topic wrote an offset into it for good; `--to connect-configs` said "done"."""
    before = written(world)
    done = run("switch", "--connector", "c", "--to", topic, "--yes")
    assert (done.exit_code, f"topic {topic} {complaint}" in done.stderr) == (6, True), done.stderr
    assert written(world) == before
    assert "offsets.storage.topic" not in world.connect.connectors["c"].config


@pytest.mark.parametrize(("topic", "complaint"), UNFIT)
def test_an_import_into_such_a_topic_is_refused(run: Run, world: OffsetWorld, topic: str, complaint: str) -> None:
    before = written(world)
    done = run("import", "-", "--store", topic, "--yes", input=LINE)
    assert (done.exit_code, f"topic {topic} {complaint}" in done.stderr) == (6, True), done.stderr
    assert written(world) == before


@pytest.mark.parametrize(("topic", "complaint"), UNFIT)
def test_a_merge_into_such_a_topic_is_refused(run: Run, world: OffsetWorld, topic: str, complaint: str) -> None:
    """A connector's config, or a pattern, may name any topic as its dedicated one."""
    before = written(world)
    world.connect.connectors["c"].config["offsets.storage.topic"] = topic
    done = run("merge", "--connector", "c", "--into", "dedicated", "--prefer", "global", "--yes")
    assert (done.exit_code, f"topic {topic} {complaint}" in done.stderr) == (6, True), done.stderr
    assert written(world) == before


@pytest.mark.parametrize("words", [("set", "--offset", '{"n":2}'), ("reset",)])
@pytest.mark.parametrize("topic", ["plain", "data"])
def test_an_offsets_topic_that_was_mistyped_takes_no_offset(
    run: Run, world: OffsetWorld, words: tuple[str, ...], topic: str
) -> None:
    world.topics.put("plain", A, b'{"n":1}')
    before = written(world)
    edit = (words[0], "--connector", "c", "--partition", '{"f":"a"}', *words[1:], "--via", "topic", "--yes")
    assert run(*edit, "--offset-topic", topic).exit_code == 6
    assert written(world) == before
    assert run(*edit).exit_code == 0


@pytest.mark.parametrize("topic", [CONFIGS, "connect-status", "__consumer_offsets", "compacted-data"])
@pytest.mark.parametrize("words", [("list", "--store"), ("diff", "--connector", "c", "global")])
def test_offsets_are_not_looked_for_in_what_never_was_an_offsets_topic(
    run: Run, topic: str, words: tuple[str, ...]
) -> None:
    done = run(*words, topic)
    assert (done.exit_code, f"topic {topic} " in done.stderr) == (6, True), done.stderr


def test_a_copy_that_is_not_compacted_can_be_read(run: Run, world: OffsetWorld) -> None:
    world.topics.put("plain", A, b'{"n":9}')
    [row] = run("list", "--store", "plain", "-o", "json").json()["data"]["rows"]
    assert row["stores"]["plain"]["value"] == {"n": 9}


def test_garbage_in_an_offsets_topic_is_no_reason(run: Run, world: OffsetWorld) -> None:
    """Who has to delete it imports its tombstone."""
    world.topics.put(GLOBAL, b"junk", b"1")
    line = json.dumps({"topic": GLOBAL, "partition": 0, "key": "junk", "value": None})
    assert run("import", "-", "--store", "global", "--yes", input=line).exit_code == 0
    assert world.topics.newest(GLOBAL)[b"junk"] is None


def test_a_policy_that_may_not_be_read_is_told_of(
    run: Run, world: OffsetWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An offset-writer needs no DESCRIBE_CONFIGS, and is not kept from writing."""
    describe = world.topics.describe

    def without_configs(names: Collection[str]) -> Mapping[str, TopicDescription]:
        return {name: replace(found, config={}) for name, found in describe(names).items()}

    monkeypatch.setattr(world.topics, "describe", without_configs)
    done = run("import", "-", "--store", "plain", "--yes", input=LINE)
    assert done.exit_code == 0
    assert "whether topic plain keeps offsets is not known: its cleanup.policy can't be read" in done.stderr
