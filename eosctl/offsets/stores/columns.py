"""Reads offsets topics as columns, for writes to them, however many keys they have; and creates topics in batches.

A broker answers a batch of new topics soon, and each batch has a whole `--timeout`, however many topics there are. One
topic per request took half a second, without progress; all in one request would outlast its timeout on a busy broker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.records import NewTopic, Record
from eosctl.core.wording import counted
from eosctl.deadline import Event, OnEvent
from eosctl.engine.reading.newest import TopicColumns
from eosctl.errors import EosctlError
from eosctl.machine.side_by_side import two_at_a_time
from eosctl.offsets.stores.gather import patience
from eosctl.ports import TopicReader

if TYPE_CHECKING:
    from eosctl.engine.columns import Table


T = TypeVar("T")


def read_stable_columns(
    app: App,
    topics: TopicReader,
    topic: str,
    *,
    since: Mapping[int, int] | None = None,
    partitions: Collection[int] | None = None,
    bare: bool = False,
) -> tuple[TopicColumns, Sequence[Record]]:
    """Return the newest committed records of a topic, and those behind transactions that stay open for a while.

    Partitions in `since` are read from the offset there; `partitions` None means all. `bare` leaves out the connector
    of each key.
    """
    for _ in patience(app).rounds(0.5):
        read = topics.read_columns(topic, since=since, partitions=partitions, bare=bare)
        if not read.blocked():
            return read, ()
    return read, topics.read_behind(topic, read.blocked())


def by_parts(
    app: App, parts: Iterable[Table], *, count: int, doing: str, look: Callable[[App, TopicReader, Table], T]
) -> Iterator[T]:
    """Yield the result of `look` for each of `count` parts, in order.

    Two parts are read at a time, each with a client of its own. Progress is reported for all parts together, and for
    each that takes long.
    """

    def look_at(numbered: tuple[int, Table]) -> T:
        number, part = numbered
        here = app if count == 1 else replace(app, on_event=_named(app.on_event, f"part {number} of {count}"))
        with here.topics() as topics:
            return look(here, topics, part)

    for done, found in enumerate(two_at_a_time(look_at, enumerate(parts, 1)), 1):
        if count > 1:
            app.on_event(Event(doing, done=done, total=count, unit="parts"))
        yield found


def _named(on_event: OnEvent, part: str) -> OnEvent:
    """Add the part to progress messages: two parts are in progress at the same time."""

    def tell(event: Event) -> None:
        on_event(event if event.done is None else replace(event, message=f"{event.message} ({part})"))

    return tell


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
