"""Connectors whose offsets.storage.topic only their worker can resolve: named, and in nobody else's way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import Invoke, Outcome
from tests.fakes.offset_topics import GLOBAL, IN_OWN, OWN, A, OffsetWorld
from tests.fakes.world import CONFIGS

REFERENCE = "${file:/etc/connect/topics.properties:vault}"
UNKNOWN = f"connector vault: its offsets.storage.topic is {REFERENCE}, which only its worker can resolve"
OF_VAULT = b'["vault",{"f":"v"}]'
Run = Callable[..., Outcome]


@pytest.fixture
def world() -> OffsetWorld:
    """Connectors c, with a topic of its own, and vault, which names its one by a reference; both STOPPED."""
    world = OffsetWorld()
    for topic in (GLOBAL, OWN, "vault-topic"):
        world.topics.add_topic(topic, 5)
    world.topics.add_topic(CONFIGS, 1)
    world.topics.put(GLOBAL, A, b'{"n":1}')
    world.topics.put(GLOBAL, OF_VAULT, b'{"n":2}')
    for name, config in (("c", IN_OWN), ("vault", {"offsets.storage.topic": REFERENCE})):
        made = world.connect.add(name, config, state="STOPPED")
        world.keep_config(f"connector-{name}", {"properties": made.config})
    return world


@pytest.fixture
def run(world: OffsetWorld, invoke: Invoke) -> Run:
    return lambda *words, **more: invoke(*world.flags, *words, **world.surroundings, **more)


@pytest.mark.parametrize("via_worker", [True, False])
@pytest.mark.parametrize(
    "words", [("list",), ("list", "--connector", "vault"), ("get", "--connector", "vault"), ("lint",)]
)
def test_looking_goes_on_and_names_it(
    world: OffsetWorld, invoke: Invoke, words: tuple[str, ...], via_worker: bool
) -> None:
    """Every offsets command of the group failed: the reference was asked for as a topic."""
    flags = world.flags if via_worker else world.flags[:4]
    done = invoke(*flags, "offsets", *words, "-o", "json", **world.surroundings).json()
    assert done["exit_code"] == (7 if words == ("lint",) else 0), "a check answers for all topics"
    assert [UNKNOWN in each["message"] for each in done["errors"] if each["code"] == "dedicated_topics_unknown"] == [
        True
    ]


def test_its_topic_can_be_told(run: Run, world: OffsetWorld) -> None:
    world.topics.put("vault-topic", OF_VAULT, b'{"n":7}')
    listed = run("offsets", "list", "--connector", "vault", "--dedicated-topic", "{connector}-topic", "-o", "json")
    [row] = listed.json()["data"]["rows"]
    assert row["effective"]["runtime"] == {"n": 7}


def test_the_others_are_written(run: Run, world: OffsetWorld) -> None:
    assert run("offsets", "merge", "--connector", "c", "--into", "dedicated", "--yes").exit_code == 0
    assert world.topics.newest(OWN) == {A: b'{"n":1}'}
    edit = ("--connector", "c", "--partition", '{"f":"a"}', "--via", "topic", "--yes")
    assert run("offsets", "reset", *edit).exit_code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("diff", "--connector", "vault"),
        ("merge", "--connector", "vault", "--into", "dedicated", "--yes"),
        ("set", "--connector", "vault", "--partition", '{"f":"v"}', "--offset", '{"n":1}', "--yes"),
        ("reset", "--connector", "vault", "--all-partitions", "--yes"),
        ("switch", "--connector", "vault", "--to", "own", "--yes"),
        ("switch", "--connector", "vault", "--to", "global", "--yes"),
    ],
)
def test_its_own_are_not_written_by_halves(run: Run, world: OffsetWorld, words: tuple[str, ...]) -> None:
    """A reset of the global store alone is none: the task reads its own topic first."""
    done = run("offsets", *words)
    assert (done.exit_code, UNKNOWN in done.stderr, world.topics.writes) == (6, True, 0), done.stderr


def test_a_name_that_is_none_is_told_apart_from_a_reference(run: Run, world: OffsetWorld) -> None:
    world.connect.add("odd", {"offsets.storage.topic": "a b"}, state="STOPPED")
    done = run("offsets", "list", "-o", "json").json()
    assert done["exit_code"] == 0
    assert any(
        "connector odd: its offsets.storage.topic is a b, which can't be a topic" in each["message"]
        for each in done["errors"]
    )


def test_the_checks_of_connectors_go_on(run: Run) -> None:
    found = run("connectors", "check", "-o", "json").json()
    codes = [(row["code"], row["subject"]) for row in found["data"]["rows"] if "topic" in row["code"]]
    assert ("offsets_topic_unknown", "vault") in codes
    assert not [subject for code, subject in codes if code == "offsets_topic_unknown" and subject != "vault"]
