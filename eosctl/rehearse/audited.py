"""The audit that a rehearsal asks: `eosctl audit` itself, its answer in the shape of a fault's row."""

from __future__ import annotations

from eosctl.app import App
from eosctl.audit import codes
from eosctl.audit.audit import audit
from eosctl.audit.rows import AuditData, AuditRow
from eosctl.audit.scope import BEGINNING, AuditRequest
from eosctl.core.wording import counted, rfc3339
from eosctl.errors import EosctlError, ExitCode
from eosctl.rehearse.proof import Asked, AuditSaid
from eosctl.rehearse.rows import FaultVerdict, FoundPart

_COUNTED = "info"
_STRANGE = (codes.PRODUCER_UNKNOWN, codes.FOREIGN_PRODUCER)


def audit_connector(app: App, asked: Asked) -> AuditSaid:
    """The verdict from the window's begin to the end of the log; what could not be read is unproven."""
    request = AuditRequest(
        connector=asked.connector,
        offsets_topics=asked.offsets_topics,
        since=rfc3339(asked.window.since_ms or None) or BEGINNING,
        unique=asked.unique,
        sequence=asked.sequence,
    )
    try:
        report = audit(app, request)
    except EosctlError as exc:
        return AuditSaid(FaultVerdict.UNPROVEN, f"the audit failed: {exc.message}")
    if report.exit_code is ExitCode.INTERRUPTED:
        raise KeyboardInterrupt  # the audit ends with what it read; a rehearsal ends, too
    (connector,) = report.data_of(AuditData).connectors
    seen, transactions = connector.transactions, counted(connector.transactions.committed, "transaction")
    records = counted(connector.records, "record")
    why = f"{connector.why} ({records} in {transactions}, {seen.aborted} aborted, {seen.open} open)"
    rows = report.rows_of(AuditRow)
    found = tuple(_part(row) for row in rows if not _is_expected(row, asked))
    strange = [row.message for row in rows if row.code in _STRANGE]
    problems = [each.message for each in report.problems]
    lacks = tuple(dict.fromkeys([*problems, *connector.window.unseen, *strange]))
    verdict = FaultVerdict(connector.verdict.value)
    if verdict is FaultVerdict.EXACTLY_ONCE and problems:
        verdict, why = FaultVerdict.UNPROVEN, f"Not proven: {'; '.join(problems)}. {why}"
    return AuditSaid(verdict, why, found, lacks=lacks, delivered=connector.records)


def _is_expected(row: AuditRow, asked: Asked) -> bool:
    """What every fault has, and the offsets in the topic to which the rehearsal itself had moved them."""
    moved = row.code == codes.OFFSETS_ELSEWHERE and row.topic in asked.offsets_topics
    return moved or row.severity == _COUNTED


def _part(row: AuditRow) -> FoundPart:
    facts = {
        "first_offset": row.first_offset,
        "last_offset": row.last_offset,
        "count": row.count,
        "producer_id": row.producer_id,
        "producer_epoch": row.producer_epoch,
        "transactional_id": row.transactional_id,
        "at_ms": row.at_ms,
    }
    return FoundPart(
        code=row.code,
        severity=row.severity,
        subject=f"{row.topic}-{row.partition}",
        message=row.message,
        evidence={**facts, **row.evidence},
    )
