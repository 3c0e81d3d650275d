"""Audits both sides of a move: what the connector wrote here up to the stop, and there since the start.

The logs are cut where the connector was stopped, and before it was started: the ends of its partitions then. Between
them its offsets went from one side to the other, read back and equal byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from eosctl.audit.audit import audit
from eosctl.audit.rows import AuditData, Verdict
from eosctl.audit.scope import BEGINNING, AuditRequest
from eosctl.core.wording import rfc3339
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.move import codes
from eosctl.move.journal import Ends, places_of
from eosctl.move.rows import SideAudit
from eosctl.move.sides import Side
from eosctl.report import Problem, Report

_BEFORE_MS = 60_000
"""What is audited of the side that it left: the last minute before it was stopped."""


class MoveProof(Struct, frozen=True):
    """The verdict about both sides together, and the audit of each."""

    verdict: Verdict
    audits: tuple[SideAudit, ...]
    problems: tuple[Problem, ...] = ()

    def sentence(self) -> str:
        """Return the result of the step."""
        return ", ".join(f"{each.side}: {each.verdict}" for each in self.audits)


class Handover(Struct, frozen=True):
    """The ends of the connector's partitions: `left` when it had been stopped, `arrived` before it was started.

    `came` are those before it was started, at `came_ms`, on the side that it leaves, if a move had brought it there.
    """

    left: Ends | None = None
    left_ms: int = 0
    arrived: Ends | None = None
    came: Ends | None = None
    came_ms: int = 0

    def before(self, connector: str) -> AuditRequest:
        """Return the audit of the side that it left: of the last minute, or since it had come."""
        since_ms, end = max(0, self.left_ms - _BEFORE_MS), places_of(self.left or {})
        if self.came is not None and self.came_ms > since_ms:
            return AuditRequest(connector=connector, since=BEGINNING, begin=places_of(self.came), end=end)
        return AuditRequest(connector=connector, since=rfc3339(since_ms) or BEGINNING, end=end)

    def after(self, connector: str) -> AuditRequest:
        """Return the audit of the side that it moved to: of all since the start."""
        return AuditRequest(connector=connector, since=BEGINNING, begin=places_of(self.arrived or {}))


def prove(origin: Side, target: Side, handover: Handover) -> MoveProof:
    """Audit both sides; what can't be audited is unproven."""
    before, after = handover.before(origin.connector), handover.after(target.connector)
    audits, problems = [], []
    for side, request, ends in ((origin, before, handover.left), (target, after, handover.arrived)):
        found, problem = _audited(side, request, is_cut=ends is not None)
        audits.append(found)
        problems += [] if problem is None else [problem]
    verdicts = {each.verdict for each in audits}
    worst = next(
        each for each in (Verdict.NOT_EXACTLY_ONCE, Verdict.UNPROVEN, Verdict.EXACTLY_ONCE) if each in verdicts
    )
    return MoveProof(worst, tuple(audits), tuple(problems))


def _audited(side: Side, request: AuditRequest, *, is_cut: bool) -> tuple[SideAudit, Problem | None]:
    name: Literal["here", "there"] = "here" if side.profile is None else "there"
    try:
        report: Report | None = audit(side.pinned(), request) if is_cut else None
        why = "where its partitions ended at the handover is not known"
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        report, why = None, exc.message
    if report is None:
        made = SideAudit(side=name, verdict=Verdict.UNPROVEN, why=f"Not audited: {why}.", transactions=0, records=0)
    else:
        [connector] = report.data_of(AuditData).connectors
        made = SideAudit(
            side=name,
            verdict=connector.verdict,
            why=connector.why,
            transactions=connector.transactions.committed,
            records=connector.records,
        )
    return made, _problem(side, made)


def _problem(side: Side, made: SideAudit) -> Problem | None:
    code = {Verdict.UNPROVEN: codes.MOVE_UNPROVEN, Verdict.NOT_EXACTLY_ONCE: codes.MOVE_NOT_EXACTLY_ONCE}.get(
        made.verdict
    )
    if code is None:
        return None
    words = "is not proven to have been exactly-once" if code is codes.MOVE_UNPROVEN else "was not exactly-once"
    return Problem(code, f"{side.connector} in {side.where} {words}: {made.why}", hint=code.next)


def ends_of(side: Side, config: Mapping[str, str], topics: Sequence[str]) -> dict[str, list[int]]:
    """Return the present ends of those topics that exist on the cluster that the connector's tasks write to."""
    with side.of_tasks(config).topics() as reader:
        there = reader.describe(topics, configs=False)
        return {topic: [bound.end for bound in bounds] for topic, bounds in reader.bounds_of(sorted(there)).items()}
