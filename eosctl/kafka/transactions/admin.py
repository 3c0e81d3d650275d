"""NativeTransactionAdmin: `eosctl.ports.TransactionAdmin` over eosctl's own wire, against real brokers.

Fencing a few ids must start quickly: modules that it does not need are imported by the methods that do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self, TypeVar

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.transactions import (
    ActiveProducer,
    Coordinator,
    FenceAnswer,
    KafkaFault,
    RawGroup,
    TransactionDescription,
    TransactionListings,
)
from eosctl.deadline import Deadline, Event, OnEvent, ignore_events
from eosctl.errors import BrokerError, EosctlError, UnauthorizedError, UnreachableError, UsageError
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.faults import COORDINATOR_RETRIES, LEADER_RETRIES, ask_until_settled, fault
from eosctl.kafka.native.coordinators import BATCH, ask_each_broker, find_coordinators, transaction_of
from eosctl.kafka.topics.stream import Address
from eosctl.kafka.transactions.fencing import NO_COORDINATORS, Fencing
from eosctl.wire.cluster_messages import Broker, KeyType
from eosctl.wire.error_codes import (
    GROUP_AUTHORIZATION_FAILED,
    INVALID_REGULAR_EXPRESSION,
    NETWORK_EXCEPTION,
    NONE,
    REQUEST_TIMED_OUT,
    SASL_AUTHENTICATION_FAILED,
    UNKNOWN_SERVER_ERROR,
)
from eosctl.wire.group_listing_messages import LIST_GROUPS, ListGroupsRequest
from eosctl.wire.transaction_messages import DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest

if TYPE_CHECKING:
    from eosctl.core.brokers import KnownBrokers
    from eosctl.core.records import LogDir
    from eosctl.kafka.session import Connections
    from eosctl.kafka.topics.partition_leaders import Partition

K = TypeVar("K")
V = TypeVar("V")


class NativeTransactionAdmin:
    """Connects at its first request; one thread may use it at a time."""

    def __init__(
        self,
        settings: ClientSettings,
        *,
        deadline: Deadline,
        on_event: OnEvent = ignore_events,
        connections: Connections | None = None,
    ) -> None:
        self._settings = settings
        self._deadline = deadline
        self._on_event = on_event
        self._cluster = Cluster(settings, deadline=deadline, connections=connections)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._cluster.close()

    def cluster_id(self) -> str:
        """Return the Kafka cluster id; empty if the broker does not report one."""
        return self._cluster.cluster_id()

    def silent_brokers(self, *, patience_s: float) -> Mapping[int, EosctlError]:
        """Return the brokers that the cluster lists and that do not respond within `patience_s`, each with the error.

        All but the one that lists them are asked concurrently.
        """
        from eosctl.kafka.brokers import silent_among

        return silent_among(self._cluster, patience_s=patience_s)

    def log_dirs(
        self, *, patience_s: float, besides: Collection[int] = ()
    ) -> Mapping[int, Sequence[LogDir] | EosctlError]:
        """Return the log directories of each broker, or why it did not report them within `patience_s`.

        Brokers are asked concurrently.
        """
        from eosctl.kafka.brokers import log_dirs_of

        asked = {broker: address for broker, address in self._cluster.brokers().items() if broker not in besides}
        return log_dirs_of(self._cluster, asked, deadline=self._deadline.half(at_most_s=patience_s))

    def features(self) -> KnownBrokers:
        """Return the APIs and features (KIP-584) of each broker that responds, by node id.

        Raises UnreachableError if none responds.
        """
        from eosctl.kafka.brokers import features_of

        return features_of(self._cluster)

    def find_coordinators(
        self, transactional_ids: Sequence[TransactionalId]
    ) -> Mapping[TransactionalId, Coordinator | KafkaFault]:
        """Find the transaction coordinator of each id, or the reason why it is unknown."""
        return self._settled(
            transactional_ids,
            lambda pending: find_coordinators(self._cluster, pending, KeyType.TRANSACTION),
            retriable=COORDINATOR_RETRIES,
        )

    def describe_transactions(
        self, transactional_ids: Sequence[TransactionalId]
    ) -> Mapping[TransactionalId, TransactionDescription | KafkaFault]:
        """Describe the transaction of each id at its coordinator; an unknown id is TRANSACTIONAL_ID_NOT_FOUND."""
        return self._settled(transactional_ids, self._describe_once, retriable=COORDINATOR_RETRIES)

    def list_transactions(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[ProducerId] = (),
        duration_ms: int | None = None,
        pattern: str | None = None,
    ) -> TransactionListings:
        """Send ListTransactions to every broker; `duration_ms` keeps those open for longer.

        Raises UnsupportedError for a filter that a broker can't apply, UsageError for a bad pattern.
        """
        from eosctl.kafka.transactions.listing import list_everywhere
        from eosctl.wire.transaction_listing_messages import ListTransactionsRequest

        request = ListTransactionsRequest(
            state_filters=tuple(states),
            producer_id_filters=tuple(producer_ids),
            duration_filter=-1 if duration_ms is None else duration_ms,
            transactional_id_pattern=pattern,
        )
        return _value_or_raise(list_everywhere(self._cluster, request, self._deadline), "list transactions")

    def fence(
        self,
        transactional_ids: Sequence[TransactionalId],
        *,
        transaction_timeout_ms: int,
        coordinators: Mapping[TransactionalId, Coordinator] = NO_COORDINATORS,
    ) -> Iterator[FenceAnswer]:
        """Send one InitProducerId(-1, -1) per id and yield the responses as they arrive; see `fencing`."""
        return Fencing(
            self._cluster,
            transactional_ids,
            coordinators=coordinators,
            transaction_timeout_ms=transaction_timeout_ms,
            client_id=self._settings.client_id,
            deadline=self._deadline,
            on_event=self._on_event,
        ).answers()

    def topic_partitions(self, topics: Collection[str] | None = None) -> Mapping[str, int]:
        """Map topics to their numbers of partitions; None means every topic, those that don't exist are absent."""
        from eosctl.kafka.topics.partition_leaders import count_partitions

        return count_partitions(self._cluster, topics, self._settings)

    def describe_producers(
        self, partitions: Iterable[Partition], *, only_open: bool = False
    ) -> Mapping[Partition, Sequence[ActiveProducer] | KafkaFault]:
        """Send DescribeProducers to each partition's leader; a partition that does not exist is a fault.

        A leader remembers idle producers for a day: with `only_open` those of a whole cluster are not kept here, too.
        """
        from eosctl.kafka.topics.partition_leaders import describe_producers_at, find_leaders

        wanted = list(partitions)
        done = 0

        def describe(
            leader: Address, batch: list[Partition]
        ) -> Mapping[Partition, Sequence[ActiveProducer] | KafkaFault]:
            nonlocal done
            found = describe_producers_at(self._cluster, leader, batch, only_open=only_open)
            done = min(done + len(batch), len(wanted))
            if len(wanted) > BATCH:
                self._on_event(Event("looking for open transactions", done, len(wanted), "partitions"))
            return found

        return self._settled(
            wanted,
            lambda pending: ask_each_broker(self._cluster, find_leaders(self._cluster, pending), describe),
            retriable=LEADER_RETRIES,
        )

    def write_marker(self, producer: ActiveProducer, *, commit: bool) -> KafkaFault | None:
        """Send WriteTxnMarkers to the leader of the producer's partition; None is success.

        An answer that leaves open whether it was written is NETWORK_EXCEPTION. A refusal after one that was lost is
        UNKNOWN_SERVER_ERROR: that the transaction has ended then does not say by whom.
        """
        from eosctl.kafka.topics.partition_leaders import MAY_BE_WRITTEN, find_leaders, write_marker

        partition = (producer.topic, producer.partition)
        undecided: list[Address] = []

        def ask_once(pending: list[Partition]) -> Mapping[Partition, KafkaFault]:
            return ask_each_broker(
                self._cluster,
                find_leaders(self._cluster, pending),
                lambda leader, _: {
                    partition: write_marker(self._cluster, leader, producer, commit=commit, undecided=undecided)
                    or fault(NONE)
                },
            )

        answers = self._settled([partition], ask_once, retriable=LEADER_RETRIES - {REQUEST_TIMED_OUT})
        refused = answers[partition]
        if undecided and refused.code not in {NONE, NETWORK_EXCEPTION, REQUEST_TIMED_OUT}:
            code = NETWORK_EXCEPTION if refused.code in MAY_BE_WRITTEN else UNKNOWN_SERVER_ERROR
            return fault(code, f"{undecided[0]} may have written it; the last answer: {refused}")
        return None if refused.code == NONE else refused

    def describe_group(self, group_id: str) -> RawGroup:
        """Describe a group at its coordinator; raises UnauthorizedError without DESCRIBE on the group."""
        found = self.describe_groups([group_id])[group_id]
        if isinstance(found, EosctlError):
            raise found
        return found

    def describe_groups(self, group_ids: Collection[str]) -> Mapping[str, RawGroup | EosctlError]:
        """Describe groups at their coordinators; the answers, one of which may be an error, are sorted by name."""

        def known(name: str, found: RawGroup | KafkaFault) -> RawGroup | EosctlError:
            if not isinstance(found, KafkaFault):
                return found
            from eosctl.core.acls.lines import grant_hint  # a fence loads it for a refusal alone

            hint = grant_hint("DESCRIBE", "Group", [name], settings=self._settings)
            return _error_of(found, f"describe group {name}", denied=hint)

        names = sorted(group_ids)
        answers = self._settled(names, self._describe_groups_once, retriable=COORDINATOR_RETRIES)
        return {name: known(name, answers[name]) for name in names}

    def list_groups(self) -> Mapping[str, str]:
        """Map groups to their protocol types, by ListGroups on every broker.

        Raises an error if any broker can't be asked; hidden groups are absent. Where one had to be waited for, all are
        asked again: its groups may have moved to one that had answered before.
        """
        groups, is_of_one_moment = self._list_groups()
        while not is_of_one_moment:
            groups, is_of_one_moment = self._list_groups()
        return groups

    # -- one round each; `_settled` repeats them

    def _settled(
        self,
        keys: Iterable[K],
        ask_once: Callable[[list[K]], Mapping[K, V | KafkaFault]],
        *,
        retriable: frozenset[int],
    ) -> dict[K, V | KafkaFault]:
        return ask_until_settled(
            keys,
            ask_once,
            retriable=retriable,
            deadline=self._deadline,
            within=self._cluster.within,
        )

    def _describe_once(
        self, pending: list[TransactionalId]
    ) -> Mapping[TransactionalId, TransactionDescription | KafkaFault]:
        found = find_coordinators(self._cluster, pending, KeyType.TRANSACTION)
        brokers = {item for item in found.values() if isinstance(item, Coordinator)}
        broker_at = {Address(broker.host, broker.port): broker for broker in brokers}

        def describe(
            address: Address, batch: list[TransactionalId]
        ) -> Mapping[TransactionalId, TransactionDescription | KafkaFault]:
            request = DescribeTransactionsRequest(tuple(batch))
            answer = self._cluster.ask(address, DESCRIBE_TRANSACTIONS, request)
            return {
                TransactionalId(item.transactional_id): transaction_of(item, broker_at[address])
                for item in answer.transaction_states
            }

        return ask_each_broker(self._cluster, _addresses(found), describe)

    def _describe_groups_once(self, pending: list[str]) -> Mapping[str, RawGroup | KafkaFault]:
        from eosctl.kafka.native.coordinators import group_of
        from eosctl.wire.group_messages import DESCRIBE_GROUPS, DescribeGroupsRequest

        known = self._cluster.group_coordinators

        def describe(address: Address, batch: list[str]) -> Mapping[str, RawGroup | KafkaFault]:
            request = DescribeGroupsRequest(tuple(batch))
            answer = self._cluster.ask_with_cluster_id(address, DESCRIBE_GROUPS, request)
            found = {item.group_id: group_of(item) for item in answer.groups}
            known.update((each, address) for each, group in found.items() if isinstance(group, RawGroup))
            return found

        kept = {each: where for each in pending if (where := known.pop(each, None)) is not None}
        lost = [each for each in pending if each not in kept]
        located = {**kept, **_addresses(find_coordinators(self._cluster, lost, KeyType.GROUP))}
        with self._cluster.one_of(2 if kept else 1):  # the other one is where a group may have moved to
            return ask_each_broker(self._cluster, located, describe)

    def _list_groups(self) -> tuple[dict[str, str], bool]:
        """List the groups of every broker, and tell whether all of them answered in one round.

        Those of the first one come with the metadata that names the others.
        """
        request, rounds = ListGroupsRequest(), 0
        listed, asked, answer = self._cluster.brokers_with(LIST_GROUPS, request)
        first, brokers = {asked: answer}, _addresses_of(listed)

        def list_at(address: Address, nodes: list[int]) -> Mapping[int, Mapping[str, str] | KafkaFault]:
            answer = first.pop(address, None) or self._cluster.ask(address, LIST_GROUPS, request)
            if answer.error_code != NONE:
                return {node: fault(answer.error_code, f"broker {node}") for node in nodes}
            groups = {item.group_id: item.protocol_type for item in answer.groups}
            return dict.fromkeys(nodes, groups)

        def ask_once(pending: list[int]) -> Mapping[int, Mapping[str, str] | KafkaFault]:
            nonlocal rounds
            there = _addresses_of(self._cluster.metadata().brokers) if rounds else brokers
            rounds += 1
            found = ask_each_broker(self._cluster, {node: there[node] for node in pending if node in there}, list_at)
            return {node: found.get(node, {}) for node in pending}  # one that is known to be gone coordinates no group

        groups: dict[str, str] = {}
        for answered in self._settled(brokers, ask_once, retriable=COORDINATOR_RETRIES).values():
            groups |= _value_or_raise(answered, "list groups")
        return groups, rounds <= 1


def _addresses_of(brokers: Iterable[Broker]) -> dict[int, Address]:
    return {broker.node_id: Address(broker.host, broker.port) for broker in brokers}


def _addresses(found: Mapping[K, Coordinator | KafkaFault]) -> dict[K, Address | KafkaFault]:
    addresses = {each: Address(each.host, each.port) for each in {*found.values()} if isinstance(each, Coordinator)}
    return {key: item if isinstance(item, KafkaFault) else addresses[item] for key, item in found.items()}


def _value_or_raise(answer: V | KafkaFault, doing: str) -> V:
    """Return the result for one item, or raise the error that fits its fault."""
    if isinstance(answer, KafkaFault):
        raise _error_of(answer, doing)
    return answer


def _error_of(found: KafkaFault, doing: str, *, denied: str | None = None) -> EosctlError:
    """Return the error that fits the fault of one item; `denied` is the hint that grants it."""
    reason = f"can't {doing}: {found}"
    if found.code == GROUP_AUTHORIZATION_FAILED:
        return UnauthorizedError(reason, hint=denied)
    if found.code == SASL_AUTHENTICATION_FAILED:
        return UnauthorizedError(reason, hint="Check user name, password or token.")
    if found.code == INVALID_REGULAR_EXPRESSION:
        return UsageError(reason, hint="Brokers read the pattern as RE2.")
    if found.code in COORDINATOR_RETRIES | LEADER_RETRIES:
        return UnreachableError(reason)
    return BrokerError(reason)
