"""Looks again at what a reading left open: markers still to come, records of transactions with offsets only.

Ends of partitions are looked up one after the other, and brokers write the markers of a transaction one after the
other. So before something is said to be missing, what lies behind the ends is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from eosctl.audit import codes
from eosctl.audit.identity import unended_places
from eosctl.audit.log.ledger import CLOCKS_MS, Ledger, Transaction
from eosctl.audit.log.segments import Part
from eosctl.audit.rules import LogRead, Unjudged
from eosctl.audit.scope import Scope
from eosctl.core.batches import Batch, Place, ScanPlan, Span, UnseenReason, Window
from eosctl.core.ids import ProducerId
from eosctl.deadline import Deadline
from eosctl.ports import BatchLog

_AGAIN_S = 0.5
_MARKERS_S = 10.0
"""The time for a transaction's markers to reach all of its partitions."""
_NEVER_MS = 1 << 62
_ProducerAt = tuple[str, int, ProducerId]


def settle(scope: Scope, log: BatchLog, plan: ScanPlan, read: LogRead) -> None:
    """Judge parts without an end, and transactions with offsets only; `plan` is the plan of the output topics."""
    cut_off = {(span.topic, span.partition) for span in plan.spans if span.stop < span.end}
    _settle_outputs(scope, log, read, cut_off)
    _settle_offsets(scope, log, read)
    _find_recordless(scope, log, read, cut_off)


def _settle_outputs(scope: Scope, log: BatchLog, read: LogRead, cut_off: Collection[Place]) -> None:
    """Judge the transactions that have not ended in an output partition; what a window has `cut_off` ends behind it."""
    outputs, ledger = read.outputs, read.ledger
    unreadable = {(each.topic, each.partition) for each in read.unseen if each.reason is UnseenReason.UNREADABLE}
    left: list[tuple[int, Part]] = []
    for span in read.spans:
        place = (span.topic, span.partition)
        is_lost = place in unreadable or read.folds[place].next_offset < span.stop
        for part in read.folds[place].still_open():
            ledger.has_records(part.producer_id, part.epoch)
            if is_lost and place not in cut_off:
                outputs.left_open(part, ended_since=None)
            elif ledger.is_over(part.producer_id, part.epoch) or _is_doubtful(scope, ledger, part):
                left.append((span.stop, part))
            elif place not in cut_off:
                outputs.left_open(part, ended_since=True)
    for part, marker in _markers_behind(scope, log, left):
        has_ended = None if marker is None else marker is not False or _is_still_to_come(scope, ledger, part)
        if not (has_ended and (part.topic, part.partition) in cut_off):
            outputs.left_open(part, ended_since=has_ended)


def _is_doubtful(scope: Scope, ledger: Ledger, part: Part) -> bool:
    """Check whether the part may be over, as others of its epoch are, unless its coordinator reports it as open."""
    return ledger.may_be_over(part) and not _is_unended(scope, part)


def _is_unended(scope: Scope, part: Part) -> bool | None:
    """Check whether its coordinator reports that its marker is still to come; None: it does not know the producer."""
    unended = unended_places(scope.app, [part.producer_id]).get(part.producer_id)
    return None if unended is None else (part.epoch, (part.topic, part.partition)) in unended


def _is_still_to_come(scope: Scope, ledger: Ledger, part: Part) -> bool | None:
    """Check whether its marker is still to come, as a leader may be away for long; None: unknown.

    A producer begins no later transaction before all markers of a former one are written.
    """
    return False if ledger.is_over(part.producer_id, part.epoch + 1) else _is_unended(scope, part)


def _markers_behind(
    scope: Scope, log: BatchLog, left: Sequence[tuple[int, Part]]
) -> Iterator[tuple[Part, Batch | bool | None]]:
    """Yield each part that must have ended with the marker that came behind its stop; False: none; None: not read.

    Brokers write a transaction's markers one after the other: missing ones get a moment to come.
    """
    waiting: dict[_ProducerAt, tuple[int, list[Part]]] = {}
    for stop, part in left:
        waiting.setdefault((part.topic, part.partition, part.producer_id), (stop, []))[1].append(part)
    lost: set[Place] = set()
    patience_s = min(_MARKERS_S, scope.app.deadline.remaining_s() / 2)
    for _ in Deadline.after(patience_s, scope.app.clock).rounds(_AGAIN_S):
        if not waiting:
            return
        ended, lost = _first_markers(log, {key: stop for key, (stop, _parts) in waiting.items()})
        for key in ended.keys() & waiting.keys():
            yield from ((part, ended[key]) for part in waiting.pop(key)[1])
    for _stop, parts in waiting.values():
        yield from ((part, None if (part.topic, part.partition) in lost else False) for part in parts)


def _first_markers(log: BatchLog, waiting: Mapping[_ProducerAt, int]) -> tuple[dict[_ProducerAt, Batch], set[Place]]:
    """Find the first marker of each producer behind an offset, and the partitions that could not be read."""
    stops = {(topic, partition): stop for (topic, partition, _producer), stop in waiting.items()}
    plan = log.plan(sorted({topic for topic, _partition in stops}), Window())
    spans = {(span.topic, span.partition): span for span in plan.spans if (span.topic, span.partition) in stops}
    narrow = tuple(replace(span, first=min(stops[place], span.stop)) for place, span in spans.items())
    scan = log.scan(ScanPlan(narrow))
    ended: dict[_ProducerAt, Batch] = {}
    for batch in scan:
        if batch.is_control and batch.commit is not None and batch.base_offset >= stops[batch.topic, batch.partition]:
            ended.setdefault((batch.topic, batch.partition, batch.producer_id), batch)
            if waiting.keys() <= ended.keys():
                break
    lost = {(each.topic, each.partition) for each in scan.unseen()} | (stops.keys() - spans.keys())
    return ended, lost


def _settle_offsets(scope: Scope, log: BatchLog, read: LogRead) -> None:
    """Judge the offsets of transactions that have not ended in the offsets topic, though they must have."""
    stops = {(span.topic, span.partition): span.stop for span in read.offsets_plan.spans}
    over = [
        part
        for part in read.ledger.open_offsets
        if read.ledger.is_over(part.producer_id, part.epoch) or _is_doubtful(scope, read.ledger, part)
    ]
    left = [(stops[part.topic, part.partition], part) for part in over]
    for part, marker in _markers_behind(scope, log, left):
        is_certain = read.ledger.is_over(part.producer_id, part.epoch)
        if marker is None or part.is_torn:
            read.outputs.unjudged[part.producer_id, Unjudged.TORN] += 1
        elif not isinstance(marker, bool):
            if marker.commit is not True and is_certain:
                read.tallies.part(codes.TRANSACTION_TORN, part)
        elif is_certain:
            is_to_come = _is_still_to_come(scope, read.ledger, part)
            if is_to_come is None:
                read.outputs.unjudged[part.producer_id, Unjudged.TORN] += 1
            elif not is_to_come:
                read.tallies.part(codes.COMMIT_MARKERS_MISSING, part)
        else:
            read.outputs.unjudged[part.producer_id, Unjudged.UNMARKED] += 1


def _find_recordless(scope: Scope, log: BatchLog, read: LogRead, cut_off: Collection[Place]) -> None:
    """Find transactions that committed offsets and have no record in the output topics, which are all read by now.

    The records of those that ended too early may have been removed: then the proven window begins behind them.
    """
    ledger, outputs = read.ledger, read.outputs
    since_ms, until_ms = _whole_time(read, cut_off)
    boundary = scope.config.get("transaction.boundary", "").lower() == "connector"
    found = {
        each
        for producer_id in ledger.producers()
        for each in ledger.without_records(producer_id, since_ms=_asked_ms(read), until_ms=until_ms)
        if not (boundary and ledger.follows_an_abort(each))
    }
    found -= {Transaction(part.producer_id, part.epoch) for part in read.ledger.went_back}  # a finding of its own
    shared = [
        (producer_id, ended_ms)
        for producer_id in ledger.producers()
        for ended_ms in ledger.shared_without_records(
            producer_id, since_ms=_asked_ms(read), until_ms=until_ms - CLOCKS_MS
        )
    ]
    if not found and not shared:
        return
    begun, ended = _what_lies_behind(log, read.spans)
    found -= begun
    if found:
        _place_recordless(log, read, found, since_ms)
    for producer_id, ended_ms in shared:
        if any(abs(ended_ms - each) <= CLOCKS_MS for each in ended.get(producer_id, ())):
            continue
        if ended_ms < since_ms:
            outputs.proven_since_ms = max(outputs.proven_since_ms, ended_ms)
        else:
            outputs.unjudged[producer_id, Unjudged.RECORDLESS] += 1


def _asked_ms(read: LogRead) -> int:
    return -1 if read.window.since_ms is None else read.window.since_ms


def _whole_time(read: LogRead, cut_off: Collection[Place]) -> tuple[int, int]:
    """Return the range of time, by markers, in which no record of any output topic is missing; -1: no lower bound."""
    since_ms = _asked_ms(read)
    until_ms = _NEVER_MS if read.window.until_ms is None else read.window.until_ms
    unreadable = any(each.reason is UnseenReason.UNREADABLE for each in read.unseen)
    for place, fold in read.folds.items():
        if (fold.in_hole and not fold.is_empty) or unreadable:
            return _NEVER_MS, until_ms
        since_ms = max(since_ms, fold.removed_ms)
        if fold.starts_inside and read.begins_at_offsets:
            since_ms = max(since_ms, fold.first_marker_ms if fold.first_marker_ms >= 0 else _NEVER_MS)
        if place in cut_off and read.window.until_ms is None:
            until_ms = min(until_ms, fold.last_marker_ms)
    return since_ms if since_ms < 0 else since_ms + CLOCKS_MS, until_ms


def _what_lies_behind(
    log: BatchLog, spans: Sequence[Span]
) -> tuple[set[Transaction], Mapping[ProducerId, Sequence[int]]]:
    """Find the transactions that have records behind what was read, and when each producer's ended there.

    The ends of the output topics were looked up first, so that the offsets topics have later transactions.
    """
    stops = {(span.topic, span.partition): span.stop for span in spans}
    now = log.plan(sorted({topic for topic, _partition in stops}), Window())
    behind = tuple(
        replace(span, first=min(stops[span.topic, span.partition], span.stop))
        for span in now.spans
        if (span.topic, span.partition) in stops
    )
    begun, ended = set[Transaction](), defaultdict[ProducerId, list[int]](list)
    for batch in log.scan(ScanPlan(behind)):
        if not batch.is_control:
            begun.add(Transaction(batch.producer_id, batch.producer_epoch))
        elif batch.commit is not None:
            ended[batch.producer_id].append(batch.max_timestamp_ms)
    return begun, ended


def _place_recordless(log: BatchLog, read: LogRead, found: set[Transaction], since_ms: int) -> None:
    """Name where their offsets are; a marker in an output partition that has no record of it shows a loss there."""
    outputs = read.outputs
    begun: dict[_ProducerAt, Batch] = {}
    for batch in log.scan(read.offsets_plan):
        producer_at = (batch.topic, batch.partition, batch.producer_id)
        if not batch.is_control:
            if batch.is_transactional and Transaction(batch.producer_id, batch.producer_epoch) in found:
                begun.setdefault(producer_at, batch)
            continue
        first = begun.pop(producer_at, None)
        if first is None or batch.producer_epoch == first.producer_epoch:  # one of before that shares the epoch
            continue
        each = Transaction(first.producer_id, first.producer_epoch)
        if each not in found:
            continue
        found.discard(each)
        if batch.max_timestamp_ms < since_ms:
            outputs.proven_since_ms = max(outputs.proven_since_ms, batch.max_timestamp_ms)
        elif each in read.ledger.bare_commits:
            read.tallies.batch(codes.OFFSETS_WITHOUT_RECORDS, first)
        else:
            outputs.unjudged[batch.producer_id, Unjudged.RECORDLESS] += 1
