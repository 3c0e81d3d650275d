"""The page of `--report`: an audit to view, print and file, in one file without references to others.

Text from topics and configs is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from eosctl.audit.log.tallies import ABORTED, COMMITTED, OPEN, TORN, Timeline
from eosctl.audit.rows import AuditedConnector, AuditRow, Verdict, proven_text
from eosctl.audit.verdict import KnownProducer, OwnerKind
from eosctl.core.findings import SEVERITIES, findings_counted
from eosctl.core.wording import rfc3339
from eosctl.foreign import html_text
from eosctl.output.page import facts_list, page, table, text_list, verdict_line

_WIDTH, _HEIGHT = 1000, 28
_TICKS = 5
_STATES = (COMMITTED, ABORTED, OPEN, TORN)
_STYLE = """
:root { --committed: #2f6fb3; --aborted: #c2410c; --open: #a16207; --torn: #7a1fa2; }
@media (prefers-color-scheme: dark) { :root { --committed: #6aa7e8; --aborted: #fb8a5c; --open: #e0b04a;
  --torn: #d59bf0; } }
@media print { :root { --committed: #2f6fb3; --aborted: #c2410c; --open: #a16207; --torn: #7a1fa2; }
  .task { break-inside: avoid; } .task, .axis { grid-template-columns: 9rem 1fr 7rem !important; } }
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
@media screen and (max-width: 50rem) { .task, .axis { grid-template-columns: 1fr; gap: .2rem; } }
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


def page_lines(done: Shown, *, where: Mapping[str, str | None], made_ms: int) -> Iterator[str]:
    """Yield the page, line by line; `where` names the cluster and the group."""
    audited = done.connector
    title = f"Audit of {audited.connector}: {_words(audited.verdict)}"
    yield from page(title, _body(done, where), made_ms=made_ms, style=_STYLE)


def _body(done: Shown, where: Mapping[str, str | None]) -> Iterator[str]:
    yield from _head(done.connector, where)
    yield from _timelines(done.producers)
    yield from _findings(done.rows)
    yield from _unseen(done.connector)
    yield from _producers(done.producers)


def _words(verdict: Verdict) -> str:
    return verdict.replace("_", " ")


def _head(audited: AuditedConnector, where: Mapping[str, str | None]) -> Iterator[str]:
    yield f"<h1>Audit of connector {html_text(audited.connector)}</h1>"
    yield verdict_line(audited.verdict, _words(audited.verdict))
    yield f"<p>{html_text(audited.why)}</p>"
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
    yield from facts_list(facts.items())


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
    yield f"<p>{', '.join(findings_counted(count, severity) for severity, count in counts.items() if count)}.</p>"
    yield from table(("Severity", "Code", "First at", "What"), (_finding_cells(row) for row in rows))
    yield "<h2>What to do</h2>"
    yield from facts_list({row.code: row.fix for row in rows if row.fix}.items())


def _finding_cells(row: AuditRow) -> Iterator[str]:
    yield f'<td class="fixed {row.severity}">{row.severity}</td>'
    yield f'<td class="fixed"><code>{html_text(row.code)}</code></td>'
    yield f'<td class="fixed">{row.at or ""}</td><td>{html_text(row.message)}</td>'


def _unseen(audited: AuditedConnector) -> Iterator[str]:
    texts = [*audited.window.unseen, *(each for each in audited.unproven if each not in audited.window.unseen)]
    yield from text_list("What was not seen", texts, none="Every batch of the window was there.")


def _producers(producers: Sequence[KnownProducer]) -> Iterator[str]:
    if not producers:
        return
    yield "<h2>Producers</h2>"
    yield from table(
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
