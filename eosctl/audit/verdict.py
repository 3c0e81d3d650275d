"""Findings and a verdict from a log's tallies, once the owners of the producer ids are known, with likely causes. Pure.

Nothing that is unknown counts for a connector: a producer with an unknown owner leaves it unproven.

Likely causes of duplicate or missing records come from the connector's config and the other findings. A likely cause is
a place to look first, and proves nothing by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum, unique

import msgspec
from msgspec import Struct

from eosctl.audit import codes
from eosctl.audit.log.ledger import Return
from eosctl.audit.log.tallies import PlaceTally, WrittenBy
from eosctl.audit.rows import AuditRow, ProducerPart, Verdict
from eosctl.audit.rules import OutputPartitions, Unjudged, successors_overtaken
from eosctl.audit.scope import OFFSETS_RECORD
from eosctl.codes import Code
from eosctl.core.configs.losses import losses_of
from eosctl.core.findings import ERROR, INFO, SEVERITIES, WARNING
from eosctl.core.ids import Owner, ProducerId, TransactionalId, task_of
from eosctl.core.records import Place
from eosctl.core.wording import counted, rfc3339


@unique
class OwnerKind(StrEnum):
    """The owner of a producer: this connector, another or eosctl, an application, none (no transactions), unknown."""

    OWN = "own"
    KNOWN = "known"
    OTHER = "other"
    PLAIN = "plain"
    UNKNOWN = "unknown"


_OF_OFFSETS = {codes.OFFSETS_WITHOUT_TRANSACTION, codes.OFFSETS_ELSEWHERE, codes.SOURCE_OFFSET_WENT_BACK}
_OF_ALL = {codes.BATCH_NOT_TRANSACTIONAL, codes.EPOCH_WENT_BACK, codes.ZOMBIE_WROTE, codes.CRC_WRONG, *_OF_OFFSETS}
_SEVERITIES: Mapping[Code, str] = {
    codes.TRANSACTION_ABORTED: INFO,
    codes.FOREIGN_PRODUCER: WARNING,
    codes.PRODUCER_UNKNOWN: WARNING,
    codes.OFFSETS_ELSEWHERE: WARNING,
    codes.FOREIGN_OFFSETS: WARNING,
}


class KnownProducer(Struct, frozen=True):
    """A producer of an output topic, with its owner in a word and in a phrase.

    `is_used_by_others`: only some of its transactions have offsets records, which each of a task has.
    """

    written: WrittenBy
    transactional_id: TransactionalId | None
    identified_by: str
    owner_kind: OwnerKind
    owner: str
    is_used_by_others: bool = False

    def part(self) -> ProducerPart:
        """Return the producer as it is printed."""
        seen = self.written
        return ProducerPart(
            transactional_id=self.transactional_id,
            producer_id=seen.producer_id,
            epochs=[seen.lowest_epoch, seen.highest_epoch],
            from_ms=_time(seen.from_ms),
            to_ms=_time(seen.to_ms),
            records=seen.records,
            identified_by=self.identified_by,
            owner=self.owner,
        )


def known_producer(
    written: WrittenBy,
    transactional_id: TransactionalId | None,
    identified_by: str,
    owner: Owner | None,
    *,
    connector: str,
    group_id: str | None,
    has_offsets: bool,
    is_used_by_others: bool = False,
    former: Collection[str] = (),
) -> KnownProducer:
    """Decide who owns a producer, by evidence; `has_offsets`: it committed offsets of the connector.

    A transactional id that is known and is no task's of this connector outweighs these. `former` are connectors that
    the group once had: that an id looks like one of the group's shows nothing, as another group's name may begin alike.
    """
    work = None if transactional_id is None else task_of(transactional_id, group_id or "")
    owner_kind: OwnerKind
    if not written.is_transactional:
        owner_kind, words = OwnerKind.PLAIN, "plain"
    elif owner is not None and owner.kind == "task" and owner.connector == connector:
        owner_kind, words = OwnerKind.OWN, "task"
    elif owner is not None and owner.kind == "task":
        owner_kind, words = OwnerKind.KNOWN, f"connector {owner.connector}"
    elif owner is not None and owner.kind in ("eosctl", "leader"):
        owner_kind, words = OwnerKind.KNOWN, owner.kind
    elif has_offsets and (transactional_id is None or (work is not None and work[0] == connector)):
        owner_kind, words = OwnerKind.OWN, "task"
        identified_by = OFFSETS_RECORD if transactional_id is None else identified_by
    elif work is not None and work[0] in former:
        owner_kind, words = OwnerKind.KNOWN, f"connector {work[0]}, which is gone"
    elif owner is not None:
        owner_kind, words = OwnerKind.OTHER, owner.application or owner.kind
    else:
        owner_kind, words = OwnerKind.UNKNOWN, "unknown"
    return KnownProducer(written, transactional_id, identified_by, owner_kind, words, is_used_by_others)


def findings(
    connector: str,
    tallies: Iterable[PlaceTally],
    producers: Mapping[ProducerId, KnownProducer],
    *,
    planned_ms: int,
    timeout_ms: int,
    more: Iterable[tuple[PlaceTally, str]] = (),
) -> list[AuditRow]:
    """Make the rows, errors first, then by topic and partition. `more` are findings about records, with messages."""
    found = [
        *tallies,
        *_of_others(producers.values()),
        *_of_zombies(producers.values()),
    ]
    counted_tallies = [(tally, None) for tally in found if _counts(tally, producers.get(tally.producer_id))]
    rows = [
        _row(connector, tally, producers.get(tally.producer_id), words, planned_ms=planned_ms, timeout_ms=timeout_ms)
        for tally, words in [*counted_tallies, *more]
    ]
    return sorted(rows, key=lambda row: (SEVERITIES.index(row.severity), row.code, row.topic, row.partition))


def _counts(tally: PlaceTally, producer: KnownProducer | None) -> bool:
    """Return whether it is about the connector, or must never be; what others do in their transactions is theirs."""
    if tally.code == codes.FOREIGN_OFFSETS:
        return (
            producer is not None and producer.owner_kind != OwnerKind.OWN and producer.owner not in _WRITERS_OF_OFFSETS
        )
    return (
        tally.code in _OF_ALL
        or producer is None
        or producer.owner_kind == OwnerKind.OWN
        or tally.code in _SEVERITIES_OF_OTHERS
    )


_SEVERITIES_OF_OTHERS = {codes.FOREIGN_PRODUCER, codes.PRODUCER_UNKNOWN}
_WRITERS_OF_OFFSETS = {"eosctl"}
"""Clients that write offsets of connectors by order of an operator."""


def shared_source_partitions(
    returns: Iterable[Return], producers: Mapping[ProducerId, KnownProducer]
) -> Iterator[tuple[PlaceTally, str]]:
    """Yield a finding for each place and producer that commits a source partition in turn with another one."""
    found: dict[tuple[Place, ProducerId], tuple[PlaceTally, str]] = {}
    for each in returns:
        pair = [producers.get(producer_id) for producer_id in (each.part.producer_id, each.other)]
        if any(one is not None and one.owner in _WRITERS_OF_OFFSETS for one in pair):
            continue  # the task goes on from what it has in memory
        if not any(one is not None and one.owner_kind == OwnerKind.OWN for one in pair):
            continue
        part = each.part
        key = ((part.topic, part.partition), part.producer_id)
        if key not in found:
            tally = PlaceTally(
                codes.SOURCE_PARTITION_SHARED, part.topic, part.partition, part.producer_id, part.epoch,
                part.first_offset, part.last_offset, part.ended_ms,
            )  # fmt: skip
            names = (_name_of(one, number) for one, number in zip(pair, (part.producer_id, each.other), strict=True))
            text = each.source_partition.key.decode("utf-8", "backslashreplace")
            found[key] = tally, f"{' and '.join(names)} commit offsets of the key {text}"
        tally, _words = found[key]
        tally.last_offset, tally.count = part.last_offset, tally.count + 1
    yield from found.values()


def _name_of(producer: KnownProducer | None, producer_id: ProducerId) -> str:
    return (None if producer is None else producer.transactional_id) or f"producer id {producer_id}"


def _of_others(producers: Collection[KnownProducer]) -> Iterator[PlaceTally]:
    """Yield a finding for each partition that a foreign or unknown producer wrote to."""
    for each in producers:
        if each.owner_kind in (OwnerKind.OWN, OwnerKind.PLAIN):
            continue
        code = codes.PRODUCER_UNKNOWN if each.owner_kind == OwnerKind.UNKNOWN else codes.FOREIGN_PRODUCER
        seen = each.written
        for (topic, partition), (first, last, count) in seen.places.items():
            yield PlaceTally(
                code, topic, partition, seen.producer_id, seen.lowest_epoch, first, last, seen.from_ms, count,
                seen.records,
            )  # fmt: skip


def _of_zombies(producers: Collection[KnownProducer]) -> Iterator[PlaceTally]:
    """Yield producers that wrote after another took over their id: a new producer id comes with its first epoch."""
    by_id: dict[TransactionalId, list[ProducerId]] = {}
    for each in producers:
        if each.transactional_id is not None:
            by_id.setdefault(each.transactional_id, []).append(each.written.producer_id)
    same_id = [each for each in by_id.values() if len(each) > 1]
    written = [each.written for each in producers]
    for (topic, partition), older, _newer, last in successors_overtaken(written, same_id=same_id):
        seen = next(each for each in written if each.producer_id == older)
        yield PlaceTally(codes.ZOMBIE_WROTE, topic, partition, older, seen.highest_epoch, last, last, seen.to_ms, 1)


def _row(
    connector: str,
    tally: PlaceTally,
    producer: KnownProducer | None,
    words: str | None,
    *,
    planned_ms: int,
    timeout_ms: int,
) -> AuditRow:
    severity = tally.severity or _SEVERITIES.get(tally.code, ERROR)
    if tally.code == codes.TRANSACTION_OPEN:
        severity = WARNING if planned_ms - tally.at_ms > timeout_ms else INFO
    elif tally.code == codes.SOURCE_OFFSET_WENT_BACK and (producer is None or producer.owner_kind != OwnerKind.OWN):
        severity = WARNING  # an operator's order
    return AuditRow(
        severity=severity,
        code=str(tally.code),
        connector=connector,
        topic=tally.topic,
        partition=tally.partition,
        first_offset=tally.first_offset,
        last_offset=tally.last_offset,
        count=tally.count,
        producer_id=tally.producer_id if tally.producer_id >= 0 else None,
        producer_epoch=tally.epoch if tally.epoch >= 0 else None,
        transactional_id=None if producer is None else producer.transactional_id,
        at_ms=_time(tally.at_ms),
        at=rfc3339(tally.at_ms),
        message=_message(tally, producer, words),
        fix=_fix(tally, producer),
        evidence={"records": tally.records},
    )


def _fix(tally: PlaceTally, producer: KnownProducer | None) -> str:
    """Return the next step; where only some transactions of an id have no offset, its connector is not to blame."""
    if tally.code != codes.TRANSACTION_WITHOUT_OFFSETS or producer is None or not producer.is_used_by_others:
        return tally.code.next
    name = producer.transactional_id or f"producer id {producer.written.producer_id}"
    return (
        f"Other transactions of {name} have source offsets, so another producer may use this id: `eosctl txn log` "
        "shows each time that it was taken."
    )


_SENTENCES: Mapping[Code, str] = {
    codes.BATCH_NOT_TRANSACTIONAL: "{count} of {records} written without a transaction",
    codes.TRANSACTION_WITHOUT_OFFSETS: "{count} with {records} committed without a source offset",
    codes.TRANSACTION_TORN: "{count} with {records} aborted here and committed elsewhere",
    codes.OFFSETS_WITHOUT_RECORDS: "{count} committed source offsets, and the records are gone",
    codes.SOURCE_OFFSET_WENT_BACK: "{count} committed a source offset that lies before the former one, or deleted it",
    codes.FOREIGN_OFFSETS: "{count} committed source offsets of the connector, by {whom}",
    codes.OFFSETS_WITHOUT_TRANSACTION: "{count} of source offsets written without a transaction",
    codes.OFFSETS_ELSEWHERE: "{count} committed source offsets here, which is not the offsets topic in use",
    codes.TRANSACTION_ABORTED: "{count} with {records} aborted",
    codes.TRANSACTION_OPEN: "{count} with {records} not ended",
    codes.EPOCH_WENT_BACK: "{count} of an older producer epoch after a newer one",
    codes.ZOMBIE_WROTE: "{count} by a producer that had a successor",
    codes.COMMIT_MARKERS_MISSING: "{count} with {records} committed elsewhere, and without a marker here",
    codes.FOREIGN_PRODUCER: "{count} by {whom}",
    codes.PRODUCER_UNKNOWN: "{count} in transactions of an unknown producer",
    codes.CRC_WRONG: "{count} with a wrong checksum",
}
_RECORD_SENTENCES: Mapping[Code, str] = {
    codes.DUPLICATE: "{count} with a value that came before, the first {what}",
    codes.GAP: "{count} missing before it, {what}",
    codes.MIRROR_GAP: "{count} missing: {what}",
    codes.MIRROR_DUPLICATE: "{count} too many: {what}",
    codes.SOURCE_TOPIC_RECREATED: "{what}",
    codes.SOURCE_PARTITION_SHARED: "{what} in turn, {count} times",
}
_BATCHES = {
    codes.BATCH_NOT_TRANSACTIONAL, codes.OFFSETS_WITHOUT_TRANSACTION, codes.EPOCH_WENT_BACK, codes.CRC_WRONG,
    codes.FOREIGN_PRODUCER, codes.PRODUCER_UNKNOWN, codes.OFFSETS_WITHOUT_RECORDS,
}  # fmt: skip


def _message(tally: PlaceTally, producer: KnownProducer | None, words: str | None) -> str:
    what = "batch" if tally.code in _BATCHES else "transaction"
    number = f"{tally.count:,} {what}" + ("" if tally.count == 1 else "es" if what == "batch" else "s")
    whom = "" if producer is None else producer.owner
    if producer is not None and producer.transactional_id is not None:
        whom = f"{producer.transactional_id} ({whom})"
    sentence = (
        f"{number} without a marker of its own, which a later one ended"
        if tally.code == codes.COMMIT_MARKERS_MISSING and tally.severity == WARNING
        else _SENTENCES[tally.code].format(count=number, records=counted(tally.records, "record"), whom=whom)
        if words is None
        else _RECORD_SENTENCES[tally.code].format(count=f"{tally.count:,}", what=words)
    )
    offsets = (
        f"offset {tally.first_offset}"
        if tally.first_offset == tally.last_offset
        else f"offsets {tally.first_offset} to {tally.last_offset}"
    )
    who = "" if tally.producer_id < 0 else f", producer id {tally.producer_id} epoch {tally.epoch}"
    return f"{tally.topic}-{tally.partition}, {offsets}: {sentence}{who}"


def judge(
    rows: Sequence[AuditRow],
    producers: Collection[KnownProducer],
    outputs: OutputPartitions,
    *,
    lacks: Sequence[str],
) -> tuple[Verdict, str, Sequence[str]]:
    """Return the verdict, why, and all for which nothing can be proven, whatever the verdict is; `lacks` are some."""
    wrong = [row for row in rows if row.severity == ERROR]
    own = [each for each in producers if each.owner_kind == OwnerKind.OWN]
    committed = sum(each.written.count("committed") for each in own)
    reasons = [*lacks, *_doubts(rows, producers), *_unjudged(outputs, {each.written.producer_id for each in own})]
    if not committed:
        reasons.append("no transaction of the connector was committed in the window")
    if wrong:
        by_code = Counter[str]()
        for row in wrong:
            by_code[row.code] += row.count
        found = ", ".join(f"{count:,} {code}" for code, count in by_code.items())
        return Verdict.NOT_EXACTLY_ONCE, f"Found {found}.", reasons
    if reasons:
        return Verdict.UNPROVEN, f"Not proven: {'; '.join(reasons)}.", reasons
    records = sum(each.written.records for each in own)
    why = (
        f"{counted(records, 'record')} of its tasks {'was' if records == 1 else 'were'} committed, each in a "
        f"transaction with its source offset; {counted(committed, 'transaction')} in all."
    )
    return Verdict.EXACTLY_ONCE, why, ()


def _doubts(rows: Sequence[AuditRow], producers: Collection[KnownProducer]) -> Iterator[str]:
    """Yield why others, or an operator, leave it open."""
    strange = [
        each for each in producers if each.owner_kind in (OwnerKind.UNKNOWN, OwnerKind.OTHER) and each.written.places
    ]
    if strange:
        named = ", ".join(each.transactional_id or f"producer id {each.written.producer_id}" for each in strange[:3])
        yield f"{named} wrote to the topics, and it is not known that this is not the connector's"
    others = {row.transactional_id or "" for row in rows if row.code == str(codes.FOREIGN_OFFSETS)}
    if others:
        yield f"{', '.join(sorted(others)[:3])} committed offsets of the connector, and is no task of it here"
    if any(row.code == str(codes.SOURCE_OFFSET_WENT_BACK) for row in rows):
        yield "source offsets were put back or deleted, so records are delivered again"


def _unjudged(outputs: OutputPartitions, own: Collection[ProducerId]) -> Iterator[str]:
    for why in Unjudged:
        count = sum(
            number for (producer_id, each), number in outputs.unjudged.items() if each is why and producer_id in own
        )
        if count:
            yield why.format(count=counted(count, "transaction"))


def _time(at_ms: int) -> int | None:
    return at_ms if at_ms >= 0 else None


_DROPS = (codes.GAP, codes.MIRROR_GAP)
_REPEATS = (codes.DUPLICATE, codes.MIRROR_DUPLICATE)
_LOSES = (codes.TRANSACTION_TORN, codes.OFFSETS_WITHOUT_RECORDS, codes.COMMIT_MARKERS_MISSING, codes.CRC_WRONG)
_REPEATING = (
    codes.SOURCE_PARTITION_SHARED, codes.FOREIGN_OFFSETS, codes.ZOMBIE_WROTE, codes.SOURCE_OFFSET_WENT_BACK,
    codes.OFFSETS_WITHOUT_TRANSACTION, codes.BATCH_NOT_TRANSACTIONAL, codes.TRANSACTION_WITHOUT_OFFSETS,
)  # fmt: skip


def with_causes(
    rows: Sequence[AuditRow], config: Mapping[str, str], producers: Collection[KnownProducer]
) -> list[AuditRow]:
    """Return the rows, those about records that are missing or twice with what to look at before their own next step.

    `config` is the connector's as it is now.
    """
    codes_found = {row.code for row in rows}
    others = sorted({each.transactional_id or "" for each in producers if each.is_used_by_others} - {""})
    explained = []
    for row in rows:
        if row.code in _DROPS:
            dropped = losses_of(config).sentences(with_untold=True) if row.code == codes.GAP else ()
            causes = [*_explained(codes_found, _LOSES), *dropped, *_shared(others)]
        elif row.code in _REPEATS:
            causes = [*_explained(codes_found, _REPEATING), *_shared(others)]
        else:
            causes = []
        explained.append(msgspec.structs.replace(row, fix=" ".join([*causes, row.fix])) if causes else row)
    return explained


def _explained(there: Collection[str], by: Sequence[str]) -> Iterator[str]:
    if found := [str(code) for code in by if code in there]:
        yield f"See {', '.join(found)} of this audit first."


def _shared(ids: Sequence[str]) -> Iterator[str]:
    if ids:
        yield f"Another producer may use {', '.join(ids[:3])}: `eosctl txn log` shows each time that an id was taken."
