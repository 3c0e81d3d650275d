"""How a store is named: `global`, `dedicated`, `TOPIC`, and with `@PROFILE` the same on another cluster.

A topic name can't hold an @, so the last one is never part of it. Which cluster a profile means is found elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from eosctl.core.offset_views import DEDICATED
from eosctl.errors import UsageError


@dataclass(frozen=True, slots=True)
class StoreName:
    """`name` is `global`, `dedicated` or a topic; `profile` None means the cluster that the command is about."""

    name: str
    profile: str | None = None

    def __str__(self) -> str:
        return self.name if self.profile is None else f"{self.name}@{self.profile}"


def parse_store(text: str) -> StoreName:
    """The store that `text` names.

    Raises UsageError for a missing half, and for `dedicated@PROFILE`: which topics are dedicated is said by the
    configs of this group, and those name topics.
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
    return StoreName(name, profile or None)
