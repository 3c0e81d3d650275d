"""What the look at topics asks for, and what of a topic that is gone, or may not be asked."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

import pytest

from eosctl.collect import topics
from eosctl.collect.facts import LsoFacts
from eosctl.collect.topics import NAMES_EVERY
from eosctl.errors import EosctlError, UnauthorizedError, UnreachableError
from tests.collect.scene import CONFIG_TOPIC, source_of
from tests.collect.watched import Watched
from tests.fakes.doctor_scene import OFFSETS
from tests.fakes.faults import Call
from tests.fakes.partitions import FakePartition


def asked_for(watched: Watched) -> list[tuple[set[str], dict[str, int]]]:
    """What bounds are asked of from now on: topics, and the partitions that they are known to have."""
    asked: list[tuple[set[str], dict[str, int]]] = []

    def note(call: Call) -> None:
        topics, partitions = call.what
        asked.append((set(cast("Collection[str]", topics)), cast("dict[str, int]", partitions)))

    watched.world.topics.before("known_bounds_of", note)
    return asked


def with_topics(watched: Watched, *names: str) -> None:
    """Output topics of the connector, of two partitions each."""
    for name in names:
        watched.world.connect.connectors["orders"].topics.add(name)
        watched.world.topics.add_topic(name, 2)


def topics_seen(watched: Watched) -> set[str]:
    return {each.topic for each in watched.facts(LsoFacts).topics}


def test_topics_are_described_with_their_names_alone(watched: Watched) -> None:
    """Each description costs memory for good; a partition that was added is seen with the next one."""
    with_topics(watched, "lines")
    asked = asked_for(watched)
    for _ in range(NAMES_EVERY):
        watched.look("topics")
    everything = {OFFSETS, CONFIG_TOPIC, "lines"}
    assert [topics for topics, _known in asked] == [everything] * NAMES_EVERY
    assert [set(known) for _topics, known in asked] == [set()] + [everything] * (NAMES_EVERY - 1)
    assert asked[-1][1]["lines"] == 2
    watched.world.topics.topics["lines"].partitions.append(FakePartition())
    watched.look("topics")
    assert (asked[-1][1], asked[-2][1]["lines"]) == ({}, 2)
    watched.look("topics")
    assert asked[-1][1]["lines"] == 3


def test_a_partition_without_a_leader_is_told_of_a_topic_that_is_known(watched: Watched) -> None:
    with_topics(watched, "lines")
    watched.look("topics")
    watched.world.topics.state.leaderless.add(("lines", 1))
    watched.look("topics")
    assert [each.unasked for each in watched.facts(LsoFacts).topics if each.topic == "lines"] == [1]


@pytest.mark.parametrize(("error", "unseen"), [(None, 0), (UnauthorizedError("DESCRIBE is denied"), 1)])
def test_a_topic_that_cannot_be_asked_costs_the_others_nothing(
    error: EosctlError | None, unseen: int, watched: Watched
) -> None:
    """A deleted one made each of the others be asked by itself at every look."""
    names = [f"lines-{number:02}" for number in range(20)]
    with_topics(watched, *names)
    watched.look("topics")

    def refuse(call: Call) -> None:
        if error is not None and "lines-07" in cast("Collection[str]", call.what[0]):
            raise error

    asked = asked_for(watched)
    watched.world.topics.before("known_bounds_of", refuse)
    if error is None:
        del watched.world.topics.topics["lines-07"]
    watched.look("topics")
    assert len(asked) < 15
    others = {OFFSETS, CONFIG_TOPIC, *names} - {"lines-07"}
    assert (topics_seen(watched), watched.facts(LsoFacts).unseen) == (others, unseen)
    asked.clear()
    watched.look("topics")
    assert [topics for topics, _known in asked] == [others]
    assert (topics_seen(watched), watched.facts(LsoFacts).unseen) == (others, unseen)


def test_a_topic_that_comes_back_is_seen_with_the_next_names(watched: Watched) -> None:
    with_topics(watched, "lines")
    watched.look("topics")
    gone = watched.world.topics.topics.pop("lines")
    watched.look("topics")
    assert "lines" not in topics_seen(watched)
    watched.world.topics.topics["lines"] = gone
    for _ in range(NAMES_EVERY):
        watched.look("topics")
    assert "lines" in topics_seen(watched)


def test_a_topic_that_was_made_anew_with_fewer_partitions_is_seen(watched: Watched) -> None:
    with_topics(watched, "lines")
    watched.look("topics")
    del watched.world.topics.topics["lines"]
    watched.world.topics.add_topic("lines", 1)
    watched.look("topics")
    assert "lines" in topics_seen(watched)


def test_a_broker_that_cannot_be_reached_is_no_fault_of_a_topic(watched: Watched) -> None:
    """Else each topic would be asked by itself, in vain."""
    with_topics(watched, "lines")
    watched.look("topics")
    asked, answers = asked_for(watched), [UnreachableError("no broker answers")]

    def refuse(_call: Call) -> None:
        if answers:
            raise answers.pop()

    watched.world.topics.before("known_bounds_of", refuse)
    watched.collector.look(source_of(watched.collector, "topics"))
    assert watched.collector.overview().error("topics") is not None
    assert len(asked) == 1
    watched.look("topics")
    assert "lines" in topics_seen(watched)


def test_of_very_many_topics_none_is_cut_before_it_is_judged(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Topics behind the first thousand names were never looked at, held or not, and were not counted."""
    monkeypatch.setattr(topics, "MOST_OUTPUT_TOPICS", 3)
    with_topics(watched, *(f"lines-{number}" for number in range(6)))
    watched.look("topics")
    assert topics_seen(watched) == {OFFSETS, CONFIG_TOPIC, "lines-0", "lines-1", "lines-2"}
    assert watched.facts(LsoFacts).unseen == 3, "nothing is known of transactions yet"
    held = ("lines-5", "lines-4", "lines-2", "lines-1")
    for number, topic in enumerate(held[:3]):
        watched.world.brokers.state.open_transaction(f"sink-{number}", (topic, 0))
    watched.look("transactions", "hanging", "topics")
    assert topics_seen(watched) == {OFFSETS, CONFIG_TOPIC, *held[:3]}
    assert watched.facts(LsoFacts).unseen == 0
    watched.world.brokers.state.open_transaction("sink-3", (held[3], 0))
    watched.look("transactions", "hanging", "topics")
    assert (len(topics_seen(watched)), watched.facts(LsoFacts).unseen) == (5, 1)
