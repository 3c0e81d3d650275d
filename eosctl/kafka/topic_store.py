"""KafkaTopicStore: the real `eosctl.ops.ports.TopicStore`, on confluent-kafka."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from eosctl.core.client_settings import ClientSettings
from eosctl.core.records import Bounds, OutRecord, TopicDescription, TopicRead, Written
from eosctl.deadline import Deadline
from eosctl.errors import UsageError
from eosctl.events import OnEvent, ignore_events
from eosctl.kafka.admin import TopicAdmin
from eosctl.kafka.topic_reader import TopicReader
from eosctl.kafka.topic_writer import TopicWriter

_ISOLATIONS = ("read_committed", "read_uncommitted")


class KafkaTopicStore:
    """Reads and writes whole topics of the cluster that `settings` name; connects at the first question."""

    def __init__(self, settings: ClientSettings, *, deadline: Deadline, on_event: OnEvent = ignore_events) -> None:
        self._settings, self._deadline, self._on_event = settings, deadline, on_event
        self._admin = TopicAdmin(settings, deadline=deadline)

    def __enter__(self) -> KafkaTopicStore:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._admin.close()

    def cluster_id(self) -> str:
        """The Kafka cluster id."""
        return self._admin.cluster_id()

    def describe(self, topics: Collection[str]) -> Mapping[str, TopicDescription]:
        """The topics that exist among `topics`; the others are absent from the answer."""
        return self._admin.describe(topics)

    def create(self, topic: str, *, partitions: int, replication_factor: int, config: Mapping[str, str]) -> None:
        """Creates a topic and waits until every partition has a leader."""
        self._admin.create(topic, partitions=partitions, replication_factor=replication_factor, config=config)

    def bounds(self, topic: str) -> tuple[Bounds, ...]:
        """Begin, LSO and high watermark of every partition, now; raises NotFoundError."""
        return self._admin.bounds(topic)

    def read(self, topic: str, *, isolation: str = "read_committed", newest_per_key: bool = False) -> TopicRead:
        """Reads from the beginning to bounds fixed at the start: the LSO, or the end for read_uncommitted.

        Connect's KafkaBasedLog (Kafka 4.3) waits for the high watermark instead, and so hangs behind an open
        transaction; here `TopicRead.blocked()` names such partitions. With `newest_per_key` records without a key
        are all kept. Raises NotFoundError, UnauthorizedError, UnreachableError, DeadlineError.
        """
        if isolation not in _ISOLATIONS:
            raise UsageError(f"unknown isolation {isolation}", hint=f"One of {', '.join(_ISOLATIONS)}.")
        bounds = self._admin.bounds(topic)
        reader = TopicReader(
            self._settings, topic, bounds, isolation=isolation, deadline=self._deadline, on_event=self._on_event
        )
        records = reader.read_newest() if newest_per_key else reader.read_all()
        return TopicRead(topic=topic, bounds=bounds, records=records, records_read=reader.records_read)

    def write(self, records: Iterable[OutRecord], *, transactional_id: str | None = None) -> Sequence[Written]:
        """Writes all records, in one transaction if an id is given; where each landed, in the order given.

        Raises NotFoundError for a missing topic (before a record of it is sent), UsageError for a partition that is
        not there, EosctlError when one record was not delivered; a transaction is then aborted.
        """
        writer = TopicWriter(
            self._settings,
            self._admin.partition_count,
            transactional_id=transactional_id,
            deadline=self._deadline,
            on_event=self._on_event,
        )
        return writer.write(records)
