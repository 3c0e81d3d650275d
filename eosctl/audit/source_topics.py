"""Counts what a MirrorMaker's source topics have in the ranges that were copied: reads the source cluster's logs."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.audit import codes
from eosctl.audit.log.mirror import Copied, Mirror, SourceCount, mirror_findings
from eosctl.audit.log.segments import PartitionFold
from eosctl.audit.log.tallies import PlaceTally
from eosctl.audit.scope import Scope
from eosctl.connectors.elsewhere import patient
from eosctl.core.batches import Place, Span, UnseenReason, Window
from eosctl.core.clients.own_brokers import source_brokers
from eosctl.core.configs.classes import MIRROR_SOURCE, is_class
from eosctl.core.ids import ProducerId
from eosctl.errors import EosctlError, InterruptedByUserError
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
