"""What the operations need of Kafka and Connect, as Protocols: the real thing, and the fakes of the tests, fit them.

One contract suite (tests/contract) runs on both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, Self

from eosctl.core.ids import ProducerId, TransactionalId

if TYPE_CHECKING:
    from eosctl.core.acls.binding import Acl
    from eosctl.core.batches import Batch, Place, ScanPlan, Unseen, Window
    from eosctl.core.records import (
        Bounds,
        KnownBounds,
        LogDir,
        NewTopic,
        OutRecord,
        Record,
        Sieve,
        TopicDescription,
        TopicRead,
        Written,
    )
    from eosctl.core.transactions import (
        ActiveProducer,
        Coordinator,
        FenceAnswer,
        KafkaFault,
        RawGroup,
        TransactionDescription,
        TransactionListings,
    )
    from eosctl.core.versions import BrokerFeatures
    from eosctl.core.workers.connector_entry import ConnectorEntry
    from eosctl.engine.columns import Table
    from eosctl.engine.reading.batches import Piece
    from eosctl.engine.reading.newest import TopicColumns
    from eosctl.engine.reading.ranges import OffsetRange
    from eosctl.engine.reading.stretches import Stretch
    from eosctl.errors import EosctlError


class TransactionAdmin(Protocol):
    """The requests about transactions and groups that no Python client offers; a context manager that disconnects."""

    def __enter__(self) -> TransactionAdmin: ...
    def __exit__(self, *_exc: object) -> None: ...

    def cluster_id(self) -> str:
        """The Kafka cluster id."""

    def silent_brokers(self, *, patience_s: float) -> Mapping[int, EosctlError]:
        """Brokers that the cluster lists and that do not answer within `patience_s`, asked side by side, and why."""

    def log_dirs(self, *, patience_s: float, besides: Collection[int] = ()) -> Mapping[int, Sequence[LogDir]]:
        """The log directories of each broker that reports them within `patience_s`, by broker id; `besides` says whom
        not to ask. It takes DESCRIBE on the cluster, and brokers from 3.3 on to know how full they are.
        """

    def features(self) -> Mapping[int, BrokerFeatures]:
        """The features of each broker that answers (KIP-584), by node id; raises UnreachableError where none does."""

    def find_coordinators(
        self, transactional_ids: Sequence[TransactionalId]
    ) -> Mapping[TransactionalId, Coordinator | KafkaFault]:
        """The transaction coordinator of each id, or why it can't be known; one bad id never hides the others."""

    def describe_transactions(
        self, transactional_ids: Sequence[TransactionalId]
    ) -> Mapping[TransactionalId, TransactionDescription | KafkaFault]:
        """DescribeTransactions of each id; an unknown id is a KafkaFault TRANSACTIONAL_ID_NOT_FOUND (105)."""

    def list_transactions(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[ProducerId] = (),
        duration_ms: int | None = None,
        pattern: str | None = None,
    ) -> TransactionListings:
        """ListTransactions on every broker; a filter the broker can't apply raises UnsupportedError.

        Coordinators that can't be asked are `missing`; raises UnreachableError where none can.
        """

    def fence(
        self,
        transactional_ids: Sequence[TransactionalId],
        *,
        transaction_timeout_ms: int,
        coordinators: Mapping[TransactionalId, Coordinator] = ...,
    ) -> Iterator[FenceAnswer]:
        """One InitProducerId(-1, -1) per id, answers in the order they come; per-id faults, never raises for one id.

        `coordinators` are those that are known already, each of which may have changed since.
        """

    def topic_partitions(self, topics: Collection[str] | None = None) -> Mapping[str, int]:
        """Topic name -> number of partitions, by Metadata; None means every topic, internal ones too."""

    def describe_producers(
        self, partitions: Iterable[tuple[str, int]], *, only_open: bool = False
    ) -> Mapping[tuple[str, int], Sequence[ActiveProducer] | KafkaFault]:
        """DescribeProducers at each partition's leader; `only_open` keeps those that have a transaction open."""

    def write_marker(self, producer: ActiveProducer, *, commit: bool) -> KafkaFault | None:
        """WriteTxnMarkers (COMMIT or ABORT) to the leader of the producer's partition; None is success."""

    def describe_group(self, group_id: str) -> RawGroup:
        """DescribeGroups with member metadata and assignment as bytes."""

    def hidden_groups(self, group_ids: Collection[str]) -> Mapping[str, KafkaFault]:
        """Those of the groups that can't be described, there or not, and why: a listing leaves them out."""

    def list_groups(self) -> Mapping[str, str]:
        """ListGroups on every broker: group id -> protocol type, of the groups that one may DESCRIBE."""


class TopicReader(Protocol):
    """Reading whole topics; a context manager."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_exc: object) -> None: ...

    def cluster_id(self) -> str:
        """The Kafka cluster id."""

    def describe(self, topics: Collection[str], *, configs: bool = True) -> Mapping[str, TopicDescription]:
        """The topics that exist among `topics`; the others are absent from the answer.

        Without `configs` they are empty, and brokers are asked a question less.
        """

    def broker_settings(self, name: str) -> Mapping[int, str]:
        """The value of one setting at each broker, by broker id; raises UnauthorizedError where it may not be read."""

    def own_settings(self, topic: str) -> Mapping[str, str]:
        """What was set for this topic itself, not for all; raises NotFoundError, UnauthorizedError."""

    def bounds(self, topic: str) -> tuple[Bounds, ...]:
        """Begin, LSO and high watermark of every partition, now; raises NotFoundError."""

    def bounds_of(
        self, topics: Collection[str], *, partitions: Mapping[str, int] | None = None
    ) -> Mapping[str, tuple[Bounds, ...]]:
        """`bounds` of many topics, by the same few requests.

        A topic of which `partitions` says how many it has is not described, unless it has fewer: more are not seen.
        """

    def known_bounds(self, topic: str) -> KnownBounds:
        """`bounds` of those partitions whose leaders answer; raises UnreachableError where none does."""

    def known_bounds_of(
        self, topics: Collection[str], *, partitions: Mapping[str, int] | None = None
    ) -> Mapping[str, KnownBounds]:
        """`known_bounds` of many topics, by the same few requests; of one without any leader there are none.

        A topic of which `partitions` says how many it has is not described: more are not seen. Raises NotFoundError,
        also where it has fewer.
        """

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
        """Reads from the beginning to bounds fixed at the start (LSO, or the end for read_uncommitted).

        All partitions or none, unless `partly`: then those whose leaders answer. `since` has the offset from which a
        partition is read, `until` the first one that is not. What `sieve` does not keep is not held in memory. With
        `renews` the timeout begins anew with everything that is read: it is for brokers that are silent then.
        """

    def read_columns(
        self,
        topic: str,
        *,
        isolation: str = "read_committed",
        since: Mapping[int, int] | None = None,
        partitions: Collection[int] | None = None,
        bare: bool = False,
    ) -> TopicColumns:
        """What `read` has of each partition and key, of all `partitions` or some, as columns of Arrow.

        `bare`: without whose each key is.
        """

    def pieces(self, ranges: Sequence[OffsetRange]) -> Iterator[Piece]:
        """The committed records in some ranges of offsets, as they come, with their producers: a few at a time."""

    def stream(self, topic: str, bounds: Sequence[Bounds], *, newest_per_key: bool = False) -> Iterator[Stretch]:
        """What `read` returns of the committed records up to the LSOs of `bounds`, some at a time, in the same order.

        No more than that is held in memory, or the newest per key of a few partitions.
        """

    def newest_of(self, topics: Collection[str], *, offsets: int) -> Mapping[str, Sequence[Record]]:
        """The committed records among the last `offsets` offsets of each partition; raises NotFoundError."""

    def read_behind(self, topic: str, bounds: Sequence[Bounds]) -> tuple[Record, ...]:
        """What lies from the LSOs of `bounds` to the end, committed or not: each key's newest record per partition."""


class TopicWriter(TopicReader, Protocol):
    """Writing records to topics."""

    def write(
        self, records: Iterable[OutRecord], *, transactional_id: TransactionalId | None = None
    ) -> Sequence[Written]:
        """Writes all records, in one transaction if an id is given; every delivery report is checked."""

    def write_columns(
        self, transactions: Iterable[Table], *, total: int, transactional_id: TransactionalId
    ) -> Mapping[tuple[str, int], int]:
        """Writes records (`engine.columns.SENT`), those of a table in a transaction, of each the deletions first.

        Returns the last offset by partition. They are `total` altogether, for those who wait. A commit fails where one
        of its records was not delivered: what was committed before stays.
        """


class TopicAdmin(TopicReader, Protocol):
    """Creating topics, and changing their settings."""

    def change_settings(self, topic: str, settings: Mapping[str, str | None]) -> None:
        """Sets what is told for this topic, None takes the brokers' default again; other settings stay as they are.

        Raises NotFoundError, UnauthorizedError, BrokerError for a setting that there is not.
        """

    def create(self, topic: str, *, partitions: int, replication_factor: int, config: Mapping[str, str]) -> None:
        """Creates a topic and waits until it can be used; raises what `create_all` reports of it."""

    def create_all(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> Mapping[str, EosctlError]:
        """Creates topics by one request and waits until they can be used; why not, for each that was refused.

        `validate_only` asks the brokers whether they would.
        """


class TopicStore(TopicWriter, TopicAdmin, Protocol):
    """All that one can do with topics: what App's door leads to. A function takes the narrowest of these."""


class BatchScan(Protocol):
    """One pass over the batches of a plan; what it has seen can be asked while it goes on, and after it was left."""

    def __iter__(self) -> Iterator[Batch]:
        """The batches in offset order within each partition, the partitions side by side.

        The first batch of a partition may begin below, the last end behind its span, as batches are not cut. Raises
        UnreachableError, UnauthorizedError, DeadlineError, ProtocolError; what was read before is good.
        """

    def positions(self) -> Mapping[Place, int]:
        """The next offset of each partition: all below it, from the span's first on, was seen or is in `unseen`."""

    def unseen(self) -> Sequence[Unseen]:
        """What was not seen so far, that of the plan included."""


class BatchLog(Protocol):
    """The batches of topics by their headers, committed, aborted and open ones alike; a context manager."""

    def __enter__(self) -> BatchLog: ...
    def __exit__(self, *_exc: object) -> None: ...

    def plan(self, topics: Collection[str], window: Window) -> ScanPlan:
        """Where a scan of `window` would begin and end, now; partitions without a leader are unseen, not an error.

        Raises NotFoundError for a topic that does not exist, UnauthorizedError without DESCRIBE on it.
        """

    def scan(self, plan: ScanPlan, *, check_crc: bool = False) -> BatchScan:
        """A pass over the plan's partitions; `check_crc` computes each batch's checksum, which takes its time.

        It may last: the timeout begins anew each time that something is read.
        """


class ConnectWorker(Protocol):
    """The REST interface of one Connect worker; retries 409 (rebalance), maps errors to EosctlError."""

    url: str

    def root(self) -> Mapping[str, str]:
        """`GET /`: version, commit, kafka_cluster_id."""

    def date_ms(self) -> int | None:
        """The time, in whole seconds, that the answer to `GET /` bears (Date); None where it bears none."""

    def health(self) -> str:
        """`healthy`, `starting`, `unhealthy`, or `unknown` below Kafka 3.9."""

    def connectors(self) -> Mapping[str, ConnectorEntry]:
        """`GET /connectors?expand=info&expand=status`: every connector by its name."""

    def connector_status(self, connector: str) -> ConnectorEntry:
        """`GET /connectors/{c}/status`: as `connectors` has it, without config and task set; raises NotFoundError."""

    def connector_config(self, connector: str) -> Mapping[str, str]:
        """`GET /connectors/{c}/config`; raises NotFoundError."""

    def topics(self, connector: str) -> Sequence[str]:
        """`GET /connectors/{c}/topics` (2.5+): those it has written to, sorted; none of a connector that is not there.

        Raises UnauthorizedError where the worker does not keep track of them.
        """

    def put_connector_config(self, connector: str, config: Mapping[str, str]) -> None:
        """`PUT /connectors/{c}/config`: creates or changes."""

    def delete_connector(self, connector: str) -> None:
        """`DELETE /connectors/{c}`."""

    def set_state(self, connector: str, verb: str) -> None:
        """`PUT /connectors/{c}/stop|pause|resume`."""

    def restart(self, connector: str, *, only_failed: bool = True) -> None:
        """`POST /connectors/{c}/restart?includeTasks=true`."""

    def offsets(self, connector: str) -> Sequence[Mapping[str, object]]:
        """`GET /connectors/{c}/offsets` (3.5+): `[{"partition": {…}, "offset": {…}|null}]`."""

    def alter_offsets(self, connector: str, offsets: Sequence[Mapping[str, object]]) -> None:
        """`PATCH /connectors/{c}/offsets` (3.6+): `[{"partition": {…}, "offset": {…}|null}]`; null deletes."""

    def validate(self, plugin: str, config: Mapping[str, str]) -> Mapping[str, object]:
        """`PUT /connector-plugins/{plugin}/config/validate`."""

    def plugins(self) -> Sequence[Mapping[str, object]]:
        """`GET /connector-plugins`."""

    def fence(self, connector: str, headers: Mapping[str, str]) -> None:
        """`PUT /connectors/{c}/fence` (3.3+, internal), on the leader only; `headers` sign an empty body."""


class AclStore(Protocol):
    """The cluster's ACLs; a context manager that disconnects."""

    def __enter__(self) -> AclStore: ...
    def __exit__(self, *_exc: object) -> None: ...

    def cluster_id(self) -> str:
        """The Kafka cluster id."""

    def describe(self) -> Sequence[Acl]:
        """All ACLs; UnsupportedError where the brokers have no authorizer, UnauthorizedError without DESCRIBE."""

    def create(self, acls: Iterable[Acl]) -> Mapping[Acl, EosctlError]:
        """Adds ACLs; those that are there already stay. Returns why, for each that was refused or got no answer.

        UnsupportedError where the brokers have no authorizer.
        """
