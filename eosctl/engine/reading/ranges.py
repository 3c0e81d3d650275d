"""Ranges of offsets, which are read from end to end.

Their ends are decided by the planner and never here: a task that asked for "latest" would see another end on every
attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from msgspec import Struct

from eosctl.deadline import Deadline

ClientProperties = Mapping[str, Any]
"""librdkafka's configuration, callbacks included."""
Message = Any
"""A message of confluent-kafka, whose type stubs make each of its parts optional."""
_FEW_TOPICS, _LEARN_S = 20, 10.0


class ProgressMeter(Protocol):
    """A receiver of progress."""

    def tell(self, count: Callable[[], int], *, last: bool = False) -> None:
        """Report progress; `count` is called if the number is wanted, and always for the `last` report."""


class OffsetRange(Struct, frozen=True):
    """Offsets `begin` (included) to `end` (excluded) of one of the topic's `partitions`; `end` is at most its LSO.

    `name` is the topic's name in the rows, if it is not `topic`: two clusters may have a topic of the same name.
    """

    topic: str
    partition: int
    begin: int
    end: int
    partitions: int = 1
    name: str | None = None


def partitions_together(offsets: Mapping[int, int], most: int) -> Iterator[Sequence[int]]:
    """Yield the partitions in order, as many together as have at most `most` of the `offsets`.

    `offsets` has the number of each partition.
    """
    part: list[int] = []
    for partition, count in offsets.items():
        if part and sum(offsets[each] for each in part) + count > most:
            yield part
            part = []
        part.append(partition)
    if part:
        yield part


def learn_topics(client: Any, count: int, deadline: Deadline) -> None:
    """Make a client of confluent-kafka ask once for the metadata of all topics, if it will need many of them.

    librdkafka asks for each topic when it first needs it, and each time again for all that it still waits for: for a
    thousand topics that is half of a writer's CPU. If the broker does not answer, it finds them that way.
    """
    from confluent_kafka import KafkaException

    if count > _FEW_TOPICS:
        with suppress(KafkaException):
            client.list_topics(timeout=min(_LEARN_S, max(deadline.remaining_s(), 0.001)))
