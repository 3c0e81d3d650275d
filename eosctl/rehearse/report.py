"""The reports of a rehearsal: its plan, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eosctl.errors import ExitCode
from eosctl.rehearse import codes, feed
from eosctl.rehearse.plan import DUPLICATES, LOSS, TRANSACTIONS, RehearsalPlan
from eosctl.rehearse.rows import (
    REHEARSE_PLAN,
    REHEARSE_RESULT,
    WORST_FIRST,
    FaultRow,
    FaultVerdict,
    LeftOut,
    PlannedFault,
    RehearsalPlanSummary,
    RehearsalSummary,
    Surroundings,
)
from eosctl.report import Problem, Report
from eosctl.state.steps import Progress

_EXIT_CODES = {
    FaultVerdict.EXACTLY_ONCE: ExitCode.OK,
    FaultVerdict.EXACTLY_ONCE_BY_TRANSACTIONS: ExitCode.OK,
    FaultVerdict.UNPROVEN: ExitCode.PARTIAL,
    FaultVerdict.NOT_RECOVERED: ExitCode.FINDINGS,
    FaultVerdict.NOT_EXACTLY_ONCE: ExitCode.FINDINGS,
}


def show_plan(plan: RehearsalPlan) -> Report:
    """Report what will be started, and the faults in order."""
    rows = [PlannedFault(fault=fault, what=what) for fault, what in plan.first()]
    return Report(
        kind=REHEARSE_PLAN, rows=rows, summary=RehearsalPlanSummary(**_summary(plan)), data=surroundings(plan)
    )


def result_report(
    plan: RehearsalPlan, rows: Sequence[FaultRow], progress: Progress[None], *, problems: Sequence[Problem] = ()
) -> Report:
    """Report the result: exit 3 if a fault failed, 7 if one is unproven or the rehearsal ended early.

    `problems` are those of the sandbox's end: 7, too. So is, with --strict, what only transactions show.
    """
    verdict = worst(rows)
    exit_code = _EXIT_CODES[verdict]
    if plan.request.strict and verdict is FaultVerdict.EXACTLY_ONCE_BY_TRANSACTIONS:
        exit_code = ExitCode.PARTIAL
    if progress.error is not None and exit_code is not ExitCode.FINDINGS:
        exit_code = progress.error.exit_code if progress.interrupted or not rows else ExitCode.PARTIAL
    elif problems and exit_code is ExitCode.OK:
        exit_code = ExitCode.PARTIAL
    if progress.interrupted:
        exit_code = ExitCode.INTERRUPTED
    return Report(
        kind=REHEARSE_RESULT,
        rows=list(rows),
        summary=RehearsalSummary(
            **_summary(plan),
            verdict=verdict,
            exactly_once=sum(row.verdict is FaultVerdict.EXACTLY_ONCE for row in rows),
            exactly_once_by_transactions=sum(row.verdict is FaultVerdict.EXACTLY_ONCE_BY_TRANSACTIONS for row in rows),
            failed=sum(_EXIT_CODES[row.verdict] is ExitCode.FINDINGS for row in rows),
            unproven=sum(row.verdict is FaultVerdict.UNPROVEN for row in rows),
        ),
        data=surroundings(plan),
        problems=[*_problems(progress), *problems],
        exit_code=exit_code,
    )


def worst(rows: Sequence[FaultRow]) -> FaultVerdict:
    """Return the worst verdict of all rows."""
    return min((row.verdict for row in rows), key=WORST_FIRST.index, default=FaultVerdict.UNPROVEN)


def _problems(progress: Progress[None]) -> list[Problem]:
    if progress.error is None:
        return []
    if progress.interrupted or progress.failed is None:
        return [Problem.of(progress.error)]
    message = f"the rehearsal ended at {progress.failed}: {progress.error.message}"
    return [Problem(codes.REHEARSAL_ENDED_EARLY, message, progress.error.hint or codes.REHEARSAL_ENDED_EARLY.next)]


def surroundings(plan: RehearsalPlan) -> Surroundings:
    """Return the surroundings of the connector."""
    request, connector = plan.request, plan.connector
    return Surroundings(
        connector_class=connector.config["connector.class"] if connector else feed.CLASS,
        outside={**request.worker.outside, **(connector.outside if connector else {})},
        shared=dict(connector.shared) if connector else {},
        changed=list(connector.changed) if connector else [],
        taken=sorted(request.worker.taken),
        not_taken=list(request.worker.left_out),
        left_out=[LeftOut(fault=name, why=why) for name, why in plan.left_out.items()],
        minutes=request.minutes,
        repeat=plan.repeat(),
    )


def _summary(plan: RehearsalPlan) -> dict[str, Any]:
    request = plan.request
    return {
        "connector": plan.connector_name,
        "sandbox": plan.sandbox,
        "kafka_version": plan.version,
        "brokers": request.brokers,
        "workers": request.workers,
        "start_mode": request.start_mode.value,
        "seed": request.seed,
        "judged": [each for each in (TRANSACTIONS, DUPLICATES, LOSS) if each not in plan.not_judged()],
        "not_judged": list(plan.not_judged()),
    }
