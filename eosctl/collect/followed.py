"""A TopicReader for one source: follows the config topic from where its last look ended.

Records are kept as a worker holds them that has read on since then, whatever compaction removes. Every hour the topic
is read from its beginning again, as a worker that starts would.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.collect import codes
from eosctl.core.configs.records import RecordKind, UnparsableValueError, decode_key_text, decode_value, parse_key
from eosctl.core.records import Bounds, KnownBounds, Record, RecordFilter, TopicDescription, TopicRead
from eosctl.deadline import Clock
from eosctl.errors import UnsupportedError
from eosctl.ports import TopicReader

if TYPE_CHECKING:
    from eosctl.engine.reading.batches import Piece
    from eosctl.engine.reading.newest import TopicColumns
    from eosctl.engine.reading.ranges import OffsetRange
    from eosctl.engine.reading.stretches import RecordRun


class TooLargeError(UnsupportedError):
    """A topic is too large to be read as a whole by something that looks again and again."""

    code = codes.TOO_LARGE


READ_AGAIN_S = 3600.0
MOST_OFFSETS = 50_000
"""Only the source that follows a topic reads the whole of one with more offsets than that."""
_BARE_TASK = b'{"properties":{}}'
"""A task's config as it is kept: a fold only takes that it is one, and they are most of the topic."""


class _View(Struct, frozen=True):
    """One isolation's view of the topic `topic_id`, read up to `next`, by partition; begun at `began_s`."""

    topic_id: str
    began_s: float
    begun_with: int
    next: Mapping[int, int]
    records: tuple[Record, ...]

    def ends_at(self, bounds: Sequence[Bounds]) -> bool:
        """Check whether the next records still exist; otherwise the topic was truncated, or they were deleted."""
        return all(each.begin <= self.next.get(each.partition, -1) <= each.end for each in bounds)

    def has_grown(self) -> bool:
        """Check whether it holds far more than a new read would, as it keeps records that compaction removed."""
        return len(self.records) > 2 * self.begun_with + 10_000


@dataclass(slots=True)
class FollowedConfigs:
    """One source's view of the config topic; `restarts` counts how often the topic had changed behind it."""

    clock: Clock
    views: dict[str, _View] = field(default_factory=dict)
    restarts: int = 0

    def read(self, store: TopicReader, topic: str, isolation: str) -> TopicRead:
        """Return all of the topic, reading only its new records; raises what `TopicReader.read` raises."""
        view = self._usable(store, topic, isolation)
        read = store.read(topic, isolation=isolation, since=view.next, keep=_without_task_configs)
        ends = {each.partition: each.lso if isolation == "read_committed" else each.end for each in read.bounds}
        begins = {each.partition: each.begin for each in read.bounds}
        kept = (each for each in view.records if each.offset >= begins.get(each.partition, 0))
        records = (*kept, *read.records)
        begun_with = view.begun_with if view.records else len(records)
        self.views[isolation] = replace(view, next=ends, records=records, begun_with=begun_with)
        return replace(read, records=records, records_read=len(records))

    def _usable(self, store: TopicReader, topic: str, isolation: str) -> _View:
        """Return the view to continue with, or an empty one."""
        now_s = self.clock.monotonic_s()
        described = store.describe([topic]).get(topic)
        topic_id = "" if described is None else described.topic_id
        view = self.views.pop(isolation, None)
        if view is not None and now_s - view.began_s < READ_AGAIN_S and not view.has_grown():
            if view.topic_id == topic_id and view.ends_at(store.bounds(topic)):
                return view
            self.restarts += 1
        return _View(topic_id, now_s, 0, {}, ())


def _without_task_configs(records: Sequence[Record]) -> Sequence[Record]:
    return [each._replace(value=_BARE_TASK) if _is_task_config(each) else each for each in records]


def _is_task_config(record: Record) -> bool:
    """Check whether a fold takes the record for a task's config."""
    if record.key is None or parse_key(decode_key_text(record.key)).kind is not RecordKind.TASK:
        return False
    try:
        value = decode_value(record.value)
    except UnparsableValueError:
        return False
    return isinstance(value, dict) and isinstance(value.get("properties"), dict)


class FollowedReader:
    """The store behind it, but for the config topic and for topics that are large."""

    def __init__(self, store: TopicReader, configs: FollowedConfigs, config_topic: str) -> None:
        self._store, self._configs, self._config_topic = store, configs, config_topic

    def __enter__(self) -> FollowedReader:
        self._store.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._store.__exit__(*exc)

    def read(
        self,
        topic: str,
        *,
        isolation: str = "read_committed",
        newest_per_key: bool = False,
        partly: bool = False,
        since: Mapping[int, int] | None = None,
        until: Mapping[int, int] | None = None,
        keep: RecordFilter | None = None,
        renews: bool = False,
    ) -> TopicRead:
        """Read as `TopicReader.read`. Raises TooLargeError for a whole topic of more than MOST_OFFSETS offsets."""
        if topic == self._config_topic and since is None and until is None and not partly:
            read = self._configs.read(self._store, topic, isolation)
            records = read.records if keep is None else tuple(keep(read.records))
            return replace(read, records=_newest(records) if newest_per_key else records)
        if since is None and until is None:
            self._require_small(topic)
        return self._store.read(
            topic, isolation=isolation, newest_per_key=newest_per_key, partly=partly, since=since, until=until,
            keep=keep, renews=renews,
        )  # fmt: skip

    def read_columns(
        self,
        topic: str,
        *,
        isolation: str = "read_committed",
        since: Mapping[int, int] | None = None,
        partitions: Collection[int] | None = None,
        bare: bool = False,
    ) -> TopicColumns:
        """Read as `TopicReader.read_columns`; raises TooLargeError as `read`."""
        if since is None and partitions is None:
            self._require_small(topic)
        return self._store.read_columns(topic, isolation=isolation, since=since, partitions=partitions, bare=bare)

    def _require_small(self, topic: str) -> None:
        offsets = sum(each.end - each.begin for each in self._store.known_bounds(topic).known)
        if offsets > MOST_OFFSETS:
            raise TooLargeError(
                f"topic {topic} has {offsets:,} offsets, and is not read as a whole again and again",
                hint="Run `eosctl offsets lint` and `eosctl doctor` by themselves now and then.",
            )

    def cluster_id(self) -> str:
        """Return the Kafka cluster id."""
        return self._store.cluster_id()

    def describe(self, topics: Collection[str], *, configs: bool = True) -> Mapping[str, TopicDescription]:
        """Delegate to the wrapped reader."""
        return self._store.describe(topics, configs=configs)

    def broker_settings(self, name: str) -> Mapping[int, str]:
        """Delegate to the wrapped reader."""
        return self._store.broker_settings(name)

    def own_settings(self, topic: str) -> Mapping[str, str]:
        """Delegate to the wrapped reader."""
        return self._store.own_settings(topic)

    def bounds(self, topic: str) -> tuple[Bounds, ...]:
        """Delegate to the wrapped reader."""
        return self._store.bounds(topic)

    def bounds_of(
        self, topics: Collection[str], *, partitions: Mapping[str, int] | None = None
    ) -> Mapping[str, tuple[Bounds, ...]]:
        """Delegate to the wrapped reader."""
        return self._store.bounds_of(topics, partitions=partitions)

    def known_bounds(self, topic: str) -> KnownBounds:
        """Delegate to the wrapped reader."""
        return self._store.known_bounds(topic)

    def known_bounds_of(
        self, topics: Collection[str], *, partitions: Mapping[str, int] | None = None
    ) -> Mapping[str, KnownBounds]:
        """Delegate to the wrapped reader."""
        return self._store.known_bounds_of(topics, partitions=partitions)

    def pieces(self, ranges: Sequence[OffsetRange]) -> Iterator[Piece]:
        """Delegate to the wrapped reader."""
        return self._store.pieces(ranges)

    def stream(self, topic: str, bounds: Sequence[Bounds], *, newest_per_key: bool = False) -> Iterator[RecordRun]:
        """Delegate to the wrapped reader."""
        return self._store.stream(topic, bounds, newest_per_key=newest_per_key)

    def newest_of(self, topics: Collection[str], *, offsets: int) -> Mapping[str, Sequence[Record]]:
        """Delegate to the wrapped reader."""
        return self._store.newest_of(topics, offsets=offsets)

    def read_behind(self, topic: str, bounds: Sequence[Bounds]) -> tuple[Record, ...]:
        """Delegate to the wrapped reader."""
        return self._store.read_behind(topic, bounds)


def _newest(records: Sequence[Record]) -> tuple[Record, ...]:
    """Return the newest record of each key, as `TopicReader.read` does, and all records without a key."""
    last = {(each.partition, each.key): each.offset for each in records}
    return tuple(each for each in records if each.key is None or last[each.partition, each.key] == each.offset)


def following(configs: FollowedConfigs) -> Callable[[App], TopicReader]:
    """Return the App's function that opens topics, for looks of one source."""
    return lambda app: FollowedReader(app.open_topics(app), configs, app.target.config_topic)
