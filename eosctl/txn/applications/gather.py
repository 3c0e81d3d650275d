"""Gathers the input of `txn applications`, and derives facts about each application.

The input is ids, groups, topics, settings, and the descriptions of some ids. The facts follow from an application's ids
and from the coordinators' descriptions of some of them; deriving them is pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.codes import Code
from eosctl.core.ids import TransactionalId
from eosctl.core.java.properties import whole_number
from eosctl.core.transactions import (
    OPEN_STATES,
    PROTOCOL_TYPE,
    KafkaFault,
    TransactionDescription,
    TransactionListing,
    TransactionListings,
)
from eosctl.core.versions import Version, release_of, transaction_version
from eosctl.deadline import Event
from eosctl.errors import EosctlError
from eosctl.group.members import connect_group
from eosctl.ports import TransactionAdmin
from eosctl.report import Problem
from eosctl.txn import codes
from eosctl.txn.applications.rules import ApplicationIds, ClusterFacts, sample
from eosctl.txn.unended import means_much

Described = Mapping[TransactionalId, TransactionDescription]
BYTES_PER_ID = 300
"""A coordinator's memory for an idle id besides its characters: TransactionMetadata, its lock, its set of partitions
and its place in the map (a broker of Kafka 4.3.1 with 20,000 ids more, by a histogram of its heap)."""
_EXPIRES_SOON = 0.25
"""The remaining share of the time for which brokers keep an idle id, below which that is reported."""
_NEVER_MS = 2**31 - 1
_GREW_BY, _GREW_PERCENT = 50, 10


class BrokerLimits(Struct, frozen=True):
    """The strictest value of each limit at any broker, as any may coordinate an id; None if unreadable.

    `releases` are those of the brokers; None is one that is not known.
    """

    max_timeout_ms: int | None = None
    expiration_ms: int | None = None
    transaction_version: int | None = None
    releases: frozenset[Version | None] = frozenset()


class ApplicationFacts(Struct, frozen=True):
    """An application, with facts from its described ids.

    `last_started_ms` is the start of the newest transaction of any of them; `expires_ms` follows from it: brokers keep
    unused ids for `transactional.id.expiration.ms` after their last use, which may have been later. `shares` are the
    names of applications with the same prefix, `grown_by` counts ids since the last look.
    """

    application: ApplicationIds
    described: int
    open: int
    oldest_id: TransactionalId | None
    oldest_started_ms: int | None
    oldest_age_ms: int | None
    timeout_ms_min: int | None
    timeout_ms_max: int | None
    epoch_max: int | None
    last_started_ms: int | None
    expires_ms: int | None
    expires_in_ms: int | None
    grown_by: int | None
    memory_bytes: int
    shares: tuple[str, ...]


def facts_of(
    application: ApplicationIds,
    described: Described,
    limits: BrokerLimits,
    before: Mapping[str, int] | None,
    shares: Sequence[str],
    *,
    now_ms: int,
) -> ApplicationFacts:
    """Derive the facts; `before` is the number of ids per application at the last look, None if there was none."""
    ids = [each.transactional_id for each in application.ids]
    found = [state for name in ids if (state := described.get(name)) is not None]
    open_ones = [each for each in found if each.state in OPEN_STATES and each.started_ms is not None]
    oldest = min(open_ones, key=lambda each: (each.started_ms or 0, each.transactional_id), default=None)
    timeouts = [each.transaction_timeout_ms for each in found]
    last_ms = max((each.last_started_ms for each in found if each.last_started_ms is not None), default=None)
    idle = not application.open() and last_ms is not None and limits.expiration_ms is not None
    expires_ms = (last_ms or 0) + (limits.expiration_ms or 0) if idle else None
    return ApplicationFacts(
        application=application,
        described=len(found),
        open=len(application.open()),
        oldest_id=None if oldest is None else oldest.transactional_id,
        oldest_started_ms=None if oldest is None else oldest.started_ms,
        oldest_age_ms=None if oldest is None else max(0, now_ms - (oldest.started_ms or 0)),
        timeout_ms_min=min(timeouts, default=None),
        timeout_ms_max=max(timeouts, default=None),
        epoch_max=max((each.producer_epoch for each in found), default=None),
        last_started_ms=last_ms,
        expires_ms=expires_ms,
        expires_in_ms=None if expires_ms is None else expires_ms - now_ms,
        grown_by=None if before is None else len(ids) - before.get(application.key(), 0),
        memory_bytes=sum(map(len, ids)) + BYTES_PER_ID * len(ids),
        shares=tuple(sorted(set(shares))),
    )


def remarks_of(facts: ApplicationFacts, limits: BrokerLimits) -> list[Code]:
    """Return the remarks that apply, in the order of `codes.REMARKS`."""
    return list(_remarks(facts, limits))


def _remarks(facts: ApplicationFacts, limits: BrokerLimits) -> Iterator[Code]:
    if facts.shares:
        yield codes.SHARED_PREFIX
    if (facts.timeout_ms_max or 0) > (limits.max_timeout_ms or _NEVER_MS):
        yield codes.TIMEOUT_ABOVE_MAXIMUM
    expiration_ms = limits.expiration_ms or 0
    if facts.expires_in_ms is not None and facts.expires_in_ms < expiration_ms * _EXPIRES_SOON:
        yield codes.IDS_EXPIRE
    grown, ids = facts.grown_by or 0, len(facts.application.ids)
    if ids > grown >= _GREW_BY and 100 * grown >= _GREW_PERCENT * ids:
        yield codes.IDS_GROW
    if means_much(facts.epoch_max or 0, limits.releases, limits.transaction_version):
        yield codes.EPOCHS_NEARLY_SPENT
    if facts.application.kind == "ambiguous":
        yield codes.AMBIGUOUS_IDS


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
    problems: tuple[Problem, ...] = ()


def look_at_cluster(app: App, admin: TransactionAdmin) -> ClusterIds:
    """List all ids, the groups and the topics; warn of what may not be read, which then proves nothing."""
    cluster_id = admin.cluster_id()
    listings = admin.list_transactions()
    problems: list[Problem] = []
    known = _known(app, admin, problems)
    limits = _with_versions(admin, broker_limits(app, problems))
    return ClusterIds(cluster_id, listings, known, limits, tuple(problems))


def _with_versions(admin: TransactionAdmin, limits: BrokerLimits) -> BrokerLimits:
    try:
        features = admin.features().known
    except EosctlError:
        return limits
    level = transaction_version(features) if features else None
    return replace(limits, transaction_version=level, releases=frozenset(map(release_of, features.values())))


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
            maximum_ms, expiration_ms = (_smallest(store.broker_settings(each)) for each in (MAX_TIMEOUT, EXPIRATION))
    except EosctlError as error:
        problems.append(_unread(f"{MAX_TIMEOUT} and {EXPIRATION}", error))
        return BrokerLimits()
    return BrokerLimits(maximum_ms, expiration_ms)


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
            elif not answer.is_unknown_id:
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
