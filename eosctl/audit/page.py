"""The page of `--report`: an audit to view, print and file, in one file without references to others.

Text from topics and configs is escaped. The page is written whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from eosctl.audit.log.tallies import ABORTED, COMMITTED, OPEN, TORN, Timeline
from eosctl.audit.rows import AuditedConnector, AuditRow, Verdict, proven_text
from eosctl.audit.verdict import KnownProducer, OwnerKind
from eosctl.core.findings import SEVERITIES
from eosctl.core.wording import counted, rfc3339
from eosctl.foreign import html_text
from eosctl.state.backups import write_blocks

_WIDTH, _HEIGHT = 1000, 28
_TICKS = 5
_STATES = (COMMITTED, ABORTED, OPEN, TORN)
_STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --ink: #1c2430; --soft: #5a6675; --line: #d5dbe3; --lane: #f1f4f8;
  --committed: #2f6fb3; --aborted: #c2410c; --open: #a16207; --torn: #7a1fa2;
  --good: #15703a; --bad: #b3261e; --unsure: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --page: #14181e; --ink: #e4e9f0; --soft: #9aa7b8; --line: #323b47;
  --lane: #1e242c; --committed: #6aa7e8; --aborted: #fb8a5c; --open: #e0b04a; --torn: #d59bf0;
  --good: #5fcf8b; --bad: #ff8d85;
  --unsure: #e7b860; } }
@media print { :root { color-scheme: light; --page: #ffffff; --ink: #000000; --soft: #444444; --line: #bbbbbb;
  --lane: #f3f3f3; --committed: #2f6fb3; --aborted: #c2410c; --open: #a16207; --torn: #7a1fa2;
  --good: #15703a; --bad: #b3261e; --unsure: #8a5a00; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  tr, .task { break-inside: avoid; } h2 { break-after: avoid; }
  main { max-width: none !important; padding: 0 !important; } html { font-size: 10.5px; }
  body { font-size: 1rem !important; }
  .task, .axis { grid-template-columns: 9rem 1fr 7rem !important; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 2rem 1.5rem 3rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .6rem; }
p { margin: .4rem 0; }
.verdict { display: inline-block; padding: .15rem .7rem; border-radius: .3rem; font-weight: 600; border: 2px solid; }
.exactly_once { color: var(--good); } .not_exactly_once, .error { color: var(--bad); }
.unproven, .warning { color: var(--unsure); } .info, .soft { color: var(--soft); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.25rem; margin: 1.25rem 0 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .75rem .4rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; } td { overflow-wrap: anywhere; } .number { text-align: right; }
.fixed { white-space: nowrap; } code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
.task, .axis { display: grid; grid-template-columns: 15rem 1fr 13rem; gap: 1rem; align-items: center; }
.task { padding: .3rem 0; border-bottom: 1px solid var(--line); font-size: .9rem; }
.task > :first-child { overflow-wrap: anywhere; }
.axis { color: var(--soft); font-size: .8rem; } .ticks { display: flex; justify-content: space-between; }
svg { display: block; width: 100%; height: 28px; background: var(--lane); }
.committed { fill: var(--committed); } .aborted { fill: var(--aborted); } .open { fill: var(--open); }
.torn { fill: var(--torn); }
.key { display: inline-block; width: .8rem; height: .8rem; margin: 0 .35rem 0 1rem; vertical-align: -.1rem; }
.key.committed { background: var(--committed); } .key.aborted { background: var(--aborted); }
.key.open { background: var(--open); } .key.torn { background: var(--torn); } .key:first-child { margin-left: 0; }
footer { margin-top: 2.5rem; color: var(--soft); font-size: .85rem; }
@media screen and (max-width: 50rem) { .task, .axis { grid-template-columns: 1fr; gap: .2rem; }
  dl { grid-template-columns: 1fr; } dd { margin-bottom: .5rem; } }
"""


class Shown(Protocol):
    """An audit as it came out."""

    @property
    def connector(self) -> AuditedConnector:
        """The audited connector with its verdict."""

    @property
    def rows(self) -> Sequence[AuditRow]:
        """The findings, worst first."""

    @property
    def producers(self) -> Sequence[KnownProducer]:
        """The producers that wrote."""


def write_page(path: Path, done: Shown, *, where: Mapping[str, str | None], made_ms: int) -> None:
    """Write the page; `where` names the cluster and the group. Raises EosctlError, and keeps the former file then."""
    write_blocks(path, (f"{line}\n".encode() for line in page_lines(done, where=where, made_ms=made_ms)))


def page_lines(done: Shown, *, where: Mapping[str, str | None], made_ms: int) -> Iterator[str]:
    """Yield the page, line by line."""
    audited = done.connector
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>Audit of {html_text(audited.connector)}: {_words(audited.verdict)}</title>"
    yield f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>"
    yield from _head(audited, where)
    yield from _timelines(done.producers)
    yield from _findings(done.rows)
    yield from _unseen(audited)
    yield from _producers(done.producers)
    yield f"<footer>Made by eosctl {html_text(version('eosctl'))} at {rfc3339(made_ms)}. Times are UTC.</footer>"
    yield "</main>\n</body>\n</html>"


def _words(verdict: Verdict) -> str:
    return verdict.replace("_", " ")


def _head(audited: AuditedConnector, where: Mapping[str, str | None]) -> Iterator[str]:
    yield f"<h1>Audit of connector {html_text(audited.connector)}</h1>"
    yield f'<p><span class="verdict {audited.verdict}">{_words(audited.verdict)}</span></p>'
    yield f"<p>{html_text(audited.why)}</p>\n<dl>"
    window, transactions = audited.window, audited.transactions
    asked = f"from {rfc3339(window.since_ms) or 'the beginning'} to {rfc3339(window.until_ms) or 'the end of the log'}"
    facts = {
        "Asked for": asked,
        "Proven": proven_text(window),
        "Output topics": ", ".join(audited.topics),
        "Offsets topics": ", ".join(audited.offsets_topics),
        "Transactions": f"{transactions.committed:,} committed, {transactions.aborted:,} aborted, "
        f"{transactions.open:,} open",
        **({"Values": "; ".join(audited.values)} if audited.values else {}),
        **({"Not covered": " ".join(audited.not_covered)} if audited.not_covered else {}),
        "Records": f"{audited.records:,} committed by its tasks; {audited.bytes:,} bytes were read",
        **{name: value for name, value in where.items() if value},
    }
    yield from (f"<dt>{html_text(name)}</dt><dd>{html_text(value)}</dd>" for name, value in facts.items())
    yield "</dl>"


def _timelines(producers: Sequence[KnownProducer]) -> Iterator[str]:
    """Yield a line for each transactional id, those of the connector's tasks first."""
    lines: dict[tuple[bool, str], Timeline] = {}
    for each in producers:
        if each.written.is_transactional:
            name = each.transactional_id or f"producer id {each.written.producer_id}"
            label = name if each.owner_kind is OwnerKind.OWN else f"{name} ({each.owner})"
            lines.setdefault((each.owner_kind is not OwnerKind.OWN, label), Timeline()).take(each.written.timeline)
    times = [at_ms for line in lines.values() for at_ms, _state, _count in line.steps()]
    if not times:
        return
    longest_ms = max(line.step_ms for line in lines.values())
    begin_ms, end_ms = min(times), max(times) + longest_ms
    yield '<h2>Transactions over time</h2>\n<p class="soft">' + "".join(
        f'<span class="key {state}"></span>{state}' for state in _STATES
    )
    yield "<br>The height shows how many ended at a time, compared with the task's most.</p>"
    for (_others, label), line in sorted(lines.items()):
        yield from _timeline(label, line, begin_ms, end_ms)
    ticks = (rfc3339(begin_ms + (end_ms - begin_ms) * number // (_TICKS - 1)) or "" for number in range(_TICKS))
    texts = "".join(f"<span>{tick[11:19]}</span>" for tick in ticks)
    first, last = ((rfc3339(at_ms) or "")[:10] for at_ms in (begin_ms, end_ms))
    yield f'<div class="axis"><span>{first if first == last else f"{first} to {last}"}</span>'
    yield f'<div class="ticks">{texts}</div><span></span></div>'


def _timeline(label: str, line: Timeline, begin_ms: int, end_ms: int) -> Iterator[str]:
    steps = list(line.steps())
    most = max(count for _at_ms, _state, count in steps)
    scale = _WIDTH / (end_ms - begin_ms)
    counts = {state: sum(count for _at_ms, shown_state, count in steps if shown_state == state) for state in _STATES}
    told = ", ".join(f"{count:,} {state}" for state, count in counts.items() if count)
    yield f'<div class="task"><code>{html_text(label)}</code>'
    yield f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{html_text(told)}">'
    for state in _STATES:  # what is rarer, and matters more, lies above
        for at_ms, shown_state, count in steps:
            if shown_state == state:
                height = _HEIGHT if state != COMMITTED else max(4.0, _HEIGHT * count / most)
                wide = max(1.5, line.step_ms * scale - 0.5)
                left = min((at_ms - begin_ms) * scale, _WIDTH - wide)
                yield (
                    f'<rect class="{state}" x="{left:.1f}" y="{_HEIGHT - height:.1f}" width="{wide:.1f}" '
                    f'height="{height:.1f}"><title>{rfc3339(at_ms)}: {count:,} {state}</title></rect>'
                )
    yield f'</svg><span class="soft">{told}</span></div>'


def _findings(rows: Sequence[AuditRow]) -> Iterator[str]:
    yield "<h2>Findings</h2>"
    if not rows:
        yield "<p>Nothing was found.</p>"
        return
    counts = {severity: sum(row.severity == severity for row in rows) for severity in SEVERITIES}
    yield f"<p>{', '.join(counted(count, severity) for severity, count in counts.items() if count)}.</p>"
    yield from _table(("Severity", "Code", "First at", "What"), (_finding_cells(row) for row in rows))
    yield "<h2>What to do</h2>\n<dl>"
    for code, fix in {row.code: row.fix for row in rows if row.fix}.items():
        yield f"<dt><code>{html_text(code)}</code></dt><dd>{html_text(fix)}</dd>"
    yield "</dl>"


def _finding_cells(row: AuditRow) -> Iterator[str]:
    yield f'<td class="fixed {row.severity}">{row.severity}</td>'
    yield f'<td class="fixed"><code>{html_text(row.code)}</code></td>'
    yield f'<td class="fixed">{row.at or ""}</td><td>{html_text(row.message)}</td>'


def _unseen(audited: AuditedConnector) -> Iterator[str]:
    yield "<h2>What was not seen</h2>"
    texts = [*audited.window.unseen, *(each for each in audited.unproven if each not in audited.window.unseen)]
    if not texts:
        yield "<p>Every batch of the window was there.</p>"
        return
    yield f"<ul>{''.join(f'<li>{html_text(text)}</li>' for text in texts)}</ul>"


def _producers(producers: Sequence[KnownProducer]) -> Iterator[str]:
    if not producers:
        return
    yield "<h2>Producers</h2>"
    yield from _table(
        ("Transactional id", "Producer id", "Epochs", "Records", "From", "To", "Whose", "Known by"),
        (_producer_cells(each) for each in producers),
    )


def _producer_cells(producer: KnownProducer) -> Iterator[str]:
    part = producer.part()
    first, last = part.epochs
    cells = (
        part.transactional_id or "", part.producer_id, first if first == last else f"{first} to {last}",
        f"{part.records:,}", rfc3339(part.from_ms) or "", rfc3339(part.to_ms) or "", part.owner, part.identified_by,
    )  # fmt: skip
    yield f"<td>{html_text(str(cells[0]))}</td>"
    yield from (f'<td class="fixed">{html_text(str(cell))}</td>' for cell in cells[1:])


def _table(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    yield f"<table><thead><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr></thead><tbody>"
    for cells in rows:
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table>"
