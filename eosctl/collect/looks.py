"""The collector's sources: each with its look at the cluster, its interval and its longest time. Reads only.

The looks are: doctor's findings without validations, as those let connectors log in to their databases; the Connect
group, with its workers and their modes, its source connectors, and pending fencing; hanging transactions, as `txn
hanging` finds them; the Kafka cluster, whether it answers and which of its brokers do not; and open transactions, as
coordinators list them, with the aborted ones since the collector began.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from eosctl.app import App
from eosctl.checks.group.members import uses_exactly_once
from eosctl.checks.group.rules import hanging_findings
from eosctl.checks.group.state import group_state
from eosctl.checks.ignored import IgnoredFinding
from eosctl.checks.plan import diagnose
from eosctl.checks.visit import Visit
from eosctl.collect.facts import (
    MOST_ABORTING,
    ConnectorFacts,
    DoctorFacts,
    GroupFacts,
    HangingFacts,
    KafkaFacts,
    OrphanTransaction,
    OwnedTransaction,
    TransactionFacts,
    WorkerFacts,
    doubtful,
)
from eosctl.collect.overview import FactSource, Overview
from eosctl.collect.topics import OffsetsLook, TopicsLook
from eosctl.core.findings import ERROR, INFO, Finding, worst_first
from eosctl.core.ids import Owner, TransactionalId, owner_of, task_transactional_id
from eosctl.core.transactions import (
    OPEN_STATES,
    OPEN_STATES_BEFORE_4,
    KafkaFault,
    TransactionDescription,
    TransactionListings,
    TransactionState,
)
from eosctl.core.workers.modes import Mode
from eosctl.errors import EosctlError, UnauthorizedError, UnsupportedError
from eosctl.group.gather import observe_workers
from eosctl.group.observation.rules import VALIDATION, Observation, ObservedConnector
from eosctl.group.observed import WorkerObservation
from eosctl.observation.connectors import codes
from eosctl.observation.connectors.exactly_once import task_audit
from eosctl.observation.connectors.rules import fencing_round
from eosctl.observation.gather import observe_connectors
from eosctl.ports import TransactionAdmin
from eosctl.report import plain
from eosctl.txn.applications.rules import ClusterFacts, readings_of
from eosctl.txn.owners import NOT_CHECKED
from eosctl.txn.partitions import find_hanging_transactions
from eosctl.txn.rows import HangingRow, HangingSummary
from eosctl.txn.rules import PREPARED


class DoctorLook(Struct, frozen=True):
    """Runs every check; findings that `ignore` names are left out."""

    ignore: tuple[IgnoredFinding, ...] = ()

    def __call__(self, app: App, overview: Overview) -> DoctorFacts:
        """Run doctor's checks. Raises the first reason if none could run; a check that could not keeps its former
        findings.

        Not where that is ignored or lasts: nothing would show that the finding is an old one, and it would never go.
        """
        mode = app.target.expect.get("mode")
        diagnosis = diagnose(app, validate=False, expected=Mode(mode) if mode else None, ignore=self.ignore)
        results = diagnosis.results
        reason = results.nothing_ran()
        if reason is not None:
            raise reason
        before = overview.facts(DoctorFacts)
        by_check = {
            check: tuple(each for each in its if not _is_asked_for(each)) for check, its in diagnosis.findings.items()
        }
        failed = {check: str(error.code) for check, error in results.missed().items()}
        by_check |= {check: before.by_check.get(check, ()) for check in doubtful(failed)} if before else {}
        found = worst_first(each for its in by_check.values() for each in its)
        return DoctorFacts(tuple(found), failed, _sentence(diagnosis.visit), by_check)


def _is_asked_for(finding: Finding) -> bool:
    """Check whether the finding only reports that nothing was validated."""
    return finding.code == codes.SUPPORT_UNKNOWN and finding.severity == INFO


def _sentence(visit: Visit) -> str:
    """Describe the group; empty where it could not be observed, which the checks report."""
    try:
        return group_state(visit.observation()).sentence()
    except EosctlError:
        return ""


@dataclass(slots=True)
class ConnectGroupLook:
    """Looks at members, connectors and their transactional ids; remembers since when a task has none.

    `without_since` is by connector and task, with only those that doctor is certain about.
    """

    without_since: dict[tuple[str, int], int] = field(default_factory=dict)

    def __call__(self, app: App, _overview: Overview) -> GroupFacts:
        """Observe the group. Raises what its coordinator raises; a worker that does not answer is a fact."""
        group = observe_workers(app, gone_ok=True)
        seen = observe_connectors(app, group, validate=False)
        now_ms = app.clock.now_ms()
        without = [(each.name, task) for each in seen.sources() for task in _without_transaction(each, seen)]
        self.without_since = {each: self.without_since.get(each, now_ms) for each in without}
        connectors = None
        if seen.connectors is not None:
            connectors = tuple(_connector(each, seen, self._without_since(each.name)) for each in seen.sources())
        return GroupFacts(
            group_id=group.group_id or "",
            state=group.state or "unknown",
            workers=tuple(_worker(each, is_known=group.state is not None) for each in group.members),
            connectors=connectors,
            exactly_once=uses_exactly_once(seen),
            unseen=_unseen(seen),
        )

    def _without_since(self, connector: str) -> dict[int, int]:
        return {task: since_ms for (name, task), since_ms in self.without_since.items() if name == connector}


def _without_transaction(connector: ObservedConnector, seen: Observation) -> Iterable[int]:
    """Yield the tasks that are not exactly-once and should be, as doctor judges; merely idle ones are left out."""
    for found in task_audit(connector, seen):
        if found.code == codes.TASK_NOT_EXACTLY_ONCE and found.severity == ERROR:
            yield int(found.subject.rpartition("/")[2])


def _unseen(seen: Observation) -> Mapping[str, str]:
    """Return what was not seen, except validation, and silent workers where another one reported the connectors."""
    known = {VALIDATION} if seen.connectors is None else {VALIDATION, "connectors"}
    return {what: why for what, why in seen.unseen.items() if what not in known}


def _worker(member: WorkerObservation, *, is_known: bool) -> WorkerFacts:
    """Make the facts of a worker. `is_known`: the coordinator reported the group's members."""
    is_up = member.failure is None and member.health != "unreachable"
    is_member = member.member_id is not None or not is_known
    return WorkerFacts(member.name, member.mode.value, member.leader, member.version, member.health, is_up, is_member)


def _connector(each: ObservedConnector, seen: Observation, lacking: Mapping[int, int]) -> ConnectorFacts:
    recorded = seen.config_state.connectors.get(each.name) if seen.config_state is not None else None
    ids = {task: task_transactional_id(seen.group_id or "", each.name, task) for task in each.tasks()}
    return ConnectorFacts(
        name=each.name,
        state=each.states.get("connector", "unknown"),
        tasks=each.tasks(),
        without_transaction=lacking,
        fencing_due=recorded is not None and recorded.pending_fencing and seen.crowding is not None,
        fencing_s=None if seen.crowding is None else fencing_round(each, seen)[2],
        quiet_ms={task: quiet.quiet_ms for task, one in ids.items() if (quiet := seen.quiet.get(one)) is not None},
    )


def look_for_hanging(app: App, _overview: Overview) -> HangingFacts:
    """Find hanging transactions on all visible partitions; raises UnauthorizedError where none is visible."""
    report = find_hanging_transactions(app, None)
    partitions = report.summary_of(HangingSummary).partitions
    if not partitions:
        raise UnauthorizedError("no topic can be seen, so no transaction either", hint="Grant DESCRIBE on the topics.")
    rows = report.rows_of(HangingRow)
    certain = [row for row in rows if row.reason != NOT_CHECKED]
    certain.sort(key=lambda row: row.last_timestamp_ms or 0)
    return HangingFacts(
        tuple(map(_hanging, certain)),
        partitions,
        unasked=len(rows) - len(certain),
        findings=tuple(hanging_findings(map(plain, certain))),
    )


def _hanging(row: HangingRow) -> OrphanTransaction:
    known_id = None if row.transactional_id is None else TransactionalId(row.transactional_id)
    return OrphanTransaction(row.topic, row.partition, row.producer_id or -1, row.last_timestamp_ms or 0, known_id)


BROKER_PATIENCE_S = 5.0


def look_at_kafka(app: App, _overview: Overview) -> KafkaFacts:
    """Find brokers that do not answer, and the disks of the others; raises the connection's error where none answers.

    Brokers that are too old to report their disks are no part that is not seen: no right and no wait would show them.
    """
    with app.transactions() as admin:
        cluster_id = admin.cluster_id()
        silent = admin.silent_brokers(patience_s=BROKER_PATIENCE_S)
        log_dirs = admin.log_dirs(patience_s=BROKER_PATIENCE_S, besides=silent)
    known = {broker: each for broker, each in log_dirs.items() if not isinstance(each, EosctlError)}
    unread = [each for each in log_dirs.values() if isinstance(each, EosctlError)]
    return KafkaFacts(
        cluster_id,
        tuple(sorted(silent)),
        known,
        disks_unread=sum(not isinstance(each, UnsupportedError) for each in unread),
    )


MOST_DESCRIBED = 5_000
"""At most so many aborted ids are described: brokers keep unused ids for a week."""
MOST_REMEMBERED = 20_000
MOST_PREFIXES = 100
"""The number of distinct prefixes of others' ids, the first ones: metrics have a series for each, and keep it."""
_LATE_MS = 120_000
"""The delay of an abort after its timeout, and the difference of clocks, at most."""

_WORDS = re.compile(r"(?:[^-_.:/0-9]+[-_.:/]+)+")
_Aborted = tuple[int, int | None]
"""The producer id and the start of an aborted transaction."""
_Ending = tuple[int, int | None, int]
"""The same of a transaction whose end is decided, and when that was first seen."""


@dataclass(slots=True)
class TransactionLook:
    """Lists open and aborted transactions; remembers which abort of each id it has seen, and which ends, since when.

    The ids of a coordinator that can't be asked are missing for a while: when they come back, they are no new aborts.
    """

    counts: dict[str, int] = field(default_factory=dict)
    seen: dict[TransactionalId, _Aborted] = field(default_factory=dict)
    prefixes: dict[str, None] = field(default_factory=dict)
    ending: dict[TransactionalId, _Ending] = field(default_factory=dict)
    looked_ms: int | None = None

    def __call__(self, app: App, overview: Overview) -> TransactionFacts:
        """Find open transactions. Raises the connection's error; coordinators that can't be asked are counted."""
        with app.transactions() as admin:
            listings = _listed(admin)
            found = _described(admin, listings, app.target.group_id)
        described = [each for each in found.values() if isinstance(each, TransactionDescription)]
        unread = _unread(listings, found)
        group_id, group = app.target.group_id, overview.newest(GroupFacts)
        names = frozenset(each.name for each in (group.connectors or ())) if group else frozenset()
        now_ms = app.clock.now_ms()
        self._count(described, group_id, now_ms)
        self._see_ends(described, now_ms)
        now_open = [
            self._open_transaction(each, owner_of(each.transactional_id, group_id, names))
            for each in described
            if each.state is not TransactionState.COMPLETE_ABORT and each.started_ms is not None
        ]
        now_open.sort(key=lambda each: each.started_ms)
        return TransactionFacts(tuple(now_open), dict(self.counts), len(listings.missing) + unread)

    def _see_ends(self, described: Iterable[TransactionDescription], now_ms: int) -> None:
        """Keep since when each decided end is not written; one that is over, or is another, begins anew."""
        before, self.ending = self.ending, {}
        for each in described:
            if each.state in PREPARED:
                which = int(each.producer_id), each.started_ms
                seen = before.get(each.transactional_id)
                since_ms = seen[2] if seen is not None and seen[:2] == which else now_ms
                self.ending[each.transactional_id] = (*which, since_ms)

    def _open_transaction(self, described: TransactionDescription, owner: Owner) -> OwnedTransaction:
        return OwnedTransaction(
            described.transactional_id,
            owner,
            described.state.value,
            described.started_ms or 0,
            described.transaction_timeout_ms,
            int(described.producer_id),
            tuple(sorted({topic for topic, _partition in described.partitions})),
            None if owner.kind in ("task", "leader") else self._prefix(described.transactional_id),
            self.ending[described.transactional_id][2] if described.transactional_id in self.ending else None,
        )

    def _prefix(self, transactional_id: TransactionalId) -> str:
        """Return its prefix if that is one of the first seen, else none: applications may come and go without end."""
        prefix = prefix_of(transactional_id)
        if len(self.prefixes) < MOST_PREFIXES:
            self.prefixes[prefix] = None
        return prefix if prefix in self.prefixes else ""

    def _count(self, described: Iterable[TransactionDescription], group_id: str | None, now_ms: int) -> None:
        """Count aborts that no look has seen yet, except those of the first look, which precede the collector."""
        for each in described:
            if each.state is not TransactionState.COMPLETE_ABORT:
                continue
            which = int(each.producer_id), each.last_started_ms
            if self.seen.pop(each.transactional_id, None) != which and self._is_new(each):
                connector = owner_of(each.transactional_id, group_id).connector or ""
                if connector not in self.counts and len(self.counts) >= MOST_ABORTING:
                    connector = ""
                self.counts[connector] = self.counts.get(connector, 0) + 1
            self.seen[each.transactional_id] = which
        for oldest in list(self.seen)[: max(0, len(self.seen) - MOST_REMEMBERED)]:
            del self.seen[oldest]
        self.looked_ms = now_ms

    def _is_new(self, aborted: TransactionDescription) -> bool:
        """Check whether it can have ended after the last look: no transaction outlives its timeout."""
        if self.looked_ms is None:
            return False
        started_ms = aborted.last_started_ms
        return started_ms is None or started_ms + aborted.transaction_timeout_ms + _LATE_MS > self.looked_ms


def _listed(admin: TransactionAdmin) -> TransactionListings:
    """List open and aborted transactions; brokers before 4.0 refuse to filter by a state that they do not know."""
    aborted = TransactionState.COMPLETE_ABORT
    try:
        return admin.list_transactions(states=[*OPEN_STATES, aborted])
    except UnsupportedError:
        return admin.list_transactions(states=[*OPEN_STATES_BEFORE_4, aborted])


def _described(
    admin: TransactionAdmin, listings: TransactionListings, group_id: str | None
) -> Mapping[TransactionalId, TransactionDescription | KafkaFault]:
    """Describe the open transactions and the first aborted ones, the group's first, always in the same order."""
    aborted = [each.transactional_id for each in listings.found if each.state is TransactionState.COMPLETE_ABORT]
    aborted.sort(key=lambda each: (not each.startswith(f"{group_id}-"), each))
    ids = [each.transactional_id for each in listings.found if each.state is not TransactionState.COMPLETE_ABORT]
    return admin.describe_transactions([*ids, *aborted[:MOST_DESCRIBED]]) if ids or aborted else {}


def _unread(listings: TransactionListings, found: Mapping[TransactionalId, TransactionDescription | KafkaFault]) -> int:
    """Count the open transactions that the coordinator did not describe; an id unknown to it has ended."""
    faults = {
        transactional_id
        for transactional_id, each in found.items()
        if isinstance(each, KafkaFault) and not each.is_unknown_id
    }
    is_open = (each.transactional_id for each in listings.found if each.state is not TransactionState.COMPLETE_ABORT)
    return sum(each in faults for each in is_open)


def prefix_of(transactional_id: TransactionalId) -> str:
    """Return the part that the id shares with others of its application, by its shape; empty where there is none.

    It is the same for one id at all times, whatever other ids exist.
    """
    readings = readings_of(transactional_id, ClusterFacts())
    if readings:
        return readings[0].name
    words = _WORDS.match(transactional_id)
    return words[0] if words is not None else ""


KAFKA = "kafka"
SOURCE_NAMES = (KAFKA, "transactions", "hanging", "group", "topics", "offsets", "doctor")


def sources(*, ignore: Sequence[IgnoredFinding] = ()) -> tuple[FactSource, ...]:
    """Make fresh sources for one collector, as each remembers what it saw. `ignore`: as for `doctor`."""
    return (
        FactSource(KAFKA, look_at_kafka),
        FactSource("transactions", TransactionLook(), after=True),
        FactSource("hanging", look_for_hanging, every=4, deadline_s=60.0),
        FactSource("group", ConnectGroupLook(), every=2, deadline_s=40.0),
        FactSource("topics", TopicsLook(), deadline_s=40.0),
        FactSource("offsets", OffsetsLook(), deadline_s=300.0, after=True),
        FactSource("doctor", DoctorLook(tuple(ignore)), every=20, deadline_s=120.0, last=True, after=True),
    )
