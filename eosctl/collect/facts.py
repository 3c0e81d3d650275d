"""What each source of the collector finds: frozen values, in absolute times, so that ages are right whenever one asks.

Pure. A value that could not be known is None or absent, never a zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from eosctl.collect.codes import TOO_LARGE
from eosctl.core.findings import Finding, is_unseen
from eosctl.core.ids import Owner, TransactionalId
from eosctl.txn.codes import NOT_CHECKED


class KafkaFacts(Struct, frozen=True):
    """That the cluster answers; `silent` are brokers that it lists and that do not answer."""

    cluster_id: str
    silent: tuple[int, ...] = ()


MOST_ABORTING = 1_000
"""The aborts of so many connectors are counted by themselves, those of all others together."""


class OwnedTransaction(Struct, frozen=True):
    """A transaction that its coordinator has open, or whose markers are not all written.

    `prefix` is what its id has in common with others of the same application; None for the ids of the group itself.
    Empty stands for all ids that have none, or one too many.
    """

    transactional_id: TransactionalId
    owner: Owner
    state: str
    started_ms: int
    timeout_ms: int
    producer_id: int
    topics: tuple[str, ...] = ()
    prefix: str | None = None

    def open_s(self, now_ms: int) -> float:
        """How long it has been open."""
        return max(0, now_ms - self.started_ms) / 1000


class TransactionFacts(Struct, frozen=True):
    """All open transactions, oldest first; `unasked` counts the coordinators and transactions that are missing.

    `aborted` counts the transactions of each owner that were seen in state CompleteAbort since the collector started:
    connector -> count, "" for everybody else and for those that are more than MOST_ABORTING. A transaction whose id
    began the next one between two looks is not seen.
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
    """A worker of the group: `mode` as `eosctl workers list` has it, `up` whether it answers its REST interface.

    Not `is_member` is what stands behind a given URL that no member of the group advertises.
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
        """How many tasks are RUNNING."""
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
    """How far the last stable offset of a topic is from its end, over all partitions.

    `kind` is config, offsets or output. `stuck_since_ms`: since when the LSO of a partition has stood still behind its
    end, as far as the collector saw it; None where each LSO moves, or is the end.
    """

    topic: str
    kind: str
    behind: int
    partitions_behind: int
    stuck_since_ms: int | None = None
    unasked: int = 0


class LsoFacts(Struct, frozen=True):
    """The topics that were looked at; `unseen` others are there and could not be."""

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
    """What doctor found: the findings that count, each for itself, worst first, and the checks that could not run:
    check -> code; those that are to be ignored are left out of both.

    `sentence` says what the group is; empty where it could not be looked at. `by_check` has what each check found, or
    had found before it could not run.
    """

    findings: tuple[Finding, ...]
    not_checked: Mapping[str, str] = {}
    sentence: str = ""
    by_check: Mapping[str, tuple[Finding, ...]] = {}

    def doubts(self) -> list[str]:
        """The checks that could not run and ought to."""
        return doubtful(self.not_checked)


def unproven(findings: Iterable[Finding]) -> list[Finding]:
    """Return what could not be seen: it allows no calm. That a check could not run is counted by the checks."""
    return [each for each in findings if is_unseen(each) and each.code != NOT_CHECKED]


def doubtful(not_checked: Mapping[str, str]) -> list[str]:
    """Of checks that could not run (check -> code) those that ought to. What is too large to be read again and again is
    known to be left out, and told by a line and a metric: nobody could mend it.
    """
    return [check for check, code in not_checked.items() if code != TOO_LARGE]


def unseen_parts(facts: object) -> int | None:
    """Of how many parts nothing is known, though the look as a whole succeeded; None where it has no parts."""
    match facts:
        case KafkaFacts():
            return len(facts.silent)
        case TransactionFacts() | HangingFacts():
            return facts.unasked
        case LsoFacts():
            return facts.unseen + sum(each.unasked for each in facts.topics)
        case GroupFacts():
            return len(facts.unseen)
        case DoctorFacts():
            return len(facts.doubts()) + len(unproven(facts.findings))
    return None
