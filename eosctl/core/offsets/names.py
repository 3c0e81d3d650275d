"""The names of stores of offsets, and the partition that Kafka chooses for a key.

A name is `global`, `dedicated` or `TOPIC`, and with `@PROFILE` the same on another cluster. A topic name can't hold an
@, so the last one is never part of it. Profiles are resolved to clusters elsewhere.

The partition is that of Kafka's murmur2, in pure Python, so that Spark executors need nothing else. Writers must use
this: a record on another partition than Connect's own producer would choose is a second copy of the key.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from eosctl.core.wording import RULE, is_topic_name
from eosctl.errors import UsageError

GLOBAL, DEDICATED = "global", "dedicated"
"""The worker's offsets topic, and the connector's own."""
PLACE = "{connector}"
"""The placeholder for the connector's name in a pattern."""
FILE_PREFIX = "file:"
"""The prefix of the name of a store that is a file; a topic name has no colon."""
FILE_ENDINGS = (".ndjson", ".jsonl", ".parquet")


def is_file(store: str) -> bool:
    """Tell whether a store is a file: `file:PATH`, a path with a slash, or a name with the ending of a file.

    No topic name has either.
    """
    return store.startswith(FILE_PREFIX) or "/" in store or store.endswith(FILE_ENDINGS)


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


Partitioner = Callable[[bytes, int], int]
"""A function from a key and a number of partitions to a partition: `partition_for`, or the same in C."""

_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995


def murmur2(data: bytes) -> int:
    """Compute the hash of `data` as an unsigned 32-bit integer (`org.apache.kafka.common.utils.Utils.murmur2`, 4.3)."""
    length = len(data)
    whole = length & ~3
    state = _SEED ^ length
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        state = (state * _MULTIPLIER & _MASK) ^ word
    if whole != length:
        state = (state ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    state = (state ^ state >> 13) * _MULTIPLIER & _MASK
    return state ^ state >> 15


def partition_for(key: bytes, partitions: int) -> int:
    """Return the partition of `key` in a topic of `partitions` (`BuiltInPartitioner.partitionForKey`, Kafka 4.3).

    An empty key is hashed like any other; a record without a key has no such partition, so None is not accepted. Raises
    ValueError if `partitions` is not positive.
    """
    if partitions <= 0:
        raise ValueError(f"a topic has at least one partition, not {partitions}")
    return (murmur2(key) & 0x7FFFFFFF) % partitions
