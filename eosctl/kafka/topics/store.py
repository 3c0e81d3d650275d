"""KafkaTopicStore: the real `eosctl.ports.TopicStore`, on confluent-kafka."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from confluent_kafka import murmur2
from msgspec.structs import replace

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.records import (
    Bounds,
    KnownBounds,
    NewTopic,
    OutRecord,
    Record,
    Sieve,
    TopicDescription,
    TopicRead,
    Written,
    hidden_of,
)
from eosctl.core.wording import counted
from eosctl.deadline import Deadline
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.errors import EosctlError, UsageError
from eosctl.events import Event, OnEvent, ignore_events
from eosctl.kafka.admin import KafkaTopicAdmin
from eosctl.kafka.topics.meter import OffsetMeter
from eosctl.kafka.topics.reader import collector_paused, read_tails, rows_of
from eosctl.kafka.topics.runs import RunReading
from eosctl.kafka.topics.writer import KafkaTopicWriter
from eosctl.machine.ahead import ahead

if TYPE_CHECKING:
    from eosctl.engine.columns import Table
    from eosctl.engine.reading.batches import Piece
    from eosctl.engine.reading.newest import TopicColumns
    from eosctl.engine.reading.stretches import Stretch

_MARKER_PATIENCE_S, _MARKER_PATIENCE_EACH_S = 5.0, 0.05  # of a transaction, and more for each of its partitions
_MARKER_POLL_S = 0.02
_ISOLATIONS = ("read_committed", "read_uncommitted")


class KafkaTopicStore:
    """Reads and writes whole topics of the cluster that `settings` name; connects at the first question."""

    def __init__(self, settings: ClientSettings, *, deadline: Deadline, on_event: OnEvent = ignore_events) -> None:
        self._settings, self._deadline, self._on_event = settings, deadline, on_event
        self._admin = KafkaTopicAdmin(settings, deadline=deadline)

    def __enter__(self) -> KafkaTopicStore:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._admin.close()

    def cluster_id(self) -> str:
        """The Kafka cluster id."""
        return self._admin.cluster_id()

    def describe(self, topics: Collection[str], *, configs: bool = True) -> Mapping[str, TopicDescription]:
        """The topics that exist among `topics`; the others are absent from the answer.

        Without `configs` they are empty, and brokers are asked a question less.
        """
        return self._admin.describe(topics, configs=configs)

    def broker_settings(self, name: str) -> Mapping[int, str]:
        """The value of one broker setting at each broker, by broker id; raises UnauthorizedError."""
        return self._admin.broker_settings(name)

    def own_settings(self, topic: str) -> Mapping[str, str]:
        """What was set for this topic itself; raises NotFoundError, UnauthorizedError."""
        return self._admin.own_settings(topic)

    def change_settings(self, topic: str, settings: Mapping[str, str | None]) -> None:
        """Sets what is told for this topic, None takes the default again; raises NotFoundError, UnauthorizedError."""
        self._admin.change_settings(topic, settings)

    def create(self, topic: str, *, partitions: int, replication_factor: int, config: Mapping[str, str]) -> None:
        """Creates a topic and waits until every partition has a leader; raises why not."""
        for refusal in self.create_all([NewTopic(topic, partitions, replication_factor, config)]).values():
            raise refusal

    def create_all(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> Mapping[str, EosctlError]:
        """Creates topics by one request and waits until all their partitions have leaders; the refusals by topic."""
        return self._admin.create_all(topics, validate_only=validate_only)

    def bounds(self, topic: str) -> tuple[Bounds, ...]:
        """Begin, LSO and high watermark of every partition, now; raises NotFoundError."""
        return self.bounds_of([topic])[topic]

    def bounds_of(
        self, topics: Collection[str], *, partitions: Mapping[str, int] | None = None
    ) -> Mapping[str, tuple[Bounds, ...]]:
        """`bounds` of many topics, by the same few requests; those in `partitions` are not described."""
        return self._admin.bounds_of(topics, partitions=partitions)

    def known_bounds(self, topic: str) -> KnownBounds:
        """`bounds` of those partitions whose leaders answer; raises UnreachableError where none does."""
        return self._admin.known_bounds(topic)

    def known_bounds_of(
        self, topics: Collection[str], *, partitions: Mapping[str, int] | None = None
    ) -> Mapping[str, KnownBounds]:
        """`known_bounds` of many topics, by the same few requests; those in `partitions` are not described."""
        return self._admin.known_bounds_of(topics, partitions=partitions)

    def read(
        self,
        topic: str,
        *,
        isolation: str = "read_committed",
        newest_per_key: bool = False,
        partly: bool = False,
        since: Mapping[int, int] | None = None,
        until: Mapping[int, int] | None = None,
        sieve: Sieve | None = None,
        renews: bool = False,
    ) -> TopicRead:
        """Reads from the beginning to bounds fixed at the start: the LSO, or the end for read_uncommitted.

        Connect's KafkaBasedLog (Kafka 4.3) waits for the high watermark instead, and so hangs behind an open
        transaction; here `TopicRead.blocked()` names such partitions. With `newest_per_key` records without a key
        are all kept. Partitions whose leader does not answer are left out where `partly` allows it; those in `since`
        are read from the offset there, those in `until` to the one before that, and the bounds of the answer say
        nothing of it. Only what `sieve` keeps is held in memory. With `renews` the timeout begins anew with everything
        that is read. Raises NotFoundError, UnauthorizedError, UnreachableError, DeadlineError.
        """
        if isolation not in _ISOLATIONS:
            raise UsageError(f"unknown isolation {isolation}", hint=f"One of {', '.join(_ISOLATIONS)}.")
        bounds = self._admin.known_bounds(topic) if partly else KnownBounds(self.bounds(topic))
        wanted = [_narrowed(one, since or {}, until or {}) for one in bounds.known]
        committed = isolation == "read_committed"
        records, read = self._rows(
            topic, wanted, committed=committed, newest_per_key=newest_per_key, sieve=sieve, limited=not renews
        )
        return TopicRead(topic, bounds.known, records, read, bounds.missing, murmur2)

    def _rows(
        self,
        topic: str,
        bounds: Sequence[Bounds],
        *,
        committed: bool,
        newest_per_key: bool,
        sieve: Sieve | None = None,
        limited: bool = True,
    ) -> tuple[tuple[Record, ...], int]:
        """`rows_of` what lies in `bounds`, up to the LSOs if it is to be committed, and how many records were read."""
        ranges = [OffsetRange(topic, one.partition, one.begin, one.lso if committed else one.end) for one in bounds]
        reading = RunReading(
            self._settings, ranges,
            timeout=self._deadline, limited=limited, committed=committed,
            progress=self._meter(f"reading {topic}", ranges),
        )  # fmt: skip
        partitions = [one.partition for one in bounds]
        return rows_of(reading, partitions, newest_per_key=newest_per_key, sieve=sieve), reading.read

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
        """What `read` has of each partition and key, as columns: 200 bytes a key. Raises what `read` raises.

        `bare`: without whose each key is.
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
        """The committed records in some ranges of offsets, as they come, with their producers: a few at a time.

        `place` is the number of the range. Raises what `read` raises.
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

    def stream(self, topic: str, bounds: Sequence[Bounds], *, newest_per_key: bool = False) -> Iterator[Stretch]:
        """What `read` would return of the committed records up to the LSOs of `bounds`, some at a time.

        No more than that is held in memory, or the newest per key of a few partitions. Raises what `read` raises.
        """
        from eosctl.kafka.topics.streaming import stream_topic

        stretches = stream_topic(
            self._settings, topic, bounds,
            newest_per_key=newest_per_key, deadline=self._deadline, on_event=self._on_event,
        )  # fmt: skip
        return ahead(stretches)

    def newest_of(self, topics: Collection[str], *, offsets: int) -> Mapping[str, Sequence[Record]]:
        """The committed records among the last `offsets` offsets of each partition; raises NotFoundError."""
        bounds = self.bounds_of(topics)
        return read_tails(self._settings, bounds, offsets=offsets, deadline=self._deadline)

    def read_behind(self, topic: str, bounds: Sequence[Bounds]) -> tuple[Record, ...]:
        """What lies from the LSOs of `bounds` to the end, committed or not: each key's newest record per partition.

        The end is that of now. Raises what `read` raises.
        """
        ends = {bound.partition: bound.end for bound in self.bounds(topic)}
        behind = [Bounds(one.partition, one.lso, one.lso, ends.get(one.partition, one.lso)) for one in bounds]
        return self._rows(topic, behind, committed=False, newest_per_key=True)[0]

    def write(
        self, records: Iterable[OutRecord], *, transactional_id: TransactionalId | None = None
    ) -> Sequence[Written]:
        """Writes all records, in one transaction if an id is given; where each landed, in the order given.

        Raises NotFoundError for a missing topic (before a record of it is sent), UsageError for a partition that is
        not there, EosctlError when one record was not delivered; a transaction is then aborted.
        """
        written = self._writer(transactional_id).write(records)
        if transactional_id is not None:
            self._wait_for_markers(last_offsets(written))
        return written

    def write_columns(
        self, transactions: Iterable[Table], *, total: int, transactional_id: TransactionalId
    ) -> Mapping[tuple[str, int], int]:
        """Writes records (`engine.columns.SENT`), those of a table in a transaction, of each the deletions first.

        Returns the offset of the last one in each partition. They are `total` altogether, for those who wait. Raises
        what `write` raises; what was committed before stays.
        """
        with closing(ahead(_in_order(transactions), most=1)) as made:
            last = self._writer(transactional_id).write_rows(made, total=total)
        self._wait_for_markers(last)
        return last

    def _writer(self, transactional_id: TransactionalId | None) -> KafkaTopicWriter:
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
    """The rows of each transaction, deletions first."""
    from eosctl.engine.write import deletions_first

    for rows in transactions:
        yield list(deletions_first(rows))


def _narrowed(bounds: Bounds, since: Mapping[int, int], until: Mapping[int, int]) -> Bounds:
    stop = until.get(bounds.partition, bounds.end)
    begin = max(bounds.begin, since.get(bounds.partition, 0))
    return replace(bounds, begin=begin, lso=min(bounds.lso, stop), end=min(bounds.end, stop))


def last_offsets(written: Iterable[Written]) -> Mapping[tuple[str, int], int]:
    """The offset of the last one in each partition."""
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
    """Waits until read_committed sees what was committed, the `last` offset of each partition.

    The coordinator answers EndTxn before the markers are written; on Kafka 4.3.1 an LSO was seen to lag after an
    abort, so a read right after a write must not rely on it. Another open transaction can hold the records back
    for longer; that is said, not waited for.
    """
    patience_s = _MARKER_PATIENCE_S + _MARKER_PATIENCE_EACH_S * len(last)
    patience = Deadline.after(min(patience_s, deadline.remaining_s()), deadline.clock)
    for _ in patience.rounds(_MARKER_POLL_S):
        hidden = hidden_of(last, bounds_of({topic for topic, _partition in last}))
        if not hidden:
            return
    names = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(hidden)[:3])
    message = f"committed, but not yet visible to read_committed: an open transaction lies before it in {names}"
    on_event(Event(message, warning=True))
