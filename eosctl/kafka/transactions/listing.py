"""ListTransactions on every coordinator: waits a while for those that are not ready, and reports which it left out."""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.core.transactions import KafkaFault, TransactionListing, TransactionListings
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, UnreachableError, UnsupportedError
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.faults import COORDINATOR_RETRIES, LEADER_PATIENCE_S, WITHOUT_LEADER, fault, fault_of, wait_s
from eosctl.kafka.native.coordinators import Coordinators, find_coordinating_brokers, listings_of
from eosctl.kafka.topics.stream import Address
from eosctl.wire.error_codes import NONE
from eosctl.wire.transaction_listing_messages import LIST_TRANSACTIONS, ListTransactionsRequest

_PASSING = COORDINATOR_RETRIES | WITHOUT_LEADER


def list_everywhere(
    cluster: Cluster, request: ListTransactionsRequest, deadline: Deadline
) -> TransactionListings | KafkaFault:
    """Complete where it can be within half of the time that is left; a fault where no broker listed anything.

    A partition without a leader has less: where a replica is alive, a leader is elected within seconds. So has a broker
    that was ready and does not list: it may have frozen, and its partitions move. In the next round it has twice that,
    for it may only have much to list.
    """
    patience, election, retry = deadline.half(), deadline.half(at_most_s=LEADER_PATIENCE_S), 0
    at_most_s = LEADER_PATIENCE_S
    coordinators: Coordinators | None = None

    def waited(missing: Iterable[KafkaFault]) -> bool:
        return (election if all(each.code in WITHOUT_LEADER for each in missing) else patience).expired()

    while True:
        with cluster.within(deadline.half() if patience.expired() else patience):
            coordinators = _coordinators(cluster, before=coordinators)
        if not coordinators.missing or waited(coordinators.missing):
            listings, answered = _list_at(cluster, coordinators, request, at_most_s=at_most_s)
            at_most_s *= 2
            passing = any(each.code in _PASSING for each in listings.missing)
            if answered and (not passing or waited(listings.missing)):
                return listings
            if not passing or deadline.expired():
                return listings.missing[0]
            if not answered and waited(listings.missing):
                patience = election = deadline  # no broker has responded: there is no later work to keep time for
        patience.sleep(wait_s(retry))
        retry += 1


def _coordinators(cluster: Cluster, *, before: Coordinators | None) -> Coordinators:
    """Find the brokers to ask; a cluster that responded a moment ago may come back, one that never did is an error.

    A look that is out of time keeps the brokers known `before`, which say more.
    """
    try:
        return find_coordinating_brokers(cluster, before=before.ready if before else ())
    except DeadlineError:
        if before is None:
            raise
        return before
    except UnreachableError as exc:
        if before is None:
            raise
        return Coordinators({}, (fault_of(exc),))


def _list_at(
    cluster: Cluster, coordinators: Coordinators, request: ListTransactionsRequest, *, at_most_s: float
) -> tuple[TransactionListings, int]:
    """List the transactions at the brokers that are ready, and count those that responded.

    Each has at most `at_most_s` if there are several.
    """
    found: list[TransactionListing] = []
    missing = list(coordinators.missing)
    answered = 0
    for node, address in coordinators.ready.items():
        with cluster.one_of(len(coordinators.ready), at_most_s=at_most_s):
            listed = _list_one(cluster, node, address, request)
        if isinstance(listed, KafkaFault):
            missing.append(listed)
        else:
            answered += 1
            found += listed
    return TransactionListings(found, tuple(missing), coordinators.unseen), answered


def _list_one(
    cluster: Cluster, node: int, address: Address, request: ListTransactionsRequest
) -> list[TransactionListing] | KafkaFault:
    try:
        answer = cluster.ask(address, LIST_TRANSACTIONS, request)
    except (UnreachableError, DeadlineError) as exc:
        return fault(fault_of(exc).code, f"broker {node}: {exc.message}")
    if answer.unknown_state_filters:
        raise UnsupportedError(f"broker {node} knows no state {', '.join(answer.unknown_state_filters)}")
    if answer.error_code != NONE:
        return fault(answer.error_code, f"broker {node} can't list its transactions")
    return listings_of(answer.transaction_states, node)
