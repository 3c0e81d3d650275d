"""Pages of HTML: evidence to view, print and file, in one file without references to others.

Every text goes through `html_text`. `report_page` shows any report; `audit` and `rehearse` have more to draw, and make
their pages of the same parts.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from typing import cast

from eosctl.core.wording import counted, rfc3339
from eosctl.errors import ExitCode
from eosctl.foreign import html_text
from eosctl.output.cells import format_cell, summary_line
from eosctl.output.rows import FindingRow, Kind, columns_of, wide_columns_of
from eosctl.output.text import write_text
from eosctl.report import Report, plain

STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --ink: #1c2430; --soft: #5a6675; --line: #d5dbe3; --lane: #f1f4f8;
  --good: #15703a; --bad: #b3261e; --unsure: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --page: #14181e; --ink: #e4e9f0; --soft: #9aa7b8; --line: #323b47;
  --lane: #1e242c; --good: #5fcf8b; --bad: #ff8d85; --unsure: #e7b860; } }
@media print { :root { color-scheme: light; --page: #ffffff; --ink: #000000; --soft: #444444; --line: #bbbbbb;
  --lane: #f3f3f3; --good: #15703a; --bad: #b3261e; --unsure: #8a5a00; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  tr { break-inside: avoid; } h2 { break-after: avoid; }
  main { max-width: none !important; padding: 0 !important; } html { font-size: 10.5px; }
  body { font-size: 1rem !important; } pre { white-space: pre-wrap; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 2rem 1.5rem 3rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .6rem; }
p { margin: .4rem 0; overflow-wrap: anywhere; }
.verdict { display: inline-block; padding: .15rem .7rem; border-radius: .3rem; font-weight: 600; border: 2px solid; }
.good, .exactly_once { color: var(--good); } .bad, .not_exactly_once, .not_recovered, .error { color: var(--bad); }
.unproven, .exactly_once_by_transactions, .warning { color: var(--unsure); } .info, .soft { color: var(--soft); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.25rem; margin: 1.25rem 0 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .75rem .4rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; } td { overflow-wrap: anywhere; } .number { text-align: right; }
.fixed { white-space: nowrap; } code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
code { overflow-wrap: anywhere; } li { overflow-wrap: anywhere; }
pre { overflow-x: auto; background: var(--lane); padding: .75rem 1rem; font-size: .8rem; margin: 0; }
.wide { overflow-x: auto; }
footer { margin-top: 2.5rem; color: var(--soft); font-size: .85rem; }
@media screen and (max-width: 50rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .5rem; }
  main { padding: 1.25rem 1rem 2rem; } }
"""
_MOST_ROWS = 500
_LONGEST_WHOLE = 24  # characters: a longer cell may be broken anywhere, for the others' sake
_VERDICTS = {
    ExitCode.OK: ("good", "ok"),
    ExitCode.FINDINGS: ("bad", "findings"),
    ExitCode.PARTIAL: ("unproven", "not everything was done or seen"),
    ExitCode.REFUSED: ("bad", "refused"),
    ExitCode.INTERRUPTED: ("unproven", "interrupted"),
}


def page(title: str, body: Iterable[str], *, made_ms: int | None, style: str = "") -> Iterator[str]:
    """Yield a page, line by line; `body` is HTML, `title` is text, `style` adds to that of all pages."""
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{html_text(title)}</title>"
    yield f"<style>{STYLE}{style}</style>\n</head>\n<body>\n<main>"
    yield from body
    when = "" if made_ms is None else f" at {rfc3339(made_ms)}"
    yield f"<footer>Made by eosctl {html_text(version('eosctl'))}{when}. Times are UTC.</footer>"
    yield "</main>\n</body>\n</html>"


def verdict_line(style: str, words: str) -> str:
    """Return the verdict in its frame."""
    return f'<p><span class="verdict {style}">{html_text(words)}</span></p>'


def facts_list(facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield names with their values, which are text; a value of Lines has several lines."""
    yield "<dl>"
    yield from (f"<dt>{html_text(name)}</dt><dd>{html_text(value)}</dd>" for name, value in facts)
    yield "</dl>"


def table(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield a table; `rows` have cells as HTML, `<td>` included."""
    heading = "".join(f"<th>{html_text(head)}</th>" for head in heads)
    yield f'<div class="wide"><table><thead><tr>{heading}</tr></thead><tbody>'
    for cells in rows:
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def text_list(heading: str, texts: Sequence[str], *, none: str) -> Iterator[str]:
    """Yield a section with a line for each text, or the sentence `none`."""
    yield f"<h2>{html_text(heading)}</h2>"
    if not texts:
        yield f"<p>{html_text(none)}</p>"
        return
    yield f"<ul>{''.join(f'<li>{html_text(text)}</li>' for text in texts)}</ul>"


def report_page(report: Report, *, asked: str, made_ms: int) -> Iterator[str]:
    """Yield the page of any report: what was asked, the verdict, findings, what was not seen, and the whole answer."""
    command = asked.removeprefix("eosctl ").partition(" -")[0]
    style, words = _verdict(report)
    yield from page(f"{command}: {words}", _report_body(report, command, asked, style, words), made_ms=made_ms)


def _verdict(report: Report) -> tuple[str, str]:
    """Return the colour of the verdict, and its words."""
    style, words = _VERDICTS.get(report.exit_code, ("bad", "failed"))
    if report.exit_code is not ExitCode.OK:
        return style, words
    if report.kind.endswith("-plan"):
        return "soft", "a plan, nothing was written"
    findings = _findings(report.rows)
    return ("unproven", f"ok, with {counted(len(findings), 'finding')}") if findings else (style, words)


def _findings(rows: Sequence[object]) -> Sequence[FindingRow]:
    """Return the rows if they are findings, whatever their class."""
    return cast("Sequence[FindingRow]", rows) if rows and hasattr(rows[0], "severity") else []


def _report_body(report: Report, command: str, asked: str, style: str, words: str) -> Iterator[str]:
    yield f"<h1>eosctl {html_text(command)}</h1>"
    yield verdict_line(style, words)
    if isinstance(report.kind, Kind):
        yield f"<p>{html_text(report.kind.what)}</p>"
    yield from facts_list(_facts(report, asked))
    for problem in report.problems:
        yield f'<p class="{problem.severity}">{problem.severity}: {html_text(problem.message)}</p>'
        if problem.hint:
            yield f"<p>{html_text(problem.hint)}</p>"
    yield from _rows(report)
    unseen = report.datum("unseen")
    if isinstance(unseen, list):  # a command without it does not say that it saw everything
        texts = [f"{part['subject'] or part['what']}: {part['why']} {part['would_show']}".strip() for part in unseen]
        yield from text_list("What was not seen", texts, none="Everything that the command promises to judge was seen.")
    yield "<h2>The answer in full</h2>"
    yield f"<pre>{chr(10).join(map(html_text, _as_text(report)))}</pre>"


def _facts(report: Report, asked: str) -> Iterator[tuple[str, str]]:
    yield "Asked", asked
    yield "Kafka cluster", format_cell(report.target.get("kafka_cluster_id"))
    yield "Connect group", format_cell(report.target.get("group_id"))
    yield "Exit code", str(int(report.exit_code))
    if numbers := summary_line(plain(report.summary)):
        yield "In numbers", numbers


def _rows(report: Report) -> Iterator[str]:
    rows = report.rows[:_MOST_ROWS]
    if findings := _findings(rows):
        yield f"<h2>Findings</h2>\n<p>{counted(len(report.rows), 'finding')}.</p>"
        yield from table(("Severity", "What, where, and what to do"), map(_finding_cells, findings))
    elif rows and isinstance(report.kind, Kind):
        columns = (*columns_of(report.kind), *wide_columns_of(report.kind))
        if columns:
            yield "<h2>Rows</h2>"
            cells = ([_cell(column.cell(row)) for column in columns] for row in rows)
            yield from table([column.header for column in columns], cells)
    if len(report.rows) > len(rows):
        yield f"<p>{counted(len(report.rows) - len(rows), 'more row')}: -o json has them.</p>"


def _finding_cells(row: FindingRow) -> Iterator[str]:
    yield f'<td class="fixed {row.severity}">{row.severity}</td>'
    yield f"<td><code>{html_text(row.code)}</code> {html_text(row.subject)}<br>{html_text(row.message)}"
    yield f'<br><span class="soft">{html_text(row.fix)}</span></td>'


def _cell(text: str) -> str:
    fixed = ' class="fixed"' if len(text) <= _LONGEST_WHOLE else ""
    return f"<td{fixed}>{html_text(text)}</td>"


def _as_text(report: Report) -> list[str]:
    text = io.StringIO()
    write_text(report, text, color=False, wide=True)
    return text.getvalue().splitlines()
