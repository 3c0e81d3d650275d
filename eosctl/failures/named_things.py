"""The names in a trace that a command needs: transactional ids, tasks and partitions. Pure.

Only text at the places where Kafka prints a name is taken; nothing else of a foreign text is printed again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

Thing = Literal["transactional_id", "task", "topic_partition"]
_ID = r"[\w.:-]{1,249}"
_PATTERNS: tuple[tuple[Thing, re.Pattern[str]], ...] = (
    ("transactional_id", re.compile(rf"transactionalId(?: ['`]|=')({_ID})['`]")),
    ("transactional_id", re.compile(rf"transactionalId(?:=| (?!'))({_ID})(?=[,\])]| due to)")),
    ("task", re.compile(rf"Worker(?:Source|Sink)Task\{{id=({_ID}-\d{{1,6}})\}}")),
    ("task", re.compile(rf"for task ({_ID}-\d{{1,6}})\b")),
    ("task", re.compile(rf"[Tt]he task ({_ID}-\d{{1,6}}) was unable to finish")),
    ("topic_partition", re.compile(r"topic-partition ([\w.-]{1,249}-\d{1,6})\b")),
    ("topic_partition", re.compile(r"in partition ([\w.-]{1,249}-\d{1,6})\b")),
    ("topic_partition", re.compile(r"record\(s\) for ([\w.-]{1,249}-\d{1,6})\b")),
)
MOST_NAMES = 5
"""So many of a kind are kept."""


def names_in(texts: Iterable[str]) -> dict[Thing, list[str]]:
    """Return the names of each kind, in the order of the texts."""
    found: dict[Thing, list[str]] = {}
    for text in texts:
        for thing, pattern in _PATTERNS:
            for name in pattern.findall(text):
                add_name(found, thing, name.rstrip("."))
    return found


def add_name(found: dict[Thing, list[str]], thing: Thing, name: str) -> None:
    """Add a name once, and only the first few."""
    names = found.setdefault(thing, [])
    if name not in names and len(names) < MOST_NAMES:
        names.append(name)


def for_commands(found: Mapping[Thing, list[str]]) -> dict[str, str]:
    """Return the values for {name}, {c}, {id} and {topic} in a command: the first of each kind."""
    ids, tasks, partitions = (found.get(thing, []) for thing in ("transactional_id", "task", "topic_partition"))
    connector = tasks[0].rpartition("-")[0] if tasks else ""
    topic = partitions[0].rpartition("-")[0] if partitions else ""
    return {"name": connector, "c": connector, "id": ids[0] if ids else "", "topic": topic}
