"""An in-memory TopicClient; tests/contract/test_topic_store.py runs the same suite on it and on real brokers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from eosctl.app import App
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
)
from eosctl.core.wording import is_topic_name
from eosctl.errors import BrokerError, DeadlineError, EosctlError, NotFoundError, UnreachableError
from eosctl.kafka.topics.store import last_offsets
from eosctl.wire import error_codes as codes
from tests.fakes.broker_state import ENDING, BrokerState
from tests.fakes.faults import KilledError
from tests.fakes.topic_contents import PATIENCE, FakeTopics

if TYPE_CHECKING:
    from eosctl.engine.columns import Table
    from eosctl.engine.reading.batches import Piece
    from eosctl.engine.reading.newest import TopicColumns
    from eosctl.engine.reading.ranges import OffsetRange
    from eosctl.engine.reading.stretches import RecordRun

KNOWN_SETTINGS = frozenset(
    {"cleanup.policy", "min.cleanable.dirty.ratio", "min.compaction.lag.ms", "min.insync.replicas", "retention.ms"}
    | {"segment.ms", "compression.type"}
)


class FakeTopicStore(FakeTopics):
    """The store of these topics; Faults knows its methods, and `record`: one of a write, before and after it is there.

    `denied` are topics that may not be created, and what says so.
    """

    def __init__(self, state: BrokerState | None = None, *, cluster_id: str = "fake-cluster-id") -> None:
        super().__init__(state or BrokerState(cluster_id=cluster_id, brokers=3))
        self.denied: dict[str, EosctlError] = {}

    def open(self, _app: App) -> FakeTopicStore:
        """App's door."""
        return self

    def __enter__(self) -> FakeTopicStore:
        return self

    def __exit__(self, *_exc: object) -> None:
        return None

    def cluster_id(self) -> str:
        with self.call("cluster_id"):
            return self.state.cluster_id

    def describe(self, topics: Collection[str], *, configs: bool = True) -> Mapping[str, TopicDescription]:
        with self.call("describe", topics):
            for name in topics:
                if not is_topic_name(name):
                    raise BrokerError(f"describing topic {name} failed: TOPIC_EXCEPTION")
            found = {name: self.topics[name] for name in sorted(set(topics)) if name in self.topics}
            return {
                name: TopicDescription(
                    name,
                    topic.topic_id,
                    len(topic.partitions),
                    topic.replication_factor,
                    topic.config if configs else {},
                    tuple(self.state.placement(name, number) for number in range(len(topic.partitions))),
                )
                for name, topic in found.items()
            }

    def broker_settings(self, name: str) -> Mapping[int, str]:
        with self.call("broker_settings", name):
            settings = self.state.settings
            return dict.fromkeys(self.state.nodes, settings[name]) if name in settings else {}

    def own_settings(self, topic: str) -> Mapping[str, str]:
        with self.call("own_settings", topic):
            return dict(sorted(self.named(topic).given.items()))

    def change_settings(self, topic: str, settings: Mapping[str, str | None]) -> None:
        with self.call("change_settings", topic, dict(settings)):
            there = self.named(topic)
            if unknown := sorted(set(settings) - KNOWN_SETTINGS):
                raise BrokerError(f"changing the config of topic {topic} failed: {unknown[0]} (INVALID_CONFIG)")
            given = {**there.given, **settings}
            there.given = {name: value for name, value in given.items() if value is not None}

    def create(self, topic: str, *, partitions: int, replication_factor: int, config: Mapping[str, str]) -> None:
        for refusal in self._create_each([NewTopic(topic, partitions, replication_factor, config)]).values():
            raise refusal

    def create_all(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> Mapping[str, EosctlError]:
        with self.call("create_all", topics, validate_only):
            if not validate_only:
                return self._create_each(topics)
            return {new.topic: why for new in topics if (why := self._objection(new))}

    def bounds_of(
        self, topics: Collection[str], *, partitions: Mapping[str, int] | None = None
    ) -> Mapping[str, tuple[Bounds, ...]]:
        with self.call("bounds_of", topics):
            return {topic: self._bounds(topic)[: (partitions or {}).get(topic)] for topic in topics}

    def bounds(self, topic: str) -> tuple[Bounds, ...]:
        with self.call("bounds", topic):
            return self._bounds(topic)

    def known_bounds(self, topic: str) -> KnownBounds:
        with self.call("known_bounds", topic):
            return self._led_bounds(topic)

    def known_bounds_of(
        self, topics: Collection[str], *, partitions: Mapping[str, int] | None = None
    ) -> Mapping[str, KnownBounds]:
        with self.call("known_bounds_of", topics, dict(partitions or {})):
            return {topic: self._counted_bounds(topic, (partitions or {}).get(topic)) for topic in topics}

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
        with self.call("read", topic, isolation):
            if topic in self.topics:
                self.state.clean(topic)
            bounds = self._led_bounds(topic) if partly else KnownBounds(self._bounds(topic))
            records: list[Record] = []
            count = 0
            for number, log in enumerate(self.named(topic).partitions):
                if number in bounds.missing:
                    continue
                first, stop = (since or {}).get(number, 0), (until or {}).get(number, log.end)
                visible = [each for each in log.visible(isolation) if first <= each.offset < stop]
                count += len(visible)
                kept = visible if keep is None else keep(visible)
                records += _newest(kept) if newest_per_key else kept
            return TopicRead(topic, bounds.known, tuple(records), count, bounds.missing)

    def read_columns(
        self,
        topic: str,
        *,
        isolation: str = "read_committed",
        since: Mapping[int, int] | None = None,
        partitions: Collection[int] | None = None,
        bare: bool = False,
    ) -> TopicColumns:
        from eosctl.engine.reading.newest import TopicColumns, records_table  # pyarrow: not every program needs it

        read = self.read(topic, isolation=isolation, newest_per_key=True, since=since)
        wanted = [each for each in read.records if partitions is None or each.partition in partitions]
        return TopicColumns(topic, read.bounds, records_table(topic, wanted, partitions=len(read.bounds), bare=bare))

    def pieces(self, ranges: Sequence[OffsetRange]) -> Iterator[Piece]:
        from eosctl.engine.columns import batch_of_rows
        from eosctl.engine.reading.batches import PIECE, Piece
        from eosctl.engine.reading.heads import raw_headers

        with self.call("pieces", {one.topic for one in ranges}):
            for number, one in enumerate(ranges):
                log = self.named(one.topic).partitions[one.partition]
                some = [each for each in log.visible("read_committed") if one.begin <= each.offset < one.end]
                if not some:
                    continue
                rows = [(number, *each[2:6], raw_headers(each.headers)) for each in some]
                writers = [log.writer_of(each.offset) for each in some]
                yield Piece(batch_of_rows(rows, PIECE), np.array(writers, np.int64))

    def stream(self, topic: str, bounds: Sequence[Bounds], *, newest_per_key: bool = False) -> Iterator[RecordRun]:
        from eosctl.engine.reading.stretches import run_of_records

        with self.call("stream", topic):
            self._bounds(topic)
            for bound in bounds:
                visible = self.named(topic).partitions[bound.partition].visible("read_committed")
                some = [each for each in visible if bound.begin <= each.offset < bound.lso]
                yield run_of_records(_newest(some) if newest_per_key else some, read=len(some))

    def newest_of(self, topics: Collection[str], *, offsets: int) -> Mapping[str, Sequence[Record]]:
        with self.call("newest_of", topics):
            found: dict[str, list[Record]] = {topic: [] for topic in topics}
            for topic in topics:
                self._bounds(topic)
                for log in self.named(topic).partitions:
                    after = max(log.begin, log.lso - offsets)
                    found[topic] += [record for record in log.visible("read_committed") if record.offset >= after]
            return found

    def read_behind(self, topic: str, bounds: Sequence[Bounds]) -> tuple[Record, ...]:
        with self.call("read_behind", topic):
            self._bounds(topic)
            logs = self.named(topic).partitions
            behind = ([r for r in logs[one.partition].records if r.offset >= one.lso] for one in bounds)
            return tuple(record for records in behind for record in _newest(records))

    def write(self, records: Iterable[OutRecord], *, transactional_id: str | None = None) -> Sequence[Written]:
        with self.call("write", transactional_id):
            done: list[OutRecord] = []
            answer = (
                [self._append(record, done) for record in records]
                if transactional_id is None
                else self._write_in_transaction(records, transactional_id, done)
            )
            self.written.append((transactional_id, tuple(done)))
            return answer

    def write_columns(
        self, transactions: Iterable[Table], *, total: int, transactional_id: str
    ) -> Mapping[tuple[str, int], int]:
        from eosctl.engine.reading.heads import headers_of

        last = dict[tuple[str, int], int]()
        for rows in transactions:
            rows_of = sorted(rows.to_pylist(), key=lambda row: row["value"] is not None)
            records = [
                OutRecord(
                    row["topic"],
                    row["key"],
                    row["value"],
                    row["partition"],
                    row.get("timestamp_ms"),
                    headers_of(row["headers"]),
                )
                for row in rows_of
            ]
            last |= last_offsets(self.write(records, transactional_id=transactional_id))
            total -= len(records)
        assert total == 0, "what is told to those who wait is how many there are"
        return last

    # -- how it is done

    def _bounds(self, topic: str) -> tuple[Bounds, ...]:
        found = self._known_bounds(topic)
        if found.missing:
            raise UnreachableError(min(found.missing.values()))
        return found.known

    def _known_bounds(self, topic: str) -> KnownBounds:
        logs = self.named(topic).partitions
        self.state.look_at(topic)
        led = [number for number in range(len(logs)) if self.state.leader_of(topic, number) is not None]
        missing = {n: f"partition {n} of topic {topic} has no leader" for n in range(len(logs)) if n not in led}
        return KnownBounds(tuple(Bounds(n, logs[n].begin, logs[n].lso, logs[n].end) for n in led), missing)

    def _counted_bounds(self, topic: str, partitions: int | None) -> KnownBounds:
        there = self._known_bounds(topic)
        if partitions is None:
            return there
        if partitions > there.partitions():
            raise NotFoundError(f"topic {topic} has no partition {partitions - 1}")
        missing = {number: why for number, why in there.missing.items() if number < partitions}
        return KnownBounds(tuple(each for each in there.known if each.partition < partitions), missing)

    def _led_bounds(self, topic: str) -> KnownBounds:
        found = self._known_bounds(topic)
        if found.missing and not found.known:
            raise UnreachableError(found.missing[0])
        return found

    def _append(self, record: OutRecord, done: list[OutRecord]) -> Written:
        partition = self.partition_of(record)
        with self.call("record", record):
            done.append(record)
            offset = self.state.append(record, partition, self.state.new_producer(), transactional=False)
            return Written(record.topic, partition, offset)

    def _write_in_transaction(
        self, records: Iterable[OutRecord], transactional_id: str, done: list[OutRecord]
    ) -> list[Written]:
        producer = self.take_id(transactional_id)
        try:
            answer = list(self._send(records, transactional_id, producer, done))
        except (KilledError, UnreachableError):
            raise  # nobody is left to abort it, or can: it stays open
        except BaseException:
            self.state.end_transaction(transactional_id, producer, commit=False)
            raise
        if self.state.end_transaction(transactional_id, producer, commit=True) != codes.NONE:
            raise _fenced(transactional_id, "committing with it")
        self._wait_until_visible(transactional_id)
        return answer

    def _send(
        self, records: Iterable[OutRecord], transactional_id: str, producer: tuple[int, int], done: list[OutRecord]
    ) -> Iterator[Written]:
        for record in records:
            partition = self.partition_of(record)
            with self.call("record", record):
                offset = self.state.write_in(transactional_id, producer, record, partition)
                if offset < 0:
                    raise _fenced(transactional_id, "writing records")
                done.append(record)
                yield Written(record.topic, partition, offset)

    def _wait_until_visible(self, transactional_id: str) -> None:
        known = self.state.transactions[transactional_id]
        for _ in range(PATIENCE):
            if known.state not in ENDING:
                return
            for topic in {topic for topic, _partition in known.partitions}:
                self.state.look_at(topic)

    def _create_each(self, topics: Sequence[NewTopic]) -> dict[str, EosctlError]:
        refused: dict[str, EosctlError] = {}
        for new in topics:
            try:
                with self.call("create", new.topic):
                    why = self._objection(new)
                    if why is None:
                        self.state.add_topic(
                            new.topic, new.partitions, new.config, replication_factor=new.replication_factor
                        )
                    else:
                        refused[new.topic] = why
            except (UnreachableError, DeadlineError):
                raise
            except EosctlError as exc:
                refused[new.topic] = exc
        return refused

    def _objection(self, new: NewTopic) -> EosctlError | None:
        if new.topic in self.denied:
            return self.denied[new.topic]
        if new.topic in self.topics:
            return BrokerError(f"creating topic {new.topic} failed: TOPIC_ALREADY_EXISTS")
        if new.replication_factor > len(self.state.nodes):
            return BrokerError(f"creating topic {new.topic} failed: INVALID_REPLICATION_FACTOR")
        return None


def _fenced(transactional_id: str, doing: str) -> BrokerError:
    return BrokerError(
        f"{doing} failed: another producer took over transactional id {transactional_id}; nothing was written"
    )


def _newest(records: Sequence[Record]) -> list[Record]:
    last = {record.key: record.offset for record in records}
    return [record for record in records if record.key is None or last[record.key] == record.offset]
