"""Creates topics, however many, in batches that a broker answers soon, with a whole `--timeout` for each.

One topic per request took half a second, without progress; all in one request would outlast its timeout on a busy
broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from eosctl.app import App
from eosctl.core.records import NewTopic
from eosctl.core.wording import counted
from eosctl.errors import EosctlError
from eosctl.events import Event

_MOST_TOPICS = 50
_MOST_PARTITIONS = 500
"""The most in one request: a second of an idle broker's time; a busy one was seen to create 50 a second."""


class TopicsMade(Struct, frozen=True):
    """The topics that were created, in order, and the errors of the others."""

    created: tuple[str, ...] = ()
    refused: Mapping[str, EosctlError] = {}


def create_topics(app: App, topics: Sequence[NewTopic]) -> TopicsMade:
    """Create `topics` batch by batch; a refused one does not keep the others from being created.

    Raises UnreachableError or DeadlineError if a batch is not answered; topics created by then stay.
    """
    created: list[str] = []
    refused: dict[str, EosctlError] = {}

    def tell() -> None:
        app.on_event(Event("creating topics", len(created) + len(refused), len(topics), "topics"))

    try:
        for batch in _batches(topics):
            tell()
            with app.with_whole_timeout().topic_admin() as store:
                refused |= store.create_all(batch)
            created += [new.topic for new in batch if new.topic not in refused]
        if topics:
            tell()
    except BaseException:  # Ctrl-C, too
        text = f"{len(created)} of {counted(len(topics), 'topic')} were created before this; they are not created again"
        app.on_event(Event(text, warning=True))
        raise
    return TopicsMade(tuple(created), refused)


def refused_topics(app: App, topics: Sequence[NewTopic]) -> Mapping[str, EosctlError]:
    """Return the topics that the brokers would refuse to create, with the errors; create none."""
    refused: dict[str, EosctlError] = {}
    with app.topic_admin() as store:
        for batch in _batches(topics):
            refused |= store.create_all(batch, validate_only=True)
    return refused


def _batches(topics: Sequence[NewTopic]) -> Iterator[list[NewTopic]]:
    """Yield batches limited in topics and in partitions; a topic with more partitions is alone in one."""
    batch: list[NewTopic] = []
    for new in topics:
        partitions = sum(topic.partitions for topic in batch) + new.partitions
        if batch and (len(batch) == _MOST_TOPICS or partitions > _MOST_PARTITIONS):
            yield batch
            batch = []
        batch.append(new)
    if batch:
        yield batch
