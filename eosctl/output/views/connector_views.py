"""How `connectors stop`, `pause`, `resume`, `restart` and `trace` look as text."""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.output.cells import Column, View, format_cell, printable, summary_lines
from eosctl.report import Report


def _trace_lines(report: Report) -> Iterable[str]:
    """Each FAILED part with its chain of causes, the outermost first, and what to do."""
    for row in report.rows:
        yield f"{printable(str(row['message']))} ({row['code']}, {row['part']} on {format_cell(row['worker'])})"
        causes = row["causes"]
        for number, cause in enumerate(causes if isinstance(causes, list) else []):
            yield f"  {'caused by: ' if number else ''}{printable(str(cause))}"
        yield f"  fix: {printable(str(row['fix']))}"
    yield from summary_lines(report)


_CHANGE = View(
    (
        Column("CONNECTOR", "connector"),
        Column("PART", "part"),
        Column("WORKER", "worker"),
        Column("BEFORE", "before"),
        Column("AFTER", "after"),
        Column("OUTCOME", "outcome"),
    ),
    empty="There is nothing to do.",
)

CONNECTOR_VIEWS: dict[str, View] = {
    "connectors-change-plan": _CHANGE,
    "connectors-change-result": _CHANGE,
    "connectors-trace": View((), footer=_trace_lines, empty="Nothing is FAILED.", prose=False),
}
