"""The positions of a connector's source offsets, and a comparison of a MirrorMaker's copies with its source topics.

The positions are those in an offsets topic, with the source offsets that went back. The comparison counts what the
source topics have in the ranges that were copied, and reads the source cluster's logs for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.audit import codes
from eosctl.audit.log.mirror import Copied, Mirror, SourceCount, mirror_findings, mirror_offset
from eosctl.audit.log.segments import PartitionFold
from eosctl.audit.log.tallies import PlaceTally
from eosctl.audit.rules import ConnectorOffsets
from eosctl.audit.scope import Scope
from eosctl.connectors.dedicated import patient
from eosctl.core.clients.own_brokers import source_brokers
from eosctl.core.configs.records import MIRROR_SOURCE, is_class
from eosctl.core.ids import ProducerId
from eosctl.core.offsets.records import OffsetKey, is_nothing
from eosctl.core.records import Place, Record, Span, UnseenReason, Window
from eosctl.errors import EosctlError, InterruptedByUserError, UnreachableError
from eosctl.offsets.history.events import ConnectorFilter, lies_before, members_of
from eosctl.offsets.history.sources import may_be_known
from eosctl.report import Problem


class _Counted(Struct, frozen=True):
    """Committed records in the copied ranges, the bounds of the partitions, and why some could not be counted."""

    counts: Mapping[Place, SourceCount]
    starts: Mapping[Place, int]
    ends: Mapping[Place, int]
    lost: Mapping[Place, str]


def compare_with_source(
    app: App, scope: Scope, mirror: Mirror | None, own: Collection[ProducerId]
) -> tuple[list[tuple[PlaceTally, str]], list[Problem]]:
    """Compare the copies of the connector's `own` producers; return findings, and what could not be compared."""
    if mirror is None:
        is_changed = is_class(scope.config, MIRROR_SOURCE)
        return [], [_unproven("copies were not compared: transforms may leave records out")] if is_changed else []
    copies = mirror.copies(own)
    problems = [_unproven(text) for text in copies.unsure]
    if not copies.parts and not copies.went_back:
        return [], problems
    try:
        counted = _count(_source_app(app, scope), (*copies.parts, *copies.went_back))
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return [], [*problems, _unproven(f"the source topics were not compared: {exc.message}", exc.hint)]
    found, unsure = mirror_findings(copies, counted.counts, counted.ends, counted.starts)
    lost = [
        f"{topic}-{partition} of the source was not compared: {why}"
        for (topic, partition), why in sorted(counted.lost.items())
    ]
    return found, [*problems, *map(_unproven, (*lost, *unsure))]


def _unproven(text: str, hint: str | None = None) -> Problem:
    return Problem(codes.NOT_PROVEN, text, hint)


def _source_app(app: App, scope: Scope) -> App:
    """Return the source cluster's app, by the connector's config; raises EosctlError if its settings can't be used."""
    here = app.target.client.bootstrap_servers if app.target.client else ()
    brokers = source_brokers(scope.config, here=here)
    if brokers is None:
        return app
    if brokers.settings is None:
        raise EosctlError(f"the source cluster is {brokers.servers}, and {brokers.why_not}")
    return patient(replace(app, target=replace(app.target, client=brokers.settings)))


def _count(app: App, copies: Collection[Copied]) -> _Counted:
    bounds: dict[Place, set[int]] = {}
    for each in copies:
        bounds.setdefault(each.source, set()).update((each.first - 1, each.last))
    lost: dict[Place, str] = {}
    with app.topics() as store:
        existing = store.describe(sorted({topic for topic, _partition in bounds}))
    for topic, partition in bounds:
        if topic not in existing:
            lost[topic, partition] = "the topic does not exist"
    with app.batches() as log:
        plan = log.plan(sorted(existing), Window())
        spans = {place: span for span in plan.spans if (place := (span.topic, span.partition)) in bounds}
        for place in bounds.keys() - spans.keys() - lost.keys():
            lost[place] = "nobody leads it"
        counts = {place: SourceCount(sorted(bounds[place])) for place in spans}
        folds = {place: PartitionFold(counts[place]) for place in spans}
        # a transaction that began before the ranges counts with what it has in them
        narrow = tuple(_from(span, min(bounds[place]) + 1) for place, span in spans.items())
        scan = log.scan(replace(plan, spans=narrow))
        for batch in scan:
            folds[batch.topic, batch.partition].take(batch)
        lost |= {
            place: each.detail
            for each in scan.unseen()
            if each.reason is UnseenReason.UNREADABLE and (place := (each.topic, each.partition)) in spans
        }
    for place, fold in folds.items():
        if fold.removed:
            lost[place] = "compaction removed records"
    return _Counted(
        {place: count for place, count in counts.items() if place not in lost},
        {place: span.log_start for place, span in spans.items()},
        {place: span.end for place, span in spans.items()},
        lost,
    )


def _from(span: Span, first: int) -> Span:
    return replace(span, first=max(span.first, min(first, span.stop)))


@dataclass(slots=True)
class OffsetPlaces:
    """The connector's offsets by partition; `key_names` are its offset keys, by the numbers that `of` has.

    `uncompared` says what of them could not be compared, each in a sentence. `_newest` has the last offset of each
    source partition that can be compared, `fallen` the keys of those one of whose offsets lies before the last one: of
    these the committed ones are compared in a second reading, as most such offsets come after an abort.
    """

    of: dict[int, ConnectorOffsets] = field(default_factory=dict)
    key_names: list[bytes] = field(default_factory=list)
    fallen: set[bytes] = field(default_factory=set)
    uncompared: tuple[str, ...] = ()
    _numbers: dict[bytes, int] = field(default_factory=dict)
    _newest: dict[tuple[bytes, int], Record] = field(default_factory=dict)

    def sieve(self, connector: str, *, is_mirror: bool) -> Callable[[Sequence[Record]], Sequence[Record]]:
        """Return what TopicReader.read hands its records to; it keeps none."""
        its = ConnectorFilter(connector)

        def look(records: Sequence[Record]) -> Sequence[Record]:
            for record in its(records):
                self._take(record, its.keys[record.key or b""], is_mirror=is_mirror)
            return ()

        return look

    def _take(self, record: Record, key: OffsetKey, *, is_mirror: bool) -> None:
        offsets = self.of.setdefault(record.partition, ConnectorOffsets())
        if is_nothing(record.value) or key.partition is None:  # an offset without a source partition nobody finds again
            offsets.deletions.append(record.offset)
            if key.raw in self._numbers:  # the source starts over
                offsets.went_back.add(record.offset)
            self._newest.pop((key.raw, record.partition), None)
            return
        number = self._numbers.setdefault(key.raw, len(self.key_names))
        if number == len(self.key_names):
            self.key_names.append(key.raw)
        offsets.values.append(record.offset)
        offsets.keys.append(number)
        if is_mirror and (copied := mirror_offset(key.partition, members_of(record.value), record.topic)) is not None:
            offsets.mirrored[record.offset] = copied
        if may_be_known(key.partition):
            before = self._newest.get((key.raw, record.partition))
            if before is not None and lies_before(key, record, before):
                self.fallen.add(key.raw)
            self._newest[key.raw, record.partition] = record

    def compare(self, connector: str) -> Callable[[Sequence[Record]], Sequence[Record]]:
        """Return the same for the committed records of the keys that have `fallen`."""
        its = ConnectorFilter(connector)
        newest: dict[tuple[bytes, int], Record] = {}

        def look(records: Sequence[Record]) -> Sequence[Record]:
            for record in its(records):
                key = its.keys[record.key or b""]
                if key.raw not in self.fallen:
                    continue
                place = (key.raw, record.partition)
                if is_nothing(record.value):
                    newest.pop(place, None)
                    continue
                if (before := newest.get(place)) is not None and lies_before(key, record, before):
                    self.of[record.partition].went_back.add(record.offset)
                newest[place] = record
            return ()

        return look

    def last_offset(self, partition: int) -> int:
        """Return the offset of the connector's last record of a partition; -1 for none."""
        values = self.of[partition].values if partition in self.of else ()
        return values[-1] if values else -1


def find_places(
    scope: Scope, topic: str, spans: Sequence[Span], *, is_mirror: bool
) -> tuple[OffsetPlaces, Mapping[int, str]]:
    """Find the connector's offsets in what can be read of these partitions, and why of the others nothing can."""
    places, wanted = OffsetPlaces(), {span.partition: span.first for span in spans}
    if not wanted:
        return places, {}
    look = places.sieve(scope.connector, is_mirror=is_mirror)
    try:
        with scope.app.with_whole_timeout().topics() as store:
            found = store.read(topic, isolation="read_uncommitted", partly=True, since=wanted, keep=look, renews=True)
        if places.fallen:
            places.uncompared = _compare(scope, topic, wanted, places)
    except UnreachableError as exc:
        return places, dict.fromkeys(wanted, exc.message)
    return places, {number: str(why) for number, why in found.missing.items() if number in wanted}


def _compare(scope: Scope, topic: str, wanted: Mapping[int, int], places: OffsetPlaces) -> tuple[str, ...]:
    """Compare the committed offsets of the keys that have fallen; what an open transaction hides can't be compared."""
    look = places.compare(scope.connector)
    with scope.app.with_whole_timeout().topics() as store:
        found = store.read(topic, partly=True, since=dict(wanted), keep=look, renews=True)
    hidden: Collection[int] = {
        each.partition for each in found.bounds if each.lso <= places.last_offset(each.partition)
    } | (found.missing.keys() & wanted.keys())
    return tuple(f"offsets of {topic}-{number} that could not be read were not compared" for number in sorted(hidden))
