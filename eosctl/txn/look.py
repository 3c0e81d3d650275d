"""What is there of transactions that are to be ended: their open partitions, their coordinators, and what these logged.

Reads only. What could not be looked at is returned with the rest, never left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from eosctl.app import App
from eosctl.connectors.dedicated import gather_dedicated_topics
from eosctl.core.frozen import frozen
from eosctl.core.ids import ProducerId
from eosctl.core.records import Record
from eosctl.core.transaction_log import TOPIC, decode_key, decode_value
from eosctl.core.transactions import ActiveProducer, KafkaFault
from eosctl.core.wording import counted
from eosctl.errors import EosctlError, NotFoundError, ProtocolError, UnauthorizedError
from eosctl.ports import TransactionAdmin
from eosctl.txn.partitions import all_partitions
from eosctl.txn.rules import LogEntry, LogLook, Partition, Writer, decision_in_log, writer_of_part
from eosctl.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION

CONSUMER_OFFSETS = "__consumer_offsets"
_NOBODYS_TOPIC = "eosctl-nobody-has-this-topic"
"""Who may DESCRIBE this one may do so because of a right to all topics."""
_MOST_NAMED = 3
_RANKS_S = 5.0


@frozen
class OpenParts:
    """The open partitions of each transaction, and where more of it may be open."""

    of: Mapping[Writer, tuple[ActiveProducer, ...]]
    unseen: Mapping[Writer, Sequence[str]]


def read_log_about(app: App, producer_ids: Collection[ProducerId]) -> LogLook:
    """Read what `__transaction_state` has of the ids that use these producer ids, in half of the time that is left."""
    wanted = [producer_id.to_bytes(8, "big", signed=True) for producer_id in set(producer_ids)]
    keys: set[bytes | None] = set()

    def about(records: Sequence[Record]) -> list[Record]:
        """Keep all records of a key from the first on that has one of the producer ids."""
        keys.update(one.key for one in records if one.value and any(each in one.value for each in wanted))
        return [one for one in records if one.key in keys]

    patient = replace(app, deadline=app.deadline.half())
    try:
        with patient.topics() as store:
            read = store.read(TOPIC, isolation="read_uncommitted", partly=True, sieve=about)
    except NotFoundError:
        return LogLook()  # no transaction was ever begun by an id
    except EosctlError as error:
        return LogLook(unread=error.message)
    entries, unread = [], None
    for record in read.records:
        try:
            logged = None if record.value is None else decode_value(record.value)
            entries.append(LogEntry(decode_key(record.key or b""), logged, record))
        except ProtocolError as error:
            unread = f"{TOPIC}-{record.partition}@{record.offset}: {error.message}"
    if read.missing:
        unread = f"{counted(len(read.missing), 'partition')} of {TOPIC}: {next(iter(read.missing.values()))}"
    return LogLook(tuple(entries), unread)


def look_for_parts(admin: TransactionAdmin, writers: Collection[Writer], log: LogLook) -> OpenParts:
    """Ask where these producer ids and epochs are open: everywhere that can be seen, and where the log says.

    A commit or an abort that the log has of one very transaction names all of its partitions.
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
    there = {place: fault for place, fault in faults.items() if fault.code != UNKNOWN_TOPIC_OR_PARTITION}
    texts = [f"{topic}-{partition}: {fault}" for (topic, partition), fault in there.items()]
    more = [f"{len(texts) - _MOST_NAMED} more"] if len(texts) > _MOST_NAMED else []
    return [*texts[:_MOST_NAMED], *more, *([hidden] if hidden else ())]


def why_topics_are_hidden(admin: TransactionAdmin) -> str | None:
    """Return why brokers may leave topics out; None for a principal that may DESCRIBE any (`DENY` of one aside)."""
    try:
        admin.topic_partitions([_NOBODYS_TOPIC])
    except UnauthorizedError:
        return "brokers show only topics that this principal may DESCRIBE"
    return None


def marker_ranks(app: App, topics: Collection[str]) -> Mapping[str, int]:
    """Return how late each topic's markers come: offsets topics last, before them what is compacted, as these are.

    As far as it can be known: what can't be asked is no reason not to end a transaction.
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
