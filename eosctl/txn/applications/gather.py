"""Gathers the input of `txn applications`: ids, groups, topics, settings, and the descriptions of some ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from eosctl.app import App
from eosctl.core.ids import TransactionalId
from eosctl.core.java.numbers import whole_number
from eosctl.core.transactions import (
    OPEN_STATES,
    PROTOCOL_TYPE,
    TRANSACTIONAL_ID_NOT_FOUND,
    KafkaFault,
    TransactionDescription,
    TransactionListing,
    TransactionListings,
)
from eosctl.core.versions import transaction_version
from eosctl.errors import EosctlError
from eosctl.events import Event
from eosctl.group.members import connect_group
from eosctl.ports import TransactionAdmin
from eosctl.report import Problem
from eosctl.txn import codes
from eosctl.txn.applications.facts import BrokerLimits, Described
from eosctl.txn.applications.readings import ClusterFacts
from eosctl.txn.applications.rules import ApplicationIds, sample

MAX_TIMEOUT = "transaction.max.timeout.ms"
EXPIRATION = "transactional.id.expiration.ms"
SAMPLE = 20
"""The number of idle ids that are described of each application, unless all are requested."""
_AT_ONCE = 10_000


class ClusterIds(Struct, frozen=True):
    """The ids of a cluster, and the knowledge by which they are read."""

    cluster_id: str
    listings: TransactionListings
    known: ClusterFacts
    limits: BrokerLimits
    transaction_version: int | None
    problems: tuple[Problem, ...] = ()


def look_at_cluster(app: App, admin: TransactionAdmin) -> ClusterIds:
    """List all ids, the groups and the topics; warn of what may not be read, which then proves nothing."""
    cluster_id = admin.cluster_id()
    listings = admin.list_transactions()
    problems: list[Problem] = []
    known = _known(app, admin, problems)
    limits = broker_limits(app, problems)
    return ClusterIds(cluster_id, listings, known, limits, _transaction_version(admin), tuple(problems))


def _transaction_version(admin: TransactionAdmin) -> int | None:
    try:
        features = admin.features()
    except EosctlError:
        return None
    return transaction_version(features) if features else None


def _known(app: App, admin: TransactionAdmin, problems: list[Problem]) -> ClusterFacts:
    """Return the known groups and topics; the named group counts as existing, as its workers may be down."""
    named = {app.target.group_id: frozenset[str]()} if app.target.group_id else {}
    try:
        groups = admin.list_groups()
        topics = admin.topic_partitions()
        connect = {name: _connectors_of(admin, name) for name, kind in groups.items() if kind == PROTOCOL_TYPE}
    except EosctlError as error:
        problems.append(_unread("groups and topics", error))
        return ClusterFacts(named)
    others = frozenset(name for name, kind in groups.items() if kind != PROTOCOL_TYPE)
    return ClusterFacts({**named, **connect}, others, topics)


def _connectors_of(admin: TransactionAdmin, group_id: str) -> frozenset[str]:
    """Return the connectors that the members hold; none if that is unknown, so that nothing is proven."""
    try:
        group = connect_group(admin.describe_group(group_id))
    except EosctlError:
        return frozenset()
    return frozenset(name for member in group.members for name in member.connectors() or ())


def broker_limits(app: App, problems: list[Problem]) -> BrokerLimits:
    """Read both settings as far as permitted; add a warning for what is not."""
    try:
        with app.topics() as store:
            found = [_smallest(store.broker_settings(name)) for name in (MAX_TIMEOUT, EXPIRATION)]
    except EosctlError as error:
        problems.append(_unread(f"{MAX_TIMEOUT} and {EXPIRATION}", error))
        return BrokerLimits()
    return BrokerLimits(*found)


def _smallest(values: Mapping[int, str]) -> int | None:
    numbers = map(whole_number, values.values())
    return min((number for number in numbers if number is not None), default=None)


def _unread(what: str, error: EosctlError) -> Problem:
    return Problem(codes.NOT_CHECKED, f"{what} can't be read: {error.message}", error.hint).as_warning()


def describe_some(
    app: App, admin: TransactionAdmin, applications: Sequence[ApplicationIds], *, everything: bool
) -> tuple[Described, dict[TransactionalId, KafkaFault]]:
    """Describe each id with an open transaction, and `SAMPLE` others of each application, or `everything`.

    Ids that have disappeared meanwhile are in neither result.
    """
    wanted = [one.transactional_id for each in applications for one in _chosen(each, everything=everything)]
    described: dict[TransactionalId, TransactionDescription] = {}
    faults: dict[TransactionalId, KafkaFault] = {}
    for start in range(0, len(wanted), _AT_ONCE):
        for name, answer in admin.describe_transactions(wanted[start : start + _AT_ONCE]).items():
            if isinstance(answer, TransactionDescription):
                described[name] = answer
            elif answer.code != TRANSACTIONAL_ID_NOT_FOUND:
                faults[name] = answer
        done = min(start + _AT_ONCE, len(wanted))
        app.on_event(Event("describing transactional ids", done, len(wanted), "ids"))
    return described, faults


def _chosen(application: ApplicationIds, *, everything: bool) -> Sequence[TransactionListing]:
    if everything:
        return application.ids
    open_ids = application.open()
    idle = [each for each in application.ids if each.state not in OPEN_STATES]
    return [*open_ids, *sample(idle, SAMPLE)]
