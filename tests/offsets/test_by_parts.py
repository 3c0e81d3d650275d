"""A large backup is looked at two parts at a time: what each has seen, and what is told of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.records import Bounds
from eosctl.deadline import Event
from eosctl.offsets.files.backup import earliest
from eosctl.offsets.stores.columns import by_parts
from eosctl.ports import TopicReader
from tests.fakes.offset_topics import OffsetWorld, merge_world


@pytest.fixture
def world() -> OffsetWorld:
    return merge_world()


def test_what_came_between_two_looks_at_a_topic_does_not_count_as_seen() -> None:
    """Two parts are read at a time: the second may have asked for the bounds before the first."""
    asked: list[dict[str, tuple[Bounds, ...]]] = [
        {"t": (Bounds(0, 0, 5, 5), Bounds(1, 0, 8, 9)), "u": (Bounds(0, 0, 1, 1),)},
        {"t": (Bounds(0, 0, 5, 5), Bounds(1, 0, 7, 9), Bounds(2, 0, 0, 0))},
    ]
    expected = {"t": (Bounds(0, 0, 5, 5), Bounds(1, 0, 7, 9)), "u": (Bounds(0, 0, 1, 1),)}
    assert earliest(asked) == earliest(reversed(asked)) == expected


def test_parts_that_are_read_at_the_same_time_are_told_apart(app: App) -> None:
    heard = list[Event]()

    def look(here: App, _topics: TopicReader, part: str) -> str:
        here.on_event(Event(f"reading {part}", done=1, total=2))
        here.on_event(Event("a sentence"))
        return part.upper()

    for parts in ("ab", "c"):
        listening = replace(app, on_event=heard.append)
        assert list(by_parts(listening, parts, count=len(parts), doing="comparing", look=look)) == list(parts.upper())
    progress = sorted((event.message, event.done, event.total) for event in heard if event.done is not None)
    of_all = [("comparing", 1, 2), ("comparing", 2, 2)]
    assert progress == [
        *of_all, ("reading a (part 1 of 2)", 1, 2), ("reading b (part 2 of 2)", 1, 2), ("reading c", 1, 2),
    ]  # fmt: skip
    assert [event.message for event in heard if event.done is None] == ["a sentence"] * 3
