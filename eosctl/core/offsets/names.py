"""The names of stores: `global`, `dedicated`, `TOPIC`, and with `@PROFILE` the same on another cluster.

A topic name can't hold an @, so the last one is never part of it. Profiles are resolved to clusters elsewhere.
"""

from __future__ import annotations

from msgspec import Struct

from eosctl.core.topic_names import RULE, is_topic_name
from eosctl.errors import UsageError

GLOBAL, DEDICATED = "global", "dedicated"
"""The worker's offsets topic, and the connector's own."""
PLACE = "{connector}"
"""The placeholder for the connector's name in a pattern."""


class StoreName(Struct, frozen=True):
    """The name of a store: `global`, `dedicated` or a topic; `profile` None means the command's own cluster."""

    name: str
    profile: str | None = None

    def __str__(self) -> str:
        return self.name if self.profile is None else f"{self.name}@{self.profile}"


def parse_store(text: str, *, pattern: bool = False) -> StoreName:
    """Parse the name of a store; `pattern` allows {connector} in the topic's name.

    Raises UsageError for a missing half, for a name that no topic can have, and for `dedicated@PROFILE`: the configs of
    this group define which topics are dedicated, and those name topics of this cluster.
    """
    name, at, profile = text.rpartition("@")
    if not at:
        name, profile = text, ""
    if not name or (at and not profile):
        raise UsageError(f"{text!r} is not a store", hint="A store is global, dedicated, TOPIC or TOPIC@PROFILE.")
    if at and name == DEDICATED:
        raise UsageError(
            f"{text}: which topics are dedicated on another cluster is not known", hint="Name the topic: TOPIC@PROFILE."
        )
    if not is_topic_name(name.replace(PLACE, "x") if pattern else name):
        raise UsageError(f"{name!r} can't be a topic", hint=f"A topic's name is {RULE}.")
    return StoreName(name, profile or None)


def topic_for(pattern: str, connector: str) -> str:
    """Return the topic that a pattern names for `connector`.

    It is always a valid topic name, whatever the connector's is. Raises UsageError where no topic can have that name.
    """
    topic = pattern.replace(PLACE, connector)
    if not is_topic_name(topic):
        raise UsageError(
            f"connector {connector}: {pattern} gives {topic!r}, which can't be a topic",
            hint=f"A topic's name is {RULE}. Leave this connector out, or name its topic in its offsets.storage.topic.",
        )
    return topic
