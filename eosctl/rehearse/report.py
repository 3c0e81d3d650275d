"""The reports of a rehearsal: its plan, its result, and the result as an HTML page.

The page has no outside references, and is fit to be filed as evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from eosctl.core.wording import rfc3339
from eosctl.errors import ExitCode
from eosctl.foreign import html_text
from eosctl.output.cells import duration
from eosctl.rehearse import codes
from eosctl.rehearse import plan as feed
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
from eosctl.state.backups import write_blocks
from eosctl.state.journal import Progress

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


_STYLE = """
:root { color-scheme: light dark; --line: #8886; --ok: #1a7f37; --bad: #b42318; --open: #8a6100 }
@media (prefers-color-scheme: dark) { :root { --ok: #3fb950; --bad: #ff7b72; --open: #e3b341 } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line) }
th[scope=row] { font-weight: 600; white-space: nowrap }
.exactly_once { color: var(--ok) } .not_exactly_once, .not_recovered { color: var(--bad) }
.unproven, .exactly_once_by_transactions { color: var(--open) }
.verdict { font-weight: 600; white-space: nowrap }
code { overflow-wrap: anywhere }
@media print { body { margin: 0; max-width: none } tr { break-inside: avoid } }
"""


def write_page(report: Report, path: Path) -> None:
    """Write the page; raise EosctlError if that fails, and keep what was there before."""
    write_blocks(path.expanduser(), [page_of(report).encode()])


def page_of(report: Report) -> str:
    """Return the HTML page of a `rehearse-result`."""
    summary, data = report.summary_of(RehearsalSummary), report.data_of(Surroundings)
    title = f"Rehearsal of {html_text(summary.connector)}"
    rows = "\n".join(_row(row) for row in report.rows_of(FaultRow))
    facts = "\n".join(
        f"<tr><th scope=row>{html_text(name)}</th><td>{value}</td></tr>" for name, value in _facts(report)
    )
    problems = "".join(f"<p class=not_recovered>{html_text(each.message)}</p>" for each in report.problems)
    return (
        f"<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n<title>{title}</title>\n"
        '<meta name=viewport content="width=device-width, initial-scale=1">\n<link rel=icon href="data:,">\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        f"<p>{_verdict(summary.verdict)}: {summary.exactly_once} of {len(report.rows)} exactly once, "
        f"{summary.exactly_once_by_transactions} as far as transactions show, {summary.failed} failed, "
        f"{summary.unproven} unproven. Judged: {', '.join(summary.judged)}; not judged: "
        f"{', '.join(summary.not_judged) or 'nothing'}.</p>\n{problems}\n"
        "<h2>Faults</h2>\n<table>\n<thead><tr><th>Fault<th>At<th>Recovered<th>Verdict<th>What was seen</tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody>\n</table>\n<h2>What was rehearsed</h2>\n<table>\n<tbody>\n{facts}\n</tbody>\n"
        f"</table>\n<p>Repeat with: <code>{html_text(data.repeat)}</code></p>\n</body>\n</html>\n"
    )


def _row(row: FaultRow) -> str:
    recovered = "no" if row.recovered_ms is None else duration(row.recovered_ms)
    found = "".join(f"<br>{html_text(each.severity)}: {html_text(each.message)}" for each in row.findings)
    window = ""
    if row.window is not None:
        since = rfc3339(row.window.since_ms) if row.window.since_ms else "the beginning"
        window = f"<br>audited: {since} to {rfc3339(row.window.until_ms)}"
    return (
        f"<tr><th scope=row>{html_text(row.fault)}</th><td>{rfc3339(row.at_ms)}</td><td>{html_text(recovered)}</td>"
        f"<td>{_verdict(row.verdict)}</td><td>{html_text(row.evidence)}{window}{found}</td></tr>"
    )


def _verdict(verdict: FaultVerdict) -> str:
    return f'<span class="verdict {verdict.value}">{verdict.replace("_", " ")}</span>'


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    summary, data = report.summary_of(RehearsalSummary), report.data_of(Surroundings)
    yield "Connector", f"{html_text(summary.connector)} ({html_text(data.connector_class)})"
    yield "Kafka", html_text(summary.kafka_version)
    yield "Brokers, workers", f"{summary.brokers}, {summary.workers} (started in mode {html_text(summary.start_mode)})"
    yield "Seed", str(summary.seed)
    for name, value in data.outside.items():
        yield "Outside system", f"{html_text(name)}: {html_text(value)}"
    for name, value in data.shared.items():
        yield "Taken there", f"{html_text(name)}: {html_text(value)}"
    for label, lines in (
        ("Changed", data.changed),
        ("Taken from the worker", data.taken),
        ("Not taken from it", data.not_taken),
        ("Left out", [f"{each.fault}, which {each.why}" for each in data.left_out]),
    ):
        if lines:
            yield label, "<br>".join(map(html_text, lines))
