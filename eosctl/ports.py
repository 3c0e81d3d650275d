"""Protocols of Kafka and Connect for the operations; the real clients and the fakes of the tests implement them.

One contract suite (tests/contract) runs on both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, Self

from eosctl.core.ids import ProducerId, TransactionalId

if TYPE_CHECKING:
    from eosctl.core.acls.lines import Acl
    from eosctl.core.brokers import KnownBrokers
    from eosctl.core.records import (
        Batch,
        Bounds,
        KnownBounds,
        LogDir,
        NewTopic,
        OutRecord,
        Place,
        Record,
        RecordFilter,
        ScanPlan,
        TopicDescription,
        TopicRead,
        Unseen,
        Window,
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
    from eosctl.core.workers.connector_entry import ConnectorEntry
    from eosctl.engine.columns import Table
    from eosctl.engine.reading.batches import Piece
    from eosctl.engine.reading.newest import TopicColumns
    from eosctl.engine.reading.ranges import OffsetRange
    from eosctl.engine.reading.stretches import RecordRun
    from eosctl.errors import EosctlError


class TransactionAdmin(Protocol):
    """Requests about transactions and groups; a context manager that disconnects."""

    def __enter__(self) -> TransactionAdmin: ...
    def __exit__(self, *_exc: object) -> None: ...

    def cluster_id(self) -> str:
        """Return the Kafka cluster id."""

    def silent_brokers(self, *, patience_s: float) -> Mapping[int, EosctlError]:
        """Return the brokers that the cluster lists and that do not respond within `patience_s`, each with the error.

        All of them are asked concurrently.
        """

    def log_dirs(
        self, *, patience_s: float, besides: Collection[int] = ()
    ) -> Mapping[int, Sequence[LogDir] | EosctlError]:
        """Return the log directories of each broker, or why it did not report them within `patience_s`, by broker id.

        Brokers in `besides` are not asked. Requires DESCRIBE on the cluster; sizes of volumes need brokers from 3.3 on.
        """

    def features(self) -> KnownBrokers:
        """Return the APIs and features (KIP-584) of each broker that responds, by node id.

        Raises UnreachableError if none responds.
        """

    def find_coordinators(
        self, transactional_ids: Sequence[TransactionalId]
    ) -> Mapping[TransactionalId, Coordinator | KafkaFault]:
        """Find the transaction coordinator of each id, or the reason why it is unknown.

        One bad id never hides the others.
        """

    def describe_transactions(
        self, transactional_ids: Sequence[TransactionalId]
    ) -> Mapping[TransactionalId, TransactionDescription | KafkaFault]:
        """Describe the transaction of each id; an unknown id is a KafkaFault TRANSACTIONAL_ID_NOT_FOUND (105)."""

    def list_transactions(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[ProducerId] = (),
        duration_ms: int | None = None,
        pattern: str | None = None,
    ) -> TransactionListings:
        """Send ListTransactions to every broker; raises UnsupportedError for a filter that the broker can't apply.

        Coordinators that can't be asked are `missing`; raises UnreachableError if none can.
        """

    def fence(
        self,
        transactional_ids: Sequence[TransactionalId],
        *,
        transaction_timeout_ms: int,
        coordinators: Mapping[TransactionalId, Coordinator] = ...,
    ) -> Iterator[FenceAnswer]:
        """Send one InitProducerId(-1, -1) per id and yield the responses as they arrive.

        A fault of one id is part of its answer and never raised. `coordinators` are those that are known already, each
        of which may have changed since.
        """

    def topic_partitions(self, topics: Collection[str] | None = None) -> Mapping[str, int]:
        """Map topics to their numbers of partitions, by Metadata; None means every topic, internal ones too."""

    def describe_producers(
        self, partitions: Iterable[tuple[str, int]], *, only_open: bool = False
    ) -> Mapping[tuple[str, int], Sequence[ActiveProducer] | KafkaFault]:
        """Send DescribeProducers to each partition's leader; `only_open` keeps producers with an open transaction."""

    def write_marker(self, producer: ActiveProducer, *, commit: bool) -> KafkaFault | None:
        """Send WriteTxnMarkers (COMMIT or ABORT) to the leader of the producer's partition; None is success."""

    def describe_group(self, group_id: str) -> RawGroup:
        """Describe a group by DescribeGroups, with member metadata and assignment as bytes."""

    def describe_groups(self, group_ids: Collection[str]) -> Mapping[str, RawGroup | EosctlError]:
        """Describe groups together, sorted by name; the answer for one of them may be an error.

        Without DESCRIBE it is UnauthorizedError, whether or not the group exists. A listing leaves out such groups.
        """

    def list_groups(self) -> Mapping[str, str]:
        """Map the groups that the client may DESCRIBE to their protocol types, by ListGroups on every broker."""


class TopicReader(Protocol):
    """Reads whole topics; a context manager."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_exc: object) -> None: ...

    def cluster_id(self) -> str:
        """Return the Kafka cluster id."""

    def describe(self, topics: Collection[str], *, configs: bool = True) -> Mapping[str, TopicDescription]:
        """Describe the topics that exist among `topics`; the others are absent from the result.

        Without `configs` these are empty, which saves a request.
        """

    def broker_settings(self, name: str) -> Mapping[int, str]:
        """Return the value of one setting at each broker, by broker id.

        Raises UnauthorizedError if it may not be read.
        """

    def own_settings(self, topic: str) -> Mapping[str, str]:
        """Return the settings of this topic alone, without defaults; raises NotFoundError, UnauthorizedError."""

    def bounds(self, topic: str) -> tuple[Bounds, ...]:
        """Return the current first offset, LSO and high watermark of every partition; raises NotFoundError."""

    def bounds_of(
        self, topics: Collection[str], *, partitions: Mapping[str, int] | None = None
    ) -> Mapping[str, tuple[Bounds, ...]]:
        """Return the bounds of many topics with the same few requests.

        Topics with a number in `partitions` are not described, unless they have fewer: partitions beyond the number are
        not seen.
        """

    def known_bounds(self, topic: str) -> KnownBounds:
        """Return the bounds of those partitions whose leaders respond; raises UnreachableError if none does."""

    def known_bounds_of(
        self, topics: Collection[str], *, partitions: Mapping[str, int] | None = None
    ) -> Mapping[str, KnownBounds]:
        """Return the `known_bounds` of many topics with the same few requests; a topic without any leader has none.

        Topics with a number in `partitions` are not described: partitions beyond the number are not seen. Raises
        NotFoundError, also where a topic has fewer.
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
        keep: RecordFilter | None = None,
        renews: bool = False,
    ) -> TopicRead:
        """Read a topic from the beginning to bounds fixed at the start (LSO, or the end for read_uncommitted).

        All partitions or none, unless `partly`: then those whose leaders respond. `since` has the offset from which a
        partition is read, `until` the first one that is not. Only records that `keep` returns are held in memory.
        With `renews` the timeout begins anew whenever something is read: then it limits only the silence of brokers.
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
        """Return the newest record of each partition and key, of all `partitions` or some, as columns of Arrow.

        `bare`: without the connector of each key.
        """

    def pieces(self, ranges: Sequence[OffsetRange]) -> Iterator[Piece]:
        """Yield the committed records in some ranges of offsets, with their producers, a few at a time."""

    def stream(self, topic: str, bounds: Sequence[Bounds], *, newest_per_key: bool = False) -> Iterator[RecordRun]:
        """Yield the committed records up to the LSOs of `bounds`, some at a time.

        They come in the order in which `read` returns them. No more than that is held in memory, or the newest per key
        of a few partitions.
        """

    def newest_of(self, topics: Collection[str], *, offsets: int) -> Mapping[str, Sequence[Record]]:
        """Return the committed records among the last `offsets` offsets of each partition; raises NotFoundError."""

    def read_behind(self, topic: str, bounds: Sequence[Bounds]) -> tuple[Record, ...]:
        """Read from the LSOs of `bounds` to the end, committed or not.

        Returns each key's newest record per partition.
        """


class TopicWriter(TopicReader, Protocol):
    """Writes records to topics."""

    def write(
        self, records: Iterable[OutRecord], *, transactional_id: TransactionalId | None = None
    ) -> Sequence[Written]:
        """Write all records, in one transaction if an id is given; every delivery report is checked."""

    def write_columns(
        self, transactions: Iterable[Table], *, total: int, transactional_id: TransactionalId
    ) -> Mapping[tuple[str, int], int]:
        """Write records (`engine.columns.SENT`), one transaction per table, in each the deletions first.

        Returns the last offset by partition. `total` is the number of all records, for progress. A commit fails if one
        of its records was not delivered; earlier commits remain.
        """


class TopicAdmin(TopicReader, Protocol):
    """Creates topics, and changes their settings."""

    def change_settings(self, topic: str, settings: Mapping[str, str | None]) -> None:
        """Set a topic's own settings; None restores the brokers' default, and other settings stay as they are.

        Raises NotFoundError, UnauthorizedError, BrokerError for a setting that does not exist.
        """

    def create(self, topic: str, *, partitions: int, replication_factor: int, config: Mapping[str, str]) -> None:
        """Create a topic and wait until it can be used; raises the error that `create_all` reports of it."""

    def create_all(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> Mapping[str, EosctlError]:
        """Create topics by one request and wait until they can be used; return the error of each that was refused.

        With `validate_only` the brokers check the request and create nothing.
        """


class TopicClient(TopicWriter, TopicAdmin, Protocol):
    """All operations on topics, as App opens them. A function takes the narrowest of these Protocols."""


class BatchScan(Protocol):
    """One pass over the batches of a plan; its progress can be read during the pass, and after it was left."""

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches in offset order within each partition, the partitions side by side.

        The first batch of a partition may begin before its span, and the last may end behind it, as batches are not
        cut. Raises UnreachableError, UnauthorizedError, DeadlineError, ProtocolError; batches yielded before remain
        valid.
        """

    def positions(self) -> Mapping[Place, int]:
        """Return the next offset of each partition.

        All offsets below it, from the span's first on, were seen or are in `unseen`.
        """

    def unseen(self) -> Sequence[Unseen]:
        """Return the offsets that were not seen so far, including those of the plan."""


class BatchLog(Protocol):
    """Scans the batches of topics by their headers, committed, aborted and open ones alike; a context manager."""

    def __enter__(self) -> BatchLog: ...
    def __exit__(self, *_exc: object) -> None: ...

    def plan(self, topics: Collection[str], window: Window) -> ScanPlan:
        """Plan a scan of `window` with its current first and last offsets.

        Partitions without a leader are unseen, not an error. Raises NotFoundError for a topic that does not exist,
        UnauthorizedError without DESCRIBE on it.
        """

    def scan(self, plan: ScanPlan, *, check_crc: bool = False) -> BatchScan:
        """Scan the plan's partitions; `check_crc` computes each batch's checksum, which is slow.

        A scan may take long: the timeout begins anew each time that something is read.
        """


class ConnectWorker(Protocol):
    """The REST interface of one Connect worker; retries 409 (rebalance), maps errors to EosctlError."""

    url: str

    def root(self) -> Mapping[str, str]:
        """Return `GET /`: version, commit, kafka_cluster_id."""

    def date_ms(self) -> int | None:
        """Return the time of the response to `GET /` (its Date header, in whole seconds); None without one."""

    def health(self) -> str:
        """Return `healthy`, `starting`, `unhealthy`, or `unknown` below Kafka 3.9."""

    def connectors(self) -> Mapping[str, ConnectorEntry]:
        """Return every connector by its name, by `GET /connectors?expand=info&expand=status`."""

    def connector_status(self, connector: str) -> ConnectorEntry:
        """Return the status of a connector, by `GET /connectors/{c}/status`; raises NotFoundError.

        It is as in `connectors`, without config and task set.
        """

    def connector_config(self, connector: str) -> Mapping[str, str]:
        """Return the config of a connector, by `GET /connectors/{c}/config`; raises NotFoundError."""

    def topics(self, connector: str) -> Sequence[str]:
        """Return the topics that a connector has used, sorted, by `GET /connectors/{c}/topics` (2.5+).

        A connector that does not exist has none. Raises UnauthorizedError if the worker does not track topics.
        """

    def put_connector_config(self, connector: str, config: Mapping[str, str]) -> None:
        """Create or change a connector, by `PUT /connectors/{c}/config`."""

    def create_connector(self, connector: str, config: Mapping[str, str], state: str) -> None:
        """Create a connector in a state (RUNNING, PAUSED or STOPPED), by `POST /connectors` (3.7+ for the state).

        Raises AlreadyExistsError.
        """

    def delete_connector(self, connector: str) -> None:
        """Delete a connector, by `DELETE /connectors/{c}`."""

    def set_state(self, connector: str, verb: str) -> None:
        """Stop, pause or resume a connector, by `PUT /connectors/{c}/stop|pause|resume`."""

    def restart(self, connector: str, *, only_failed: bool = True) -> None:
        """Restart a connector and its tasks, by `POST /connectors/{c}/restart?includeTasks=true`."""

    def offsets(self, connector: str) -> Sequence[Mapping[str, object]]:
        """Return offsets, by `GET /connectors/{c}/offsets` (3.5+): `[{"partition": {…}, "offset": {…}|null}]`."""

    def alter_offsets(self, connector: str, offsets: Sequence[Mapping[str, object]]) -> None:
        """Change offsets, by `PATCH /connectors/{c}/offsets` (3.6+).

        The body is `[{"partition": {…}, "offset": {…}|null}]`; null deletes.
        """

    def validate(self, plugin: str, config: Mapping[str, str]) -> Mapping[str, object]:
        """Validate a config, by `PUT /connector-plugins/{plugin}/config/validate`."""

    def plugins(self) -> Sequence[Mapping[str, object]]:
        """Return the connector plugins, by `GET /connector-plugins`."""

    def fence(self, connector: str, headers: Mapping[str, str]) -> None:
        """Fence a connector's tasks, by `PUT /connectors/{c}/fence` (3.3+, internal), on the leader only.

        `headers` sign an empty body.
        """


class AclClient(Protocol):
    """The cluster's ACLs; a context manager that disconnects."""

    def __enter__(self) -> AclClient: ...
    def __exit__(self, *_exc: object) -> None: ...

    def cluster_id(self) -> str:
        """Return the Kafka cluster id."""

    def describe(self) -> Sequence[Acl]:
        """Return all ACLs.

        Raises UnsupportedError if the brokers have no authorizer, UnauthorizedError without DESCRIBE.
        """

    def create(self, acls: Iterable[Acl]) -> Mapping[Acl, EosctlError]:
        """Add ACLs; return the error for each that was refused or got no response.

        ACLs that exist already stay. Raises UnsupportedError if the brokers have no authorizer.
        """
