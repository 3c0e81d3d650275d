"""The audit in a rehearsal: `eosctl audit` itself, its result in the shape of a fault's row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eosctl.app import App
from eosctl.audit import codes
from eosctl.audit.audit import audit
from eosctl.audit.rows import AuditData, AuditRow
from eosctl.audit.scope import BEGINNING, AuditRequest
from eosctl.core.wording import counted, rfc3339
from eosctl.errors import EosctlError, ExitCode, InterruptedByUserError
from eosctl.rehearse.log.internal_topics import SourceOffsets, read_source_offsets
from eosctl.rehearse.log.values import read_sequences
from eosctl.rehearse.proof import FaultAudit, FaultAuditRequest
from eosctl.rehearse.rows import FaultVerdict, FoundPart

_COUNTED = "info"
_STRANGE = (codes.PRODUCER_UNKNOWN, codes.FOREIGN_PRODUCER)


def audit_connector(app: App, asked: FaultAuditRequest) -> FaultAudit:
    """Audit from the window's begin to the end of the log; the verdict is unproven if something could not be read."""
    request = AuditRequest(
        connector=asked.connector,
        offsets_topics=asked.offsets_topics,
        unique=asked.unique,
        sequence=asked.sequence,
        writes_alone=True,
        **_begin(asked),
    )
    try:
        report = audit(app, request)
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        why = f"the audit failed: {exc.message}"
        return FaultAudit(FaultVerdict.UNPROVEN, why, lacks=(why,), unread=(why,))
    if report.exit_code is ExitCode.INTERRUPTED:
        raise KeyboardInterrupt  # the audit ends with what it read; a rehearsal ends, too
    (connector,) = report.data_of(AuditData).connectors
    seen, transactions = connector.transactions, counted(connector.transactions.committed, "transaction")
    records = counted(connector.records, "record")
    why = f"{connector.why} ({records} in {transactions}, {seen.aborted} aborted, {seen.open} open)"
    rows = report.rows_of(AuditRow)
    found = tuple(_part(row) for row in rows if not _is_expected(row, asked))
    strange = [row.message for row in rows if row.code in _STRANGE]
    offsets, progress, unread = _progress(app, asked, connector.topics)
    problems = [*(each.message for each in report.problems), *unread]
    lacks = tuple(dict.fromkeys([*problems, *connector.unproven, *connector.window.unseen, *strange]))
    verdict = FaultVerdict(connector.verdict.value)
    if verdict is FaultVerdict.EXACTLY_ONCE and problems:
        verdict, why = FaultVerdict.UNPROVEN, f"Not proven: {'; '.join(problems)}. {why}"
    return FaultAudit(
        verdict, why, found, lacks=lacks, unread=tuple(problems), delivered=connector.records, offsets=offsets,
        progress=progress,
    )  # fmt: skip


def _begin(asked: FaultAuditRequest) -> dict[str, Any]:
    """Return where the window begins: at positions of the logs if there are some, else at a time."""
    if asked.begin:
        return {"since": BEGINNING, "begin": asked.begin}
    return {"since": rfc3339(asked.window.since_ms or None) or BEGINNING}


def _progress(
    app: App, asked: FaultAuditRequest, topics: Sequence[str]
) -> tuple[SourceOffsets | None, dict[str, int], list[str]]:
    """Read the source offsets and the progress of each source partition and sequence; list what could not be read."""
    if not asked.is_present:
        return None, {}, []
    try:
        offsets = read_source_offsets(app, asked.connector)
        sequences = {} if asked.sequence is None else read_sequences(app, topics, asked.sequence)
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return None, {}, [f"the progress was not read: {exc.message}"]
    commits = {f"source partition {name}": count for name, count in offsets.commits.items()}
    return offsets, {**commits, **sequences}, []


def _is_expected(row: AuditRow, asked: FaultAuditRequest) -> bool:
    """Decide whether a finding is expected: of severity info, or offsets that the rehearsal itself moved."""
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
