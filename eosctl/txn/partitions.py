"""The operations `txn producers` and `txn hanging`: open transactions as partition leaders report them. Reads only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import asdict, replace

from eosctl.app import App
from eosctl.core.ids import Owner, ProducerId, TransactionalId
from eosctl.core.transaction_log import TOPIC
from eosctl.core.transactions import ActiveProducer, KafkaFault, TransactionDescription, TransactionListings
from eosctl.core.wording import counted
from eosctl.errors import (
    EosctlError,
    ExitCode,
    InterruptedByUserError,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
    UnsupportedError,
)
from eosctl.ports import TransactionAdmin
from eosctl.report import Problem, Report
from eosctl.txn.hanging import (
    MAX_TRANSACTION_TIMEOUT_MS,
    HangingTransaction,
    Reason,
    find_hanging,
    is_silent,
    unjudged,
    without_owner,
)
from eosctl.txn.owners import NO_ANSWER, NOT_CHECKED, owners_of_ids
from eosctl.txn.report import (
    Partition,
    id_problem,
    missing_ids_problems,
    partition_problems,
    txn_report,
    unseen_ids_warning,
    writer_of,
)
from eosctl.txn.rows import TXN_HANGING, TXN_PRODUCERS, HangingRow, HangingSummary, ProducerRow, ProducersSummary
from eosctl.txn.rules import LogLook, Writer, decision_in_log, identity, writer_of_part
from eosctl.txn.unended import UnendedTransaction, unended_finding
from eosctl.txn.unended_look import look_for_unended
from eosctl.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION

_UNUSED_TOPIC = "eosctl-nobody-has-this-topic"
"""A topic name that nobody uses: a principal that may DESCRIBE it has a right to all topics."""
_MOST_NAMED = 3


def list_producers(app: App, topic: str, partition: int | None) -> Report:
    """Report active producers of a topic's partitions, with the transactional id that now uses each producer id.

    A partition that could not be asked is a row with the reason `not_checked`.

    Raises NotFoundError for a topic or partition that does not exist.
    """
    with app.transactions() as admin:
        cluster_id = admin.cluster_id()
        partitions = partitions_of(admin, topic, partition)
        answers = admin.describe_producers(partitions)
        found, faults = _active(answers)
        listings = _users(admin, {producer.producer_id for producer in found})
    users = {listing.producer_id: listing.transactional_id for listing in listings.found}
    owners = owners_of_ids(app, sorted(set(users.values())))
    rows = [_producer_row(app, producer, users.get(producer.producer_id), owners) for producer in found]
    unread = [ProducerRow(topic=topic, partition=number, reason=NOT_CHECKED) for topic, number in faults]
    every = sorted([*rows, *unread], key=lambda row: (row.topic, row.partition))
    return txn_report(
        app,
        TXN_PRODUCERS,
        every,
        cluster_id=cluster_id,
        summary=ProducersSummary(producers=len(rows), open=sum(row.start_offset is not None for row in rows)),
        problems=[*partition_problems(app, faults), *missing_ids_problems(listings)],
        faults=[*faults.values(), *listings.missing],
        judged=len(partitions) - len(faults),
    )


def partitions_of(admin: TransactionAdmin, topic: str, partition: int | None) -> list[Partition]:
    """Return one partition, or all of a topic; raise NotFoundError."""
    count = admin.topic_partitions([topic]).get(topic)
    if count is None:
        raise NotFoundError(f"there is no topic {topic}", hint="Without DESCRIBE on it, it can't be seen either.")
    if partition is not None and partition >= count:
        raise NotFoundError(f"topic {topic} has {counted(count, 'partition')}, so there is no partition {partition}")
    return [(topic, index) for index in range(count)] if partition is None else [(topic, partition)]


def _active(
    answers: Mapping[Partition, Sequence[ActiveProducer] | KafkaFault],
) -> tuple[list[ActiveProducer], dict[Partition, KafkaFault]]:
    """Return the producers by partition and id, and the faults of partitions that could not be asked."""
    faults = {place: answer for place, answer in sorted(answers.items()) if isinstance(answer, KafkaFault)}
    found = [one for _place, answer in sorted(answers.items()) if not isinstance(answer, KafkaFault) for one in answer]
    return sorted(found, key=lambda one: (one.topic, one.partition, one.producer_id)), faults


def _users(admin: TransactionAdmin, producer_ids: Collection[ProducerId]) -> TransactionListings:
    """List the transactional ids that use the producer ids now; idempotent producers have none."""
    if not producer_ids:
        return TransactionListings(())
    try:
        return admin.list_transactions(producer_ids=sorted(producer_ids))
    except UnreachableError as exc:
        return TransactionListings((), (KafkaFault(NO_ANSWER, exc.code.upper(), exc.message),))


def _producer_row(
    app: App,
    producer: ActiveProducer,
    transactional_id: TransactionalId | None,
    owners: Mapping[TransactionalId, Owner],
) -> ProducerRow:
    return ProducerRow(
        **asdict(writer_of(app, producer)),
        last_sequence=producer.last_sequence,
        transactional_id=transactional_id,
        owner=None if transactional_id is None else owners[transactional_id],
    )


class HangingLook(Struct, frozen=True):
    """The result of one look at partitions and coordinators.

    `partitions` and `candidates` are the numbers of checked partitions and of transactions that are open for too long.
    `hanging` are those that no coordinator accounts for: of these, and younger ones if their coordinator's state proves
    it. Nothing is claimed of the partitions of `faults`, of the transactions in `ownerless`, of the ids in `silent`,
    and of those that `listings` lacks.
    """

    cluster_id: str
    partitions: int
    candidates: int
    hanging: Sequence[HangingTransaction]
    faults: Mapping[Partition, KafkaFault]
    ownerless: Sequence[ActiveProducer]
    silent: Mapping[TransactionalId, KafkaFault]
    listings: TransactionListings

    def problems(self, app: App) -> list[Problem]:
        """Return the problems of what could not be looked at, and of what may be hidden."""
        return [*self.unlooked(app), *unseen_ids_warning(one.reason.value for one in self.hanging)]

    def unlooked(self, app: App) -> list[Problem]:
        """Return the problems of what could not be looked at."""
        return [
            *partition_problems(app, self.faults),
            *(id_problem(app, name, fault, "describe") for name, fault in self.silent.items()),
            *missing_ids_problems(self.listings),
        ]

    def unanswered(self) -> list[KafkaFault]:
        """Return the faults of what could not be looked at."""
        return [*self.faults.values(), *self.silent.values(), *self.listings.missing]


def look_for_hanging(app: App, topic: str | None, *, older_than_ms: int) -> HangingLook:
    """Find hanging transactions of one topic or (None) of all, as in KIP-664; see `find_hanging`.

    Starts from the partitions, as `TransactionsCommand find-hanging` does: a coordinator that has forgotten a
    transaction can't be asked for it. Hanging ones must be open before and after the coordinators are asked, as one
    that ends meanwhile looks the same.
    """
    now_ms, limit = app.clock.now_ms(), older_than_ms
    with app.transactions() as admin:
        partitions = all_partitions(admin) if topic is None else partitions_of(admin, topic, None)
        cluster_id = admin.cluster_id()  # which has come with the partitions
        found, faults = _active(admin.describe_producers(partitions, only_open=True))
        silent = [one for one in found if is_silent(one, now_ms=now_ms, max_transaction_timeout_ms=limit)]
        try:
            listings, described = ask_coordinators(admin, found)
        except UnsupportedError:  # before Kafka 3.0; nothing is promised about young ones then
            if silent:
                raise
            listings, described = TransactionListings(()), {}
        hanging = find_hanging(found, listings, described, now_ms=now_ms, max_transaction_timeout_ms=limit)
        places = sorted({(one.producer.topic, one.producer.partition) for one in hanging})
        still, gone = _active(admin.describe_producers(places, only_open=True)) if places else ([], {})
    ownerless = without_owner(found, listings, now_ms=now_ms, max_transaction_timeout_ms=limit)
    missing = listings.doubts() if ownerless else listings.missing if silent else ()
    return HangingLook(
        cluster_id,
        len(partitions),
        len(silent),
        [one for one in hanging if identity(one.producer) in set(map(identity, still))],
        {**faults, **gone},
        ownerless,
        {name: fault for name, fault in unjudged(described).items() if _uses(name, silent, listings)},
        replace(listings, missing=missing),
    )


def _uses(name: TransactionalId, producers: Sequence[ActiveProducer], listings: TransactionListings) -> bool:
    """Decide whether an id uses the producer id of one of them: nothing is promised about young ones of others."""
    ids = {listing.producer_id for listing in listings.found if listing.transactional_id == name}
    return any(producer.producer_id in ids for producer in producers)


def find_hanging_transactions(
    app: App, topic: str | None, *, max_transaction_timeout_ms: int = MAX_TRANSACTION_TIMEOUT_MS
) -> Report:
    """Report open transactions that no coordinator accounts for (KIP-664), of a topic or (None) all.

    Exit 3 if any, whatever else could not be seen.
    """
    look = look_for_hanging(app, topic, older_than_ms=max_transaction_timeout_ms)
    hanging = [
        _hanging_row(app, one.producer, one.reason.value, transactional_id=one.transactional_id) for one in look.hanging
    ]
    unseen = [HangingRow(topic=topic, partition=number, reason=NOT_CHECKED) for topic, number in look.faults]
    rows = [*hanging, *(_hanging_row(app, one, NOT_CHECKED) for one in look.ownerless), *unseen]
    report = txn_report(
        app,
        TXN_HANGING,
        rows,
        cluster_id=look.cluster_id,
        summary=HangingSummary(partitions=look.partitions, open_too_long=look.candidates, hanging=len(hanging)),
        problems=look.problems(app),
        faults=look.unanswered(),
        judged=look.partitions - len(look.faults),
    )
    return replace(report, exit_code=ExitCode.FINDINGS) if hanging else report


def list_hanging(
    app: App, topic: str | None, *, max_transaction_timeout_ms: int = MAX_TRANSACTION_TIMEOUT_MS
) -> Report:
    """Report hanging transactions, and those that their coordinator does not end, of a topic or (None) of all.

    Exit 3 if there are any; 7 where it is not known since when one is not ended, or what could not be asked.
    """
    report = find_hanging_transactions(app, topic, max_transaction_timeout_ms=max_transaction_timeout_ms)
    code = report.exit_code
    partial = ExitCode.PARTIAL if code is ExitCode.OK else code
    try:
        look = look_for_unended(app)
    except InterruptedByUserError:
        raise
    except EosctlError as exc:  # brokers before Kafka 3.0 list no ids; what partitions show stands all the same
        return replace(report, problems=[*report.problems, Problem.of(exc)], exit_code=partial)
    now_ms = app.clock.now_ms()
    found = [each for each in look.found if topic is None or topic in {name for name, _part in _places_of(each)}]
    rows = [_unended_row(each, place, now_ms) for each in found for place in _places_of(each)]
    told = [unended_finding(each, now_ms=now_ms) for each in found]
    problems = [
        *(Problem(each.code, each.message, each.fix, unseen=not each.certain) for each in told), *look.problems(app),
    ]  # fmt: skip
    if any(each.is_certain for each in found):
        code = ExitCode.FINDINGS
    elif found or look.unanswered():
        code = partial
    return replace(
        report,
        rows=[*rows, *report.rows],
        summary=replace(report.summary_of(HangingSummary), not_ended=sum(each.is_certain for each in found)),
        problems=list(dict.fromkeys([*problems, *report.problems])),
        exit_code=code,
    )


def _places_of(each: UnendedTransaction) -> Sequence[Partition]:
    """Return the partitions of its transaction; without any, its end is missing in the coordinators' log alone."""
    return each.state.partitions or ((TOPIC, each.around.log_partition or 0),)


def _unended_row(each: UnendedTransaction, place: Partition, now_ms: int) -> HangingRow:
    return HangingRow(
        topic=place[0],
        partition=place[1],
        producer_id=each.state.producer_id,
        producer_epoch=each.state.producer_epoch,
        transactional_id=each.state.transactional_id,
        reason=Reason.NOT_ENDED.value if each.is_certain else NOT_CHECKED,
        state=each.state.state.value,
        not_ended_for_ms=None if each.since_ms is None else max(0, now_ms - each.since_ms),
    )


def _hanging_row(
    app: App, producer: ActiveProducer, reason: str, *, transactional_id: TransactionalId | None = None
) -> HangingRow:
    return HangingRow(**asdict(writer_of(app, producer)), transactional_id=transactional_id, reason=reason)


def all_partitions(admin: TransactionAdmin) -> list[Partition]:
    """Return every partition of the visible topics."""
    return [(topic, index) for topic, count in sorted(admin.topic_partitions().items()) for index in range(count)]


def ask_coordinators(
    admin: TransactionAdmin, candidates: Sequence[ActiveProducer]
) -> tuple[TransactionListings, Mapping[TransactionalId, TransactionDescription | KafkaFault]]:
    """List the users of the candidates' producer ids, and describe them by their coordinators."""
    listings = _users(admin, {producer.producer_id for producer in candidates})
    ids = sorted({listing.transactional_id for listing in listings.found})
    return listings, admin.describe_transactions(ids) if ids else {}


class OpenParts(Struct, frozen=True):
    """The open partitions of each transaction, and the places where more of it may be open."""

    of: Mapping[Writer, tuple[ActiveProducer, ...]]
    unseen: Mapping[Writer, Sequence[str]]


def look_for_parts(admin: TransactionAdmin, writers: Collection[Writer], log: LogLook) -> OpenParts:
    """Find where these producer ids and epochs are open: in all visible partitions, and where the log has them.

    If the log has a commit or an abort of exactly this transaction, it names all of its partitions.
    """
    decided = {writer: decision_in_log(log.entries, writer, ()) for writer in writers}
    named = {writer: one.partitions for writer, one in decided.items() if one is not None and one.proven}
    places = {place for partitions in named.values() for place in partitions}
    places |= {place for place in all_partitions(admin) if place[0] != TOPIC}  # where only coordinators write
    answers = admin.describe_producers(sorted(places), only_open=True)
    hidden = why_topics_are_hidden(admin)
    of: dict[Writer, tuple[ActiveProducer, ...]] = {}
    unseen: dict[Writer, Sequence[str]] = {}
    for writer in writers:
        of[writer] = tuple(
            part
            for answer in answers.values()
            if not isinstance(answer, KafkaFault)
            for part in answer
            if writer_of_part(part) == writer
        )
        its_own = named.get(writer)
        unseen[writer] = _unseen(answers, its_own or places, hidden=None if its_own else hidden)
    return OpenParts(of, unseen)


def _unseen(
    answers: Mapping[Partition, Sequence[ActiveProducer] | KafkaFault],
    places: Iterable[Partition],
    *,
    hidden: str | None,
) -> list[str]:
    faults = {place: answer for place in sorted(places) if isinstance(answer := answers[place], KafkaFault)}
    unread = {place: fault for place, fault in faults.items() if fault.code != UNKNOWN_TOPIC_OR_PARTITION}
    texts = [f"{topic}-{partition}: {fault}" for (topic, partition), fault in unread.items()]
    more = [f"{len(texts) - _MOST_NAMED} more"] if len(texts) > _MOST_NAMED else []
    return [*texts[:_MOST_NAMED], *more, *([hidden] if hidden else ())]


def why_topics_are_hidden(admin: TransactionAdmin) -> str | None:
    """Return why brokers may leave topics out; None for a principal that may DESCRIBE any (`DENY` rules aside)."""
    try:
        admin.topic_partitions([_UNUSED_TOPIC])
    except UnauthorizedError:
        return "brokers show only topics that this principal may DESCRIBE"
    return None
