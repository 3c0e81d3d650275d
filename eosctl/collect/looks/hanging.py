"""Hanging transactions, as `txn hanging` finds them. Reads only."""

from __future__ import annotations

from eosctl.app import App
from eosctl.checks.group.rules import hanging_findings
from eosctl.collect.facts import HangingFacts, OrphanTransaction
from eosctl.collect.overview import Overview
from eosctl.core.ids import TransactionalId
from eosctl.errors import UnauthorizedError
from eosctl.report import plain
from eosctl.txn.faults import NOT_CHECKED
from eosctl.txn.partitions import find_hanging_transactions
from eosctl.txn.rows import HangingRow, HangingSummary


def look_for_hanging(app: App, _overview: Overview) -> HangingFacts:
    """Find hanging transactions on all visible partitions; raises UnauthorizedError where none is visible."""
    report = find_hanging_transactions(app, None)
    partitions = report.summary_of(HangingSummary).partitions
    if not partitions:
        raise UnauthorizedError("no topic can be seen, so no transaction either", hint="Grant DESCRIBE on the topics.")
    rows = report.rows_of(HangingRow)
    certain = [row for row in rows if row.reason != NOT_CHECKED]
    certain.sort(key=lambda row: row.last_timestamp_ms or 0)
    return HangingFacts(
        tuple(map(_hanging, certain)),
        partitions,
        unasked=len(rows) - len(certain),
        findings=tuple(hanging_findings(map(plain, certain))),
    )


def _hanging(row: HangingRow) -> OrphanTransaction:
    known_id = None if row.transactional_id is None else TransactionalId(row.transactional_id)
    return OrphanTransaction(row.topic, row.partition, row.producer_id or -1, row.last_timestamp_ms or 0, known_id)
