"""Which columns and closing lines each kind of report shows as text: a table, so that text shows what JSON reports."""

from __future__ import annotations

from eosctl.output.cells import Column, View
from eosctl.report import Report

VIEWS: dict[str, View] = {
}


def view_of(report: Report) -> View:
    if report.kind in VIEWS:
        return VIEWS[report.kind]
    keys = list(report.rows[0]) if report.rows else []
    return View(tuple(Column(key.upper().replace("_", "-"), key) for key in keys))
