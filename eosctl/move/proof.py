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
from eosctl.move.journal import BegunMove, Ends, places_of
from eosctl.move.rows import SideAudit
from eosctl.move.sides import Side
from eosctl.report import Problem, Report

_BEFORE_MS = 60_000
"""What is audited of the side that it left: the last minute before it was stopped, or less if it came later."""


class Proof(Struct, frozen=True):
    """The verdict about both sides together, and the audit of each."""

    verdict: Verdict
    audits: tuple[SideAudit, ...]
    problems: tuple[Problem, ...] = ()

    def sentence(self) -> str:
        """Return the result of the step."""
        return ", ".join(f"{each.side}: {each.verdict}" for each in self.audits)


def prove(
    origin: Side, target: Side, *, left: Ends | None, left_ms: int, arrived: Ends | None, came: BegunMove | None
) -> Proof:
    """Audit both sides; what can't be audited is unproven.

    `came` is the move that brought it to the side that it leaves: what lies before that in the same topics, the other
    side's tasks wrote.
    """
    since_ms = max(0, left_ms - _BEFORE_MS)
    begin = places_of(came.arrived or {}) if came is not None and came.arrived_ms > since_ms else None
    before = AuditRequest(
        connector=origin.connector,
        since=rfc3339(since_ms) or BEGINNING,
        begin=begin,
        end=places_of(left or {}),
    )
    after = AuditRequest(connector=target.connector, since=BEGINNING, begin=places_of(arrived or {}))
    audits, problems = [], []
    for side, request, ends in ((origin, before, left), (target, after, arrived)):
        found, problem = _audited(side, request, is_cut=ends is not None)
        audits.append(found)
        problems += [] if problem is None else [problem]
    verdicts = {each.verdict for each in audits}
    worst = next(
        each for each in (Verdict.NOT_EXACTLY_ONCE, Verdict.UNPROVEN, Verdict.EXACTLY_ONCE) if each in verdicts
    )
    return Proof(worst, tuple(audits), tuple(problems))


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
