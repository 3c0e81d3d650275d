"""What a fake broker's topics hold: a test writes there as somebody else, and looks at what was written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eosctl.core.offsets.names import partition_for
from eosctl.core.records import OutRecord, Record
from eosctl.core.wording import counted
from eosctl.errors import DeadlineError, NotFoundError, UsageError
from eosctl.wire import error_codes as codes
from tests.fakes.broker_state import BrokerState
from tests.fakes.faults import Faults
from tests.fakes.partitions import FakeTopic

PATIENCE = 250  # looks at a transaction before a write gives up on it


class FakeTopics(Faults):
    """The topics of a BrokerState; `written` is the log of what came through the store, `put` and others are not it."""

    def __init__(self, state: BrokerState) -> None:
        super().__init__()
        self.state = state
        self.written: list[tuple[str | None, tuple[OutRecord, ...]]] = []

    @property
    def topics(self) -> dict[str, FakeTopic]:
        """The topics by name."""
        return self.state.topics

    @property
    def writes(self) -> int:
        """How many records came through `write`."""
        return sum(len(records) for _id, records in self.written)

    def add_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """A topic that is there from the start."""
        self.state.add_topic(name, partitions, config)

    def put(self, topic: str, key: bytes | None, value: bytes | None, *, partition: int | None = None) -> Record:
        """Appends one record, where Connect's producer would unless told otherwise."""
        out = OutRecord(topic, key, value, partition=0 if key is None else partition)
        where = self.partition_of(out)
        self.state.append(out, where, self.state.new_producer(), transactional=False)
        return self.state.log(topic, where).records[-1]

    def records(self, topic: str) -> list[Record]:
        """The committed records, also those that an open transaction hides, the oldest first."""
        there = (record for log in self.topics[topic].partitions for record in log.committed())
        return sorted(there, key=lambda record: record.timestamp_ms)

    def newest(self, topic: str) -> dict[bytes | None, bytes | None]:
        """Key -> value of the newest committed record, tombstones included."""
        return {record.key: record.value for record in self.records(topic)}

    def open_transaction(self, topic: str, partition: int, *, key: bytes = b"open") -> None:
        """Somebody writes a record there in a transaction, and leaves it open."""
        self.state.open_transaction(_id_of(topic, partition), (topic, partition), key=key)

    def close_transaction(self, topic: str, partition: int) -> None:
        """Aborts what `open_transaction` began."""
        self.state.expire(_id_of(topic, partition))

    def write_aborted(self, records: Iterable[OutRecord]) -> None:
        """A transaction of somebody's that was begun with `records` and aborted."""
        producer = self.take_id("aborted")
        for record in records:
            self.state.write_in("aborted", producer, record, self.partition_of(record))
        self.state.end_transaction("aborted", producer, commit=False)

    def take_id(self, transactional_id: str) -> tuple[int, int]:
        """Producer id and epoch of whoever writes in transactions of this id from now on."""
        for _ in range(PATIENCE):
            error, producer_id, epoch = self.state.init_producer_id(transactional_id, 60_000)
            if error == codes.NONE:
                return producer_id, epoch
        raise DeadlineError(f"timed out while taking transactional id {transactional_id} (CONCURRENT_TRANSACTIONS)")

    def partition_of(self, record: OutRecord) -> int:
        """Where Connect's producer would write it, unless it says where."""
        partitions = len(self.named(record.topic).partitions)
        if record.partition is None:
            if record.key is None:
                raise UsageError(f"a record for topic {record.topic} has neither a key nor a partition")
            return partition_for(record.key, partitions)
        if not 0 <= record.partition < partitions:
            raise UsageError(
                f"there is no partition {record.partition}: topic {record.topic} has {counted(partitions, 'partition')}"
            )
        return record.partition

    def named(self, name: str) -> FakeTopic:
        """The topic of this name, or NotFoundError."""
        if name not in self.topics:
            raise NotFoundError(f"topic {name} does not exist")
        return self.topics[name]


def _id_of(topic: str, partition: int) -> str:
    return f"open {topic}-{partition}"
