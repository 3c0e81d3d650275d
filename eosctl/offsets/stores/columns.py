"""Reads offsets topics as columns, for writes to them, however many keys they have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.records import Record
from eosctl.engine.reading.newest import TopicColumns
from eosctl.events import Event, OnEvent
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
