"""Counts what a MirrorMaker's source topics have in the range that was copied: reads the source cluster's logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from eosctl.app import App
from eosctl.audit import codes
from eosctl.audit.log.mirror import Copied, SourceCount, mirror_findings
from eosctl.audit.log.segments import PartitionFold
from eosctl.audit.log.tallies import PlaceTally
from eosctl.audit.scope import Scope
from eosctl.connectors.elsewhere import patient
from eosctl.core.batches import Place, Span, Window
from eosctl.core.clients.own_brokers import source_brokers
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.report import Problem


def compare_with_source(
    app: App, scope: Scope, copied: Mapping[Place, Copied]
) -> tuple[list[tuple[PlaceTally, str]], list[Problem]]:
    """What is wrong with the copies, and what could not be compared."""
    if not copied:
        return [], []
    try:
        there = _source_app(app, scope)
        counted, ends, lost = _count(there, copied)
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return [], [
            Problem(codes.NOT_PROVEN, f"the source topics were not compared: {exc.message}", exc.hint, "warning")
        ]
    problems = [
        Problem(codes.NOT_PROVEN, f"{topic}-{partition} of the source was not compared: {why}", severity="warning")
        for (topic, partition), why in sorted(lost.items())
    ]
    return list(mirror_findings(copied, counted, ends)), problems


def _source_app(app: App, scope: Scope) -> App:
    """The way to the source cluster, by the connector's config; raises EosctlError where eosctl can't go."""
    here = app.target.client.bootstrap_servers if app.target.client else ()
    brokers = source_brokers(scope.config, here=here)
    if brokers is None:
        return app
    if brokers.settings is None:
        raise EosctlError(f"the source cluster is {brokers.servers}, and {brokers.why_not}")
    return patient(replace(app, target=replace(app.target, client=brokers.settings)))


def _count(app: App, copied: Mapping[Place, Copied]) -> tuple[dict[Place, int], dict[Place, int], dict[Place, str]]:
    """Committed records in the copied ranges, the ends of the partitions, and why some could not be counted."""
    wanted = {each.source: each for each in copied.values()}
    lost: dict[Place, str] = {}
    with app.topics() as store:
        existing = store.describe(sorted({topic for topic, _partition in wanted}))
    for topic, partition in wanted:
        if topic not in existing:
            lost[topic, partition] = "the topic does not exist"
    with app.batches() as log:
        plan = log.plan(sorted(existing), Window())
        spans = {place: span for span in plan.spans if (place := (span.topic, span.partition)) in wanted}
        ends = {place: span.end for place, span in spans.items()}
        for place in wanted.keys() - spans.keys() - lost.keys():
            lost[place] = "nobody leads it"
        for place, span in list(spans.items()):
            if span.log_start > wanted[place].first:
                lost[place] = f"it begins at offset {span.log_start}, and offset {wanted[place].first} was copied"
                del spans[place]
        counts = {place: SourceCount(wanted[place].first, wanted[place].last) for place in spans}
        folds = {place: PartitionFold(counts[place]) for place in spans}
        # a transaction that began before the range counts with what it has in it
        narrow = tuple(_from(span, wanted[place].first) for place, span in spans.items())
        for batch in log.scan(replace(plan, spans=narrow)):
            folds[batch.topic, batch.partition].take(batch)
    for place, fold in folds.items():
        if fold.removed:
            lost[place] = "compaction removed records"
    return {place: count.records for place, count in counts.items() if place not in lost}, ends, lost


def _from(span: Span, first: int) -> Span:
    return span._replace(first=max(span.first, min(first, span.stop)))
