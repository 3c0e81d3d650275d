"""KafkaTopicClient: the real `eosctl.ports.TopicClient`, over eosctl's own wire and confluent-kafka.

confluent-kafka is loaded where it is needed: most commands only look at topics, and that goes over the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.offsets.names import partition_for
from eosctl.core.records import (
    Bounds,
    KnownBounds,
    NewTopic,
    OutRecord,
    Record,
    RecordFilter,
    TopicDescription,
    TopicRead,
    Written,
    hidden_of,
)
from eosctl.core.wording import counted
from eosctl.deadline import Deadline, Event, OnEvent, ignore_events
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.errors import EosctlError, UsageError
from eosctl.kafka.native.sasl import is_spoken_natively
from eosctl.kafka.session import Connections
from eosctl.kafka.topics.meter import OffsetMeter
from eosctl.kafka.topics.native_topics import NativeTopics
from eosctl.kafka.topics.reader import collector_paused, read_tails, records_of_runs, rows_of
from eosctl.machine.side_by_side import ahead
from eosctl.wire.log.batches import OldFormatError
from eosctl.wire.log.records import CompressedError

if TYPE_CHECKING:
    from eosctl.engine.columns import Table
    from eosctl.engine.reading.batches import Piece
    from eosctl.engine.reading.newest import TopicColumns
    from eosctl.engine.reading.stretches import RecordRun
    from eosctl.kafka.admin import KafkaTopicAdmin
    from eosctl.kafka.topics.writer import KafkaTopicWriter

_MARKER_PATIENCE_S, _MARKER_PATIENCE_EACH_S = 5.0, 0.05  # of a transaction, and more for each of its partitions
_MARKER_POLL_S = 0.02
_FEW_KEYS = 2_000
"""Hashing so many keys in Python takes as long as loading confluent-kafka."""
_ISOLATIONS = ("read_committed", "read_uncommitted")


class KafkaTopicClient:
    """Reads and writes whole topics of the cluster that `settings` name; connects at the first request."""

    def __init__(
        self,
        settings: ClientSettings,
        *,
        deadline: Deadline,
        on_event: OnEvent = ignore_events,
        connections: Connections | None = None,
    ) -> None:
        self._settings, self._deadline, self._on_event = settings, deadline, on_event
        self._native: NativeTopics | None = None
        if connections is not None and is_spoken_natively(settings):
            self._native = NativeTopics(settings, deadline=deadline, connections=connections)

    def __enter__(self) -> KafkaTopicClient:
        return self

    def __exit__(self, *_exc: object) -> None:
        if "_admin" in vars(self):
            self._admin.close()
        if self._native is not None:
            self._native.close()

    @cached_property
    def _admin(self) -> KafkaTopicAdmin:
        from eosctl.kafka.admin import KafkaTopicAdmin

        return KafkaTopicAdmin(self._settings, deadline=self._deadline)

    @property
    def _looks(self) -> NativeTopics | KafkaTopicAdmin:
        return self._native or self._admin

    def cluster_id(self) -> str:
        """Return the Kafka cluster id."""
        return self._looks.cluster_id()

    def describe(self, topics: Collection[str], *, configs: bool = True) -> Mapping[str, TopicDescription]:
        """Describe the topics that exist among `topics`; the others are absent from the result.

        Without `configs` these are empty, which saves a request.
        """
        return self._looks.describe(topics, configs=configs)

    def broker_settings(self, name: str) -> Mapping[int, str]:
        """Return the value of one broker setting at each broker, by broker id; raises UnauthorizedError."""
        return self._looks.broker_settings(name)

    def own_settings(self, topic: str) -> Mapping[str, str]:
        """Return the settings of this topic alone, without defaults; raises NotFoundError, UnauthorizedError."""
        return self._looks.own_settings(topic)

    def change_settings(self, topic: str, settings: Mapping[str, str | None]) -> None:
        """Set a topic's own settings; None restores the default. Raises NotFoundError, UnauthorizedError."""
        self._admin.change_settings(topic, settings)

    def create(self, topic: str, *, partitions: int, replication_factor: int, config: Mapping[str, str]) -> None:
        """Create a topic and wait until every partition has a leader; raises the error of a refusal."""
        for refusal in self.create_all([NewTopic(topic, partitions, replication_factor, config)]).values():
            raise refusal

    def create_all(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> Mapping[str, EosctlError]:
        """Create topics by one request and wait until all their partitions have leaders.

        Returns the refusals by topic.
        """
        return self._admin.create_all(topics, validate_only=validate_only)

    def bounds(self, topic: str) -> tuple[Bounds, ...]:
        """Return the current first offset, LSO and high watermark of every partition; raises NotFoundError."""
        return self.bounds_of([topic])[topic]

    def bounds_of(
        self, topics: Collection[str], *, partitions: Mapping[str, int] | None = None
    ) -> Mapping[str, tuple[Bounds, ...]]:
        """Return the bounds of many topics with few requests; those in `partitions` are not described."""
        return self._looks.bounds_of(topics, partitions=partitions)

    def known_bounds(self, topic: str) -> KnownBounds:
        """Return the bounds of those partitions whose leaders respond; raises UnreachableError if none does."""
        return self._looks.known_bounds(topic)

    def known_bounds_of(
        self, topics: Collection[str], *, partitions: Mapping[str, int] | None = None
    ) -> Mapping[str, KnownBounds]:
        """Return the `known_bounds` of many topics with few requests; those in `partitions` are not described."""
        return self._looks.known_bounds_of(topics, partitions=partitions)

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
        """Read a topic from the beginning to bounds fixed at the start: the LSO, or the end for read_uncommitted.

        Connect's KafkaBasedLog (Kafka 4.3) waits for the high watermark instead, and so hangs behind an open
        transaction; here `TopicRead.blocked()` names such partitions. With `newest_per_key` records without a key are
        all kept. Partitions whose leader does not respond are left out where `partly` allows it. Partitions in `since`
        are read from the offset there, those in `until` to the one before that; the bounds of the result ignore both.
        Only records that `keep` returns are held in memory. With `renews` the timeout begins anew whenever something is
        read. Raises NotFoundError, UnauthorizedError, UnreachableError, DeadlineError.
        """
        if isolation not in _ISOLATIONS:
            raise UsageError(f"unknown isolation {isolation}", hint=f"One of {', '.join(_ISOLATIONS)}.")
        bounds = self._looks.known_bounds(topic) if partly else KnownBounds(self.bounds(topic))
        wanted = [_narrowed(one, since or {}, until or {}) for one in bounds.known]
        committed = isolation == "read_committed"
        records, read = self._rows(
            topic, wanted, committed=committed, newest_per_key=newest_per_key, keep=keep, limited=not renews
        )
        partitioner = partition_for if len(records) < _FEW_KEYS else _partition_by_murmur2
        return TopicRead(topic, bounds.known, records, read, bounds.missing, partitioner)

    def _rows(
        self,
        topic: str,
        bounds: Sequence[Bounds],
        *,
        committed: bool,
        newest_per_key: bool,
        keep: RecordFilter | None = None,
        limited: bool = True,
    ) -> tuple[tuple[Record, ...], int]:
        """Read the records within `bounds`, up to the LSOs if they must be committed.

        Returns them and the number of records read; `keep` is given each record once.
        """
        ranges = [OffsetRange(topic, one.partition, one.begin, one.lso if committed else one.end) for one in bounds]
        read = 0

        def count(records: list[Record]) -> list[Record]:
            nonlocal read
            read += len(records)
            return records

        found = map(count, self._some(topic, ranges, committed=committed, limited=limited))
        rows = rows_of(found, [one.partition for one in bounds], newest_per_key=newest_per_key, keep=keep)
        return rows, read

    def _some(
        self, topic: str, ranges: Sequence[OffsetRange], *, committed: bool, limited: bool
    ) -> Iterator[list[Record]]:
        """Yield the records of ranges, some at a time; librdkafka goes on from the first batch that only it reads."""
        meter = self._meter(f"reading {topic}", ranges)
        if self._native is not None:
            rows = self._native.rows(ranges, committed=committed, limited=limited, progress=meter)
            try:
                yield from rows
            except (CompressedError, OldFormatError):
                ranges = rows.rest()
            else:
                return
        from eosctl.kafka.topics.runs import RunReading

        timeout = self._deadline if limited else Deadline.after(self._deadline.timeout_s, self._deadline.clock)
        reading = RunReading(
            self._settings, ranges, timeout=timeout, limited=limited, committed=committed, progress=meter
        )
        yield from map(records_of_runs, reading)

    def _meter(self, doing: str, ranges: Sequence[OffsetRange]) -> OffsetMeter:
        total = sum(max(0, one.end - one.begin) for one in ranges)
        return OffsetMeter(doing, total, deadline=self._deadline, on_event=self._on_event)

    def read_columns(
        self,
        topic: str,
        *,
        isolation: str = "read_committed",
        since: Mapping[int, int] | None = None,
        partitions: Collection[int] | None = None,
        bare: bool = False,
    ) -> TopicColumns:
        """Return the newest record of each partition and key as columns: 200 bytes a key.

        `bare`: without the connector of each key. Raises the errors of `read`.
        """
        from eosctl.engine.columns import in_one_piece
        from eosctl.engine.reading.newest import Folding, TopicColumns

        bounds, committed = self.bounds(topic), isolation == "read_committed"
        ranges = [
            OffsetRange(topic, one.partition, one.begin, one.lso if committed else one.end, len(bounds))
            for one in (_narrowed(bound, since or {}, {}) for bound in bounds)
            if partitions is None or one.partition in partitions
        ]
        folding = Folding(ranges, bare=bare)
        with collector_paused():
            for piece in self._pieces(ranges, f"reading {topic}", committed=committed):
                folding.add(piece.columns)
            return TopicColumns(topic, bounds, in_one_piece(folding.fold().records))

    def pieces(self, ranges: Sequence[OffsetRange]) -> Iterator[Piece]:
        """Yield the committed records in some ranges of offsets, with their producers, a few at a time as they arrive.

        `place` is the number of the range. Raises the errors of `read`.
        """
        topics = counted(len({one.topic for one in ranges}), "topic")
        return self._pieces(ranges, f"reading {topics}", committed=True)

    def _pieces(self, ranges: Sequence[OffsetRange], doing: str, *, committed: bool) -> Generator[Piece, None, None]:
        from eosctl.kafka.topics.pieces import read_pieces

        pieces = read_pieces(
            self._settings, ranges,
            timeout=self._deadline, committed=committed, limited=True, progress=self._meter(doing, ranges),
        )  # fmt: skip
        return ahead(pieces)

    def stream(self, topic: str, bounds: Sequence[Bounds], *, newest_per_key: bool = False) -> Iterator[RecordRun]:
        """Yield the committed records up to the LSOs of `bounds`, some at a time.

        They come in the order in which `read` returns them. No more than that is held in memory, or the newest per key
        of a few partitions. Raises the errors of `read`.
        """
        from eosctl.kafka.topics.streaming import stream_topic

        stretches = stream_topic(
            self._settings, topic, bounds,
            newest_per_key=newest_per_key, deadline=self._deadline, on_event=self._on_event,
        )  # fmt: skip
        return ahead(stretches)

    def newest_of(self, topics: Collection[str], *, offsets: int) -> Mapping[str, Sequence[Record]]:
        """Return the committed records among the last `offsets` offsets of each partition; raises NotFoundError."""
        bounds = self.bounds_of(topics)
        return read_tails(self._settings, bounds, offsets=offsets, deadline=self._deadline)

    def read_behind(self, topic: str, bounds: Sequence[Bounds]) -> tuple[Record, ...]:
        """Read from the LSOs of `bounds` to the current end, committed or not.

        Returns each key's newest record per partition. Raises the errors of `read`.
        """
        ends = {bound.partition: bound.end for bound in self.bounds(topic)}
        behind = [Bounds(one.partition, one.lso, one.lso, ends.get(one.partition, one.lso)) for one in bounds]
        return self._rows(topic, behind, committed=False, newest_per_key=True)[0]

    def write(
        self, records: Iterable[OutRecord], *, transactional_id: TransactionalId | None = None
    ) -> Sequence[Written]:
        """Write all records, in one transaction if an id is given; return the place of each, in the order given.

        Raises NotFoundError for a missing topic (before a record of it is sent), UsageError for a partition that does
        not exist, EosctlError if one record was not delivered; a transaction is then aborted.
        """
        written = self._writer(transactional_id).write(records)
        if transactional_id is not None:
            self._wait_for_markers(last_offsets(written))
        return written

    def write_columns(
        self, transactions: Iterable[Table], *, total: int, transactional_id: TransactionalId
    ) -> Mapping[tuple[str, int], int]:
        """Write records (`engine.columns.SENT`), one transaction per table, in each the deletions first.

        Returns the offset of the last one in each partition. `total` is the number of all records, for progress. Raises
        the errors of `write`; earlier commits remain.
        """
        with closing(ahead(_in_order(transactions), most=1)) as made:
            last = self._writer(transactional_id).write_rows(made, total=total)
        self._wait_for_markers(last)
        return last

    def _writer(self, transactional_id: TransactionalId | None) -> KafkaTopicWriter:
        from eosctl.kafka.topics.writer import KafkaTopicWriter

        return KafkaTopicWriter(
            self._settings,
            lambda topic: self._admin.partition_counts([topic])[topic],
            transactional_id=transactional_id,
            deadline=self._deadline,
            on_event=self._on_event,
        )

    def _wait_for_markers(self, last: Mapping[tuple[str, int], int]) -> None:
        wait_for_markers(self.bounds_of, last, deadline=self._deadline, on_event=self._on_event)


def _in_order(transactions: Iterable[Table]) -> Generator[Sequence[Table], None, None]:
    """Yield the rows of each transaction, deletions first."""
    from eosctl.engine.write import deletions_first

    for rows in transactions:
        yield list(deletions_first(rows))


def _partition_by_murmur2(key: bytes, partitions: int) -> int:
    """Return what `partition_for` returns, in a tenth of the time once confluent-kafka is loaded."""
    from confluent_kafka import murmur2

    return murmur2(key, partitions)


def _narrowed(bounds: Bounds, since: Mapping[int, int], until: Mapping[int, int]) -> Bounds:
    stop = until.get(bounds.partition, bounds.end)
    begin = max(bounds.begin, since.get(bounds.partition, 0))
    return replace(bounds, begin=begin, lso=min(bounds.lso, stop), end=min(bounds.end, stop))


def last_offsets(written: Iterable[Written]) -> Mapping[tuple[str, int], int]:
    """Return the offset of the last record in each partition."""
    last: dict[tuple[str, int], int] = {}
    for each in written:
        last[each.topic, each.partition] = max(each.offset, last.get((each.topic, each.partition), -1))
    return last


def wait_for_markers(
    bounds_of: Callable[[Collection[str]], Mapping[str, tuple[Bounds, ...]]],
    last: Mapping[tuple[str, int], int],
    *,
    deadline: Deadline,
    on_event: OnEvent = ignore_events,
) -> None:
    """Wait until read_committed sees the committed records up to the `last` offset of each partition.

    The coordinator answers EndTxn before the markers are written; on Kafka 4.3.1 an LSO was seen to lag after an abort,
    so a read right after a write must not rely on it. Another open transaction can hold the records back for longer;
    that is reported, not waited for.
    """
    patience_s = _MARKER_PATIENCE_S + _MARKER_PATIENCE_EACH_S * len(last)
    patience = Deadline.after(min(patience_s, deadline.remaining_s()), deadline.clock)
    for _ in patience.rounds(_MARKER_POLL_S):
        hidden = hidden_of(last, bounds_of({topic for topic, _partition in last}))
        if not hidden:
            return
    names = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(hidden)[:3])
    why = "an open transaction lies before it, or its own markers are still to come,"
    message = f"committed, but not yet visible to read_committed: {why} in {names}"
    on_event(Event(message, warning=True))
