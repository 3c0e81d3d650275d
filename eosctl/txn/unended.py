"""Decides which transactions their coordinators ought to have ended and have not, and why. Pure.

No hanging transaction of KIP-664: the coordinator knows it. It has decided the end and does not bring it to a close
(PrepareCommit and PrepareAbort last for milliseconds), or it has not aborted it at its timeout. Meanwhile each
InitProducerId of the id is answered CONCURRENT_TRANSACTIONS, that of a fence, too.

What keeps a coordinator from it (`TransactionMarkerChannelManager`, `TransactionMarkerRequestCompletionHandler`):

* It waits for a partition without a leader to get one. From 4.3 on it does not (`KRaftMetadataCache` of 4.2.0 gives
  `Node.noNode` there, that of 4.3.1 and 4.4.0 nothing): it leaves the marker out, and the transaction hangs later.
* A partition with too few replicas in sync refuses the marker, and that of `__transaction_state` the end itself; both
  are tried again for ever.
* Whoever answers INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED is not asked again until another coordinator
  reads the log. Why one did can't be seen from outside. It is not KAFKA-19999, which is in no release: brokers of 4.0.0
  to 4.1.2 take a marker of the same epoch again, and 4.2.0, the first to refuse it (KAFKA-19446), knows a repeated one
  (`ProducerAppendInfo.checkProducerEpoch` of each).
* A transaction at the highest epoch stays Ongoing on brokers of 4.0 to 4.2 (KAFKA-20090).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum, unique

from msgspec import Struct

from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.core.known_bugs import KNOWN_BUGS, KnownBug
from eosctl.core.transaction_log import TOPIC, LoggedTransaction
from eosctl.core.transactions import KafkaFault, TransactionDescription, TransactionState
from eosctl.core.versions import Version
from eosctl.foreign import arguments
from eosctl.txn import codes
from eosctl.txn.rules import EPOCH_PER_TRANSACTION, PREPARED

LASTING_MS = 60_000
"""An end that was decided longer ago is not under way any more."""
LATE_MS = 120_000
"""A coordinator looks for timed out transactions every 10 s, and clocks differ."""
HIGHEST_EPOCH = 32_766
"""Short.MAX_VALUE - 1: the next InitProducerId gives the id a new producer id, at epoch 0."""
NEVER_TIMES_OUT_MS = 2**31 - 1
"""The timeout of two-phase commits (KIP-939)."""
(_STUCK_AT_HIGHEST_EPOCH,) = (bug for bug in KNOWN_BUGS if bug.number == "KAFKA-20090")
WAITS_FOR_NO_LEADER: Version = (4, 3)
"""The first release whose coordinators do not wait for a leader."""
_MOST_NAMED = 3


@unique
class Obstacle(StrEnum):
    """The most probable cause for which a coordinator does not end a transaction."""

    NO_LEADER = "partition_without_leader"
    BELOW_MIN_ISR = "below_min_isr"
    END_NOT_WRITTEN = "transaction_log_below_min_isr"
    HIGHEST_EPOCH = "KAFKA-20090"
    UNKNOWN = "unknown"


class EndEvidence(Struct, frozen=True):
    """The partitions of a transaction, that of its id's log, and the version of its coordinator, as far as seen.

    `open_at` are partitions where the transaction is open still, `ended_at` those where it is not; `unread` has why
    others are in neither. `release` and `transaction_version` are None where they are not known.
    """

    headless: tuple[str, ...] = ()
    below_min_isr: tuple[str, ...] = ()
    log_below_min_isr: str | None = None
    open_at: tuple[str, ...] = ()
    ended_at: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    release: Version | None = None
    transaction_version: int | None = None
    replicas: tuple[int, ...] = ()
    log_partition: int | None = None

    def has(self, bug: KnownBug) -> bool:
        """Check whether the coordinator is known to have a bug of those with an epoch for each transaction."""
        known = self.release is not None and bug.has(self.release)
        return known and self.transaction_version == EPOCH_PER_TRANSACTION

    def coordinator_text(self) -> str:
        """Describe the coordinator's version, as far as it is known."""
        if self.release is None:
            return "of a version that is not known"
        level = "" if self.transaction_version is None else f", transaction.version {self.transaction_version}"
        return f"of Kafka {self.release[0]}.{self.release[1]}{level}"


class UnendedTransaction(Struct, frozen=True):
    """A transaction that ought to have ended; it was the same at two looks.

    `since_ms` is when its end was decided, by the coordinators' log, or when it ought to have been aborted; None where
    that is not known, for the reason `unread`.
    """

    state: TransactionDescription
    since_ms: int | None
    unread: str = ""
    around: EndEvidence = EndEvidence()

    @property
    def is_certain(self) -> bool:
        """Whether it is known since when."""
        return self.since_ms is not None

    def obstacle(self) -> Obstacle:
        """Return what most probably keeps the coordinator from ending it."""
        around, is_prepared = self.around, self.state.state in PREPARED
        if is_prepared and around.headless and (around.release or (0, 0)) < WAITS_FOR_NO_LEADER:
            return Obstacle.NO_LEADER
        if around.log_below_min_isr is not None:
            return Obstacle.END_NOT_WRITTEN
        if is_prepared and around.below_min_isr:
            return Obstacle.BELOW_MIN_ISR
        at_highest = self.state.producer_epoch >= HIGHEST_EPOCH
        if not is_prepared and at_highest and around.has(_STUCK_AT_HIGHEST_EPOCH):
            return Obstacle.HIGHEST_EPOCH
        return Obstacle.UNKNOWN


def unended_finding(each: UnendedTransaction, *, now_ms: int) -> Finding:
    """Make the finding: what was seen, the most probable cause with its evidence, and the next step."""
    state, around = each.state, each.around
    name, obstacle = state.transactional_id, each.obstacle()
    seen, for_ms = _seen(each, now_ms)
    why, fix = _cause(each, obstacle)
    return Finding(
        codes.TRANSACTION_NOT_ENDED, ERROR if each.is_certain else WARNING, name,
        f"{name} (producer {state.producer_id}, epoch {state.producer_epoch}) {seen}: {why}",
        fix,
        {
            "transactional_id": name,
            "state": state.state.value,
            "producer_id": state.producer_id,
            "producer_epoch": state.producer_epoch,
            "since_ms": each.since_ms,
            "not_ended_for_ms": for_ms,
            "cause": obstacle.value,
            "coordinator": state.coordinator.node_id,
            "coordinator_release": None if around.release is None else ".".join(map(str, around.release)),
            "transaction_version": around.transaction_version,
            "partitions": [f"{topic}-{partition}" for topic, partition in state.partitions],
            "without_leader": list(around.headless),
            "below_min_isr": list(around.below_min_isr),
            "open_at": list(around.open_at),
        },
        certain=each.is_certain,
    )  # fmt: skip


def _seen(each: UnendedTransaction, now_ms: int) -> tuple[str, int | None]:
    state = each.state
    if each.since_ms is None:
        began = "" if state.started_ms is None else f", of a transaction that began {_ago(state.started_ms, now_ms)}"
        return f"is in {state.state.value}{began}; since when is not known ({each.unread})", None
    for_ms = max(0, now_ms - each.since_ms)
    if state.state in PREPARED:
        return f"has been in {state.state.value} for {for_ms // 1000:,} s, and its end is not written", for_ms
    return f"is {state.state.value}, and its coordinator ought to have aborted it {for_ms // 1000:,} s ago", for_ms


def _ago(at_ms: int, now_ms: int) -> str:
    return f"{max(0, now_ms - at_ms) // 1000:,} s ago"


def _cause(each: UnendedTransaction, obstacle: Obstacle) -> tuple[str, str]:
    around, node = each.around, each.state.coordinator.node_id
    if obstacle is Obstacle.NO_LEADER:
        held = f" of brokers {', '.join(map(str, around.replicas))}" if around.replicas else ""
        return (
            f"{_some(around.headless)} has no leader, so that no marker can be written there",
            f"Bring a replica{held} back; see first in the end of its log why it ended: a full disk, say, ends it "
            "again. The coordinator goes on by itself then; no fence and no restart of the producer ends it.",
        )
    if obstacle is Obstacle.BELOW_MIN_ISR:
        return (
            f"{_some(around.below_min_isr)} refuses the marker: fewer replicas are in sync than min.insync.replicas",
            "Bring the replicas back in sync, or lower min.insync.replicas; the coordinator goes on by itself then.",
        )
    if obstacle is Obstacle.END_NOT_WRITTEN:
        return (
            f"{around.log_below_min_isr}, in which its coordinator (broker {node}) writes it, has fewer replicas in "
            "sync than min.insync.replicas",
            "Bring the replicas back in sync; the coordinator goes on by itself then.",
        )
    if obstacle is Obstacle.HIGHEST_EPOCH:
        return (
            f"it is at the highest epoch, and its coordinator is {around.coordinator_text()}: most probably "
            "KAFKA-20090, by which it can't be aborted there",
            "Upgrade the brokers to Kafka 4.3.1 or newer. Until then only another transactional id goes on.",
        )
    return _unknown_cause(each)


def _unknown_cause(each: UnendedTransaction) -> tuple[str, str]:
    around, node = each.around, each.state.coordinator.node_id
    facts = [f"its coordinator is broker {node} ({around.coordinator_text()})"]
    if around.headless:
        facts.append(f"{_some(around.headless)} has no leader")
    if around.open_at:
        facts.append(f"it is open at {_some(around.open_at)}")
    if around.ended_at:
        facts.append(f"it is not open at {_some(around.ended_at)}")
    if around.unread:
        facts.append(f"not seen: {'; '.join(around.unread[:_MOST_NAMED])}")
    name = each.state.transactional_id
    return (
        f"its cause can't be told from here; {', '.join(facts)}",
        f"See the log of broker {node} for {name} (\"transaction marker\" says which partition refuses it, and why), "
        "and its connections to the leaders of the partitions. Where it says that it cancelled them (after `eosctl txn "
        f"abort` of a part, say), a restart of broker {node} has the next coordinator send all markers again. "
        f"`eosctl txn log {arguments(name)}` has what it wrote.",
    )  # fmt: skip


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


NEARLY_SPENT_EPOCH = 32_700


def means_much(epoch: int, releases: Iterable[Version | None], level: int | None) -> bool:
    """Check whether an epoch near its end is worth a word; with transaction.version 2 each transaction raises it.

    Nothing is said where the level is not known.
    """
    if epoch < NEARLY_SPENT_EPOCH or level is None:
        return False
    may_stick = any(each is not None and _STUCK_AT_HIGHEST_EPOCH.has(each) for each in releases)
    return level < EPOCH_PER_TRANSACTION or may_stick


def is_suspect(state: TransactionDescription, now_ms: int) -> bool:
    """Check whether its end is decided, or due since long; a decided one may be over in a moment."""
    if state.state in PREPARED:
        return True
    if state.state is not TransactionState.ONGOING or state.started_ms is None:
        return False
    never = state.transaction_timeout_ms >= NEVER_TIMES_OUT_MS
    return not never and now_ms - state.started_ms > state.transaction_timeout_ms + LATE_MS


def is_same(before: TransactionDescription, now: TransactionDescription | KafkaFault | None) -> bool:
    """Check whether a later answer is about the same transaction, in the same state."""
    return isinstance(now, TransactionDescription) and (
        (before.state, before.producer_id, before.producer_epoch, before.started_ms)
        == (now.state, now.producer_id, now.producer_epoch, now.started_ms)
    )


def dated(state: TransactionDescription, logged: LoggedTransaction | None, unread: str = "") -> UnendedTransaction:
    """Return it with the time since which it ought to have ended; `logged` is the newest record of its id."""
    if state.state not in PREPARED:
        return UnendedTransaction(state, (state.started_ms or 0) + state.transaction_timeout_ms)
    if logged is None:
        return UnendedTransaction(state, None, unread)
    if (logged.state, logged.producer_id) != (state.state, state.producer_id):
        return UnendedTransaction(state, None, f"its newest record in {TOPIC} is {logged.state.value}")
    return UnendedTransaction(state, logged.last_update_ms)
