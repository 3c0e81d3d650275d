"""`--unique` and `--sequence`: finds the fields, and checks their values in the committed records."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.audit import codes
from eosctl.audit.fields import OPEN_S, FieldRead, Take, auto_fields, is_debezium, read_field, topics_without_rows
from eosctl.audit.log.fields import ChangeEvents, NamedFields, parse_field_path
from eosctl.audit.log.values import Found, PartitionSeen, Seen, SequenceValues, UniqueValues, WriterKind, Writers
from eosctl.audit.rules import LogRead
from eosctl.audit.scope import AuditRequest
from eosctl.audit.verdict import KnownProducer, OwnerKind
from eosctl.core.ids import ProducerId
from eosctl.core.records import Place, ScanPlan, Span, UnseenReason, Window
from eosctl.core.wording import counted
from eosctl.deadline import Deadline
from eosctl.report import Problem

AUTO = "auto"
_AROUND_OFFSETS = 10_000
"""How far each partition is read before and behind the window, where a number is missing in it."""
_AGAIN_S = 1.0


class ValueCheck(Struct, frozen=True):
    """The fields that are read for an option."""

    option: str
    fields: NamedFields | ChangeEvents
    is_sequence: bool


class Fields(Struct, frozen=True):
    """The fields that are read, and `left_out`: topics without rows, and what they have instead.

    `notes` state the result of an option without any field.
    """

    checks: tuple[ValueCheck, ...] = ()
    left_out: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class ValuesChecked:
    """The result of the value checks: findings, problems of reading, and in `notes` what was taken for a value."""

    found: Found = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def wanted_fields(request: AuditRequest, config: Mapping[str, str]) -> Fields:
    """Return the fields to be read; raises UsageError for what names nothing, or is not known."""
    checks: list[ValueCheck] = []
    notes: list[str] = []
    is_its = is_debezium(config)
    for option, text in (("--unique", request.unique), ("--sequence", request.sequence)):
        if text is None:
            continue
        is_sequence = option == "--sequence"
        if text == AUTO and not is_sequence:
            known = auto_fields(config)
            if known is None:
                notes.append("--unique auto: no field, for copies are compared with their source by offsets")
                continue
            checks.append(ValueCheck(f"{option} auto", known, is_sequence))
        else:
            names = [text] if is_sequence else [name.strip() for name in text.split(",")]
            paths = tuple(dict.fromkeys(map(parse_field_path, names)))
            checks.append(ValueCheck(option, NamedFields(paths, passes_tombstones=is_its), is_sequence))
    left_out = {topic: why for topic, why in topics_without_rows(config).items() if topic not in request.topics}
    return Fields(tuple(checks), left_out, tuple(notes))


def check_values(
    app: App, read: LogRead, fields: Fields, producers: Mapping[ProducerId, KnownProducer]
) -> ValuesChecked:
    """Check the values of the connector's own records; each topic is read once per option."""
    done = ValuesChecked(notes=list(fields.notes))
    if not fields.checks:
        return done
    spans = [span for span in read.spans if span.topic not in fields.left_out]
    known = {each: _writer(producer) for each, producer in producers.items()}
    writer_of = _own_writer if set(known.values()) <= {WriterKind.OWN} else _writers(app, known, spans).of
    for check in fields.checks:
        values = SequenceValues() if check.is_sequence else UniqueValues()
        told = read_field(
            app, check.fields, spans, writer_of=writer_of, take=values.take,
            take_unknown=values.take_strange if isinstance(values, SequenceValues) else None,
        )  # fmt: skip
        seen: Seen = _seen(read, spans)
        if isinstance(values, SequenceValues) and (topics := values.topics_with_holes()):
            around = {
                place: (span.first, told.hidden.get(place, span.stop))
                for span in spans
                if (place := (span.topic, span.partition))[0] in topics
            }
            seen = _look_around(app, check, values, seen, around, known)
        rows, unsure = values.judge(seen)
        done.found += [each for each in rows if each not in done.found]  # a number that came twice is not unique
        texts = [*_lacks(check, told, values), *unsure]
        done.problems += [Problem(codes.NOT_PROVEN, text) for text in texts]
        if check.option.endswith(AUTO) or told.passed:
            done.notes.append(f"{check.option}: {check.fields}{_passed(told)}")
    done.problems += [
        Problem(codes.NOT_PROVEN, f"compaction removed values from {span.topic}-{span.partition}")
        for span in spans
        if _is_compacted(read, span)
    ]
    left_out = [f"{topic} ({why})" for topic, why in fields.left_out.items() if topic in {s.topic for s in read.spans}]
    if left_out:
        done.notes.append(f"left out: {', '.join(left_out)}")
    return done


def _own_writer(_place: Place, _offset: int) -> WriterKind:
    return WriterKind.OWN


def _writer(producer: KnownProducer) -> WriterKind:
    """Return the kind of writer; only a task of another connector's, or eosctl, is certainly not the connector."""
    return {OwnerKind.OWN: WriterKind.OWN, OwnerKind.KNOWN: WriterKind.OTHER}.get(
        producer.owner_kind, WriterKind.UNKNOWN
    )


def _writers(app: App, known: Mapping[ProducerId, WriterKind], spans: Sequence[Span]) -> Writers:
    """Read the headers of the batches once more, now that the owners of their producers are known."""
    writers = Writers(known)
    with app.with_whole_timeout().batches() as log:
        for batch in log.scan(ScanPlan(tuple(spans))):
            writers.take(batch)
    return writers


def _seen(read: LogRead, spans: Sequence[Span]) -> dict[Place, PartitionSeen]:
    """Return how much of each partition was seen; ends were looked up one after the other, so that none is sure."""
    unread = [each for each in read.unseen if each.reason is UnseenReason.UNREADABLE]
    return {
        (span.topic, span.partition): PartitionSeen(span.first == 0, False, not _is_compacted(read, span))
        for span in spans
    } | {(each.topic, each.partition): PartitionSeen(is_whole=False) for each in unread}


def _look_around(
    app: App,
    check: ValueCheck,
    values: SequenceValues,
    seen: Seen,
    around: Mapping[Place, tuple[int, int]],
    known: Mapping[ProducerId, WriterKind],
) -> Seen:
    """Read on before and behind the offsets that were read of some partitions, up to ends that are looked up now.

    A number is written after all lower ones. So those that are lower than one that was seen lie before these ends.
    Where that is not so, say as tasks share one sequence, what came since shows it while the ends move.
    """
    spans = _spans_now(app, around)
    before = [_before(span, around[place][0]) for place, span in spans.items()]
    told = _read_side(app, check, values, before, known, values.take_earlier)
    starts = {(each.topic, each.partition) for each in before if each.first == 0} & told.keys()
    seen = {place: replace(each, from_start=each.from_start or place in starts) for place, each in seen.items()}
    begins = {place: begin for place, (_first, begin) in around.items()}
    for _ in Deadline.after(min(OPEN_S, app.deadline.remaining_s() / 2), app.clock).rounds(_AGAIN_S):
        behind = [_behind(span, begins[place]) for place, span in spans.items()]
        told = _read_side(app, check, values, behind, known, values.take_later)
        begins |= told
        ends = {place for place, span in spans.items() if told.get(place) == span.end}
        seen = {place: replace(each, to_end=place in ends) for place, each in seen.items()}
        if all(span.first >= span.stop for span in behind) or not values.has_gap(seen):
            break
        spans = _spans_now(app, around)
    return seen


def _spans_now(app: App, places: Collection[Place]) -> dict[Place, Span]:
    with app.with_whole_timeout().batches() as log:
        plan = log.plan(sorted({topic for topic, _partition in places}), Window())
    return {place: span for span in plan.spans if (place := (span.topic, span.partition)) in places}


def _before(span: Span, stop: int) -> Span:
    first = max(span.log_start, stop - _AROUND_OFFSETS)
    return replace(span, first=min(first, stop), stop=stop)


def _behind(span: Span, first: int) -> Span:
    """Return nothing of a log that ends before: it is not the one that was read."""
    return replace(span, first=first, stop=max(first, min(span.end, first + _AROUND_OFFSETS)))


def _read_side(
    app: App,
    check: ValueCheck,
    values: SequenceValues,
    spans: Sequence[Span],
    known: Mapping[ProducerId, WriterKind],
    take: Take,
) -> dict[Place, int]:
    """Read these spans, and return up to where no record is lacking, of each partition that could be read."""
    stops = {(span.topic, span.partition): span.stop for span in spans}
    if not any(span.first < span.stop for span in spans):
        return stops
    writers = Writers(known)
    with app.with_whole_timeout().batches() as log:
        scan = log.scan(ScanPlan(tuple(spans)))
        for batch in scan:
            writers.take(batch)
        lost = {(each.topic, each.partition) for each in scan.unseen()}
    told = read_field(app, check.fields, spans, writer_of=writers.of, take=take, take_unknown=values.take_strange)
    return {place: stop for place, stop in (stops | told.hidden).items() if place not in lost}


def _lacks(check: ValueCheck, counts: FieldRead, values: UniqueValues | SequenceValues) -> Iterator[str]:
    if counts.records == counts.passed:
        yield f"no record has a value for {check.option}"
    elif counts.without and isinstance(check.fields, ChangeEvents):
        yield (
            f"{counts.without:,} of {counted(counts.records, 'record')} are no change events of Debezium's in JSON "
            "with a position or key of their own"
        )
    elif counts.without:
        noun = "fields" if "," in str(check.fields) else "field"
        yield f"{counts.without:,} of {counted(counts.records, 'record')} have no such {noun}"
    if isinstance(values, SequenceValues) and values.unreadable:
        yield f"{counted(values.unreadable, 'record')} have no number at the end of the field"
    if counts.unknown:
        yield f"{counted(counts.unknown, 'record')} of producers that may be the connector's were not compared"
    for (topic, partition), offset in sorted(counts.hidden.items()):
        yield f"{topic}-{partition} was read to offset {offset}, where an open transaction begins"


def _is_compacted(read: LogRead, span: Span) -> bool:
    fold = read.folds.get((span.topic, span.partition))
    return fold is not None and fold.removed > 0


def _passed(counts: FieldRead) -> str:
    return f" ({counted(counts.passed, 'tombstone')} passed over)" if counts.passed else ""
