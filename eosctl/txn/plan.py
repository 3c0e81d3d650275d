"""The plans of `txn abort` and `txn complete`: transactions to end, each in all of its partitions.

A transaction that its coordinator still knows is ended by fencing its id: a marker written without the coordinator
leaves the two inconsistent. The reasons not to end one are in its rows, with the flag that waives exactly that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from eosctl.app import App
from eosctl.codes import Code
from eosctl.connectors.dedicated import gather_dedicated_topics
from eosctl.core.acls.lines import grant_hint
from eosctl.core.allowances import Waiver
from eosctl.core.ids import ProducerId
from eosctl.core.transactions import ActiveProducer, KafkaFault
from eosctl.core.wording import counted
from eosctl.errors import BrokerError, EosctlError, ExitCode, NotFoundError, UnauthorizedError, UsageError
from eosctl.foreign import arguments, shell_word
from eosctl.ports import TransactionAdmin
from eosctl.report import Problem, Report
from eosctl.txn import codes
from eosctl.txn.hanging import MAX_TRANSACTION_TIMEOUT_MS, Reason
from eosctl.txn.log import read_log_about
from eosctl.txn.owners import AUTHORIZATION_CODES, exit_code_of_faults
from eosctl.txn.partitions import HangingLook, ask_coordinators, look_for_hanging, look_for_parts, partitions_of
from eosctl.txn.report import Partition, writer_of
from eosctl.txn.rows import TXN_ABORT_PLAN, TXN_COMPLETE_PLAN, AbortSummary, CompleteSummary, EndRow
from eosctl.txn.rules import (
    Coordination,
    LogLook,
    TransactionToEnd,
    identity,
    in_order,
    judge_abort,
    judge_complete,
    place_of,
    writer_of_part,
)

CONSUMER_OFFSETS = "__consumer_offsets"
_RANKS_S = 5.0


class EndRequest(Struct, frozen=True):
    """The selection of a transaction on a partition: `start_offset`, or producer id, epoch and coordinator epoch.

    `commit` writes COMMIT markers, as was decided, else ABORT markers; `waived` are the waived checks.
    """

    topic: str
    partition: int
    start_offset: int | None = None
    producer_id: ProducerId | None = None
    producer_epoch: int | None = None
    coordinator_epoch: int | None = None
    waived: frozenset[Waiver] = frozenset()
    commit: bool = False


class HangingRequest(Struct, frozen=True):
    """The selection of hanging transactions: those with a part on one topic, or (None) all; see `find_hanging`."""

    topic: str | None = None
    older_than_ms: int = MAX_TRANSACTION_TIMEOUT_MS
    waived: frozenset[Waiver] = frozenset()


class EndPlan(Struct, frozen=True):
    """The transactions to end, and the observations behind the decision.

    `stable` are the known last stable offsets of their partitions; `look` is the look that found the transactions, if
    none was named.
    """

    cluster_id: str
    transactions: Sequence[TransactionToEnd]
    log: LogLook = field(default_factory=LogLook)
    commit: bool = False
    waived: frozenset[Waiver] = frozenset()
    stable: Mapping[Partition, int] = {}
    look: HangingLook | None = None

    def wanted(self) -> list[TransactionToEnd]:
        """Return the transactions that may be ended."""
        return [one for one in self.transactions if not one.left(self.waived)]

    def judge(
        self, parts: tuple[ActiveProducer, ...], known: Coordination, *, unseen: Sequence[str] = ()
    ) -> TransactionToEnd:
        """Judge a transaction by current observations."""
        return (judge_complete if self.commit else judge_abort)(parts, known, unseen=unseen)

    def report(self, app: App) -> Report:
        """Report a row per partition; exit with 6 if nothing may be ended."""
        rows = [row(app, self, one, part) for one in self.transactions for part in one.parts]
        wanted = self.wanted()
        parts = sum(len(one.parts) for one in wanted)
        of = {"transactions": len(wanted), "refused": len(self.transactions) - len(wanted)}
        summary = CompleteSummary(would_commit=parts, **of) if self.commit else AbortSummary(would_abort=parts, **of)
        code = ExitCode.OK
        if not wanted:
            code = ExitCode.REFUSED if self.transactions else self._nothing_found()
        problems = [*self.refusals(), *self.cautions(), *self.unlooked(app)]
        if code is ExitCode.OK:
            problems = [each.as_warning() for each in problems]
        kind = TXN_COMPLETE_PLAN if self.commit else TXN_ABORT_PLAN
        return Report(kind, rows, summary, target=self.target(app), problems=problems, exit_code=code)

    def question(self) -> str:
        """Return the question of the confirmation."""
        wanted = self.wanted()
        parts = [place_of(part) for one in wanted for part in one.parts]
        named = ", ".join(f"{topic}-{partition}" for topic, partition in parts[:4])
        more = f" and {len(parts) - 4} more" if len(parts) > 4 else ""
        verb = "Commit" if self.commit else "Abort"
        return f"{verb} {counted(len(wanted), 'transaction')} on {counted(len(parts), 'partition')} ({named}{more})?"

    def refusals(self) -> list[Problem]:
        """Return the reasons why some may not be ended."""
        return [
            Problem(code, f"{named(one)}: {why}", _hint(code, one))
            for one in self.transactions
            for code, why in one.left(self.waived).items()
        ]

    def cautions(self) -> list[Problem]:
        """Return the waived reasons, and the unknowns, of those that are ended."""
        found = []
        for one in self.wanted():
            for code, why in one.refused.items():
                shown = codes.NOT_HANGING if code == codes.COORDINATOR_HAS_IT else code
                found.append(Problem(shown, f"{named(one)}: {why}").as_warning())
            if Waiver.ONLY_THIS_PARTITION in self.waived:
                alone = (
                    f"{named(one)} is ended on {_place(one.parts[0])} alone: it stays open elsewhere, if it is there"
                )
                found.append(Problem(codes.PART_ENDED_ALONE, alone, codes.PART_ENDED_ALONE.next))
            if not self.commit and one.decided is None and one.reason not in (None, Reason.NO_TRANSACTIONAL_ID):
                why = f"{named(one)}: whether {one.transactional_id} committed it is not known any more"
                found.append(Problem(codes.DECISION_UNKNOWN, why, codes.DECISION_UNKNOWN.next))
        return found

    def unlooked(self, app: App) -> list[Problem]:
        """Return the problems of what the look for hanging ones could not see."""
        return [] if self.look is None else self.look.unlooked(app)

    def unanswered(self) -> list[KafkaFault]:
        """Return the faults of what could not be looked at."""
        return [] if self.look is None else self.look.unanswered()

    def target(self, app: App) -> dict[str, str | None]:
        """Return the cluster and group of the plan."""
        return {"kafka_cluster_id": self.cluster_id, "group_id": app.target.group_id}

    def _nothing_found(self) -> ExitCode:
        """Return the exit code if nothing hangs in what was judged, which may not be everything."""
        if self.look is None or not self.unanswered():
            return ExitCode.OK
        answered = self.look.partitions > len(self.look.faults)
        return ExitCode.PARTIAL if answered else exit_code_of_faults(self.unanswered())


def row(app: App, plan: EndPlan, one: TransactionToEnd, part: ActiveProducer) -> EndRow:
    """Return the row of one partition of a transaction."""
    return EndRow(
        **asdict(writer_of(app, part)),
        reason=None if one.reason is None else one.reason.value,
        lso_before=plan.stable.get(place_of(part)),
        transactional_id=one.transactional_id,
        decided=None if one.decided is None else one.decided.result.value,
        decided_by=None if one.decided is None else "log" if one.decided.proven else "coordinator",
        refused=[str(code) for code in one.left(plan.waived)],
    )


def named(one: TransactionToEnd) -> str:
    """Return the text by which messages identify a transaction."""
    producer_id, epoch = one.writer
    return f"the transaction of producer {producer_id}, epoch {epoch}"


def _place(part: ActiveProducer) -> str:
    return f"{part.topic}-{part.partition}"


def _hint(code: Code, one: TransactionToEnd) -> str:
    if code == codes.COORDINATOR_HAS_IT and one.is_ending:
        return (
            "Its end is decided, and no fence changes it: `eosctl txn hanging` says what keeps it from being written."
        )
    if code == codes.COORDINATOR_HAS_IT and one.transactional_id is not None:
        return f"End it now with `eosctl fence {arguments(one.transactional_id)}`, or insist with {Waiver.FORCE}."
    return code.next


def plan_end(app: App, request: EndRequest) -> EndPlan:
    """Find the transaction, every partition where it is open, and the reasons not to end it.

    Raises UsageError, and NotFoundError if the partition has no such open transaction.
    """
    _check(request)
    place = (request.topic, request.partition)
    with app.transactions() as admin:
        cluster_id = admin.cluster_id()
        partitions_of(admin, *place)
        chosen = _chosen(request, open_producers(app, admin, place))
        writer = writer_of_part(chosen)
        listings, described = ask_coordinators(admin, [chosen])
        log = read_log_about(app, [chosen.producer_id])
        parts, unseen = [chosen], list[str]()
        if Waiver.ONLY_THIS_PARTITION not in request.waived:
            found = look_for_parts(admin, [writer], log)
            others = [part for part in found.of[writer] if identity(part) != identity(chosen)]
            parts, unseen = [chosen, *map(_ready, others)], list(found.unseen[writer])
            if len(others) == len(found.of[writer]):  # it has ended since
                raise _no_such_transaction(request)
    plan = EndPlan(cluster_id, (), log, request.commit, request.waived)
    ordered = in_order(parts, marker_ranks(app, {part.topic for part in parts}))
    judged = plan.judge(ordered, Coordination(listings, described, log), unseen=unseen)
    return replace(plan, transactions=(judged,), stable=stable_offsets(app, ordered)[0])


def plan_abort_hanging(app: App, request: HangingRequest) -> EndPlan:
    """Find all hanging transactions, and every partition where they are open; raise NotFoundError."""
    look = look_for_hanging(app, request.topic, older_than_ms=request.older_than_ms)
    plan = EndPlan(look.cluster_id, (), waived=request.waived, look=look)
    if not look.hanging:
        return plan
    writers = dict.fromkeys(writer_of_part(one.producer) for one in look.hanging)
    hanging = {identity(one.producer) for one in look.hanging}
    with app.transactions() as admin:
        listings, described = ask_coordinators(admin, [one.producer for one in look.hanging])
        log = read_log_about(app, [producer_id for producer_id, _epoch in writers])
        found = look_for_parts(admin, list(writers), log)
    transactions = [parts for parts in found.of.values() if not hanging.isdisjoint(map(identity, parts))]
    ranks = marker_ranks(app, {part.topic for parts in transactions for part in parts})
    known = Coordination(listings, described, log)
    judged = [
        plan.judge(in_order(map(_ready, parts), ranks), known, unseen=found.unseen[writer_of_part(parts[0])])
        for parts in transactions
    ]
    judged.sort(key=lambda one: min(map(identity, one.parts)))
    stable, _unread = stable_offsets(app, [part for one in judged for part in one.parts])
    return replace(plan, transactions=tuple(judged), log=log, stable=stable)


def open_producers(app: App, admin: TransactionAdmin, place: Partition) -> list[ActiveProducer]:
    """Return the producers with an open transaction on a partition; raise UnauthorizedError, BrokerError."""
    answer = admin.describe_producers([place], only_open=True)[place]
    if isinstance(answer, KafkaFault):
        message = f"could not ask for the producers of {place[0]}-{place[1]}: {answer}"
        if answer.code in AUTHORIZATION_CODES:
            hint = grant_hint("READ", "Topic", [place[0]], settings=app.target.client)
            raise UnauthorizedError(message, hint=hint)
        raise BrokerError(message)
    return list(answer)


def stable_offsets(app: App, parts: Iterable[ActiveProducer]) -> tuple[dict[Partition, int], list[Problem]]:
    """Return the last stable offset of each partition, as far as leaders answer, and a warning for the others."""
    topics = sorted({part.topic for part in parts})
    if not topics:
        return {}, []
    try:
        with app.topics() as store:
            found = store.known_bounds_of(topics)
    except EosctlError as exc:
        return {}, [Problem.of(exc).as_warning()]
    return {(topic, bound.partition): bound.lso for topic, known in found.items() for bound in known.known}, []


def _check(request: EndRequest) -> None:
    by_producer = (request.producer_id, request.producer_epoch, request.coordinator_epoch)
    given = [value for value in by_producer if value is not None]
    if (request.start_offset is not None) == bool(given) or len(given) not in (0, 3):
        raise UsageError(
            "a transaction is named by --start-offset, or by --producer-id, --producer-epoch and --coordinator-epoch",
            hint=f"See `eosctl txn producers --topic {shell_word(request.topic)} --partition {request.partition}`.",
        )


def _chosen(request: EndRequest, producers: Sequence[ActiveProducer]) -> ActiveProducer:
    """Return the producer that the request selects, with its coordinator epoch, or the leader's by default."""
    for producer in producers:
        if request.start_offset is not None and producer.txn_start_offset == request.start_offset:
            return _ready(producer)
        if writer_of_part(producer) == (request.producer_id, request.producer_epoch):
            return _ready(replace(producer, coordinator_epoch=request.coordinator_epoch or 0))
    raise _no_such_transaction(request)


def _ready(producer: ActiveProducer) -> ActiveProducer:
    """Replace coordinator epoch -1, which leaders report if a partition has seen none, by 0 (`TransactionsCommand`)."""
    return replace(producer, coordinator_epoch=max(0, producer.coordinator_epoch))


def _no_such_transaction(request: EndRequest) -> NotFoundError:
    return NotFoundError(
        f"{request.topic}-{request.partition} has no such open transaction",
        hint=f"See `eosctl txn producers --topic {shell_word(request.topic)} --partition {request.partition}`.",
    )


def marker_ranks(app: App, topics: Collection[str]) -> Mapping[str, int]:
    """Return the rank of each topic's markers: offsets topics last, and before them other compacted topics.

    As far as known: a failed request is no reason not to end a transaction.
    """
    compacted: set[str] = set()
    offsets = {CONSUMER_OFFSETS, app.target.offset_topic}
    if len(topics) > 1:
        patient = replace(app, deadline=app.deadline.half(at_most_s=_RANKS_S))
        with suppress(EosctlError), patient.topics() as store:
            offsets |= set(gather_dedicated_topics(patient, store).configured.values())
        with suppress(EosctlError), patient.topics() as store:
            described = store.describe(topics)
            compacted = {name for name, one in described.items() if "compact" in one.config.get("cleanup.policy", "")}
    return {topic: 2 if topic in offsets else 1 if topic in compacted else 0 for topic in topics}
