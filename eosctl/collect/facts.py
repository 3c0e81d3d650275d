"""Facts of the collector's sources: frozen values in absolute times, so that their ages are right at any time.

Pure. A value that could not be known is None or absent, never a zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from eosctl.collect.codes import TOO_LARGE
from eosctl.core.findings import Finding, is_unseen
from eosctl.core.ids import Owner, TransactionalId
from eosctl.core.records import LogDir
from eosctl.txn.codes import NOT_CHECKED


class KafkaFacts(Struct, frozen=True):
    """The cluster that answers; `silent` are listed brokers that do not answer.

    `log_dirs` are those of each other broker that reports them, `disks_unread` counts those that may not be asked.
    """

    cluster_id: str
    silent: tuple[int, ...] = ()
    log_dirs: Mapping[int, Sequence[LogDir]] = {}
    disks_unread: int = 0


MOST_ABORTING = 1_000
"""The number of connectors with aborts counted separately; those of all others are counted together."""


class OwnedTransaction(Struct, frozen=True):
    """A transaction that its coordinator has open, or whose markers are not all written.

    `prefix` is the part that its id shares with others of the same application; None for the ids of the group itself.
    Empty stands for all ids that have none, or one beyond MOST_PREFIXES. `ending_since_ms` is when the collector first
    saw that its end is decided and not written; None while it is not decided.
    """

    transactional_id: TransactionalId
    owner: Owner
    state: str
    started_ms: int
    timeout_ms: int
    producer_id: int
    topics: tuple[str, ...] = ()
    prefix: str | None = None
    ending_since_ms: int | None = None

    def open_s(self, now_ms: int) -> float:
        """Return how long it has been open, in seconds."""
        return max(0, now_ms - self.started_ms) / 1000


class TransactionFacts(Struct, frozen=True):
    """All open transactions, oldest first; `unasked` counts the coordinators and transactions that are missing.

    `aborted` counts the transactions of each owner that were seen in state CompleteAbort since the collector started:
    connector -> count, "" for all other owners and for those beyond MOST_ABORTING. A transaction whose id began the
    next one between two looks is not seen.
    """

    open: tuple[OwnedTransaction, ...]
    aborted: Mapping[str, int] = {}
    unasked: int = 0


class OrphanTransaction(Struct, frozen=True):
    """An open transaction of a partition that no coordinator accounts for; `since_ms` is its producer's last record."""

    topic: str
    partition: int
    producer_id: int
    since_ms: int
    transactional_id: TransactionalId | None = None


class HangingFacts(Struct, frozen=True):
    """Hanging transactions, oldest first, and doctor's findings about them; `unasked` partitions are not judged."""

    hanging: tuple[OrphanTransaction, ...]
    partitions: int = 0
    unasked: int = 0
    findings: tuple[Finding, ...] = ()


class WorkerFacts(Struct, frozen=True):
    """A worker of the group: `mode` as in `eosctl workers list`, `up` if its REST interface answers.

    Not `is_member`: it answers at a given URL that no member of the group advertises.
    """

    name: str
    mode: str
    leader: bool
    version: str | None
    health: str
    up: bool
    is_member: bool = True


class ConnectorFacts(Struct, frozen=True):
    """A source connector. `tasks` are states by task number.

    `without_transaction`: RUNNING tasks that should be exactly-once and are certain not to be, as no coordinator knows
    their transactional id -> since when the collector sees it. `fencing_due`: tasks wait for a fencing round;
    `fencing_s`: how long a round takes, None where that is not known. `quiet_ms`: task -> for how long it has committed
    nothing.
    """

    name: str
    state: str
    tasks: Mapping[int, str]
    without_transaction: Mapping[int, int] = {}
    fencing_due: bool = False
    fencing_s: float | None = None
    quiet_ms: Mapping[int, int] = {}

    def running(self) -> int:
        """Return how many tasks are RUNNING."""
        return sum(state == "RUNNING" for state in self.tasks.values())


class GroupFacts(Struct, frozen=True):
    """The Connect group: `workers`, and `connectors`, sources only; None where no worker reports them.

    `exactly_once`: whether tasks may run exactly-once (a worker is enabled, or modes are not known).
    `unseen`: what could not be looked at -> why.
    """

    group_id: str
    state: str
    workers: tuple[WorkerFacts, ...]
    connectors: tuple[ConnectorFacts, ...] | None = None
    exactly_once: bool = True
    unseen: Mapping[str, str] = {}


class TopicFacts(Struct, frozen=True):
    """The distance of a topic's last stable offset from its end, over all partitions.

    `kind` is config, offsets or output. `stuck_since_ms` is the time since which a partition's LSO has stood still
    behind its end, as far as the collector saw it; None where each LSO moves, or is the end.
    """

    topic: str
    kind: str
    behind: int
    partitions_behind: int
    stuck_since_ms: int | None = None
    unasked: int = 0


class LsoFacts(Struct, frozen=True):
    """The topics that were looked at; `unseen` counts others that exist and could not be."""

    topics: tuple[TopicFacts, ...]
    unseen: int = 0


class OffsetFacts(Struct, frozen=True):
    """Connector -> when its newest source offset was written; `records` were read since the collector started.

    `restarts` counts how often a topic had to be read from its beginning again: recreated, or truncated.
    """

    newest_ms: Mapping[str, int]
    records: int = 0
    restarts: int = 0


class DoctorFacts(Struct, frozen=True):
    """The results of doctor: the counting findings, not folded, most severe first, and the checks that could not run
    (check -> code). Ignored ones are left out of both.

    `sentence` describes the group; empty where it could not be observed. `by_check` has the findings of each check, or
    its former ones where it could not run.
    """

    findings: tuple[Finding, ...]
    not_checked: Mapping[str, str] = {}
    sentence: str = ""
    by_check: Mapping[str, tuple[Finding, ...]] = {}

    def doubts(self) -> list[str]:
        """Return the checks that could not run and ought to."""
        return doubtful(self.not_checked)


def unproven(findings: Iterable[Finding]) -> list[Finding]:
    """Return what could not be seen: it allows no calm. That a check could not run is counted by the checks."""
    return [each for each in findings if is_unseen(each) and each.code != NOT_CHECKED]


def doubtful(not_checked: Mapping[str, str]) -> list[str]:
    """Return which of the checks that could not run (check -> code) ought to. Topics too large to be read repeatedly
    are left out; a line and a metric report them, and nothing can be done about them.
    """
    return [check for check, code in not_checked.items() if code != TOO_LARGE]


def unseen_parts(facts: object) -> int | None:
    """Count the unknown parts of a look that succeeded as a whole; None where it has no parts."""
    match facts:
        case KafkaFacts():
            return len(facts.silent) + facts.disks_unread
        case TransactionFacts() | HangingFacts():
            return facts.unasked
        case LsoFacts():
            return facts.unseen + sum(each.unasked for each in facts.topics)
        case GroupFacts():
            return len(facts.unseen)
        case DoctorFacts():
            return len(facts.doubts()) + len(unproven(facts.findings))
    return None
