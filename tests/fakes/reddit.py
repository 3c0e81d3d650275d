"""KIP-618's example of a connector that moves to an offsets topic of its own."""

from __future__ import annotations

from tests.fakes.offset_topics import OffsetWorld

GLOBAL, OWN = "connect-offsets", "reddit-offsets"
IN_OWN = {"offsets.storage.topic": OWN}
APACHE, CATS, CHEESE = (
    f'["reddit",{{"subreddit":"{name}"}}]'.encode() for name in ("apachekafka", "CatsStandingUp", "grilledcheese")
)


def offset(timestamp: int) -> bytes:
    """A source offset of connector reddit."""
    return f'{{"timestamp":"{timestamp}"}}'.encode()


def reddit_world() -> OffsetWorld:
    """Connector reddit, STOPPED: one subreddit only in the global topic, one in both, one only in the dedicated one."""
    world = OffsetWorld()
    world.topics.add_topic(GLOBAL, 5)
    world.topics.topics[GLOBAL].replication_factor = 3
    world.topics.add_topic(OWN, 3)
    world.topics.put(GLOBAL, APACHE, offset(4761))
    world.topics.put(GLOBAL, CATS, offset(2112))
    world.topics.put(OWN, CATS, offset(2169))
    world.topics.put(OWN, CHEESE, offset(489))
    world.topics.put(GLOBAL, b'["plain",{"filename":"/tmp/x"}]', b'{"position":20}')
    world.connect.add("reddit", IN_OWN, state="STOPPED")
    world.connect.add("plain")
    return world
