"""Decides which transactional ids to fence, which to leave alone, and what the outcome of each is.

Decisions only: the states come from the coordinators, the running tasks from the Connect group, and both are arguments.
Fencing itself is one InitProducerId per id (`FenceProducersHandler`, Kafka 3.2+), done elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum, unique

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.ids import (
    FLINK_SINK,
    Owner,
    ProducerId,
    TransactionalId,
    WorkerId,
    application_of,
    leader_transactional_id,
    may_be_task,
)
from eosctl.core.transactions import (
    ROUND_TIMEOUTS_MS,
    Coordinator,
    FenceAnswer,
    KafkaFault,
    TransactionDescription,
    TransactionState,
)
from eosctl.errors import InputFileError

MAX_ID_BYTES = 32_767  # Kafka strings have a 16-bit length
# A task's own initTransactions() leaves 60000 behind (or its override), Connect's fencing round 90000: see DESIGN.md.
FENCE_TRANSACTION_TIMEOUT_MS = 30_000
_FENCING_TIMEOUTS_MS = frozenset({FENCE_TRANSACTION_TIMEOUT_MS}) | ROUND_TIMEOUTS_MS
_LEADS = leader_transactional_id("")

Described = Mapping[TransactionalId, TransactionDescription | KafkaFault]


@unique
class FenceOutcome(StrEnum):
    """The planned or actual outcome of one id."""

    WOULD_FENCE = "would_fence"
    SKIPPED_UNKNOWN = "skipped_unknown"
    FENCED = "fenced"
    FAILED = "failed"
    UNCONFIRMED = "unconfirmed"


class LiveTask(Struct, frozen=True):
    """A task that a worker runs now; `group_id` is None for the group that was named."""

    connector: str
    task: int
    worker: WorkerId
    group_id: str | None = None


class FenceItem(Struct, frozen=True):
    """One id of a plan or a result; `confirmed_by` is `answer`, `read_back` or None."""

    transactional_id: TransactionalId
    owner: Owner
    outcome: FenceOutcome
    before: TransactionDescription | None = None
    live: LiveTask | None = None
    coordinator: Coordinator | None = None
    after: tuple[ProducerId, int] | None = None
    fault: KafkaFault | None = None
    confirmed_by: str | None = None

    @property
    def already_fenced(self) -> bool:
        """Whether the id looks fenced by eosctl (or by Java's Admin with defaults), and untouched since.

        Coordinators don't report when an idle id was last used, so its state and its timeout are the only evidence.
        """
        before = self.before
        return (
            before is not None
            and before.transaction_timeout_ms == FENCE_TRANSACTION_TIMEOUT_MS
            and before.state is TransactionState.EMPTY
        )


def parse_id_lines(data: bytes, *, source: str) -> list[TransactionalId]:
    """Parse ids, one a line, exactly as written: any text may be an id, so only blank lines are left out.

    Raises InputFileError naming `source` and the line.
    """
    ids = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        line = line.removesuffix(b"\r")
        if not line.strip():
            continue
        try:
            ids.append(TransactionalId(line.decode("utf-8")))
        except UnicodeDecodeError as exc:
            raise InputFileError(f"{source}, line {number}: not UTF-8", hint="Write one id a line, in UTF-8.") from exc
        if len(line) > MAX_ID_BYTES:
            raise InputFileError(
                f"{source}, line {number}: {len(line)} bytes are more than a transactional id can have"
            )
    return ids


def unique_ids(ids: Iterable[TransactionalId]) -> list[TransactionalId]:
    """Return the ids in the order of their first mention, each once."""
    return list(dict.fromkeys(ids))


def plan_items(
    ids: Sequence[TransactionalId],
    described: Described,
    *,
    owner_of_id: Callable[[TransactionalId], Owner],
    live: Mapping[TransactionalId, LiveTask],
    create_unknown: bool,
) -> list[FenceItem]:
    """Return one item per id, in the order of `ids`; mark an id of unknown state as failed, never fence it blindly."""
    return [
        _plan_item(
            transactional_id,
            described.get(transactional_id),
            owner=owner_of_id(transactional_id),
            live=live.get(transactional_id),
            create_unknown=create_unknown,
        )
        for transactional_id in ids
    ]


def _plan_item(
    transactional_id: TransactionalId,
    state: TransactionDescription | KafkaFault | None,
    *,
    owner: Owner,
    live: LiveTask | None,
    create_unknown: bool,
) -> FenceItem:
    if isinstance(state, TransactionDescription):
        return FenceItem(
            transactional_id, owner, FenceOutcome.WOULD_FENCE, before=state, live=live, coordinator=state.coordinator
        )
    fault = state or KafkaFault(-1, "UNKNOWN_SERVER_ERROR", "the coordinator's answer does not mention this id")
    if not fault.is_unknown_id:
        return FenceItem(transactional_id, owner, FenceOutcome.FAILED, live=live, fault=fault)
    outcome = FenceOutcome.WOULD_FENCE if create_unknown else FenceOutcome.SKIPPED_UNKNOWN
    return FenceItem(transactional_id, owner, outcome, live=live)


def may_be_leader(transactional_id: TransactionalId, owner: Owner, groups: Collection[str] | None = None) -> bool:
    """Decide whether a Connect leader may hold this id: the group's own, or one that looks like another group's.

    An id that may be a task's, too, can only be the leader's of one of `groups`, if these are known.
    """
    if not transactional_id.startswith(_LEADS) or owner.kind == "task":
        return False
    return groups is None or not may_be_task(transactional_id) or transactional_id.removeprefix(_LEADS) in groups


def blocked_leaders(items: Iterable[FenceItem], groups: Collection[str] | None = None) -> list[FenceItem]:
    """Return the items that would fence a possible leader, which needs an explicit waiver, alive or not."""
    wanted = (item for item in items if item.outcome is FenceOutcome.WOULD_FENCE)
    return [item for item in wanted if may_be_leader(item.transactional_id, item.owner, groups)]


def blocked_live(items: Iterable[FenceItem]) -> list[FenceItem]:
    """Return the items that would fence a running task, which would fail at its next commit and stay failed."""
    return [item for item in items if item.outcome is FenceOutcome.WOULD_FENCE and item.live is not None]


def may_be_prepared(
    items: Iterable[FenceItem], *, connectors: Collection[str], unseen: bool = False
) -> list[FenceItem]:
    """Return the items whose fencing may discard prepared data: open transactions under ids like Flink's.

    Flink commits a transaction after its checkpoint is complete; until then, and while the job is down, the transaction
    stays open and is the only place where the records are. Coordinators do not report that, so every open transaction
    counts, and with `unseen` (states could not be read) every id. Tasks of `connectors` are not Flink's.
    """
    return [
        item
        for item in items
        if item.outcome is FenceOutcome.WOULD_FENCE
        and (unseen or (item.before is not None and item.before.state is TransactionState.ONGOING))
        and _application(item) == FLINK_SINK
        and not (item.owner.kind == "task" and item.owner.connector in connectors)
    ]


def _application(item: FenceItem) -> str | None:
    """Return the application whose ids have this form; `owner_of` has checked already an id of no known owner."""
    return item.owner.application if item.owner.kind == "other" else application_of(item.transactional_id)


def newly_live(items: Iterable[FenceItem], live: Mapping[TransactionalId, LiveTask]) -> list[LiveTask]:
    """Return the tasks that run now under an id of the plan, and did not when it was made.

    Only this makes a plan stale: states and epochs of a busy id move with every transaction (KIP-890), and a higher
    epoch does not make fencing it less right.
    """
    return [
        live[item.transactional_id]
        for item in items
        if item.outcome is FenceOutcome.WOULD_FENCE and item.live is None and item.transactional_id in live
    ]


def after_answer(item: FenceItem, answer: FenceAnswer) -> FenceItem:
    """Return the item after its coordinator's answer."""
    at = answer.coordinator or item.coordinator
    if answer.fault is None and answer.producer_id is not None and answer.producer_epoch is not None:
        after = (answer.producer_id, answer.producer_epoch)
        return _with_outcome(item, FenceOutcome.FENCED, after=after, confirmed_by="answer", coordinator=at)
    certain = answer.confirmed or answer.attempts == 0  # what was never sent did not happen
    return _with_outcome(
        item, FenceOutcome.FAILED if certain else FenceOutcome.UNCONFIRMED, fault=answer.fault, coordinator=at
    )


def without_answer(item: FenceItem, fault: KafkaFault) -> FenceItem:
    """Mark an item as unconfirmed: no answer came, so it is unknown whether the id was fenced."""
    return _with_outcome(item, FenceOutcome.UNCONFIRMED, fault=fault)


def is_fence(before: TransactionDescription | None, now: TransactionDescription) -> bool:
    """Decide whether only fencing can have brought an id to its state of now.

    It is idle, with another producer id or epoch, and with the timeout of eosctl or of a round of Connect's. A newer
    epoch alone is no fence: from KIP-890 on every commit makes one.
    """
    ours = now.state is TransactionState.EMPTY and now.transaction_timeout_ms in _FENCING_TIMEOUTS_MS
    moved = before is None or (now.producer_id, now.producer_epoch) != (before.producer_id, before.producer_epoch)
    return ours and moved


def read_back(item: FenceItem, now: TransactionDescription | KafkaFault | None) -> FenceItem:
    """Update an unconfirmed item from the state that its coordinator reports now."""
    if not isinstance(now, TransactionDescription):
        return item
    if is_fence(item.before, now):
        return _with_outcome(
            item, FenceOutcome.FENCED, after=(now.producer_id, now.producer_epoch), confirmed_by="read_back"
        )
    state_text = (
        f"{now.state}, producer {now.producer_id}, epoch {now.producer_epoch}, timeout {now.transaction_timeout_ms} ms"
    )
    lost = item.fault or KafkaFault(7, "REQUEST_TIMED_OUT", "no answer in time")
    said = f"{lost.message or lost.name}; now {state_text}"
    return _with_outcome(item, FenceOutcome.UNCONFIRMED, fault=KafkaFault(lost.code, lost.name, said))


def _with_outcome(
    item: FenceItem,
    outcome: FenceOutcome,
    *,
    after: tuple[ProducerId, int] | None = None,
    fault: KafkaFault | None = None,
    confirmed_by: str | None = None,
    coordinator: Coordinator | None = None,
) -> FenceItem:
    """Return the item with another outcome; keep its coordinator unless another is given."""
    return replace(
        item,
        outcome=outcome,
        coordinator=coordinator or item.coordinator,
        after=after,
        fault=fault,
        confirmed_by=confirmed_by,
    )


def count_outcomes(items: Collection[FenceItem]) -> dict[str, int]:
    """Count the items per outcome, in the order of `FenceOutcome`, without outcomes of no item."""
    counts = Counter(item.outcome for item in items)
    return {outcome.value: counts[outcome] for outcome in FenceOutcome if counts[outcome]}
